// Liveness of virtual values over a draft's control flow, and the registers that it needs.
#ifndef FTL_LOWER_REGISTERS_H
#define FTL_LOWER_REGISTERS_H

#include "lower/flow.h"

typedef struct ftl_liveness {
  int32_t num_words;  // of one set: a bit per value
  uint64_t *live_in;  // [stretch][word]: read later before being overwritten, on some path
  uint64_t *live_out;
} ftl_liveness;

// Iterated backward data flow. Stays valid when stretches are reordered inside. False when memory is out.
bool ftl_liveness_find(const ftl_draft *draft, const ftl_flow *flow, ftl_arena *arena, ftl_liveness *out);

// The most registers that are live at any instruction. A destination may take the registers of a source that ends
// there. `pressure` (may be NULL): the same per instruction. `scratch`: a zeroed set of num_words, left undefined.
int32_t ftl_liveness_max(const ftl_draft *draft, const ftl_flow *flow, const ftl_liveness *liveness, uint64_t *scratch,
                         int32_t *pressure);

// The same for straight-line code: `live` is what is live after it, and becomes what is live before it.
int32_t ftl_live_pressure(const ftl_draft *draft, const ftl_draft_inst *first, int32_t num_insts, uint64_t *live,
                          int32_t num_words, int32_t *pressure);

static inline bool ftl_set_has(const uint64_t *set, int32_t value) { return set[value >> 6] >> (value & 63) & 1; }
static inline void ftl_set_add(uint64_t *set, int32_t value) { set[value >> 6] |= UINT64_C(1) << (value & 63); }
static inline void ftl_set_drop(uint64_t *set, int32_t value) { set[value >> 6] &= ~(UINT64_C(1) << (value & 63)); }

// Turns the set of values live after an instruction into those live before it.
static inline void ftl_live_step_back(const ftl_draft *draft, const ftl_draft_inst *inst, uint64_t *live) {
  if (ftl_inst_overwrites(inst)) {
    for (int32_t k = 0; k < ftl_inst_num_writes(inst); k++) ftl_set_drop(live, inst->destination + k);
  }
  int32_t num_reads = ftl_inst_num_reads(inst);
  for (int32_t k = 0; k < num_reads; k++) ftl_set_add(live, ftl_inst_read(draft, inst, k));
}

#endif
