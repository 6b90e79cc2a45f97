// The Lua module `foretile`, in parts: arch models, predict and explore, results, result sets.
// Functions here raise Lua errors. What a part allocates outside of Lua lives in userdata, so that an error frees it.
#ifndef FTL_SCRIPT_LUA_MODULE_H
#define FTL_SCRIPT_LUA_MODULE_H

#include <lua.h>

#include "report/column.h"
#include "results/space.h"
#include "script/session.h"

int ftl_lua_open(lua_State *lua);

// The session is the state's, before the module is opened.
void ftl_lua_set_session(lua_State *lua, ftl_session *session);
ftl_session *ftl_lua_session(lua_State *lua);

// Raises `error` with the script's file:line; at once if the run was interrupted.
int ftl_lua_raise(lua_State *lua, const ftl_error *error);

// The same, but as it is where the error begins with the script's file:line already.
int ftl_lua_raise_placed(lua_State *lua, const ftl_error *error);
// An __index: the method named at 2 from the table of upvalue 1; raises with the nearest where there is none.
int ftl_lua_method(lua_State *lua, const char *what);

// --- arch models (lua_arch.c) ---
void ftl_lua_open_arch(lua_State *lua);  // makes the metatable
int ftl_lua_arch(lua_State *lua);        // ft.arch(name)
// The value at `index`, a name or a model.
const ftl_arch *ftl_lua_to_arch(lua_State *lua, int index);

// --- predict and explore (lua_predict.c) ---
int ftl_lua_predict(lua_State *lua);
int ftl_lua_explore(lua_State *lua);
// The one question that the arguments at 1 ask of ft.explain.
void ftl_lua_get_point(lua_State *lua, ftl_point *out);
// Shared with the predictions of a script's kernels (lua_kernel_points.c).
enum { FTL_LUA_MAX_ARCHS = 64, FTL_LUA_VALUE_BYTES = 2 * FTL_SPEC_LIST_BYTES };
// A parameter's value as text, in at most FTL_LUA_VALUE_BYTES; a longer one is an error.
void ftl_lua_value_text(lua_State *lua, int index, const char *name, char *text);
// The GPUs that the arguments at 1 name: one, or where `lists` a list of at most FTL_LUA_MAX_ARCHS; how many.
int ftl_lua_get_archs(lua_State *lua, bool lists, const ftl_arch **archs);
// Pushes a userdata with the answers; its user value 1 is for what they refer to.
ftl_answer *ftl_lua_push_answers(lua_State *lua, const ftl_point *points, int64_t num_points);

// --- explain (lua_explain.c) ---
int ftl_lua_explain(lua_State *lua);

// --- kernels (lua_kernel.c) ---
void ftl_lua_open_kernel(lua_State *lua);
int ftl_lua_new_kernel(lua_State *lua);  // ft.kernel(name, defaults, function)

// --- the page of a database (lua_report.c) ---
int ftl_lua_report(lua_State *lua);  // ft.report{ db = ..., output = ... }

// --- one result (lua_result.c) ---
void ftl_lua_open_result(lua_State *lua);
// Pushes a result for `row`, whose prediction lives in the userdata at `owner`.
void ftl_lua_push_result(lua_State *lua, const ftl_row *row, int owner);
void ftl_lua_push_params(lua_State *lua, const ftl_spec *spec);
// Whether `where` of an exploration, a function at the index or nil, keeps the configuration.
bool ftl_lua_is_wanted(lua_State *lua, int where, const ftl_spec *spec);
void ftl_lua_push_param(lua_State *lua, const ftl_spec *spec, int param);  // nil where the workload does not take it
void ftl_lua_push_number(lua_State *lua, double value);                    // whole numbers as integers
// A field of the table at the top; none where the value is not finite.
void ftl_lua_set_number(lua_State *lua, const char *key, double value);

// --- result sets (lua_result_set.c) ---
void ftl_lua_open_result_set(lua_State *lua);
// Pushes a set of num_rows rows to be filled, whose predictions live in the userdata at `owner`.
ftl_row *ftl_lua_push_result_set(lua_State *lua, int64_t num_rows, int owner);

// --- measured cases (lua_measurements.c, lua_cases.h) ---
void ftl_lua_open_cases(lua_State *lua);
int ftl_lua_measurements(lua_State *lua);  // ft.measurements{ ... }

// --- memory (lua_module.c) ---
// Pushes a userdata, and gives `size` bytes in it that are aligned for any type: Lua aligns to 8 bytes, and sets of
// parameters want 16. lua_touserdata does not give this address.
void *ftl_lua_push_block(lua_State *lua, size_t size, int num_user_values);

// --- text that an error frees (lua_module.c) ---
// Pushes a userdata with an empty text.
ftl_text *ftl_lua_push_text(lua_State *lua);
// Replaces that userdata, at the top, by the string.
void ftl_lua_take_text(lua_State *lua, ftl_text *text);

#endif
