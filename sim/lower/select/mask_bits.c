// MASK_BITS: -inf where a bit of the row's words is 0. Each lane loads the words of its rows, shifts them to its first
// column once a word, and then tests and selects an element at constant places. Source: the custom masks of FlashInfer
// (include/flashinfer/attention, a bit a pair) and the tree masks of SpecInfer (a word of ancestors a token).
#include "lower/select/select.h"

#define NONE FTL_NO_VALUE
enum { WORD_BYTES = 4, WORD_BITS = 32, MOST_BYTES = 16, HALF_ROWS = 8 };

// The words of the 8 rows of half a slab: every warp of its row loads all of them, as many at once as their number lets
// it.
static int32_t load_words(ftl_select *s, const ftl_tile_op *op, uint16_t ref, int32_t address, int32_t row) {
  int32_t row_bytes = op->ref.columns * WORD_BYTES, vector = row_bytes & -row_bytes, slab_warps = s->role->num_groups;
  if (vector > MOST_BYTES) vector = MOST_BYTES;
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

void ftl_select_mask_bits(ftl_select *s, const ftl_tile_op *op) {
  const ftl_select_value *v = &s->values[op->dst];
  int32_t columns = s->tile->values[op->dst].columns, own_words = (columns + WORD_BITS - 1) / WORD_BITS;
  uint16_t ref = ftl_select_ref(s, &op->ref);
  ftl_select_add_tile(s, ref, 0);
  int32_t address = ftl_select_row_address(s, &op->ref);
  for (int32_t slab = 0; slab < v->map.num_slabs; slab++) {
    int32_t shifted[2];
    for (int32_t half = 0; half < 2; half++) {
      int32_t row = ftl_select_slab_row(s, op->dst, slab) + half * HALF_ROWS;
      int32_t words = load_words(s, op, ref, address, row);
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
