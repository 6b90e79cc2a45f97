#include "machine/sm/role_code.h"

#include <string.h>

static void count_insts(const ftl_warp_program *program, const ftl_warp_role *role, int64_t of[FTL_OPCODE_COUNT]) {
  for (int32_t i = 0; i < role->num_insts; i++) {
    const ftl_warp_inst *inst = &program->insts[role->first_inst + i];
    of[inst->opcode] += inst->repeat;
  }
  of[FTL_OP_BAR_SYNC] = of[FTL_OP_BAR_ARRIVE] = 0;
}

static bool is_same_code(const ftl_warp_program *program, const ftl_warp_role *a, const ftl_warp_role *b) {
  int64_t of_a[FTL_OPCODE_COUNT] = {0}, of_b[FTL_OPCODE_COUNT] = {0};
  count_insts(program, a, of_a);
  count_insts(program, b, of_b);
  return memcmp(of_a, of_b, sizeof of_a) == 0;
}

int32_t ftl_sm_first_like(const ftl_warp_program *program, int32_t role) {
  int32_t r = 0;
  while (r < role && !is_same_code(program, &program->roles[r], &program->roles[role])) r++;
  return r;
}
