// Instructions of the loops of flash2_fwd, for tests.
#ifndef FTL_TESTS_UNIT_LOWER_LOOP_COUNTS_H
#define FTL_TESTS_UNIT_LOWER_LOOP_COUNTS_H

#include <criterion/criterion.h>

#include "../lower_checker/programs.h"

typedef struct counts {
  int64_t insts[FTL_OPCODE_COUNT], conflicts, total;
} counts;

// One execution of the body of loop `loop_idx` by one warp.
static inline counts count_loop(const ftl_warp_program *p, int32_t loop_idx) {
  counts c = {0};
  for (int32_t i = p->loops[loop_idx].begin + 1; i < p->loops[loop_idx].end; i++) {
    const ftl_warp_inst *inst = &p->insts[i];
    c.insts[inst->opcode] += inst->repeat;
    c.conflicts += inst->conflicts;
    bool mark = inst->opcode == FTL_OP_TILE || inst->opcode == FTL_OP_MBAR_ADVANCE ||
                inst->opcode == FTL_OP_RING_READ || inst->opcode == FTL_OP_RING_FREE ||
                inst->opcode == FTL_OP_WGMMA_COMMIT || inst->opcode == FTL_OP_LABEL;
    if (!mark) c.total += inst->repeat;
  }
  return c;
}

static inline programs lowered(const char *arch, const char *parameters) {
  programs p;
  ftl_error error = {0};
  ftl_status status = lower_workload(&p, arch, "flash2_fwd", parameters, &error);
  cr_assert_eq(status, FTL_OK, "%s", error.message);
  return p;
}

#define SHAPE "heads=32 seqlen=4096 "

#endif
