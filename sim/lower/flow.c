#include "lower/flow.h"

enum { MAX_NESTING = FTL_TILE_MAX_LOOP_VARS };

static bool is_separator(const ftl_draft_inst *inst) {
  if (inst->effects & FTL_EFFECT_PINNED) return true;
  switch (inst->inst.opcode) {
    case FTL_OP_LOOP:
    case FTL_OP_END_LOOP:
    case FTL_OP_BRA:
    case FTL_OP_BSYNC:
    case FTL_OP_EXIT:
      return true;
    default:
      return false;
  }
}

static int32_t count_stretches(const ftl_draft *draft) {
  int32_t count = 0;
  bool open = false;
  for (int32_t i = 0; i < draft->num_insts; i++) {
    bool separator = is_separator(&draft->insts[i]);
    count += separator || !open;
    open = !separator;
  }
  return count;
}

static void split(const ftl_draft *draft, ftl_flow *flow) {
  ftl_stretch *stretch = flow->stretches - 1;
  bool open = false;
  for (int32_t i = 0; i < draft->num_insts; i++) {
    bool separator = is_separator(&draft->insts[i]);
    if (separator || !open) *++stretch = (ftl_stretch){.begin = i, .branch_to = -1};
    stretch->end = i + 1;
    open = !separator;
  }
}

static bool runs_once(const ftl_draft *draft, const ftl_flow *flow, int32_t head) {
  return draft->insts[flow->stretches[head].begin].effects & FTL_EFFECT_ONCE;
}

static ftl_status connect_loops(const ftl_draft *draft, ftl_flow *flow, ftl_error *error) {
  int32_t stack[MAX_NESTING], depth = 0, num_repeating = 0, next_tile = -1;
  for (int32_t s = 0; s < flow->num_stretches; s++) {
    ftl_stretch *stretch = &flow->stretches[s];
    uint8_t opcode = draft->insts[stretch->begin].inst.opcode;
    stretch->loop_depth = depth;
    stretch->num_repeating = num_repeating;
    if (opcode == FTL_OP_LOOP) {
      if (depth == MAX_NESTING) return ftl_error_set(error, FTL_RUN_FAILED, "loops nest deeper than %d", MAX_NESTING);
      stack[depth++] = s;
      num_repeating += !runs_once(draft, flow, s);
    } else if (opcode == FTL_OP_NEXT_TILE) {
      next_tile = s;
    } else if (opcode == FTL_OP_EXIT) {
      stretch->branch_to = next_tile;  // where there is one, the code up to here runs again
    } else if (opcode == FTL_OP_END_LOOP) {
      if (depth == 0) return ftl_error_set(error, FTL_RUN_FAILED, "instruction %d ends no loop", stretch->begin);
      int32_t head = stack[--depth];
      num_repeating -= !runs_once(draft, flow, head);
      stretch->branch_to = head + 1;
      if (s + 1 < flow->num_stretches) flow->stretches[head].branch_to = s + 1;
    }
  }
  return depth == 0 ? FTL_OK : ftl_error_set(error, FTL_RUN_FAILED, "a loop of the draft does not end");
}

ftl_status ftl_flow_find(const ftl_draft *draft, ftl_arena *arena, ftl_flow *out, ftl_error *error) {
  *out = (ftl_flow){.num_stretches = count_stretches(draft)};
  out->stretches = FTL_ARENA_NEW(arena, ftl_stretch, out->num_stretches);
  if (!out->stretches) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  split(draft, out);
  return connect_loops(draft, out, error);
}
