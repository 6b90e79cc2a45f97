// DROPOUT: random bytes of Philox 4x32, and what is dropped set to zero, or negated.
//
// Counted as nvcc 13 compiles FlashAttention-2's dropout for sm_75, sm_80 and sm_90a: a round is two IMAD.WIDE and two
// LOP3, keys step in uniform registers. The head and the row are the same for all calls of a row of blocks, so that of
// the first three rounds only what depends on the column is left to each call: 10 IMAD.WIDE and 12 LOP3 instead of 14
// and 14.
#include "lower/select/select.h"
#include "tile/dropout.h"

#define NONE FTL_NO_VALUE

// What the calls of a row of blocks share: the head, the row and the lane through the rounds that they alone decide.
static int32_t shared_rounds(ftl_select *s) {
  int32_t counter = ftl_select_temp(s, 2), products = ftl_select_temp(s, 8), shared = ftl_select_temp(s, 6);
  ftl_select_add(s, FTL_OP_IADD, 2, counter, s->thread, s->block, NONE);
  ftl_select_add(s, FTL_OP_IMAD_WIDE, 4, products, counter, NONE, NONE);
  ftl_select_add(s, FTL_OP_LOP, 2, shared, products, counter, NONE);
  return shared;
}

// One round: products of two words, or of the one that differs from call to call, and as many words that depend on
// them.
static int32_t add_round(ftl_select *s, int32_t words, int32_t shared, int32_t num_products, int32_t num_words) {
  int32_t products = NONE, next = ftl_select_temp(s, 4);
  if (num_products > 0) {
    products = ftl_select_temp(s, 2 * num_products);
    ftl_select_add(s, FTL_OP_IMAD_WIDE, num_products, products, words, NONE, NONE);
  }
  ftl_select_add(s, FTL_OP_LOP, num_words, next, num_products > 0 ? products : words, shared, NONE);
  return next;
}

// One call of the generator: 16 random bytes.
static int32_t add_call(ftl_select *s, int32_t shared) {
  enum { FIRST_WHOLE_ROUND = 3 };
  static const int32_t products[FIRST_WHOLE_ROUND] = {0, 1, 1}, words_of[FIRST_WHOLE_ROUND] = {1, 1, 2};
  int32_t words = ftl_select_temp(s, 1);
  ftl_select_add(s, FTL_OP_IADD, 1, words, s->block, NONE, NONE);
  for (int round = 0; round < FTL_DROPOUT_ROUNDS; round++) {
    bool whole = round >= FIRST_WHOLE_ROUND;
    words = add_round(s, words, whole ? NONE : shared, whole ? 2 : products[round], whole ? 2 : words_of[round]);
  }
  return words;
}

// Bytes of a word of random numbers, each in a register of its own: three SHF and three LOP3 a word. So PyTorch's
// kernel has them (its SASS for sm_90, 128 x 64 tiles of 4 warps at head_dim 64: 48 SHF and 48 LOP3 for 16 words).
static int32_t take_bytes_apart(ftl_select *s, int32_t random, int32_t num_words) {
  enum { BYTES_OF_WORD = 4, INSTS_OF_WORD = 6 };
  int32_t bytes = ftl_select_temp(s, BYTES_OF_WORD * num_words);
  ftl_select_add(s, FTL_OP_LOP, INSTS_OF_WORD * num_words, bytes, random, NONE, NONE);
  return bytes;
}

// Bytes become 16-bit numbers two at a time (PRMT), which a packed comparison turns into masks. A register has two
// numbers, a word serves two.
static void drop_packed(ftl_select *s, int32_t fragment, int32_t num_registers, int32_t random) {
  int32_t wide = ftl_select_temp(s, num_registers), kept = ftl_select_temp(s, num_registers);
  int32_t bytes = s->buffered_code ? take_bytes_apart(s, random, num_registers / 2) : random;
  ftl_select_add(s, FTL_OP_PRMT, num_registers, wide, bytes, NONE, NONE);
  ftl_select_add(s, FTL_OP_HSET2, num_registers, kept, wide, NONE, NONE);
  ftl_select_add(s, FTL_OP_LOP, num_registers, fragment, fragment, kept, NONE);
}

// Every word of the counter differs from thread to thread: all rounds are whole. Four words a call, each compared.
static void drop_by_rows(ftl_select *s, const ftl_tile_op *op) {
  ftl_fragment_map map = s->values[op->dst].map;
  for (int32_t i = 0; i < map.num_slabs * map.per_slab; i++) {
    int32_t fragment = s->values[op->dst].first + i, dropped = NONE;
    for (int32_t element = 0; element < map.num_registers; element += FTL_DROPOUT_ROW_COLUMNS) {
      int32_t words = ftl_select_temp(s, 4), both = dropped;
      ftl_select_add(s, FTL_OP_IADD, 1, words, s->thread, s->block, NONE);
      for (int round = 0; round < FTL_DROPOUT_ROW_ROUNDS; round++) words = add_round(s, words, NONE, 2, 2);
      dropped = ftl_select_temp(s, 0);
      ftl_select_add(s, FTL_OP_ISETP, FTL_DROPOUT_ROW_COLUMNS, dropped, words, both, NONE);
    }
    ftl_select_add(s, FTL_OP_SEL, map.num_registers, fragment, fragment, dropped, NONE);
  }
}

// An element's byte (PRMT), a comparison, and a select between the number and its negative (apply_dropout of
// FlashAttention-2's dropout.h with encode_dropout_in_sign_bit). arg: what the checker counts.
static void drop_by_sign(ftl_select *s, int32_t fragment, int32_t num_registers, int32_t random) {
  int32_t bytes = ftl_select_temp(s, num_registers), dropped = ftl_select_temp(s, 0);
  ftl_select_add(s, FTL_OP_PRMT, num_registers, bytes, random, NONE, NONE);
  ftl_select_add(s, FTL_OP_ISETP, num_registers, dropped, bytes, NONE, NONE);
  ftl_select_add(s, FTL_OP_SEL, num_registers, fragment, fragment, dropped, NONE)->inst.arg = FTL_SEL_DROPS;
}

// How many calls of the generator a lane needs for its elements of a slab's next `columns` columns.
typedef struct call_block {
  int32_t columns, num_calls;
} call_block;

// A call serves what a lane of an m16n8 accumulator holds of 32 columns. The lanes of quad pairs hold as much of four
// such lanes. Transposed, a lane's elements are those of other lanes: of 16 x 16 it holds two queries side by side, and
// of each half of the numbers of a call, which are for 32 keys; quad pairs four queries by two pairs of keys.
static call_block call_block_of(const ftl_select *s, const ftl_tile_op *op) {
  if (op->transposed) return (call_block){FTL_DROPOUT_ROWS, s->shape.quad_pairs ? 8 : 2};
  return (call_block){FTL_DROPOUT_COLUMNS, s->shape.quad_pairs ? 4 : 1};
}

void ftl_select_dropout(ftl_select *s, const ftl_tile_op *op) {
  if (ftl_select_is_by_rows(s, op->dst)) {
    drop_by_rows(s, op);
    return;
  }
  ftl_fragment_map map = s->values[op->dst].map;
  call_block block = call_block_of(s, op);
  int32_t per_block = block.columns * map.per_slab / ftl_select_warp_columns(s, op->dst);
  for (int32_t slab = 0; slab < map.num_slabs; slab++) {
    int32_t shared = shared_rounds(s), random = NONE;
    for (int32_t i = 0; i < map.per_slab; i++) {
      for (int32_t call = 0; i % per_block == 0 && call < block.num_calls; call++) random = add_call(s, shared);
      (op->by_sign ? drop_by_sign : drop_packed)(s, ftl_select_fragment(s, op->dst, slab, i), map.num_registers,
                                                 random);
    }
  }
}
