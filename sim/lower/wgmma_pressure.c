#include "lower/wgmma_pressure.h"

#include <string.h>

static void mark_operands(const ftl_draft *draft, uint64_t *operands) {
  for (int32_t i = 0; i < draft->num_insts; i++) {
    const ftl_draft_inst *inst = &draft->insts[i];
    if (inst->inst.opcode != FTL_OP_WGMMA) continue;
    for (int32_t k = 0; k < ftl_inst_num_writes(inst); k++) ftl_set_add(operands, inst->destination + k);
    for (int32_t k = 0; k < inst->num_sources; k++) ftl_set_add(operands, inst->sources[k]);
  }
}

static int32_t count(const ftl_draft *draft, const uint64_t *live, const uint64_t *operands, int32_t num_words) {
  int32_t registers = 0;
  for (int32_t w = 0; w < num_words; w++)
    for (uint64_t bits = live[w] & operands[w]; bits; bits &= bits - 1)
      registers += draft->values[w * 64 + __builtin_ctzll(bits)].num_registers;
  return registers;
}

int32_t ftl_wgmma_pressure(const ftl_draft *draft, const ftl_flow *flow, const ftl_liveness *liveness,
                           uint64_t *scratch) {
  int32_t num_words = liveness->num_words, most = 0;
  uint64_t *operands = scratch, *live = scratch + num_words;
  mark_operands(draft, operands);
  for (int32_t s = 0; s < flow->num_stretches; s++) {
    memcpy(live, &liveness->live_out[(size_t)s * (size_t)num_words], sizeof *live * (size_t)num_words);
    for (int32_t i = flow->stretches[s].end - 1; i >= flow->stretches[s].begin; i--) {
      const ftl_draft_inst *inst = &draft->insts[i];
      if (inst->inst.opcode == FTL_OP_WGMMA) {
        for (int32_t k = 0; k < inst->num_sources; k++) ftl_set_add(live, inst->sources[k]);
        int32_t registers = count(draft, live, operands, num_words);
        if (registers > most) most = registers;
      }
      ftl_live_step_back(draft, inst, live);
    }
  }
  return most;
}

static bool has_two_buffers_and_more_rows_than_depth(const ftl_tile_program *tile, const ftl_tile_op *product) {
  const ftl_ring *a = &tile->rings[product->ring_a], *b = &tile->rings[product->ring];
  int32_t rows = product->transpose_a ? a->columns : a->rows, depth = product->transpose_a ? a->rows : a->columns;
  return a->num_stages == 2 && b->num_stages == 2 && depth < rows;
}

bool ftl_wgmma_moves_accumulators(const ftl_tile_program *tile, const ftl_role *role) {
  int32_t num_products = 0, num_moved = 0;
  for (const ftl_tile_op *op = &tile->ops[role->first_op], *end = op + role->num_ops; op < end; op++) {
    num_products += op->kind == FTL_TILE_MMA;
    num_moved += op->kind == FTL_TILE_MMA && op->ring_a >= 0 && has_two_buffers_and_more_rows_than_depth(tile, op);
  }
  return num_moved > 1 && num_moved == num_products;  // the first step stands ahead of the loop
}
