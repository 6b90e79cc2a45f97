// Shared by the sandbox's own files.
#ifndef FTL_SCRIPT_SANDBOX_INTERNAL_H
#define FTL_SCRIPT_SANDBOX_INTERNAL_H

#include "script/sandbox.h"

enum { FTL_SANDBOX_MAX_CHUNKS = 64, FTL_SANDBOX_PATH_BYTES = 256 };

struct ftl_sandbox {
  lua_State *lua;
  ftl_sandbox_limits limits;
  size_t memory_bytes;
  int64_t instructions;  // counted so far, library work included
  bool over_limit;       // stays true: every further step raises limit_text
  char limit_text[128];
  bool interrupted;
  // The script, and the modules that it has loaded: names, as errors begin.
  char chunks[FTL_SANDBOX_MAX_CHUNKS][FTL_SANDBOX_PATH_BYTES];
  int num_chunks;
  // Where the script is, kept by the line hook because a failed allocation cannot ask the Lua state.
  int running, line;  // of chunks
  char where[FTL_SANDBOX_PATH_BYTES + 32];
  char modules[FTL_SANDBOX_PATH_BYTES];  // folder of the script's modules; "": it has none
};

// What a C function that catches errors calls with lua_pcall's status: raises again what no script may catch.
void ftl_sandbox_check_caught(lua_State *lua, int lua_status);

// Lua's `require`: what is preloaded, and files of the script's folder (sandbox_module.c).
int ftl_sandbox_require(lua_State *lua);

// The parts of the standard library that are safe here (sandbox_library.c), and string matching that counts its steps
// (sandbox_match.c). Called in a protected call.
void ftl_sandbox_open_libraries(lua_State *lua);
void ftl_sandbox_open_match(lua_State *lua);

#endif
