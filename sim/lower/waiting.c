#include "lower/waiting.h"

enum { MOST_REGISTERS = 2 };  // of numbers of rows and counters; what products add to is wider

typedef struct accesses {
  uint64_t *read, *written;  // values that loops read and write
} accesses;

static void mark(const ftl_draft *draft, const ftl_stretch *stretch, accesses in_loops) {
  for (int32_t i = stretch->begin; i < stretch->end; i++) {
    const ftl_draft_inst *inst = &draft->insts[i];
    for (int32_t k = 0; k < ftl_inst_num_reads(inst); k++) ftl_set_add(in_loops.read, ftl_inst_read(draft, inst, k));
    for (int32_t k = 0; k < ftl_inst_num_writes(inst); k++) ftl_set_add(in_loops.written, inst->destination + k);
  }
}

static bool is_boundary(const ftl_draft *draft, const ftl_stretch *stretch) {
  int opcode = draft->insts[stretch->begin].inst.opcode;
  return opcode == FTL_OP_LOOP || opcode == FTL_OP_END_LOOP;
}

// Counts a value in all stretches from `from` up to boundary `to` where it is live at either end.
static void count_region(const ftl_draft *draft, bool is_live, int32_t value, int32_t from, int32_t to,
                         int32_t *by_stretch) {
  for (int32_t s = from; is_live && s < to; s++) by_stretch[s] += draft->values[value].num_registers;
}

// What a step works out for others (limits of rows) counts in the code between loop boundaries at one of whose ends it
// is live, all else in all code, if it is live at any boundary.
static void count_value(const ftl_draft *draft, const ftl_flow *flow, const ftl_liveness *liveness, int32_t value,
                        int32_t *by_stretch) {
  bool was_live = false, is_live_at_any = false, is_kept = draft->values[value].is_kept;
  int32_t from = 0;
  for (int32_t s = 0; s < flow->num_stretches; s++) {
    if (!is_boundary(draft, &flow->stretches[s])) continue;
    bool is_live = ftl_set_has(&liveness->live_in[(size_t)s * (size_t)liveness->num_words], value);
    if (is_kept) count_region(draft, was_live || is_live, value, from, s, by_stretch);
    is_live_at_any |= is_live;
    was_live = is_live;
    from = s + 1;
  }
  if (is_kept)
    count_region(draft, was_live, value, from, flow->num_stretches, by_stretch);
  else
    count_region(draft, is_live_at_any, value, 0, flow->num_stretches, by_stretch);
}

int32_t *ftl_waiting_registers(const ftl_draft *draft, const ftl_flow *flow, const ftl_liveness *liveness,
                               ftl_arena *arena) {
  uint64_t *sets = FTL_ARENA_NEW(arena, uint64_t, 2 * liveness->num_words);
  int32_t *by_stretch = FTL_ARENA_NEW(arena, int32_t, flow->num_stretches);
  if (!sets || !by_stretch) return NULL;
  accesses in_loops = {sets, sets + liveness->num_words};
  for (int32_t s = 0; s < flow->num_stretches; s++)
    if (flow->stretches[s].loop_depth > 0) mark(draft, &flow->stretches[s], in_loops);
  for (int32_t v = 0; v < draft->num_values; v++) {
    bool is_changed = ftl_set_has(in_loops.written, v), is_narrow = draft->values[v].num_registers <= MOST_REGISTERS;
    bool waits = is_changed ? is_narrow : !ftl_set_has(in_loops.read, v);
    if (waits) count_value(draft, flow, liveness, v, by_stretch);
  }
  return by_stretch;
}
