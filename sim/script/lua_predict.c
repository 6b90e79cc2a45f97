// ft.predict{…} and ft.explore{…}.
#include <stdio.h>
#include <string.h>

#include <lauxlib.h>

#include "script/lua_kernel.h"
#include "script/lua_module.h"
#include "script/sandbox.h"

static const char *const space_type = "foretile.space";

// --- the table of arguments, at stack index 1 ---

static bool is_reserved(const char *key) {
  return strcmp(key, "arch") == 0 || strcmp(key, "workload") == 0 || strcmp(key, "where") == 0;
}

static bool is_parameter(const char *key) { return strcmp(key, "seqlen") == 0 || ftl_param_find(key) >= 0; }

static void raise_unknown(lua_State *lua, const char *key) {
  const char *name = lua_getfield(lua, 1, "workload") == LUA_TSTRING ? lua_tostring(lua, -1) : "";
  const ftl_workload *workload = ftl_workload_find(name);
  const char *nearest = workload != NULL ? ftl_workload_param_nearest(workload, key) : ftl_param_nearest(key);
  if (nearest != NULL) luaL_error(lua, "unknown parameter \"%s\"; the nearest is %s", key, nearest);
  luaL_error(lua, "unknown parameter \"%s\"; foretile workload show %s lists those of %s", key, name, name);
}

// Of several unknown keys the first by name is reported: Lua's own order differs from run to run.
static void check_keys(lua_State *lua) {
  const char *unknown = NULL;
  lua_pushnil(lua);
  while (lua_next(lua, 1) != 0) {
    lua_pop(lua, 1);
    if (lua_type(lua, -1) != LUA_TSTRING) {
      luaL_error(lua, "parameters are written name = value; there is a value without a name");
    }
    const char *key = lua_tostring(lua, -1);
    if (is_reserved(key) || is_parameter(key)) continue;
    if (unknown == NULL || strcmp(key, unknown) < 0) unknown = key;  // the table keeps it alive
  }
  if (unknown != NULL) raise_unknown(lua, unknown);
}

static bool is_list(const char *name) {
  int param = ftl_param_find(name);
  return param >= 0 && ftl_param_get((ftl_param)param)->is_list;
}

// { 512, 77 } as the command line writes it: 512:77, or none.
static void list_text(lua_State *lua, int index, const char *name, char *text) {
  size_t size = 0;
  lua_Integer count = (lua_Integer)lua_rawlen(lua, index);
  snprintf(text, FTL_LUA_VALUE_BYTES, "none");
  for (lua_Integer i = 1; i <= count; i++) {
    int is_integer = 0;
    lua_rawgeti(lua, index, i);
    lua_Integer number = lua_tointegerx(lua, -1, &is_integer);
    if (lua_type(lua, -1) != LUA_TNUMBER || !is_integer) luaL_error(lua, "%s[%d] must be a whole number", name, (int)i);
    lua_pop(lua, 1);
    size_t room = FTL_LUA_VALUE_BYTES - size;
    size += (size_t)snprintf(text + size, room, "%s%lld", i > 1 ? ":" : "", (long long)number);
    if (size >= FTL_LUA_VALUE_BYTES) {
      luaL_error(lua, "%s is longer than %d characters; write runs as \"4096x8\"", name, FTL_LUA_VALUE_BYTES - 1);
    }
    ftl_sandbox_charge(lua, 1);
  }
}

void ftl_lua_value_text(lua_State *lua, int index, const char *name, char *text) {
  index = lua_absindex(lua, index);
  if (lua_istable(lua, index) && is_list(name)) {
    list_text(lua, index, name, text);
    return;
  }
  switch (lua_type(lua, index)) {
    case LUA_TBOOLEAN:
      snprintf(text, FTL_LUA_VALUE_BYTES, "%s", lua_toboolean(lua, index) ? "true" : "false");
      break;
    case LUA_TNUMBER: {
      int is_integer = 0;
      lua_Integer value = lua_tointegerx(lua, index, &is_integer);
      if (is_integer) {
        snprintf(text, FTL_LUA_VALUE_BYTES, "%lld", (long long)value);
      } else {
        snprintf(text, FTL_LUA_VALUE_BYTES, "%.14g", lua_tonumber(lua, index));
      }
      break;
    }
    case LUA_TSTRING:
      if (snprintf(text, FTL_LUA_VALUE_BYTES, "%s", lua_tostring(lua, index)) >= FTL_LUA_VALUE_BYTES) {
        luaL_error(lua, "%s is longer than %d characters", name, FTL_LUA_VALUE_BYTES - 1);
      }
      break;
    default:
      luaL_error(lua, "%s must be a number, a name, or true or false, not a %s", name, luaL_typename(lua, index));
  }
}

static int space_collect(lua_State *lua) {
  ftl_space_fini(luaL_checkudata(lua, 1, space_type));
  return 0;
}

static void add_value(lua_State *lua, ftl_space *space, const char *name, int index) {
  char text[FTL_LUA_VALUE_BYTES];
  ftl_error error;
  ftl_lua_value_text(lua, index, name, text);
  if (ftl_space_add(space, name, text, &error) != FTL_OK) ftl_lua_raise(lua, &error);
}

// Adds field `name` of the arguments: one value, or where `lists` a list of them (of lists, where a value is one).
static void add_field(lua_State *lua, ftl_space *space, const char *name, bool lists) {
  int type = lua_getfield(lua, 1, name);
  if (type == LUA_TTABLE && lists) {
    lua_Integer num_values = (lua_Integer)lua_rawlen(lua, -1);
    ftl_error error;
    if (num_values == 0) luaL_error(lua, "%s is an empty list", name);
    if (ftl_space_check_room(space, name, num_values, &error) != FTL_OK) ftl_lua_raise(lua, &error);
    for (lua_Integer i = 1; i <= num_values; i++) {
      lua_rawgeti(lua, -1, i);
      add_value(lua, space, name, -1);
      lua_pop(lua, 1);
      ftl_sandbox_charge(lua, 1);
    }
  } else if (type == LUA_TTABLE && !is_list(name)) {
    luaL_error(lua, "%s is a list; ft.predict takes one value, ft.explore takes lists", name);
  } else if (type != LUA_TNIL) {
    add_value(lua, space, name, -1);
  }
  lua_pop(lua, 1);
}

static bool has_field(lua_State *lua, const char *name) {
  bool there = lua_getfield(lua, 1, name) != LUA_TNIL;
  lua_pop(lua, 1);
  return there;
}

// Pushes a userdata with the space that the arguments describe.
static ftl_space *push_space(lua_State *lua, bool lists) {
  if (lua_getfield(lua, 1, "workload") != LUA_TSTRING) luaL_error(lua, "workload = \"...\" is missing");
  ftl_space *space = lua_newuserdatauv(lua, sizeof *space, 0);
  memset(space, 0, sizeof *space);
  if (luaL_newmetatable(lua, space_type)) {
    lua_pushcfunction(lua, space_collect);
    lua_setfield(lua, -2, "__gc");
  }
  lua_setmetatable(lua, -2);
  ftl_error error;
  if (ftl_space_init(space, lua_tostring(lua, -2), &error) != FTL_OK) ftl_lua_raise(lua, &error);
  lua_remove(lua, -2);
  add_field(lua, space, "seqlen", lists);
  for (int i = 0; i < FTL_PARAM_COUNT; i++) add_field(lua, space, ftl_param_get((ftl_param)i)->name, lists);
  const char *detail = ftl_lua_session(lua)->detail;
  if (detail != NULL && !has_field(lua, "detail") && ftl_space_add(space, "detail", detail, &error) != FTL_OK) {
    ftl_lua_raise(lua, &error);
  }
  return space;
}

int ftl_lua_get_archs(lua_State *lua, bool lists, const ftl_arch **archs) {
  int num_archs = 1;
  int type = lua_getfield(lua, 1, "arch");
  if (type == LUA_TNIL) luaL_error(lua, "arch = \"...\" is missing");
  if (type == LUA_TTABLE && lists) {
    lua_Unsigned size = lua_rawlen(lua, -1);
    if (size < 1 || size > FTL_LUA_MAX_ARCHS) luaL_error(lua, "arch must list 1 to %d GPUs", FTL_LUA_MAX_ARCHS);
    num_archs = (int)size;
    for (int i = 0; i < num_archs; i++) {
      lua_rawgeti(lua, -1, i + 1);
      archs[i] = ftl_lua_to_arch(lua, -1);
      lua_pop(lua, 1);
    }
  } else {
    archs[0] = ftl_lua_to_arch(lua, -1);
  }
  lua_pop(lua, 1);
  return num_archs;
}

// --- predicting ---

ftl_answer *ftl_lua_push_answers(lua_State *lua, const ftl_point *points, int64_t num_points) {
  ftl_answer *answers = ftl_lua_push_block(lua, sizeof *answers * (size_t)(num_points > 0 ? num_points : 1), 1);
  ftl_error error;
  if (ftl_session_evaluate(ftl_lua_session(lua), points, num_points, answers, &error) != FTL_OK) {
    ftl_lua_raise(lua, &error);
  }
  return answers;
}

// Whether the workload is a kernel of the script's.
static bool asks_for_kernel(lua_State *lua) {
  lua_getfield(lua, 1, "workload");
  bool is_kernel = ftl_lua_test_kernel(lua, -1) != NULL;
  lua_pop(lua, 1);
  return is_kernel;
}

// Leaves what the point was read from on the stack.
static void read_point(lua_State *lua, ftl_point *out) {
  ftl_error error;
  check_keys(lua);
  if (has_field(lua, "where")) luaL_error(lua, "where is for ft.explore");
  ftl_lua_get_archs(lua, false, &out->arch);
  const ftl_space *space = push_space(lua, false);
  if (ftl_point_make(space, 0, out->arch, out, &error) != FTL_OK) ftl_lua_raise(lua, &error);
  if (!ftl_point_is_well_formed(out)) luaL_error(lua, "%s", out->contradiction);
}

void ftl_lua_get_point(lua_State *lua, ftl_point *out) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  lua_settop(lua, 1);
  if (asks_for_kernel(lua)) luaL_error(lua, "ft.explain takes the name of a workload, not a kernel");
  read_point(lua, out);
}

int ftl_lua_predict(lua_State *lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  lua_settop(lua, 1);
  if (asks_for_kernel(lua)) return ftl_lua_kernel_predict(lua);
  ftl_point point;
  read_point(lua, &point);
  const ftl_answer *answer = ftl_lua_push_answers(lua, &point, 1);
  ftl_row row = {.arch = point.arch, .prediction = &answer->prediction};
  ftl_lua_push_result(lua, &row, -1);
  return 1;
}

// Pushes a userdata with the points; GPU after GPU. `where` is not asked about those that contradict themselves: their
// parameters may lack values.
static ftl_point *push_points(lua_State *lua, const ftl_space *space, const ftl_arch *const *archs, int num_archs,
                              int64_t *num_points) {
  int64_t per_arch = ftl_space_num_points(space);
  if (per_arch > FTL_SPACE_MAX_POINTS / num_archs) {
    luaL_error(lua, "more than %d combinations; split the exploration", FTL_SPACE_MAX_POINTS);
  }
  int type = lua_getfield(lua, 1, "where");
  if (type != LUA_TNIL && type != LUA_TFUNCTION) luaL_error(lua, "where must be a function of the parameters");
  int where = lua_gettop(lua);
  ftl_point *points = ftl_lua_push_block(lua, sizeof *points * (size_t)(per_arch * num_archs), 0);
  ftl_error error;
  bool any_well_formed = false;
  *num_points = 0;
  for (int a = 0; a < num_archs; a++) {
    for (int64_t i = 0; i < per_arch; i++) {
      ftl_point *point = &points[*num_points];
      if (ftl_point_make(space, i, archs[a], point, &error) != FTL_OK) ftl_lua_raise(lua, &error);
      bool is_well_formed = ftl_point_is_well_formed(point);
      any_well_formed = any_well_formed || is_well_formed;
      if (!is_well_formed || ftl_lua_is_wanted(lua, where, &point->spec)) ++*num_points;
    }
  }
  if (!any_well_formed) luaL_error(lua, "%s", points[0].contradiction);
  return points;
}

int ftl_lua_explore(lua_State *lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  lua_settop(lua, 1);
  if (asks_for_kernel(lua)) return ftl_lua_kernel_explore(lua);
  check_keys(lua);
  const ftl_arch *archs[FTL_LUA_MAX_ARCHS];
  int num_archs = ftl_lua_get_archs(lua, true, archs);
  const ftl_space *space = push_space(lua, true);
  int64_t num_points = 0;
  const ftl_point *points = push_points(lua, space, archs, num_archs, &num_points);
  const ftl_answer *answers = ftl_lua_push_answers(lua, points, num_points);
  ftl_row *rows = ftl_lua_push_result_set(lua, num_points, -1);
  for (int64_t i = 0; i < num_points; i++) {
    rows[i] = (ftl_row){.arch = points[i].arch, .prediction = &answers[i].prediction};
  }
  return 1;
}
