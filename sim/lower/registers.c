#include "lower/registers.h"

#include <string.h>

#include "base/integer.h"

typedef struct sets {
  uint64_t *reads_first;  // [stretch][word]: read before being overwritten in the stretch
  uint64_t *overwrites;
} sets;

static void summarise(const ftl_draft *draft, const ftl_stretch *stretch, uint64_t *reads_first, uint64_t *overwrites) {
  for (int32_t i = stretch->begin; i < stretch->end; i++) {
    const ftl_draft_inst *inst = &draft->insts[i];
    int32_t num_reads = ftl_inst_num_reads(inst);
    for (int32_t k = 0; k < num_reads; k++) {
      int32_t value = ftl_inst_read(draft, inst, k);
      if (!ftl_set_has(overwrites, value)) ftl_set_add(reads_first, value);
    }
    if (!ftl_inst_overwrites(inst)) continue;
    for (int32_t k = 0; k < ftl_inst_num_writes(inst); k++) ftl_set_add(overwrites, inst->destination + k);
  }
}

// live_out = union of the successors' live_in; live_in = reads_first | (live_out & ~overwrites). True if it changed.
static bool propagate(const ftl_flow *flow, const sets *local, ftl_liveness *liveness, int32_t s) {
  int32_t words = liveness->num_words;
  size_t row = (size_t)s * (size_t)words;
  const uint64_t *next = s + 1 < flow->num_stretches ? &liveness->live_in[row + (size_t)words] : NULL;
  int32_t branch_to = flow->stretches[s].branch_to;
  const uint64_t *other = branch_to >= 0 ? &liveness->live_in[(size_t)branch_to * (size_t)words] : NULL;
  bool changed = false;
  for (int32_t w = 0; w < words; w++) {
    size_t at = row + (size_t)w;
    uint64_t out = (next ? next[w] : 0) | (other ? other[w] : 0);
    uint64_t in = local->reads_first[at] | (out & ~local->overwrites[at]);
    changed |= in != liveness->live_in[at];
    liveness->live_out[at] = out;
    liveness->live_in[at] = in;
  }
  return changed;
}

bool ftl_liveness_find(const ftl_draft *draft, const ftl_flow *flow, ftl_arena *arena, ftl_liveness *out) {
  int32_t words = ftl_divide_up32(draft->num_values, 64);
  size_t size = (size_t)words * (size_t)flow->num_stretches;
  out->num_words = words;
  out->live_in = FTL_ARENA_NEW(arena, uint64_t, size);
  out->live_out = FTL_ARENA_NEW(arena, uint64_t, size);
  sets local = {FTL_ARENA_NEW(arena, uint64_t, size), FTL_ARENA_NEW(arena, uint64_t, size)};
  if (!out->live_in || !out->live_out || !local.reads_first || !local.overwrites) return false;
  for (int32_t s = 0; s < flow->num_stretches; s++) {
    size_t row = (size_t)s * (size_t)words;
    summarise(draft, &flow->stretches[s], &local.reads_first[row], &local.overwrites[row]);
  }
  bool changed = true;
  while (changed) {
    changed = false;
    for (int32_t s = flow->num_stretches - 1; s >= 0; s--) changed |= propagate(flow, &local, out, s);
  }
  return true;
}

static int32_t add_live(const ftl_draft *draft, uint64_t *live, int32_t value) {
  if (ftl_set_has(live, value)) return 0;
  ftl_set_add(live, value);
  return draft->values[value].num_registers;
}

static int32_t registers_of(const ftl_draft *draft, const uint64_t *live, int32_t num_words) {
  int32_t count = 0;
  for (int32_t w = 0; w < num_words; w++) {
    for (uint64_t bits = live[w]; bits; bits &= bits - 1)
      count += draft->values[w * 64 + __builtin_ctzll(bits)].num_registers;
  }
  return count;
}

// One instruction backwards: *count goes from the registers live after it to those before it; gives what it needs
// itself.
static int32_t step_back(const ftl_draft *draft, const ftl_draft_inst *inst, uint64_t *live, int32_t *count) {
  int32_t num_writes = ftl_inst_num_writes(inst);
  for (int32_t k = 0; k < num_writes; k++) *count += add_live(draft, live, inst->destination + k);
  int32_t needed = *count;
  for (int32_t k = 0; ftl_inst_overwrites(inst) && k < num_writes; k++) {
    ftl_set_drop(live, inst->destination + k);
    *count -= draft->values[inst->destination + k].num_registers;
  }
  int32_t num_reads = ftl_inst_num_reads(inst);
  for (int32_t k = 0; k < num_reads; k++) *count += add_live(draft, live, ftl_inst_read(draft, inst, k));
  return needed > *count ? needed : *count;
}

int32_t ftl_live_pressure(const ftl_draft *draft, const ftl_draft_inst *first, int32_t num_insts, uint64_t *live,
                          int32_t num_words, int32_t *pressure) {
  int32_t count = registers_of(draft, live, num_words), most = 0;
  for (int32_t i = num_insts - 1; i >= 0; i--) {
    int32_t needed = step_back(draft, &first[i], live, &count);
    if (pressure) pressure[i] = needed;
    if (needed > most) most = needed;
  }
  return most;
}

int32_t ftl_liveness_max(const ftl_draft *draft, const ftl_flow *flow, const ftl_liveness *liveness, uint64_t *scratch,
                         int32_t *pressure) {
  int32_t most = 0;
  for (int32_t s = 0; s < flow->num_stretches; s++) {
    const ftl_stretch *stretch = &flow->stretches[s];
    const uint64_t *live_out = &liveness->live_out[(size_t)s * (size_t)liveness->num_words];
    memcpy(scratch, live_out, sizeof(uint64_t) * (size_t)liveness->num_words);
    int32_t needed = ftl_live_pressure(draft, &draft->insts[stretch->begin], stretch->end - stretch->begin, scratch,
                                       liveness->num_words, pressure ? &pressure[stretch->begin] : NULL);
    if (needed > most) most = needed;
  }
  return most;
}
