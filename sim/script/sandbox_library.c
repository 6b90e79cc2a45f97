// The standard library of the sandbox: what is left out, and what is replaced because it could run for ever or swallow
// a limit. Left out: dofile, load, loadfile, collectgarbage, warn, string.dump, string.pack and unpack, coroutine,
// debug, package; io and os but for allow_io.
#include <lauxlib.h>
#include <lualib.h>

#include "script/sandbox_internal.h"

static const char *const removed_globals[] = {"dofile", "load", "loadfile", "collectgarbage", "warn", NULL};
static const char *const removed_strings[] = {"dump", "pack", "packsize", "unpack", NULL};
static const char *const scanning_strings[] = {"byte", "format", "lower", "upper", "reverse", "sub", NULL};
static const char *const scanning_utf8[] = {"char", "codepoint", "len", "offset", NULL};

// --- calls that catch errors ---

static int safe_pcall(lua_State *lua) {
  luaL_checkany(lua, 1);
  lua_pushboolean(lua, 1);
  lua_insert(lua, 1);
  int status = lua_pcall(lua, lua_gettop(lua) - 2, LUA_MULTRET, 0);
  ftl_sandbox_check_caught(lua, status);
  if (status != LUA_OK) {
    lua_pushboolean(lua, 0);
    lua_insert(lua, -2);
    return 2;
  }
  return lua_gettop(lua);
}

// The handler runs after the stack is unwound: inside lua_pcall it would run without hooks when a hook raised.
static int safe_xpcall(lua_State *lua) {
  luaL_checktype(lua, 2, LUA_TFUNCTION);
  lua_pushboolean(lua, 1);
  lua_pushvalue(lua, 1);
  lua_rotate(lua, 3, 2);  // f, handler, true, f, arguments
  int status = lua_pcall(lua, lua_gettop(lua) - 4, LUA_MULTRET, 0);
  ftl_sandbox_check_caught(lua, status);
  if (status == LUA_OK) return lua_gettop(lua) - 2;
  lua_pushboolean(lua, 0);
  lua_pushvalue(lua, 2);
  lua_pushvalue(lua, -3);
  lua_call(lua, 1, 1);
  return 2;
}

// Finalizers run without hooks, so they could not be stopped.
static int safe_setmetatable(lua_State *lua) {
  if (lua_type(lua, 2) == LUA_TTABLE) {
    lua_pushliteral(lua, "__gc");
    if (lua_rawget(lua, 2) != LUA_TNIL) return luaL_error(lua, "__gc is not allowed in a scenario");
    lua_pop(lua, 1);
  }
  return lua_tocfunction(lua, lua_upvalueindex(1))(lua);
}

// --- loops in C ---

// A function whose work grows with its string arguments; upvalue 1 is the original.
static int charged_string(lua_State *lua) {
  int64_t bytes = 0;
  for (int i = lua_gettop(lua); i > 0; i--) {
    if (lua_type(lua, i) == LUA_TSTRING) bytes += (int64_t)lua_rawlen(lua, i);
  }
  if (bytes >= FTL_SANDBOX_BYTES_PER_STEP) ftl_sandbox_charge(lua, bytes / FTL_SANDBOX_BYTES_PER_STEP);
  return lua_tocfunction(lua, lua_upvalueindex(1))(lua);
}

// The original loops n times even when each time adds nothing.
static int safe_rep(lua_State *lua) {
  size_t size = 0, separator_size = 0;
  luaL_checklstring(lua, 1, &size);
  luaL_checkinteger(lua, 2);
  luaL_optlstring(lua, 3, "", &separator_size);
  if (size + separator_size == 0) {
    lua_pushliteral(lua, "");
    return 1;
  }
  return lua_tocfunction(lua, lua_upvalueindex(1))(lua);
}

// Elements that table.NAME visits: which arguments hold the first and last index, 0 for "1" and "#t".
typedef struct table_function {
  const char *name;
  int first_arg, last_arg, num_visits;
} table_function;

static const table_function table_functions[] = {{"concat", 3, 4, 1}, {"insert", 0, 0, 1}, {"move", 2, 3, 1},
                                                 {"remove", 0, 0, 1}, {"sort", 0, 0, 20},  {"unpack", 2, 3, 1}};

static int64_t index_distance(lua_Integer first, lua_Integer last) {
  if (last < first) return 0;
  uint64_t distance = (uint64_t)last - (uint64_t)first;
  return distance > INT64_MAX / 32 ? INT64_MAX / 32 : (int64_t)distance;
}

static int charged_table(lua_State *lua) {
  const table_function *function = &table_functions[lua_tointeger(lua, lua_upvalueindex(2))];
  if (luaL_getmetafield(lua, 1, "__len") != LUA_TNIL) {
    return luaL_error(lua, "table.%s does not take a table with __len in a scenario", function->name);
  }
  lua_Integer first = 1, last = lua_type(lua, 1) == LUA_TTABLE ? (lua_Integer)lua_rawlen(lua, 1) : 0;
  if (function->first_arg != 0) first = luaL_optinteger(lua, function->first_arg, first);
  if (function->last_arg != 0) last = luaL_optinteger(lua, function->last_arg, last);
  ftl_sandbox_charge(lua, function->num_visits * index_distance(first, last));
  return lua_tocfunction(lua, lua_upvalueindex(1))(lua);
}

// --- opening ---

// Replaces field `name` of the table at the top by `replacement` with the original as upvalue 1.
static void field_wrap(lua_State *lua, const char *name, lua_CFunction replacement) {
  lua_getfield(lua, -1, name);
  lua_pushcclosure(lua, replacement, 1);
  lua_setfield(lua, -2, name);
}

static void fields_wrap(lua_State *lua, const char *const *names, lua_CFunction replacement) {
  for (; *names != NULL; names++) field_wrap(lua, *names, replacement);
}

static void fields_remove(lua_State *lua, const char *const *names) {
  for (; *names != NULL; names++) {
    lua_pushnil(lua);
    lua_setfield(lua, -2, *names);
  }
}

static void open_base(lua_State *lua) {
  luaL_requiref(lua, LUA_GNAME, luaopen_base, 1);
  fields_remove(lua, removed_globals);
  field_wrap(lua, "setmetatable", safe_setmetatable);
  field_wrap(lua, "tonumber", charged_string);
  const luaL_Reg own[] = {
      {"pcall", safe_pcall}, {"xpcall", safe_xpcall}, {"require", ftl_sandbox_require}, {NULL, NULL}};
  luaL_setfuncs(lua, own, 0);
  lua_pop(lua, 1);
}

static void open_string(lua_State *lua) {
  luaL_requiref(lua, LUA_STRLIBNAME, luaopen_string, 1);
  fields_remove(lua, removed_strings);
  field_wrap(lua, "rep", safe_rep);
  fields_wrap(lua, scanning_strings, charged_string);
  lua_pop(lua, 1);
  luaL_requiref(lua, LUA_UTF8LIBNAME, luaopen_utf8, 1);
  fields_wrap(lua, scanning_utf8, charged_string);
  lua_pop(lua, 1);
}

static void open_table(lua_State *lua) {
  luaL_requiref(lua, LUA_TABLIBNAME, luaopen_table, 1);
  for (size_t i = 0; i < sizeof table_functions / sizeof table_functions[0]; i++) {
    lua_getfield(lua, -1, table_functions[i].name);
    lua_pushinteger(lua, (lua_Integer)i);
    lua_pushcclosure(lua, charged_table, 2);
    lua_setfield(lua, -2, table_functions[i].name);
  }
  lua_pop(lua, 1);
}

// A script's random numbers are the same in every run.
// Without a number the original takes the time and an address.
static int safe_randomseed(lua_State *lua) {
  luaL_checknumber(lua, 1);
  lua_pushvalue(lua, lua_upvalueindex(1));  // called as a function: its generator is an upvalue of its own
  lua_insert(lua, 1);
  lua_call(lua, lua_gettop(lua) - 1, 0);
  return 0;
}

static void open_math(lua_State *lua) {
  luaL_requiref(lua, LUA_MATHLIBNAME, luaopen_math, 1);
  lua_getfield(lua, -1, "randomseed");
  lua_pushvalue(lua, -1);
  lua_pushinteger(lua, 1);
  lua_call(lua, 1, 0);
  lua_pushcclosure(lua, safe_randomseed, 1);
  lua_setfield(lua, -2, "randomseed");
  lua_pop(lua, 1);
}

void ftl_sandbox_open_libraries(lua_State *lua) {
  open_base(lua);
  open_string(lua);
  open_table(lua);
  open_math(lua);
  if (!ftl_sandbox_of(lua)->limits.allow_io) return;
  luaL_requiref(lua, LUA_IOLIBNAME, luaopen_io, 1);
  luaL_requiref(lua, LUA_OSLIBNAME, luaopen_os, 1);
  lua_pop(lua, 2);
}
