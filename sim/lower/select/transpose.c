// TRANSPOSE: a stage of one-byte elements becomes its transpose, as FlashAttention-3 makes V's the K-major operand that
// wgmma takes of fp8 (arXiv:2407.08608, section 3.3; hopper/mainloop_fwd_sm90_tma_gmma_ws.hpp, transpose_V): a warp
// reads 16 rows of 32 bytes by ldmatrix.x4.trans, which transposes pairs of bytes, splits the pairs by two PRMT for
// two registers, and writes 32 rows of 16 bytes by stmatrix.x4.
#include "lower/select/select.h"

#define NONE FTL_NO_VALUE
enum { BLOCK_ROWS = 16, BLOCK_COLUMNS = 32, BLOCK_REGISTERS = 4 };

// Lane i gives the address of row i % 16, chunk i / 16 of what it reads; of row i of what it writes.
static ftl_wavefronts read_wavefronts(const ftl_shared_layout *from, int32_t row, int32_t column) {
  int32_t offset[FTL_WARP_LANES];
  for (int32_t lane = 0; lane < FTL_WARP_LANES; lane++)
    offset[lane] =
        ftl_shared_layout_offset(from, row + lane % BLOCK_ROWS, column + lane / BLOCK_ROWS * FTL_CHUNK_BYTES);
  return ftl_shared_wavefronts(offset, FTL_CHUNK_BYTES);
}

static ftl_wavefronts write_wavefronts(const ftl_shared_layout *to, int32_t row, int32_t column) {
  int32_t offset[FTL_WARP_LANES];
  for (int32_t lane = 0; lane < FTL_WARP_LANES; lane++) offset[lane] = ftl_shared_layout_offset(to, row + lane, column);
  return ftl_shared_wavefronts(offset, FTL_CHUNK_BYTES);
}

static int32_t address(ftl_select *s, int32_t base) {
  int32_t result = ftl_draft_value_add(&s->draft, 1, 1);
  ftl_select_add(s, FTL_OP_LOP, 1, result, base, NONE, NONE);
  return result;
}

static void transpose_block(ftl_select *s, const ftl_tile_op *op, int32_t row, int32_t column) {
  int32_t block = ftl_select_temp(s, BLOCK_REGISTERS);
  ftl_draft_inst *load =
      ftl_select_add(s, FTL_OP_LDSM, 1, block, address(s, s->rings[op->ring_a].read_address), NONE, NONE);
  load->inst.ring_a = (uint8_t)op->ring_a;
  load->effects = FTL_EFFECT_MEMORY;
  ftl_select_set_wavefronts(load, read_wavefronts(&s->layouts[op->ring_a], row, column));
  ftl_select_add(s, FTL_OP_PRMT, BLOCK_REGISTERS, block, block, NONE, NONE);
  ftl_draft_inst *store =
      ftl_select_add(s, FTL_OP_STS, 1, NONE, block, address(s, s->rings[op->ring].write_address), NONE);
  store->inst.ring_a = (uint8_t)op->ring;
  store->inst.arg = FTL_CHUNK_BYTES;
  store->effects = FTL_EFFECT_MEMORY | FTL_EFFECT_CHAIN;
  ftl_select_set_wavefronts(store, write_wavefronts(&s->layouts[op->ring], column, row));
}

void ftl_select_transpose(ftl_select *s, const ftl_tile_op *op) {
  const ftl_ring *from = &s->tile->rings[op->ring_a];
  int32_t num_blocks = from->rows / BLOCK_ROWS * (from->columns / BLOCK_COLUMNS);
  bool whole = from->rows % BLOCK_ROWS == 0 && from->columns % BLOCK_COLUMNS == 0;
  if (!whole || num_blocks % s->role->num_warps != 0) {
    ftl_select_fail(s, "%d x %d bytes of ring %s are not dealt to %d warps by blocks of %d x %d", from->rows,
                    from->columns, from->name, s->role->num_warps, BLOCK_ROWS, BLOCK_COLUMNS);
    return;
  }
  int32_t across = from->columns / BLOCK_COLUMNS;
  for (int32_t i = 0; i < num_blocks; i += s->role->num_warps)
    transpose_block(s, op, i / across * BLOCK_ROWS, i % across * BLOCK_COLUMNS);
}
