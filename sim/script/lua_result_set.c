// Result sets: what ft.explore gives. A set is an array of rows; sets made from it share the answers.
#include <limits.h>
#include <string.h>

#include <lauxlib.h>

#include "report/ranking.h"
#include "report/svg.h"
#include "report/why.h"
#include "script/lua_module.h"
#include "script/sandbox.h"

static const char *const set_type = "foretile.result_set";

typedef struct result_set {
  int64_t num_rows;
  ftl_row rows[];
} result_set;

ftl_row *ftl_lua_push_result_set(lua_State *lua, int64_t num_rows, int owner) {
  owner = lua_absindex(lua, owner);
  result_set *set = lua_newuserdatauv(lua, sizeof *set + sizeof(ftl_row) * (size_t)num_rows, 1);
  set->num_rows = num_rows;
  lua_pushvalue(lua, owner);
  lua_setiuservalue(lua, -2, 1);
  luaL_setmetatable(lua, set_type);
  return set->rows;
}

static result_set *check_set(lua_State *lua) { return luaL_checkudata(lua, 1, set_type); }

// Pushes a set like the one at 1 with room for num_rows.
static result_set *push_like(lua_State *lua, int64_t num_rows) {
  lua_getiuservalue(lua, 1, 1);
  ftl_lua_push_result_set(lua, num_rows, -1);
  lua_remove(lua, -2);
  return lua_touserdata(lua, -1);
}

static void push_row(lua_State *lua, const ftl_row *row) {
  lua_getiuservalue(lua, 1, 1);
  ftl_lua_push_result(lua, row, -1);
  lua_remove(lua, -2);
}

static void check_status(lua_State *lua, ftl_status status, const ftl_error *error) {
  if (status != FTL_OK) ftl_lua_raise(lua, error);
}

static ftl_column check_column(lua_State *lua, const result_set *set, const char *name) {
  ftl_column column;
  ftl_error error;
  check_status(lua, ftl_column_find_among(set->rows, set->num_rows, name, &column, &error), &error);
  return column;
}

// --- sets from sets ---

static int set_rank(lua_State *lua) {
  const result_set *set = check_set(lua);
  ftl_column by;
  ftl_error error;
  check_status(lua, ftl_rank_column_find_among(set->rows, set->num_rows, luaL_optstring(lua, 2, "time"), &by, &error),
               &error);
  result_set *ranked = push_like(lua, set->num_rows);
  memcpy(ranked->rows, set->rows, sizeof *set->rows * (size_t)set->num_rows);
  ftl_sandbox_charge(lua, 20 * set->num_rows);
  check_status(lua, ftl_rows_rank(ranked->rows, ranked->num_rows, by, &error), &error);
  return 1;
}

// The best, or nil when nothing is feasible.
static int set_best(lua_State *lua) {
  set_rank(lua);
  const result_set *ranked = lua_touserdata(lua, -1);
  if (ftl_rows_num_feasible(ranked->rows, ranked->num_rows) == 0) {
    lua_pushnil(lua);
  } else {
    push_row(lua, &ranked->rows[0]);
  }
  return 1;
}

static int set_top(lua_State *lua) {
  const result_set *set = check_set(lua);
  lua_Integer count = luaL_checkinteger(lua, 2);
  luaL_argcheck(lua, count >= 0, 2, "a number of results, 0 or more");
  int64_t num_rows = count < set->num_rows ? count : set->num_rows;
  result_set *top = push_like(lua, num_rows);
  memcpy(top->rows, set->rows, sizeof *set->rows * (size_t)num_rows);
  return 1;
}

static int with_feasible(lua_State *lua, bool feasible) {
  const result_set *set = check_set(lua);
  result_set *part = push_like(lua, set->num_rows);
  part->num_rows = 0;
  for (int64_t i = 0; i < set->num_rows; i++) {
    if (set->rows[i].prediction->feasible == feasible) part->rows[part->num_rows++] = set->rows[i];
  }
  return 1;
}

static int set_feasible(lua_State *lua) { return with_feasible(lua, true); }
static int set_infeasible(lua_State *lua) { return with_feasible(lua, false); }

static int set_filter(lua_State *lua) {
  const result_set *set = check_set(lua);
  luaL_checktype(lua, 2, LUA_TFUNCTION);
  lua_settop(lua, 2);
  result_set *part = push_like(lua, set->num_rows);
  part->num_rows = 0;
  for (int64_t i = 0; i < set->num_rows; i++) {
    lua_pushvalue(lua, 2);
    push_row(lua, &set->rows[i]);
    lua_call(lua, 1, 1);
    if (lua_toboolean(lua, -1)) part->rows[part->num_rows++] = set->rows[i];
    lua_pop(lua, 1);
  }
  return 1;
}

// --- text ---

static int set_table(lua_State *lua) {
  const result_set *set = check_set(lua);
  ftl_error error;
  ftl_sandbox_charge(lua, 100 * set->num_rows);
  if (lua_isnoneornil(lua, 2)) {
    ftl_text *text = ftl_lua_push_text(lua);
    ftl_varying varying = ftl_rows_varying(set->rows, set->num_rows);
    check_status(lua, ftl_rows_ranking(set->rows, set->num_rows, varying, text, &error), &error);
    ftl_rows_infeasible(set->rows, set->num_rows, varying, text);
    ftl_lua_take_text(lua, text);
    return 1;
  }
  luaL_checktype(lua, 2, LUA_TTABLE);
  lua_Unsigned num_columns = lua_rawlen(lua, 2);
  luaL_argcheck(lua, num_columns >= 1 && num_columns <= 64, 2, "a list of 1 to 64 column names");
  ftl_column columns[64];
  for (lua_Unsigned i = 0; i < num_columns; i++) {
    if (lua_rawgeti(lua, 2, (lua_Integer)i + 1) != LUA_TSTRING) {
      return luaL_error(lua, "column %d must be a name, not a %s", (int)i + 1, luaL_typename(lua, -1));
    }
    columns[i] = check_column(lua, set, lua_tostring(lua, -1));
    lua_pop(lua, 1);
  }
  ftl_text *text = ftl_lua_push_text(lua);
  check_status(lua, ftl_rows_table(set->rows, set->num_rows, columns, (int)num_columns, text, &error), &error);
  ftl_lua_take_text(lua, text);
  return 1;
}

// :plot("tflops") or :plot{ y = "tflops", width = 60 }
static int set_plot(lua_State *lua) {
  const result_set *set = check_set(lua);
  const char *name = "time_us";
  lua_Integer width = 50;
  lua_settop(lua, 2);
  if (lua_type(lua, 2) == LUA_TTABLE) {
    lua_getfield(lua, 2, "y");
    lua_getfield(lua, 2, "width");
    name = luaL_optstring(lua, 3, name);
    width = luaL_optinteger(lua, 4, width);
  } else {
    name = luaL_optstring(lua, 2, name);
  }
  if (width < 1 || width > 200) return luaL_error(lua, "width must be 1 to 200 characters");
  ftl_column column = check_column(lua, set, name);
  if (!ftl_column_is_number(column)) return luaL_error(lua, "%s is no number, so it has no bars", name);
  ftl_error error;
  ftl_sandbox_charge(lua, 100 * set->num_rows);
  ftl_text *text = ftl_lua_push_text(lua);
  check_status(lua, ftl_rows_bars(set->rows, set->num_rows, column, (int)width, text, &error), &error);
  ftl_lua_take_text(lua, text);
  return 1;
}

static int set_why(lua_State *lua) {
  const result_set *set = check_set(lua);
  ftl_error error;
  ftl_sandbox_charge(lua, 40 * set->num_rows);
  ftl_text *text = ftl_lua_push_text(lua);
  check_status(lua, ftl_rows_why(set->rows, set->num_rows, text, &error), &error);
  ftl_lua_take_text(lua, text);
  return 1;
}

// :svg(max_bars): a picture as text; the set should be ranked.
static int set_svg(lua_State *lua) {
  const result_set *set = check_set(lua);
  lua_Integer max_bars = luaL_optinteger(lua, 2, 8);
  luaL_argcheck(lua, max_bars >= 1 && max_bars <= 100, 2, "1 to 100 bars a GPU");
  ftl_error error;
  ftl_sandbox_charge(lua, 100 * set->num_rows);
  ftl_text *text = ftl_lua_push_text(lua);
  check_status(lua, ftl_rows_svg(set->rows, set->num_rows, (int)max_bars, text, &error), &error);
  ftl_lua_take_text(lua, text);
  return 1;
}

// --- access ---

static int each_next(lua_State *lua) {
  const result_set *set = check_set(lua);
  lua_Integer i = luaL_checkinteger(lua, 2);
  if (i < 0 || i >= set->num_rows) return 0;
  lua_pushinteger(lua, i + 1);
  push_row(lua, &set->rows[i]);
  return 2;
}

static int set_each(lua_State *lua) {
  check_set(lua);
  lua_pushcfunction(lua, each_next);
  lua_pushvalue(lua, 1);
  lua_pushinteger(lua, 0);
  return 3;
}

static int set_length(lua_State *lua) {
  lua_pushinteger(lua, check_set(lua)->num_rows);
  return 1;
}

static const luaL_Reg methods[] = {{"rank", set_rank},
                                   {"best", set_best},
                                   {"top", set_top},
                                   {"feasible", set_feasible},
                                   {"infeasible", set_infeasible},
                                   {"filter", set_filter},
                                   {"table", set_table},
                                   {"plot", set_plot},
                                   {"why", set_why},
                                   {"svg", set_svg},
                                   {"each", set_each}};
enum { NUM_METHODS = sizeof methods / sizeof *methods };

static const char *nearest_method(const char *name) {
  const char *nearest = methods[0].name;
  int distance = INT_MAX;
  for (int i = 0; i < NUM_METHODS; i++) {
    int d = ftl_edit_distance(name, methods[i].name);
    if (d < distance) {
      distance = d;
      nearest = methods[i].name;
    }
  }
  return nearest;
}

static int set_index(lua_State *lua) {
  const result_set *set = check_set(lua);
  if (lua_isinteger(lua, 2)) {
    lua_Integer i = lua_tointeger(lua, 2);
    if (i < 1 || i > set->num_rows) return 0;
    push_row(lua, &set->rows[i - 1]);
    return 1;
  }
  const char *name = luaL_checkstring(lua, 2);
  for (int i = 0; i < NUM_METHODS; i++) {
    if (strcmp(name, methods[i].name) == 0) return lua_pushcfunction(lua, methods[i].func), 1;
  }
  return luaL_error(lua, "a result set has no \"%s\"; the nearest is :%s()", name, nearest_method(name));
}

static int set_tostring(lua_State *lua) {
  lua_settop(lua, 1);
  return set_table(lua);
}

void ftl_lua_open_result_set(lua_State *lua) {
  const luaL_Reg functions[] = {
      {"__index", set_index}, {"__len", set_length}, {"__tostring", set_tostring}, {NULL, NULL}};
  luaL_newmetatable(lua, set_type);
  luaL_setfuncs(lua, functions, 0);
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");
  lua_pop(lua, 1);
}
