// Shared by the sandbox's own files.
#ifndef FTL_SCRIPT_SANDBOX_INTERNAL_H
#define FTL_SCRIPT_SANDBOX_INTERNAL_H

#include "script/sandbox.h"

struct ftl_sandbox {
  lua_State *lua;
  ftl_sandbox_limits limits;
  size_t memory_bytes;
  int64_t instructions;  // counted so far, library work included
  bool over_limit;       // stays true: every further step raises limit_text
  char limit_text[128];
  bool interrupted;
  int line;  // of the running chunk, kept by the line hook because a failed allocation cannot ask the Lua state
  char chunk[256];
  char where[288];
};

enum { FTL_SANDBOX_BYTES_PER_STEP = 64 };

// Raises if a limit was hit now or before.
void ftl_sandbox_check(lua_State *lua);
// What a C function that catches errors calls with lua_pcall's status: raises again what no script may catch.
void ftl_sandbox_check_caught(lua_State *lua, int lua_status);

// The parts of the standard library that are safe here (sandbox_library.c), and string matching that counts its steps
// (sandbox_match.c). Called in a protected call.
void ftl_sandbox_open_libraries(lua_State *lua);
void ftl_sandbox_open_match(lua_State *lua);

#endif
