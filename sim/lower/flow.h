// Control flow of a draft: straight-line stretches and their successors, and what each WGMMA_WAIT settles.
#ifndef FTL_LOWER_FLOW_H
#define FTL_LOWER_FLOW_H

#include "lower/draft.h"

typedef struct ftl_stretch {
  int32_t begin, end;  // instructions [begin, end); a separator (PINNED, loop control, branch) is a stretch of its own
  int32_t loop_depth;
  int32_t num_repeating;  // of these loops: without those that run once at most
  int32_t branch_to;      // successor besides the next stretch: after END_LOOP for LOOP, the body for END_LOOP; else -1
} ftl_stretch;

typedef struct ftl_flow {
  int32_t num_stretches;
  ftl_stretch *stretches;  // in program order, covering all instructions
} ftl_flow;

// FTL_RUN_FAILED when loops do not nest (an error of instruction selection).
FTL_MUST_USE ftl_status ftl_flow_find(const ftl_draft *draft, ftl_arena *arena, ftl_flow *out, ftl_error *error);

// Fills first_wait and num_waits of every WGMMA_WAIT: the accumulators and register operands of the wgmmas that it may
// be the first to wait for, over all paths. Once per draft, before anything is reordered.
FTL_MUST_USE ftl_status ftl_waits_find(ftl_draft *draft, ftl_arena *arena, ftl_error *error);

// Appends to draft->waits; false when memory is out.
bool ftl_draft_add_wait(ftl_draft *draft, int32_t value);

// The values that an instruction writes: destination .. destination + n - 1.
static inline int32_t ftl_inst_num_writes(const ftl_draft_inst *inst) {
  if (inst->destination == FTL_NO_VALUE) return 0;
  return inst->num_destinations > 1 ? inst->num_destinations : 1;
}
static inline int32_t ftl_inst_num_own_reads(const ftl_draft_inst *inst) {
  return inst->effects & FTL_EFFECT_READS_DESTINATION ? ftl_inst_num_writes(inst) : 0;
}
// What it reads, in order: its sources, its destinations if they are also sources, what it waits for.
static inline int32_t ftl_inst_num_reads(const ftl_draft_inst *inst) {
  return inst->num_sources + ftl_inst_num_own_reads(inst) + inst->num_waits;
}
static inline int32_t ftl_inst_read(const ftl_draft *draft, const ftl_draft_inst *inst, int32_t read_idx) {
  if (read_idx < inst->num_sources) return inst->sources[read_idx];
  read_idx -= inst->num_sources;
  int32_t num_own = ftl_inst_num_own_reads(inst);
  if (read_idx < num_own) return inst->destination + read_idx;
  return draft->waits[inst->first_wait + read_idx - num_own];
}
// Whether the old contents of the destinations end here. An instruction of an elected warp leaves the others' as they
// are.
static inline bool ftl_inst_overwrites(const ftl_draft_inst *inst) {
  return inst->destination != FTL_NO_VALUE && !(inst->effects & FTL_EFFECT_READS_DESTINATION) &&
         !(inst->inst.flags & FTL_INST_WARP0);
}

#endif
