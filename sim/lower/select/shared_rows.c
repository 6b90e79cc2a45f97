// Numbers of rows that stand in shared memory for all warps side by side, as in CUTLASS's fused attention
// (iterative_softmax of kernel_forward.h): maxima by atomics of each lane, what depends on them by one thread a row;
// sums by a lane of each warp, added up by one thread a row. Counts: SASS of PyTorch's memory-efficient attention
// (fmha_cutlassF_f16_aligned_64x64_rf_sm80, CUDA 13.0).
#include "lower/select/select.h"

#define NONE FTL_NO_VALUE
enum { SAME_ROW_LANES = 4, ROWS_OF_A_SLAB = 2 };  // lanes that reach one address; rows of a slab that a lane holds

// A float's maximum is that of its bits where it is not below 0, and their minimum elsewhere: a branch between an
// ATOMS.MAX and an ATOMS.MIN, of which nearly all lanes take the first.
static void maximum_by_atomic(ftl_select *s, int32_t max, int32_t address) {
  enum { COMPARES = 3, ADDRESS_INSTS = 5 };
  int32_t is_below = ftl_select_temp(s, 0), place = ftl_select_temp(s, 1);
  ftl_select_idle(s, 1, 0);  // BSSY
  ftl_select_add(s, FTL_OP_IADD, ADDRESS_INSTS, place, address, NONE, NONE);
  ftl_select_add(s, FTL_OP_ISETP, COMPARES, is_below, max, NONE, NONE);
  ftl_draft_inst *branch = ftl_select_add(s, FTL_OP_BRA, 1, NONE, is_below, NONE, NONE);
  branch->inst.flags = FTL_INST_GUARD;
  branch->effects = FTL_EFFECT_PINNED;
  ftl_select_add_shared(s, FTL_OP_STS, 1, NONE, max, place, SAME_ROW_LANES);
  ftl_select_join(s);
  ftl_select_add(s, FTL_OP_LABEL, 1, NONE, NONE, NONE, NONE)->effects = FTL_EFFECT_PINNED;
}

// The thread of a row: how far its maximum went on, what the sum is multiplied by, and both back.
static void follow_maximum(ftl_select *s, const ftl_select_ring *ring) {
  enum { NUMBERS = 3, ROW_INSTS = 10 };
  int32_t numbers = ftl_select_temp(s, NUMBERS), correction = ftl_select_temp(s, 1);
  ftl_select_add(s, FTL_OP_LOP, ROW_INSTS, correction, s->thread, NONE, NONE);
  ftl_select_add_shared(s, FTL_OP_LDS, NUMBERS, numbers, ring->read_address, correction, 1);
  ftl_select_add(s, FTL_OP_FFMA, 1, correction, numbers, NONE, NONE);
  ftl_select_add(s, FTL_OP_MUFU, 1, correction, correction, NONE, NONE);
  ftl_select_add(s, FTL_OP_FFMA, 1, numbers, numbers, correction, NONE);
  ftl_select_add_shared(s, FTL_OP_STS, NUMBERS, NONE, numbers, ring->write_address, 1);
}

static void read_rows(ftl_select *s, const ftl_tile_op *op, const ftl_select_ring *ring) {
  for (int32_t slab = 0; slab < s->values[op->dst].map.num_slabs; slab++)
    ftl_select_add_shared(s, FTL_OP_LDS, ROWS_OF_A_SLAB, ftl_select_fragment(s, op->dst, slab, 0), ring->read_address,
                          NONE, 1);
}

static void reduce_maxima(ftl_select *s, const ftl_tile_op *op, const ftl_select_ring *ring) {
  for (int32_t slab = 0; slab < s->values[op->dst].map.num_slabs; slab++)
    for (int32_t row = 0; row < ROWS_OF_A_SLAB; row++)
      maximum_by_atomic(s, ftl_select_fragment(s, op->dst, slab, 0), ring->write_address);
  ftl_select_barrier(s);
  follow_maximum(s, ring);
  ftl_select_barrier(s);
  read_rows(s, op, ring);
}

static void reduce_sums(ftl_select *s, const ftl_tile_op *op, const ftl_select_ring *ring) {
  int32_t across = s->tile->values[op->dst].warps_per_row;
  ftl_select_reduce_row_lanes(s, op);
  for (int32_t slab = 0; slab < s->values[op->dst].map.num_slabs; slab++)
    ftl_select_add_shared(s, FTL_OP_STS, ROWS_OF_A_SLAB, NONE, ftl_select_fragment(s, op->dst, slab, 0),
                          ring->write_address, 1);
  ftl_select_barrier(s);
  int32_t sum = ftl_select_temp(s, 1), parts = ftl_select_temp(s, across);
  ftl_select_add_shared(s, FTL_OP_LDS, 1, sum, ring->read_address, NONE, 1);
  ftl_select_add_shared(s, FTL_OP_LDS, across, parts, ring->read_address, NONE, 1);
  ftl_select_add(s, FTL_OP_FFMA, across, sum, sum, parts, NONE);
  ftl_select_add_shared(s, FTL_OP_STS, 1, NONE, sum, ring->write_address, 1);
}

void ftl_select_reduce_in_shared(ftl_select *s, const ftl_tile_op *op) {
  const ftl_select_ring *ring = &s->rings[op->ring];
  (op->fn == FTL_ELEM_MAX ? reduce_maxima : reduce_sums)(s, op, ring);
}
