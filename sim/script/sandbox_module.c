// Modules of a script: other Lua files of its folder, run once each in the same state and under the same limits.
#include <ctype.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "script/sandbox_internal.h"
#include "script/script_file.h"

// Stands in the table of loaded modules for one that is not done.
static const char under_way;

ftl_status ftl_sandbox_allow_modules(ftl_sandbox *sandbox, const char *script_path, ftl_error *error) {
  const char *slash = strrchr(script_path, '/');
  size_t size = slash != NULL ? (size_t)(slash - script_path) + 1 : 0;
  if (strlen(script_path) >= sizeof sandbox->modules)
    return ftl_error_set(error, FTL_BAD_INPUT, "%s: a path of %zu characters; allowed are %zu", script_path,
                         strlen(script_path), sizeof sandbox->modules - 1);
  snprintf(sandbox->modules, sizeof sandbox->modules, "%.*s", (int)size, script_path);
  if (size == 0) snprintf(sandbox->modules, sizeof sandbox->modules, "./");
  return FTL_OK;
}

// Words of letters, digits and _ with dots between: no way out of the folder.
static bool is_module_name(const char *name) {
  bool in_word = false;
  for (; *name != '\0'; name++) {
    bool is_dot = *name == '.';
    if (is_dot ? !in_word : !isalnum((unsigned char)*name) && *name != '_') return false;
    in_word = !is_dot;
  }
  return in_word;
}

static void set_loaded(lua_State *lua, const char *name) {
  luaL_getsubtable(lua, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  lua_insert(lua, -2);
  lua_setfield(lua, -2, name);
  lua_pop(lua, 1);
}

// The file's name, which errors in it will begin with.
static const char *add_chunk(lua_State *lua, const char *name) {
  ftl_sandbox *sandbox = ftl_sandbox_of(lua);
  if (sandbox->num_chunks == FTL_SANDBOX_MAX_CHUNKS)
    luaL_error(lua, "module \"%s\": a script has at most %d modules", name, FTL_SANDBOX_MAX_CHUNKS - 1);
  char *path = sandbox->chunks[sandbox->num_chunks];
  size_t size = sizeof sandbox->chunks[0];
  bool in_script_folder = strcmp(sandbox->modules, "./") == 0;
  int wanted = snprintf(path, size, "%s%s.lua", in_script_folder ? "" : sandbox->modules, name);
  if (wanted < 0 || (size_t)wanted >= size) luaL_error(lua, "module \"%s\": its path is too long", name);
  for (char *c = path + wanted - strlen(".lua") - strlen(name); c < path + wanted - strlen(".lua"); c++)
    if (*c == '.') *c = '/';
  return path;
}

// Leaves the file's function on the stack.
static void load_file(lua_State *lua, const char *name) {
  ftl_sandbox *sandbox = ftl_sandbox_of(lua);
  if (sandbox->modules[0] == '\0') luaL_error(lua, "there is no module \"%s\"", name);
  if (!is_module_name(name))
    luaL_error(lua, "module \"%s\": allowed are words of letters, digits and _ with dots between", name);
  const char *path = add_chunk(lua, name);
  char *text = NULL, chunk[FTL_SANDBOX_PATH_BYTES + 1];
  size_t size = 0;
  ftl_error error = {0};
  if (ftl_script_file_read(path, &text, &size, &error) != FTL_OK)
    luaL_error(lua, "there is no module \"%s\" (%s)", name, error.message);
  snprintf(chunk, sizeof chunk, "@%s", path);
  sandbox->num_chunks++;
  int status = luaL_loadbufferx(lua, text, size, chunk, "t");
  free(text);
  ftl_sandbox_charge(lua, (int64_t)(size / FTL_SANDBOX_BYTES_PER_STEP));
  if (status == LUA_OK) return;
  ftl_sandbox_check_caught(lua, status);
  lua_error(lua);
}

// A module that fails may be asked for again.
static void call_loader(lua_State *lua, const char *name) {
  lua_pushlightuserdata(lua, (void *)&under_way);
  set_loaded(lua, name);
  lua_pushstring(lua, name);
  int status = lua_pcall(lua, 1, 1, 0);
  if (status == LUA_OK) return;
  lua_pushnil(lua);
  set_loaded(lua, name);
  ftl_sandbox_check_caught(lua, status);
  lua_error(lua);
}

int ftl_sandbox_require(lua_State *lua) {
  const char *name = luaL_checkstring(lua, 1);
  luaL_getsubtable(lua, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  if (lua_getfield(lua, -1, name) != LUA_TNIL) {
    if (lua_touserdata(lua, -1) == &under_way) return luaL_error(lua, "module \"%s\" requires itself", name);
    return 1;
  }
  luaL_getsubtable(lua, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  if (lua_getfield(lua, -1, name) == LUA_TNIL) load_file(lua, name);
  call_loader(lua, name);
  if (lua_isnil(lua, -1)) return luaL_error(lua, "module \"%s\" returns nothing", name);
  lua_pushvalue(lua, -1);
  set_loaded(lua, name);
  return 1;
}
