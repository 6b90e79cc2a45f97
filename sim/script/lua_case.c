// One measured case in a scenario: c.block_m, c.params, c.measured["dram__bytes_read.sum"], c.predicted, c:compare().
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "script/lua_cases.h"

static const char *const case_type = "foretile.case";

static const ftl_lua_case *check_case(lua_State *lua) {
  return *(const ftl_lua_case **)luaL_checkudata(lua, 1, case_type);
}

void ftl_lua_push_case(lua_State *lua, const ftl_lua_case *c, int store) {
  store = lua_absindex(lua, store);
  const ftl_lua_case **box = lua_newuserdatauv(lua, sizeof *box, 1);
  *box = c;
  lua_pushvalue(lua, store);
  lua_setiuservalue(lua, -2, 1);
  luaL_setmetatable(lua, case_type);
}

// --- tables ---

static void set_text(lua_State *lua, const char *key, const char *text) {
  if (text[0] == '\0') return;
  lua_pushstring(lua, text);
  lua_setfield(lua, -2, key);
}

// What the row says, so that ft.predict leaves open what it leaves open.
static void push_params(lua_State *lua, const ftl_measured_case *c) {
  lua_newtable(lua);
  set_text(lua, "arch", c->arch);
  set_text(lua, "workload", c->spec.workload->name);
  for (int i = 0; i < FTL_PARAM_COUNT; i++) {
    if ((c->spec.given >> i & 1) == 0) continue;
    ftl_lua_push_param(lua, &c->spec, i);
    lua_setfield(lua, -2, ftl_param_get((ftl_param)i)->name);
  }
}

static void push_measured(lua_State *lua, const ftl_case *c) {
  lua_newtable(lua);
  for (int i = 0; i < FTL_METRIC_COUNT; i++) {
    if (!isnan(c->measured[i])) ftl_lua_set_number(lua, ftl_metric_get((ftl_metric)i)->name, c->measured[i]);
  }
}

static int64_t num_profiles(const ftl_case *c) {
  int64_t most = 0;
  for (int i = 0; i < FTL_METRIC_COUNT; i++) most = c->counts[i] > most ? c->counts[i] : most;
  return most;
}

static void push_provenance(lua_State *lua, const ftl_case *c) {
  const ftl_provenance *p = &c->provenance;
  const char *colon = strrchr(c->place, ':');
  lua_newtable(lua);
  lua_pushlstring(lua, c->place, (size_t)(colon - c->place));
  lua_setfield(lua, -2, "file");
  lua_pushinteger(lua, strtoll(colon + 1, NULL, 10));
  lua_setfield(lua, -2, "line");
  lua_pushinteger(lua, num_profiles(c));
  lua_setfield(lua, -2, "profiles");
  set_text(lua, "source", c->measured_case.source);
  set_text(lua, "part", ftl_part_name(c->measured_case.part));
  set_text(lua, "gpu", p->gpu);
  set_text(lua, "driver", p->driver);
  set_text(lua, "cuda", p->cuda);
  set_text(lua, "ncu", p->ncu);
  set_text(lua, "date", p->date);
}

// The case is at 1; nil before it is predicted.
static void push_predicted(lua_State *lua, const ftl_lua_case *c) {
  if (c->one.prediction == NULL) {
    lua_pushnil(lua);
    return;
  }
  ftl_row row = {.arch = c->arch, .prediction = c->one.prediction};
  lua_getiuservalue(lua, 1, 1);
  lua_getiuservalue(lua, -1, 1);
  ftl_lua_push_result(lua, &row, -1);
}

void ftl_lua_push_comparison(lua_State *lua, const ftl_case *c) {
  lua_newtable(lua);
  for (int q = 0; q < FTL_QUANTITY_COUNT; q++) {
    double measured = 0, predicted = 0, error = 0;
    if (!ftl_case_measured(c, (ftl_quantity)q, &measured)) continue;
    lua_createtable(lua, 0, 4);
    ftl_lua_set_number(lua, "measured", measured);
    set_text(lua, "unit", ftl_quantity_unit((ftl_quantity)q));
    if (ftl_case_values(c, (ftl_quantity)q, &measured, &predicted)) ftl_lua_set_number(lua, "predicted", predicted);
    if (ftl_case_error(c, (ftl_quantity)q, &error)) ftl_lua_set_number(lua, "error", error);
    const char *metric = ftl_quantity_metric_name((ftl_quantity)q);
    if (metric != NULL) {
      lua_pushvalue(lua, -1);
      lua_setfield(lua, -3, metric);
    }
    lua_setfield(lua, -2, ftl_quantity_id((ftl_quantity)q));
  }
}

// --- methods ---

// Pushes the case at 1, predicted: itself if it is.
static void push_predicted_case(lua_State *lua, int options) {
  const ftl_lua_case *c = check_case(lua);
  lua_getiuservalue(lua, 1, 1);
  ftl_lua_push_case_set(lua, 1, -1)[0] = &c->one;
  ftl_lua_push_predicted(lua, lua_gettop(lua), options);
  lua_pushinteger(lua, 1);
  lua_gettable(lua, -2);
}

// c:predict{ arch = ..., detail = ... }: the result.
static int case_predict(lua_State *lua) {
  check_case(lua);
  lua_settop(lua, 2);
  push_predicted_case(lua, lua_isnil(lua, 2) ? 0 : 2);
  lua_getfield(lua, -1, "predicted");
  return 1;
}

static int case_compare(lua_State *lua) {
  const ftl_lua_case *c = check_case(lua);
  lua_settop(lua, 1);
  if (c->one.prediction == NULL) {
    push_predicted_case(lua, 0);
    c = *(const ftl_lua_case **)lua_touserdata(lua, -1);
  }
  ftl_lua_push_comparison(lua, &c->one);
  return 1;
}

// --- fields ---

// Whether `name` was one; then it is pushed.
static bool push_field(lua_State *lua, const char *name, const ftl_lua_case *c) {
  const ftl_measured_case *m = &c->one.measured_case;
  if (strcmp(name, "arch") == 0) {
    lua_pushstring(lua, m->arch);
  } else if (strcmp(name, "workload") == 0) {
    lua_pushstring(lua, m->spec.workload->name);
  } else if (strcmp(name, "part") == 0) {
    lua_pushstring(lua, ftl_part_name(m->part));
  } else if (strcmp(name, "source") == 0) {
    lua_pushstring(lua, m->source);
  } else if (strcmp(name, "place") == 0) {
    lua_pushstring(lua, c->one.place);
  } else if (strcmp(name, "params") == 0) {
    push_params(lua, m);
  } else if (strcmp(name, "measured") == 0) {
    push_measured(lua, &c->one);
  } else if (strcmp(name, "provenance") == 0) {
    push_provenance(lua, &c->one);
  } else if (strcmp(name, "predicted") == 0) {
    push_predicted(lua, c);
  } else {
    return false;
  }
  return true;
}

static int case_index(lua_State *lua) {
  const ftl_lua_case *c = check_case(lua);
  const char *name = luaL_checkstring(lua, 2);
  if (push_field(lua, name, c)) return 1;
  if (strcmp(name, "predict") == 0) return lua_pushcfunction(lua, case_predict), 1;
  if (strcmp(name, "compare") == 0) return lua_pushcfunction(lua, case_compare), 1;
  int param = ftl_param_find(name);
  if (param >= 0) return ftl_lua_push_param(lua, &c->one.measured_case.spec, param), 1;
  return luaL_error(lua,
                    "a measured case has no \"%s\": it has arch, workload, part, source, place, params, measured, "
                    "provenance, predicted, :predict(), :compare(), and parameters, of which the nearest is %s",
                    name, ftl_param_nearest(name));
}

static int case_tostring(lua_State *lua) {
  const ftl_lua_case *c = check_case(lua);
  ftl_text *text = ftl_lua_push_text(lua);
  ftl_text_add(text, "%s: ", c->one.place);
  ftl_spec_canonical(&c->one.measured_case.spec, text);
  ftl_text_add(text, " on %s", c->one.measured_case.arch);
  ftl_lua_take_text(lua, text);
  return 1;
}

void ftl_lua_open_case(lua_State *lua) {
  const luaL_Reg functions[] = {{"__index", case_index}, {"__tostring", case_tostring}, {NULL, NULL}};
  luaL_newmetatable(lua, case_type);
  luaL_setfuncs(lua, functions, 0);
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");
  lua_pop(lua, 1);
}
