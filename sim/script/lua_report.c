// ft.report{…}: the page of `foretile report`, as text or into a file.
#include <string.h>

#include <lauxlib.h>

#include "report/output_file.h"
#include "report/page.h"
#include "script/lua_module.h"
#include "script/sandbox.h"

// Of several unknown keys the first by name is reported: Lua's own order differs from run to run.
static void check_keys(lua_State *lua) {
  const char *unknown = NULL;
  lua_pushnil(lua);
  while (lua_next(lua, 1) != 0) {
    lua_pop(lua, 1);
    if (lua_type(lua, -1) != LUA_TSTRING) luaL_error(lua, "ft.report takes db = \"...\" and output = \"...\"");
    const char *key = lua_tostring(lua, -1);
    if (strcmp(key, "db") == 0 || strcmp(key, "output") == 0) continue;
    if (unknown == NULL || strcmp(key, unknown) < 0) unknown = key;  // the table keeps it alive
  }
  if (unknown != NULL) luaL_error(lua, "ft.report takes db and output, not \"%s\"", unknown);
}

// A file name among the arguments, left on the stack; NULL: it is not given.
static const char *get_file(lua_State *lua, const char *key) {
  int type = lua_getfield(lua, 1, key);
  if (type == LUA_TNIL) return NULL;
  if (type != LUA_TSTRING) luaL_error(lua, "%s must be a file name, not a %s", key, luaL_typename(lua, -1));
  if (!ftl_sandbox_allows_io(lua)) luaL_error(lua, "%s names a file, which needs --allow-io", key);
  return lua_tostring(lua, -1);
}

int ftl_lua_report(lua_State *lua) {
  const ftl_database *own = ftl_lua_session(lua)->evaluate.database;
  if (lua_isnoneornil(lua, 1)) {
    lua_settop(lua, 0);
    lua_newtable(lua);
  }
  luaL_checktype(lua, 1, LUA_TTABLE);
  check_keys(lua);
  const char *database = get_file(lua, "db"), *output = get_file(lua, "output");
  if (database == NULL && own == NULL) return luaL_error(lua, "this run keeps no results that ft.report could show");
  ftl_error error;
  ftl_text *page = ftl_lua_push_text(lua);
  ftl_status status = ftl_page_of_file(database != NULL ? database : ftl_database_path(own), page, &error);
  ftl_sandbox_charge(lua, (int64_t)page->size / FTL_SANDBOX_BYTES_PER_STEP);
  if (status == FTL_OK && output != NULL) status = ftl_output_file_write(output, page, &error);
  if (status != FTL_OK) return ftl_lua_raise(lua, &error);
  if (output != NULL) return 0;
  ftl_lua_take_text(lua, page);
  return 1;
}
