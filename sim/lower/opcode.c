// Names of opcodes, and the end of a warp program.
#include "lower/warp_program.h"

#include <stdlib.h>

const char *ftl_opcode_name(ftl_opcode opcode) {
  static const char *const names[FTL_OPCODE_COUNT] = {
#define X(name, pipe, text) [FTL_OP_##name] = text,
      FTL_OPCODES(X)
#undef X
  };
  return (unsigned)opcode < FTL_OPCODE_COUNT ? names[opcode] : "?";
}

void ftl_warp_program_destroy(ftl_warp_program *program) {
  if (program == NULL) return;
  ftl_arena_fini(&program->arena);
  free(program);
}
