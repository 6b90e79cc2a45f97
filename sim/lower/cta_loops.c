// Whether CTAs differ in how often they run their loops.
#include "lower/warp_program.h"

bool ftl_warp_program_has_ctas_alike(const ftl_warp_program *program) {
  for (int32_t i = 0; i < program->num_loops; i++) {
    const ftl_warp_loop *loop = &program->loops[i];
    if (ftl_expr_uses_cta(program->tile, loop->lo) || ftl_expr_uses_cta(program->tile, loop->hi)) return false;
  }
  return true;
}
