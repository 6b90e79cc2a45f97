#include "script/sandbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "script/sandbox_internal.h"
#include "script/script_file.h"

enum { HOOK_INTERVAL = 1000, STACK_SLOTS = 8 };

ftl_sandbox_limits ftl_sandbox_limits_default(void) {
  return (ftl_sandbox_limits){
      .max_memory_bytes = (size_t)256 << 20, .max_string_bytes = (size_t)16 << 20, .max_instructions = 500000000};
}

// --- memory ---

static bool allocation_fits(const ftl_sandbox *sandbox, size_t old_size, size_t new_size, bool is_string) {
  if (new_size <= old_size) return true;
  if (is_string && new_size > sandbox->limits.max_string_bytes) return false;
  return new_size - old_size <= sandbox->limits.max_memory_bytes - sandbox->memory_bytes;
}

// When old is NULL, Lua passes the kind of object in old_size.
static void *allocate(void *user, void *old, size_t old_size, size_t new_size) {
  ftl_sandbox *sandbox = user;
  bool is_string = old == NULL && old_size == LUA_TSTRING;
  if (old == NULL) old_size = 0;
  if (new_size == 0) {
    free(old);
    sandbox->memory_bytes -= old_size;
    return NULL;
  }
  void *block = allocation_fits(sandbox, old_size, new_size, is_string) ? realloc(old, new_size) : NULL;
  if (block == NULL) return NULL;
  sandbox->memory_bytes += new_size - old_size;  // modulo 2^64: also right when it shrinks
  if (new_size > old_size) sandbox->instructions += (int64_t)((new_size - old_size) / FTL_SANDBOX_BYTES_PER_STEP);
  return block;
}

// --- work ---

ftl_sandbox *ftl_sandbox_of(lua_State *lua) {
  void *user = NULL;
  lua_getallocf(lua, &user);
  return user;
}

bool ftl_sandbox_allows_io(lua_State *lua) { return ftl_sandbox_of(lua)->limits.allow_io; }

const char *ftl_sandbox_where(ftl_sandbox *sandbox) {
  if (sandbox->line > 0) {
    snprintf(sandbox->where, sizeof sandbox->where, "%s:%d", ftl_sandbox_chunk(sandbox), sandbox->line);
  } else {
    snprintf(sandbox->where, sizeof sandbox->where, "%s", ftl_sandbox_chunk(sandbox));
  }
  return sandbox->where;
}

const char *ftl_sandbox_chunk(const ftl_sandbox *sandbox) { return sandbox->chunks[sandbox->running]; }

int64_t ftl_sandbox_steps_left(const ftl_sandbox *sandbox) {
  int64_t left = sandbox->limits.max_instructions - sandbox->instructions;
  return left > 0 ? left : 0;
}

static void hook(lua_State *lua, lua_Debug *event);

static void over_limit(lua_State *lua, const char *text) {
  ftl_sandbox *sandbox = ftl_sandbox_of(lua);
  if (!sandbox->over_limit) {
    sandbox->over_limit = true;
    snprintf(sandbox->limit_text, sizeof sandbox->limit_text, "%s", text);
    lua_sethook(lua, hook, LUA_MASKLINE | LUA_MASKCOUNT, 1);
  }
  lua_pushfstring(lua, "%s: %s", ftl_sandbox_where(sandbox), sandbox->limit_text);
  lua_error(lua);
}

static void memory_text(const ftl_sandbox *sandbox, char *out, size_t size) {
  snprintf(out, size, "the script needs more than %zu bytes of memory, or a string of more than %zu",
           sandbox->limits.max_memory_bytes, sandbox->limits.max_string_bytes);
}

// Raises if a limit was hit now or before.
static void check_limits(lua_State *lua) {
  ftl_sandbox *sandbox = ftl_sandbox_of(lua);
  if (sandbox->limits.interrupt != NULL && *sandbox->limits.interrupt != 0) {
    sandbox->interrupted = true;
    over_limit(lua, "interrupted");
  }
  if (sandbox->over_limit || sandbox->instructions > sandbox->limits.max_instructions) {
    char text[96];
    snprintf(text, sizeof text, "the script ran longer than %lld instructions",
             (long long)sandbox->limits.max_instructions);
    over_limit(lua, text);
  }
}

void ftl_sandbox_check_caught(lua_State *lua, int lua_status) {
  check_limits(lua);
  if (lua_status != LUA_ERRMEM) return;
  char text[128];
  memory_text(ftl_sandbox_of(lua), text, sizeof text);
  over_limit(lua, text);
}

void ftl_sandbox_charge(lua_State *lua, int64_t num_steps) {
  ftl_sandbox *sandbox = ftl_sandbox_of(lua);
  int64_t left = sandbox->limits.max_instructions - sandbox->instructions;
  sandbox->instructions += num_steps > left ? left + 1 : num_steps;  // cannot overflow
  check_limits(lua);
}

// Which chunk the line is of. The names are compared, since the text of one that has ended may be freed.
static void find_running(ftl_sandbox *sandbox, lua_State *lua, lua_Debug *event) {
  lua_getinfo(lua, "S", event);
  if (strcmp(event->source + 1, ftl_sandbox_chunk(sandbox)) == 0) return;
  for (int i = 0; i < sandbox->num_chunks; i++)
    if (strcmp(event->source + 1, sandbox->chunks[i]) == 0) sandbox->running = i;
}

static void hook(lua_State *lua, lua_Debug *event) {
  ftl_sandbox *sandbox = ftl_sandbox_of(lua);
  if (event->event == LUA_HOOKLINE) {
    sandbox->line = event->currentline;
    if (sandbox->num_chunks > 1) find_running(sandbox, lua, event);
  } else {
    sandbox->instructions += HOOK_INTERVAL;
  }
  check_limits(lua);
}

// --- create and destroy ---

static int open_all(lua_State *lua) {
  ftl_sandbox_open_libraries(lua);
  ftl_sandbox_open_match(lua);
  return 0;
}

static void warn_nowhere(void *user, const char *message, int to_continue) {
  (void)user, (void)message, (void)to_continue;
}

ftl_status ftl_sandbox_create(ftl_sandbox **out, ftl_sandbox_limits limits, ftl_error *error) {
  *out = NULL;
  ftl_sandbox *sandbox = calloc(1, sizeof *sandbox);
  if (sandbox == NULL) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for a Lua sandbox");
  sandbox->limits = limits;
  snprintf(sandbox->chunks[0], sizeof sandbox->chunks[0], "script");
  sandbox->num_chunks = 1;
  sandbox->lua = lua_newstate(allocate, sandbox);
  if (sandbox->lua != NULL) {
    lua_setwarnf(sandbox->lua, warn_nowhere, NULL);
    lua_pushcfunction(sandbox->lua, open_all);
  }
  if (sandbox->lua == NULL || lua_pcall(sandbox->lua, 0, 0, 0) != LUA_OK) {
    ftl_sandbox_destroy(sandbox);
    return ftl_error_set(error, FTL_NO_MEMORY, "a Lua sandbox needs more than %zu bytes", limits.max_memory_bytes);
  }
  lua_sethook(sandbox->lua, hook, LUA_MASKLINE | LUA_MASKCOUNT, HOOK_INTERVAL);
  sandbox->instructions = 0;
  *out = sandbox;
  return FTL_OK;
}

void ftl_sandbox_destroy(ftl_sandbox *sandbox) {
  if (sandbox == NULL) return;
  if (sandbox->lua != NULL) lua_close(sandbox->lua);
  free(sandbox);
}

lua_State *ftl_sandbox_lua(ftl_sandbox *sandbox) { return sandbox->lua; }

typedef struct preload_request {
  const char *name;
  lua_CFunction open;
} preload_request;

static int preload(lua_State *lua) {
  const preload_request *request = lua_touserdata(lua, 1);
  luaL_getsubtable(lua, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  lua_pushcfunction(lua, request->open);
  lua_setfield(lua, -2, request->name);
  return 0;
}

ftl_status ftl_sandbox_preload(ftl_sandbox *sandbox, const char *name, lua_CFunction open, ftl_error *error) {
  preload_request request = {.name = name, .open = open};
  lua_pushcfunction(sandbox->lua, preload);
  lua_pushlightuserdata(sandbox->lua, &request);
  return ftl_sandbox_call(sandbox, 1, 0, error);
}

// --- run ---

// Of a message that begins with a chunk's name: what comes behind it, else NULL. Lua shortens a long name to "..." and
// its end.
static const char *after_chunk(const char *chunk, const char *message) {
  size_t chunk_size = strlen(chunk);
  if (strncmp(message, chunk, chunk_size) == 0 && message[chunk_size] == ':') return message + chunk_size;
  if (strncmp(message, "...", 3) != 0) return NULL;
  for (const char *colon = strchr(message, ':'); colon != NULL; colon = strchr(colon + 1, ':')) {
    size_t tail_size = (size_t)(colon - message) - 3;
    if (tail_size > chunk_size) return NULL;
    if (memcmp(message + 3, chunk + chunk_size - tail_size, tail_size) == 0 && tail_size > 0) return colon;
  }
  return NULL;
}

// The same of any chunk, with its whole name.
static bool try_set_message(const ftl_sandbox *sandbox, ftl_status status, const char *message, ftl_error *error) {
  for (int i = 0; i < sandbox->num_chunks; i++) {
    const char *rest = after_chunk(sandbox->chunks[i], message);
    if (rest == NULL) continue;
    ftl_error_set(error, status, "%s%s", sandbox->chunks[i], rest);
    return true;
  }
  return false;
}

// The error at the top of the stack, which it pops, as our error line.
static ftl_status script_error(ftl_sandbox *sandbox, int lua_status, ftl_error *error) {
  lua_State *lua = sandbox->lua;
  ftl_status status = sandbox->interrupted ? FTL_INTERRUPTED : FTL_BAD_INPUT;
  if (lua_status == LUA_ERRMEM) {
    char text[128];
    memory_text(sandbox, text, sizeof text);
    ftl_error_set(error, status, "%s: %s", ftl_sandbox_where(sandbox), text);
  } else if (lua_type(lua, -1) == LUA_TSTRING) {
    const char *message = lua_tostring(lua, -1);
    if (!try_set_message(sandbox, status, message, error))
      ftl_error_set(error, status, "%s: %s", ftl_sandbox_where(sandbox), message);
  } else {
    ftl_error_set(error, status, "%s: the script raised a %s instead of a message", ftl_sandbox_where(sandbox),
                  luaL_typename(lua, -1));
  }
  lua_pop(lua, 1);
  return status;
}

ftl_status ftl_sandbox_call(ftl_sandbox *sandbox, int num_args, int num_results, ftl_error *error) {
  int lua_status = lua_pcall(sandbox->lua, num_args, num_results, 0);
  return lua_status == LUA_OK ? FTL_OK : script_error(sandbox, lua_status, error);
}

ftl_status ftl_sandbox_run_text(ftl_sandbox *sandbox, const char *chunk_name, const char *text, size_t size,
                                int num_results, ftl_error *error) {
  lua_State *lua = sandbox->lua;
  char name[sizeof sandbox->chunks[0] + 1];
  snprintf(sandbox->chunks[0], sizeof sandbox->chunks[0], "%s", chunk_name);
  snprintf(name, sizeof name, "@%s", sandbox->chunks[0]);
  sandbox->running = sandbox->line = 0;
  if (!lua_checkstack(lua, STACK_SLOTS)) {
    return ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory", chunk_name);
  }
  int lua_status = luaL_loadbufferx(lua, text, size, name, "t");
  if (lua_status != LUA_OK) return script_error(sandbox, lua_status, error);
  return ftl_sandbox_call(sandbox, 0, num_results, error);
}

ftl_status ftl_sandbox_run_file(ftl_sandbox *sandbox, const char *path, int num_results, ftl_error *error) {
  char *text = NULL;
  size_t size = 0;
  ftl_status status = ftl_script_file_read(path, &text, &size, error);
  if (status != FTL_OK) return status;
  status = ftl_sandbox_run_text(sandbox, path, text, size, num_results, error);
  free(text);
  return status;
}
