// A Lua 5.4 state for files that we do not trust: arch models and scenarios.
// Models: limits on memory and on work, no file or process access, no bytecode, no finalizers, no coroutines.
// Not here: any foretile function; scenarios get theirs with ftl_sandbox_preload, arch models from arch_loader.c.
#ifndef FTL_SCRIPT_SANDBOX_H
#define FTL_SCRIPT_SANDBOX_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lua.h>

#include "base/status.h"

typedef struct ftl_sandbox_limits {
  size_t max_memory_bytes;  // everything that the Lua state holds
  size_t max_string_bytes;  // one string
  // Virtual-machine instructions over the sandbox's life. Work inside library functions (pattern matching, sorting,
  // moving, building strings) counts too, about one for each step of a loop or 64 bytes. After the limit every further
  // step raises again, so pcall cannot swallow it.
  int64_t max_instructions;
  bool allow_io;                           // opens io and os
  const volatile sig_atomic_t *interrupt;  // when not NULL and not 0, the script stops with FTL_INTERRUPTED
} ftl_sandbox_limits;

// What a scenario gets: 256 MiB, strings of 16 MiB, 5*10^8 instructions (about 10 s), no io, no interrupt.
ftl_sandbox_limits ftl_sandbox_limits_default(void);

typedef struct ftl_sandbox ftl_sandbox;

// *out is NULL on failure.
FTL_MUST_USE ftl_status ftl_sandbox_create(ftl_sandbox **out, ftl_sandbox_limits limits, ftl_error *error);
void ftl_sandbox_destroy(ftl_sandbox *sandbox);

lua_State *ftl_sandbox_lua(ftl_sandbox *sandbox);
// The sandbox of a C function's state.
ftl_sandbox *ftl_sandbox_of(lua_State *lua);

// Makes `require "name"` call `open` once and return its one result.
FTL_MUST_USE ftl_status ftl_sandbox_preload(ftl_sandbox *sandbox, const char *name, lua_CFunction open,
                                            ftl_error *error);

// Makes `require "a.b"` of a name that is not preloaded run a/b.lua in the folder of the script `script_path`, once,
// with the script's limits, and return its one result. Names are words of letters, digits and _ with dots between, so
// nothing outside of that folder. Without this call there is no other require. FTL_BAD_INPUT: a path of 256 characters
// or more.
FTL_MUST_USE ftl_status ftl_sandbox_allow_modules(ftl_sandbox *sandbox, const char *script_path, ftl_error *error);

// Loads text (bytecode is refused) and runs it; num_results values are left on the Lua stack. On failure the stack is
// as before and the error line reads "file:line: what went wrong". FTL_BAD_INPUT for the script's faults and limits,
// FTL_IO_FAILED for an unreadable file, FTL_INTERRUPTED.
FTL_MUST_USE ftl_status ftl_sandbox_run_file(ftl_sandbox *sandbox, const char *path, int num_results, ftl_error *error);
FTL_MUST_USE ftl_status ftl_sandbox_run_text(ftl_sandbox *sandbox, const char *chunk_name, const char *text,
                                             size_t size, int num_results, ftl_error *error);
// lua_pcall with the same errors: calls the function below num_args arguments on the stack.
FTL_MUST_USE ftl_status ftl_sandbox_call(ftl_sandbox *sandbox, int num_args, int num_results, ftl_error *error);

// Whether the script may open files.
bool ftl_sandbox_allows_io(lua_State *lua);
// For C functions that loop on a script's behalf: counts `num_steps` instructions, and raises when that is too much. As
// many bytes of text count as one.
enum { FTL_SANDBOX_BYTES_PER_STEP = 64 };
void ftl_sandbox_charge(lua_State *lua, int64_t num_steps);
// "file:line" of the script's current line, valid until the next call; "file" before its first line.
const char *ftl_sandbox_where(ftl_sandbox *sandbox);
// The name of the script or module that runs, as errors begin; valid as long as the sandbox and until it runs another
// script.
const char *ftl_sandbox_chunk(const ftl_sandbox *sandbox);
// Instructions that the script may still run.
int64_t ftl_sandbox_steps_left(const ftl_sandbox *sandbox);

#endif
