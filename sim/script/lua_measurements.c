// ft.measurements{…}: measured rows as `foretile validate` reads them, those that the arguments ask for.
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "results/measurements_dir.h"
#include "script/lua_cases.h"
#include "script/sandbox.h"

static const char *const reading_type = "foretile.reading";

// What is read so far, so that an error frees it.
typedef struct reading {
  ftl_validation v;
  ftl_measurement_file file;
  glob_t found;
  char *path;
} reading;

static int reading_collect(lua_State *lua) {
  reading *r = luaL_checkudata(lua, 1, reading_type);
  ftl_validation_fini(&r->v);
  ftl_measurement_file_fini(&r->file);
  globfree(&r->found);
  free(r->path);
  memset(r, 0, sizeof *r);
  return 0;
}

static reading *push_reading(lua_State *lua) {
  reading *r = lua_newuserdatauv(lua, sizeof *r, 0);
  memset(r, 0, sizeof *r);
  if (luaL_newmetatable(lua, reading_type)) {
    lua_pushcfunction(lua, reading_collect);
    lua_setfield(lua, -2, "__gc");
  }
  lua_setmetatable(lua, -2);
  return r;
}

enum { STEPS_A_ROW = 100 };

static void read_file(lua_State *lua, reading *r, const char *path, const ftl_lua_case_filter *filter) {
  ftl_error error;
  ftl_case_filter wanted = {.wants = ftl_lua_case_filter_wants, .user = filter};
  ftl_status status = ftl_measurement_file_read(&r->file, path, &error);
  if (status == FTL_OK) status = ftl_validation_add(&r->v, &r->file, &wanted, &error);
  int64_t num_rows = r->file.num_rows;
  ftl_measurement_file_fini(&r->file);
  if (status != FTL_OK) ftl_lua_raise(lua, &error);
  ftl_sandbox_charge(lua, STEPS_A_ROW * num_rows);
}

// By its name among the committed ones, else a path, which needs --allow-io.
static void read_named(lua_State *lua, reading *r, int number, const ftl_lua_case_filter *filter) {
  if (lua_type(lua, -1) != LUA_TSTRING) {
    luaL_error(lua, "files[%d] must be a file name, not a %s", number, luaL_typename(lua, -1));
  }
  const char *name = lua_tostring(lua, -1);
  free(r->path);
  r->path = ftl_measurements_path(name);
  if (r->path == NULL && !ftl_sandbox_allows_io(lua)) {
    luaL_error(lua, "files[%d]: %s is none of the measurements in %s; other files need --allow-io", number, name,
               ftl_measurements_folder());
  }
  read_file(lua, r, r->path != NULL ? r->path : name, filter);
}

static void read_files(lua_State *lua, reading *r, const ftl_lua_case_filter *filter) {
  int type = lua_getfield(lua, 1, "files");
  if (type == LUA_TNIL) {
    ftl_error error;
    if (ftl_measurements_find(&r->found, &error) != FTL_OK) ftl_lua_raise(lua, &error);
    for (size_t i = 0; i < r->found.gl_pathc; i++) read_file(lua, r, r->found.gl_pathv[i], filter);
  } else if (type == LUA_TTABLE) {
    int count = (int)lua_rawlen(lua, -1);
    if (count == 0) luaL_error(lua, "files is an empty list");
    for (int i = 1; i <= count; i++) {
      lua_rawgeti(lua, -1, i);
      read_named(lua, r, i, filter);
      lua_pop(lua, 1);
    }
  } else {
    read_named(lua, r, 1, filter);
  }
  lua_pop(lua, 1);
}

static int64_t get_every(lua_State *lua) {
  int is_integer = 0;
  int type = lua_getfield(lua, 1, "every");
  lua_Integer every = lua_tointegerx(lua, -1, &is_integer);
  lua_pop(lua, 1);
  if (type == LUA_TNIL) return 1;
  if (type != LUA_TNUMBER || !is_integer || every < 1) luaL_error(lua, "every must be a whole number from 1");
  return every;
}

int ftl_lua_measurements(lua_State *lua) {
  if (lua_isnoneornil(lua, 1)) {
    lua_settop(lua, 0);
    lua_newtable(lua);
  }
  luaL_checktype(lua, 1, LUA_TTABLE);
  lua_settop(lua, 1);
  const ftl_lua_case_filter *filter = ftl_lua_push_case_filter(lua);
  int64_t every = get_every(lua);
  reading *r = push_reading(lua);
  read_files(lua, r, filter);
  // That nothing is of what was asked for is an answer; that the files have nothing is not.
  ftl_error error;
  bool is_answer = r->v.num_cases == 0 && r->v.num_left_out > 0;
  if (!is_answer && ftl_validation_check(&r->v, &error) != FTL_OK) return ftl_lua_raise(lua, &error);
  ftl_validation_thin(&r->v, every);
  ftl_lua_case *cases = ftl_lua_push_case_store(lua, r->v.num_cases);
  const ftl_case **set = ftl_lua_push_case_set(lua, r->v.num_cases, -1);
  for (int64_t i = 0; i < r->v.num_cases; i++) {
    cases[i] = (ftl_lua_case){.one = r->v.cases[i]};
    set[i] = &cases[i].one;
  }
  ftl_validation_fini(&r->v);
  return 1;
}

void ftl_lua_open_cases(lua_State *lua) {
  ftl_lua_open_case(lua);
  ftl_lua_open_case_set(lua);
}
