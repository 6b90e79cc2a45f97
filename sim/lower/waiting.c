#include "lower/waiting.h"

#include <string.h>

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

static bool is_live_around_loops(const ftl_draft *draft, const ftl_flow *flow, const ftl_liveness *liveness,
                                 int32_t value) {
  for (int32_t s = 0; s < flow->num_stretches; s++) {
    int opcode = draft->insts[flow->stretches[s].begin].inst.opcode;
    bool is_boundary = opcode == FTL_OP_LOOP || opcode == FTL_OP_END_LOOP;
    if (is_boundary && ftl_set_has(&liveness->live_in[(size_t)s * (size_t)liveness->num_words], value)) return true;
  }
  return false;
}

int32_t ftl_waiting_registers(const ftl_draft *draft, const ftl_flow *flow, const ftl_liveness *liveness,
                              uint64_t *scratch) {
  accesses in_loops = {scratch, scratch + liveness->num_words};
  memset(scratch, 0, 2 * sizeof *scratch * (size_t)liveness->num_words);
  for (int32_t s = 0; s < flow->num_stretches; s++)
    if (flow->stretches[s].loop_depth > 0) mark(draft, &flow->stretches[s], in_loops);
  int32_t registers = 0;
  for (int32_t v = 0; v < draft->num_values; v++) {
    bool is_changed = ftl_set_has(in_loops.written, v), is_narrow = draft->values[v].num_registers <= MOST_REGISTERS;
    bool waits = is_changed ? is_narrow : !ftl_set_has(in_loops.read, v);
    if (waits && is_live_around_loops(draft, flow, liveness, v)) registers += draft->values[v].num_registers;
  }
  return registers;
}
