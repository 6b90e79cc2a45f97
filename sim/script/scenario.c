#include "script/scenario.h"

#include <lauxlib.h>

#include "script/lua_module.h"

typedef struct arguments {
  const char *path;
  const char *const *args;
  int num_args;
} arguments;

static int set_arguments(lua_State *lua) {
  const arguments *a = lua_touserdata(lua, 1);
  lua_createtable(lua, a->num_args, 1);
  lua_pushstring(lua, a->path);
  lua_rawseti(lua, -2, 0);
  for (int i = 0; i < a->num_args; i++) {
    lua_pushstring(lua, a->args[i]);
    lua_rawseti(lua, -2, i + 1);
  }
  lua_setglobal(lua, "arg");
  return 0;
}

static ftl_status open_scenario(ftl_session *session, ftl_sandbox_limits limits, arguments *a, ftl_sandbox **out,
                                ftl_error *error) {
  ftl_status status = ftl_sandbox_create(out, limits, error);
  if (status != FTL_OK) return status;
  lua_State *lua = ftl_sandbox_lua(*out);
  ftl_lua_set_session(lua, session);
  status = ftl_sandbox_preload(*out, "foretile", ftl_lua_open, error);
  if (status == FTL_OK) {
    lua_pushcfunction(lua, set_arguments);
    lua_pushlightuserdata(lua, a);
    status = ftl_sandbox_call(*out, 1, 0, error);
  }
  return status;
}

static ftl_status close_scenario(ftl_session *session, ftl_sandbox *sandbox, ftl_status status, ftl_error *error) {
  ftl_sandbox_destroy(sandbox);
  if (session->status == FTL_OK || status == FTL_INTERRUPTED) return status;
  // The script's own error, if any, has the line; the kind of failure is the session's.
  if (status != FTL_OK) {
    if (error != NULL) error->status = session->status;
    return session->status;
  }
  return ftl_error_set(error, session->status, "%s", session->message);
}

ftl_status ftl_scenario_run(ftl_session *session, const char *path, const char *const *args, int num_args,
                            ftl_sandbox_limits limits, ftl_error *error) {
  arguments a = {.path = path, .args = args, .num_args = num_args};
  ftl_sandbox *sandbox = NULL;
  ftl_status status = open_scenario(session, limits, &a, &sandbox, error);
  if (status == FTL_OK) status = ftl_sandbox_allow_modules(sandbox, path, error);
  if (status == FTL_OK) status = ftl_sandbox_run_file(sandbox, path, 0, error);
  return close_scenario(session, sandbox, status, error);
}

ftl_status ftl_scenario_run_text(ftl_session *session, const char *name, const char *text, size_t size,
                                 ftl_sandbox_limits limits, ftl_error *error) {
  arguments a = {.path = name};
  ftl_sandbox *sandbox = NULL;
  ftl_status status = open_scenario(session, limits, &a, &sandbox, error);
  if (status == FTL_OK) status = ftl_sandbox_run_text(sandbox, name, text, size, 0, error);
  return close_scenario(session, sandbox, status, error);
}
