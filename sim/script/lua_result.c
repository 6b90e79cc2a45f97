// One answer in a scenario: r.time_us, r["dram__bytes_read.sum"], r.block_m, r.feasible, r.reason, r.kernels.
#include <math.h>
#include <string.h>

#include <lauxlib.h>

#include "report/prediction_report.h"
#include "script/lua_kernel.h"
#include "script/lua_module.h"

static const char *const result_type = "foretile.result";
static const char *const asked_params_type = "foretile.asked_params";

void ftl_lua_push_number(lua_State *lua, double value) {
  const double exact_limit = 9007199254740992.0;  // 2^53
  if (value == floor(value) && fabs(value) <= exact_limit) {
    lua_pushinteger(lua, (lua_Integer)value);
  } else {
    lua_pushnumber(lua, value);
  }
}

void ftl_lua_set_number(lua_State *lua, const char *key, double value) {
  if (!isfinite(value)) return;
  ftl_lua_push_number(lua, value);
  lua_setfield(lua, -2, key);
}

void ftl_lua_push_result(lua_State *lua, const ftl_row *row, int owner) {
  owner = lua_absindex(lua, owner);
  ftl_row *copy = lua_newuserdatauv(lua, sizeof *copy, 1);
  *copy = *row;
  lua_pushvalue(lua, owner);
  lua_setiuservalue(lua, -2, 1);
  luaL_setmetatable(lua, result_type);
}

void ftl_lua_push_param(lua_State *lua, const ftl_spec *spec, int param) {
  char buffer[32];
  const ftl_param_info *info = ftl_param_get((ftl_param)param);
  if (!ftl_spec_takes(spec, (ftl_param)param)) {
    lua_pushnil(lua);
  } else if (ftl_param_is_text((ftl_param)param)) {
    lua_pushstring(lua, ftl_spec_text(spec, (ftl_param)param, buffer));
  } else if (strcmp(info->unit, "bool") == 0) {
    lua_pushboolean(lua, spec->value[param] != 0);
  } else if (info->is_real) {
    lua_pushnumber(lua, ftl_spec_real(spec, (ftl_param)param));
  } else {
    lua_pushinteger(lua, spec->value[param]);
  }
}

void ftl_lua_push_params(lua_State *lua, const ftl_spec *spec) {
  const ftl_user_kernel *kernel = spec->workload->user_kernel;
  lua_createtable(lua, 0, FTL_PARAM_COUNT);
  for (int i = 0; kernel != NULL && i < kernel->num_params; i++) {
    ftl_lua_push_own_param(lua, &kernel->params[i]);
    lua_setfield(lua, -2, kernel->params[i].name);
  }
  for (int i = 0; i < FTL_PARAM_COUNT; i++) {
    if (kernel != NULL && !ftl_spec_takes(spec, (ftl_param)i)) continue;  // its own may have such a name
    ftl_lua_push_param(lua, spec, i);
    lua_setfield(lua, -2, ftl_param_get((ftl_param)i)->name);
  }
}

// A parameter that is not there is a mistake in `where`, which as nil would leave out every combination. Of several as
// near the first by name: Lua's own order differs from run to run.
static int asked_params_index(lua_State *lua) {
  const char *name = luaL_tolstring(lua, 2, NULL), *nearest = "";
  int least = INT32_MAX;
  for (lua_pushnil(lua); lua_next(lua, 1) != 0; lua_pop(lua, 1)) {
    const char *candidate = lua_tostring(lua, -2);  // the table keeps it alive
    int distance = ftl_edit_distance(name, candidate);
    if (distance > least || (distance == least && strcmp(candidate, nearest) > 0)) continue;
    least = distance;
    nearest = candidate;
  }
  return luaL_error(lua, "where: there is no parameter \"%s\"; the nearest is %s", name, nearest);
}

bool ftl_lua_is_wanted(lua_State *lua, int where, const ftl_spec *spec) {
  if (lua_isnil(lua, where)) return true;
  lua_pushvalue(lua, where);
  ftl_lua_push_params(lua, spec);
  luaL_setmetatable(lua, asked_params_type);
  lua_call(lua, 1, 1);
  bool is_wanted = lua_toboolean(lua, -1);
  lua_pop(lua, 1);
  return is_wanted;
}

static void push_metrics(lua_State *lua, const ftl_metrics *metrics) {
  lua_createtable(lua, 0, FTL_METRIC_COUNT);
  for (int i = 0; i < FTL_METRIC_COUNT; i++) {
    ftl_lua_push_number(lua, metrics->value[i]);
    lua_setfield(lua, -2, ftl_metric_get((ftl_metric)i)->name);
  }
}

static void push_kernels(lua_State *lua, const ftl_prediction *prediction) {
  lua_createtable(lua, prediction->num_kernels, 0);
  for (int i = 0; i < prediction->num_kernels; i++) {
    lua_createtable(lua, 0, 2);
    lua_pushstring(lua, prediction->kernels[i].name);
    lua_setfield(lua, -2, "name");
    push_metrics(lua, &prediction->kernels[i].metrics);
    lua_setfield(lua, -2, "metrics");
    lua_rawseti(lua, -2, i + 1);
  }
}

// Whole things rather than columns. Whether `name` was one.
static bool push_part(lua_State *lua, const char *name, const ftl_prediction *prediction) {
  if (strcmp(name, "feasible") == 0) {
    lua_pushboolean(lua, prediction->feasible);
  } else if (strcmp(name, "params") == 0) {
    ftl_lua_push_params(lua, &prediction->spec);
  } else if (strcmp(name, "kernels") == 0) {
    push_kernels(lua, prediction);
  } else if (strcmp(name, "metrics") == 0) {
    push_metrics(lua, &prediction->metrics);
  } else if (strcmp(name, "error_bound_cycles_pct") == 0) {
    lua_pushnumber(lua, prediction->error_bound_cycles_pct);
  } else if (strcmp(name, "error_bound_hbm_bytes_pct") == 0) {
    lua_pushnumber(lua, prediction->error_bound_hbm_bytes_pct);
  } else if (strcmp(name, "wall_s") == 0) {
    lua_pushnumber(lua, prediction->wall_s);
  } else {
    return false;
  }
  return true;
}

static void push_column(lua_State *lua, const ftl_row *row, ftl_column column) {
  const ftl_prediction *prediction = row->prediction;
  double value = 0;
  switch (column.kind) {
    case FTL_COLUMN_OWN:
      ftl_lua_push_own_param(lua, &prediction->spec.workload->user_kernel->params[column.idx]);
      break;
    case FTL_COLUMN_PARAM:
      ftl_lua_push_param(lua, &prediction->spec, column.idx);
      break;
    case FTL_COLUMN_ARCH:
      lua_pushstring(lua, row->arch->name);
      break;
    case FTL_COLUMN_WORKLOAD:
      lua_pushstring(lua, prediction->spec.workload->name);
      break;
    case FTL_COLUMN_BOTTLENECK:
      lua_pushstring(lua, prediction->feasible ? prediction->bottleneck : NULL);
      break;
    case FTL_COLUMN_REASON:
      lua_pushstring(lua, prediction->feasible ? NULL : prediction->reason);
      break;
    default:
      if (ftl_column_number(column, row, &value)) {
        ftl_lua_push_number(lua, value);
      } else {
        lua_pushnil(lua);
      }
  }
}

static int result_index(lua_State *lua) {
  const ftl_row *row = luaL_checkudata(lua, 1, result_type);
  const char *name = luaL_checkstring(lua, 2);
  if (push_part(lua, name, row->prediction)) return 1;
  ftl_column column;
  ftl_error error;
  if (ftl_column_find_among(row, 1, name, &column, &error) != FTL_OK) return ftl_lua_raise(lua, &error);
  push_column(lua, row, column);
  return 1;
}

static int result_tostring(lua_State *lua) {
  const ftl_row *row = luaL_checkudata(lua, 1, result_type);
  ftl_error error;
  ftl_text *text = ftl_lua_push_text(lua);
  if (ftl_prediction_text(row, text, &error) != FTL_OK) return ftl_lua_raise(lua, &error);
  ftl_lua_take_text(lua, text);
  return 1;
}

void ftl_lua_open_result(lua_State *lua) {
  const luaL_Reg functions[] = {{"__index", result_index}, {"__tostring", result_tostring}, {NULL, NULL}};
  luaL_newmetatable(lua, result_type);
  luaL_setfuncs(lua, functions, 0);
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");
  lua_pop(lua, 1);
  luaL_newmetatable(lua, asked_params_type);
  lua_pushcfunction(lua, asked_params_index);
  lua_setfield(lua, -2, "__index");
  lua_pop(lua, 1);
}
