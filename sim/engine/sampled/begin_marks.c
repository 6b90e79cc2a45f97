#include "engine/sampled/begin_marks.h"

#include <math.h>
#include <stddef.h>

static bool is_load(const ftl_warp_inst *inst) {
  return inst->opcode == FTL_OP_CP_ASYNC || inst->opcode == FTL_OP_LDG || inst->opcode == FTL_OP_TMA_LOAD;
}

static bool is_ahead_of_loops(const ftl_begin_marks *marks, const ftl_warp_inst *inst) {
  const ftl_warp_role *role = &marks->program->roles[marks->segments->leading_role];
  ptrdiff_t pc = inst - marks->program->insts - role->first_inst;
  if (pc < 0 || pc >= role->num_insts) return false;
  for (int32_t k = 0; k < marks->segments->num_loops; k++)  // in order; those below 0 never run
    if (marks->segments->loops[k] >= 0) return pc < marks->program->loops[marks->segments->loops[k]].begin;
  return true;
}

void ftl_begin_marks_mark(void *context, int64_t cycle, int32_t slot, int32_t warp, int64_t cta,
                          const ftl_warp_inst *inst) {
  (void)warp, (void)cta;
  ftl_begin_marks *marks = context;
  int32_t round = marks->num_exits[slot] / marks->program->num_warps;
  if (inst->opcode == FTL_OP_EXIT) marks->num_exits[slot]++;
  if (round >= FTL_MARKED_ROUNDS || !is_load(inst) || !is_ahead_of_loops(marks, inst)) return;
  marks->sum[slot][round] += cycle;
  marks->count[slot][round]++;
}

double ftl_begin_marks_spread(const ftl_begin_marks *marks, int32_t num_slots, int32_t num_rounds,
                              const int64_t *ends) {
  double sum = 0, squares = 0;
  int32_t num = 0;
  for (int32_t round = 1; round < num_rounds; round++)
    for (int32_t slot = 0; slot < num_slots; slot++) {
      if (marks->count[slot][round] == 0) return 0;
      double took = (double)marks->sum[slot][round] / (double)marks->count[slot][round] -
                    (double)ends[(round - 1) * num_slots + slot];
      sum += took;
      squares += took * took;
      num++;
    }
  double mean = num > 0 ? sum / num : 0;
  return num > 0 ? sqrt(fmax(squares / num - mean * mean, 0)) : 0;
}
