#include "lower/waiting.h"

static void mark_accesses(const ftl_draft *draft, const ftl_stretch *stretch, uint64_t *accessed) {
  for (int32_t i = stretch->begin; i < stretch->end; i++) {
    const ftl_draft_inst *inst = &draft->insts[i];
    for (int32_t k = 0; k < ftl_inst_num_reads(inst); k++) ftl_set_add(accessed, ftl_inst_read(draft, inst, k));
    for (int32_t k = 0; k < ftl_inst_num_writes(inst); k++) ftl_set_add(accessed, inst->destination + k);
  }
}

// Whether some loop is entered while the value is needed later.
static bool is_live_in_loops(const ftl_flow *flow, const ftl_liveness *liveness, int32_t value) {
  for (int32_t s = 0; s < flow->num_stretches; s++)
    if (flow->stretches[s].loop_depth > 0 &&
        ftl_set_has(&liveness->live_in[(size_t)s * (size_t)liveness->num_words], value))
      return true;
  return false;
}

int32_t ftl_waiting_registers(const ftl_draft *draft, const ftl_flow *flow, const ftl_liveness *liveness,
                              uint64_t *accessed) {
  for (int32_t s = 0; s < flow->num_stretches; s++)
    if (flow->stretches[s].loop_depth > 0) mark_accesses(draft, &flow->stretches[s], accessed);
  int32_t registers = 0;
  for (int32_t v = 0; v < draft->num_values; v++) {
    bool waits = draft->values[v].is_offset || !ftl_set_has(accessed, v);
    if (waits && is_live_in_loops(flow, liveness, v)) registers += draft->values[v].num_registers;
  }
  return registers;
}
