#include "script/lua_module.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <lauxlib.h>

#include "results/version.h"
#include "script/sandbox.h"

static const char *const text_type = "foretile.text";

void ftl_lua_set_session(lua_State *lua, ftl_session *session) {
  memcpy(lua_getextraspace(lua), &session, sizeof session);
}

ftl_session *ftl_lua_session(lua_State *lua) {
  ftl_session *session = NULL;
  memcpy(&session, lua_getextraspace(lua), sizeof session);
  return session;
}

int ftl_lua_raise(lua_State *lua, const ftl_error *error) {
  ftl_sandbox_charge(lua, 1);
  return luaL_error(lua, "%s", error->message);
}

int ftl_lua_raise_placed(lua_State *lua, const ftl_error *error) {
  const char *chunk = ftl_sandbox_chunk(ftl_sandbox_of(lua));
  size_t size = strlen(chunk);
  if (strncmp(error->message, chunk, size) != 0 || error->message[size] != ':') return ftl_lua_raise(lua, error);
  ftl_sandbox_charge(lua, 1);
  lua_pushstring(lua, error->message);
  return lua_error(lua);
}

// Of equally near names the first by name: Lua's own order differs from run to run.
static const char *nearest_name(lua_State *lua, int table, const char *name) {
  const char *nearest = NULL;
  int least = INT_MAX;
  lua_pushnil(lua);
  while (lua_next(lua, table) != 0) {
    lua_pop(lua, 1);
    const char *candidate = lua_tostring(lua, -1);
    int distance = ftl_edit_distance(name, candidate);
    if (distance > least || (distance == least && nearest != NULL && strcmp(candidate, nearest) > 0)) continue;
    least = distance;
    nearest = candidate;  // the table keeps it alive
  }
  return nearest;
}

int ftl_lua_method(lua_State *lua, const char *what) {
  if (lua_type(lua, 2) != LUA_TSTRING) return luaL_error(lua, "%s is not indexed", what);
  lua_pushvalue(lua, 2);
  if (lua_rawget(lua, lua_upvalueindex(1)) != LUA_TNIL) return 1;
  const char *name = lua_tostring(lua, 2);
  return luaL_error(lua, "%s has no \"%s\"; the nearest is :%s()", what, name,
                    nearest_name(lua, lua_upvalueindex(1), name));
}

// --- memory ---

void *ftl_lua_push_block(lua_State *lua, size_t size, int num_user_values) {
  const size_t alignment = _Alignof(max_align_t);
  unsigned char *block = lua_newuserdatauv(lua, size + alignment, num_user_values);
  return block + (alignment - (uintptr_t)block % alignment) % alignment;
}

// --- text ---

static int text_collect(lua_State *lua) {
  ftl_text_fini(luaL_checkudata(lua, 1, text_type));
  return 0;
}

static void open_text(lua_State *lua) {
  luaL_newmetatable(lua, text_type);
  lua_pushcfunction(lua, text_collect);
  lua_setfield(lua, -2, "__gc");
  lua_pop(lua, 1);
}

ftl_text *ftl_lua_push_text(lua_State *lua) {
  ftl_text *text = lua_newuserdatauv(lua, sizeof *text, 0);
  memset(text, 0, sizeof *text);
  luaL_setmetatable(lua, text_type);
  return text;
}

void ftl_lua_take_text(lua_State *lua, ftl_text *text) {
  if (text->failed) luaL_error(lua, "out of memory");
  lua_pushlstring(lua, ftl_text_get(text), text->size);
  ftl_text_fini(text);
  memset(text, 0, sizeof *text);
  lua_remove(lua, -2);
}

// --- the module ---

static int unknown_name(lua_State *lua) {
  if (lua_type(lua, 2) != LUA_TSTRING) return luaL_error(lua, "the module foretile is indexed by names");
  const char *name = lua_tostring(lua, 2);
  return luaL_error(lua, "the module foretile has no \"%s\"; the nearest is %s", name,
                    nearest_name(lua, lua_upvalueindex(1), name));
}

int ftl_lua_open(lua_State *lua) {
  const luaL_Reg functions[] = {{"arch", ftl_lua_arch},         {"predict", ftl_lua_predict},
                                {"explore", ftl_lua_explore},   {"explain", ftl_lua_explain},
                                {"kernel", ftl_lua_new_kernel}, {"measurements", ftl_lua_measurements},
                                {"report", ftl_lua_report},     {NULL, NULL}};
  open_text(lua);
  ftl_lua_open_arch(lua);
  ftl_lua_open_result(lua);
  ftl_lua_open_result_set(lua);
  ftl_lua_open_kernel(lua);
  ftl_lua_open_cases(lua);
  luaL_newlib(lua, functions);
  lua_pushstring(lua, ftl_program_version());
  lua_setfield(lua, -2, "version");
  lua_createtable(lua, 0, 2);
  lua_pushvalue(lua, -2);
  lua_pushcclosure(lua, unknown_name, 1);
  lua_setfield(lua, -2, "__index");
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");
  lua_setmetatable(lua, -2);
  return 1;
}
