// MASK_BITS: -inf where a bit of the row's words is 0. Each lane loads the words of its rows, shifts them to its first
// column once a word, and then tests and selects an element at constant places. Source: the custom masks of FlashInfer
// (include/flashinfer/attention, a bit a pair) and the tree masks of SpecInfer (a word of ancestors a token).
#include "base/integer.h"
#include "lower/select/select.h"

#define NONE FTL_NO_VALUE
enum { WORD_BYTES = 4, WORD_BITS = 32, MOST_BYTES = 16, HALF_ROWS = 8 };

// The words of the 8 rows of half a slab: every warp of its row loads all of them, as many at once as their number lets
// it; plain code, which does not know where rows begin, one by one.
static int32_t load_words(ftl_select *s, const ftl_tile_op *op, uint16_t ref, int32_t address, int32_t row) {
  int32_t row_bytes = op->ref.columns * WORD_BYTES, vector = row_bytes & -row_bytes, slab_warps = s->role->num_groups;
  if (vector > MOST_BYTES) vector = MOST_BYTES;
  if (s->plain_code) vector = WORD_BYTES;
  int32_t words = ftl_select_temp(s, op->ref.columns);
  for (int32_t byte = 0; byte < row_bytes; byte += vector)
    ftl_select_add_ldg(s, &op->ref,
                       (ftl_access){.ref = ref,
                                    .num_rows = HALF_ROWS,
                                    .row = row,
                                    .warp_row_step = FTL_SLAB_ROWS,
                                    .row_step = 1,
                                    .column_byte = byte,
                                    .bytes = vector,
                                    .row_warps = slab_warps > 1 ? slab_warps : 0},
                       words, address, ftl_select_row_predicate(s, &op->ref));
  return words;
}

// Plain code multiplies each of a lane's rows by the run-time number of words in one before the loops, to 64 bits
// (VIMNMX, IMAD, SHF), and keeps it over them (R162 to R165 of tree_mma.h, 64 x 64 tiles at head_dim 128).
void ftl_select_bit_rows(ftl_select *s) {
  enum { OFFSET_REGISTERS = 2, OFFSET_INSTS = 2 };
  for (int32_t i = 0; s->plain_code && i < s->role->num_ops; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    if (op->kind != FTL_TILE_MASK_BITS || s->values[op->dst].first_bit_row != NONE) continue;
    for (int32_t row = 0; row < 2 * s->values[op->dst].map.num_slabs; row++) {
      int32_t offset = ftl_draft_value_add(&s->draft, OFFSET_REGISTERS, 0);
      s->draft.values[offset].is_kept = true;
      if (row == 0) s->values[op->dst].first_bit_row = offset;
      ftl_select_add(s, FTL_OP_LOP, OFFSET_INSTS, offset, s->thread, NONE, NONE);
      ftl_select_add(s, FTL_OP_IMAD, 1, offset, offset, NONE, NONE);
    }
  }
}

// Of plain code: the tile's words and the row's offset (IADD3, IMAD.X, LEA, LEA.HI.X).
static int32_t row_words(ftl_select *s, const ftl_tile_op *op, int32_t tile, int32_t row) {
  enum { ADDRESS_INSTS = 4 };
  if (!s->plain_code) return tile;
  int32_t address = ftl_select_temp(s, 2), offset = s->values[op->dst].first_bit_row + row;
  ftl_select_add(s, FTL_OP_IADD, ADDRESS_INSTS, address, tile, offset, NONE);
  return address;
}

void ftl_select_mask_bits(ftl_select *s, const ftl_tile_op *op) {
  const ftl_select_value *v = &s->values[op->dst];
  int32_t columns = s->tile->values[op->dst].columns, own_words = ftl_divide_up32(columns, WORD_BITS);
  uint16_t ref = ftl_select_ref(s, &op->ref);
  ftl_select_add_tile(s, ref, 0);
  int32_t address = ftl_select_row_address(s, &op->ref);
  for (int32_t slab = 0; slab < v->map.num_slabs; slab++) {
    int32_t shifted[2];
    for (int32_t half = 0; half < 2; half++) {
      int32_t row = ftl_select_slab_row(s, op->dst, slab) + half * HALF_ROWS;
      int32_t words = load_words(s, op, ref, row_words(s, op, address, 2 * slab + half), row);
      shifted[half] = ftl_select_temp(s, own_words);
      ftl_select_add(s, FTL_OP_LOP, own_words, shifted[half], words, s->thread, NONE);
    }
    for (int32_t i = 0; i < v->map.per_slab; i++) {
      int32_t fragment = ftl_select_fragment(s, op->dst, slab, i), is_seen = ftl_select_temp(s, 0);
      ftl_select_add(s, FTL_OP_LOP, v->map.num_registers, is_seen, shifted[0], shifted[1], NONE);
      ftl_select_add(s, FTL_OP_SEL, v->map.num_registers, fragment, fragment, is_seen, NONE);
    }
  }
}
