// ft.arch "h200": a model; ft.arch("h200"){ l2 = { size_bytes = … } }: a what-if; model["l2.size_bytes"], model.name.
#include <string.h>

#include <lauxlib.h>

#include "script/arch_loader.h"
#include "script/lua_module.h"
#include "script/sandbox.h"

static const char *const arch_type = "foretile.arch";

static void push_arch(lua_State *lua, const ftl_arch *arch) {
  const ftl_arch **box = lua_newuserdatauv(lua, sizeof *box, 0);  // the session owns the model
  *box = arch;
  luaL_setmetatable(lua, arch_type);
}

const ftl_arch *ftl_lua_to_arch(lua_State *lua, int index) {
  const ftl_arch **box = luaL_testudata(lua, index, arch_type);
  if (box != NULL) return *box;
  if (lua_type(lua, index) != LUA_TSTRING) {
    luaL_error(lua, "arch must be a name such as \"h200\" or what ft.arch gives, not a %s", luaL_typename(lua, index));
  }
  const ftl_arch *arch = NULL;
  ftl_error error;
  if (ftl_session_arch(ftl_lua_session(lua), lua_tostring(lua, index), &arch, &error) != FTL_OK) {
    ftl_lua_raise(lua, &error);
  }
  return arch;
}

int ftl_lua_arch(lua_State *lua) {
  luaL_checktype(lua, 1, LUA_TSTRING);
  push_arch(lua, ftl_lua_to_arch(lua, 1));
  return 1;
}

static int arch_call(lua_State *lua) {
  const ftl_arch **box = luaL_checkudata(lua, 1, arch_type);
  if (!lua_istable(lua, 2)) {
    return luaL_error(lua, "ft.arch(...){ section = { key = value } } takes a table of what differs, not a %s",
                      luaL_typename(lua, 2));
  }
  ftl_arch *changed = NULL;
  const ftl_arch *kept = NULL;
  ftl_error error;
  const char *where = ftl_sandbox_where(ftl_sandbox_of(lua));
  ftl_status status = ftl_arch_create_what_if_lua(*box, lua, 2, where, &changed, &error);
  if (status == FTL_OK) status = ftl_session_take_arch(ftl_lua_session(lua), changed, &kept, &error);
  if (status != FTL_OK) {
    // The loader's line already begins with file:line.
    lua_pushstring(lua, error.message);
    return strncmp(error.message, where, strlen(where)) == 0 ? lua_error(lua) : ftl_lua_raise(lua, &error);
  }
  push_arch(lua, kept);
  return 1;
}

static int arch_index(lua_State *lua) {
  const ftl_arch **box = luaL_checkudata(lua, 1, arch_type);
  const char *name = luaL_checkstring(lua, 2);
  if (strcmp(name, "name") == 0) return lua_pushstring(lua, (*box)->name), 1;
  if (strcmp(name, "die") == 0) return lua_pushstring(lua, (*box)->die), 1;
  int key_idx = ftl_arch_key_find(name);
  if (key_idx < 0) {
    return luaL_error(lua, "no arch-model key is called \"%s\"; the nearest is %s", name, ftl_arch_key_nearest(name));
  }
  if (ftl_arch_key_get(key_idx)->allowed != NULL) {
    lua_pushstring(lua, ftl_arch_text(*box, key_idx));
  } else {
    lua_pushinteger(lua, ftl_arch_int(*box, key_idx));
  }
  return 1;
}

static int arch_tostring(lua_State *lua) {
  const ftl_arch **box = luaL_checkudata(lua, 1, arch_type);
  lua_pushstring(lua, (*box)->name);
  return 1;
}

void ftl_lua_open_arch(lua_State *lua) {
  const luaL_Reg functions[] = {
      {"__call", arch_call}, {"__index", arch_index}, {"__tostring", arch_tostring}, {NULL, NULL}};
  luaL_newmetatable(lua, arch_type);
  luaL_setfuncs(lua, functions, 0);
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");  // scripts cannot change it
  lua_pop(lua, 1);
}
