// Which vectors of a thread's row lie inside it, where a load and a store that ask so of the same row both mask them:
// the load's compare is not made again. Read from the SASS of softmaxes in Triton (kernels/foreign/triton_softmax.py,
// Triton 3.6, blocks of 512 to 32768 columns on 4, 8 and 16 warps).
#include "lower/select/select.h"

#define NONE FTL_NO_VALUE
// Of seven predicates three tell lanes and warps of reductions apart. Masks have the other four; where there are more
// of them the exponentials take one, which the masks that come first leave to registers.
enum { MOST_IN_PREDICATES = 4, LAST_IN_PREDICATES = 3, WORD_BITS = 32, KNOWN_THREADS = 1024 };

// Whether predicate `vector` outlives its load in a predicate register.
static bool stays(int32_t vector, int32_t num_vectors) {
  return num_vectors <= MOST_IN_PREDICATES || vector >= num_vectors - LAST_IN_PREDICATES;
}

void ftl_select_begin_row_bits(ftl_select *s, const ftl_tile_op *load, int32_t num_vectors) {
  const ftl_value *value = &s->tile->values[load->dst];
  int32_t num_numbers = num_vectors * value->layout.vector_columns;
  s->row_bits.column = load->ref.column;
  s->row_bits.column_end = load->ref.column_end;
  s->row_bits.num_vectors = num_vectors;
  s->row_bits.in_words = num_numbers + num_vectors >= s->most_registers;
}

// A register each (P2R), or a bit of a word, which is cleared and set.
static void keep_bit(ftl_select *s, int32_t vector, int32_t predicate) {
  ftl_select_row_bits *bits = &s->row_bits;
  if (stays(vector, bits->num_vectors)) {
    bits->value[vector] = predicate;
  } else if (bits->in_words) {
    bool is_first = vector % WORD_BITS == 0;
    int32_t word = is_first ? ftl_select_temp(s, 1) : bits->value[vector - 1];
    ftl_select_add(s, FTL_OP_LOP, 2, word, predicate, is_first ? NONE : word, NONE);
    bits->value[vector] = word;
  } else {
    bits->value[vector] = ftl_select_temp(s, 1);
    ftl_select_add(s, FTL_OP_LOP, 1, bits->value[vector], predicate, NONE, NONE)->inst.arg = FTL_LOP_PACKS;
  }
}

// A thread's number has as many bits as the largest CTA has, of which the launch's threads use the lower: LLVM leaves
// out the AND that says so where all others are set in the vector's distance. Such a vector's column shares nothing
// with the rest.
static bool has_own_column(const ftl_select *s, int32_t vector) {
  int32_t threads = s->role->num_warps * FTL_WARP_LANES, others = KNOWN_THREADS / threads - 1;
  return others > 0 && (vector & others) == others;
}

static int32_t own_address(ftl_select *s, int32_t vector, int32_t address) {
  int32_t column = s->row_bits.own_column[vector];
  if (column == NONE) return address;
  int32_t own = ftl_select_temp(s, 2);
  ftl_select_add(s, FTL_OP_IMAD, 1, own, column, address, NONE);
  return own;
}

// Masks that go to registers pass one after another through the same predicate.
static int32_t predicate_of(ftl_select *s, int32_t vector) {
  if (stays(vector, s->row_bits.num_vectors)) return ftl_select_temp(s, 0);
  if (vector == 0) s->row_bits.passing = ftl_select_temp(s, 0);
  return s->row_bits.passing;
}

ftl_select_row_bit ftl_select_find_row_bit(ftl_select *s, int32_t vector, int32_t address) {
  int32_t column = ftl_select_temp(s, 1), predicate = predicate_of(s, vector);
  ftl_select_add(s, FTL_OP_LOP, 1, column, s->thread, NONE, NONE);
  ftl_select_add(s, FTL_OP_ISETP, 1, predicate, column, NONE, NONE);
  keep_bit(s, vector, predicate);
  s->row_bits.own_column[vector] = has_own_column(s, vector) ? column : NONE;
  return (ftl_select_row_bit){predicate, own_address(s, vector, address)};
}

bool ftl_select_has_row_bits(const ftl_select *s, const ftl_tile_ref *ref, int32_t num_vectors) {
  const ftl_select_row_bits *bits = &s->row_bits;
  return bits->num_vectors == num_vectors && bits->column == ref->column && bits->column_end == ref->column_end;
}

ftl_select_row_bit ftl_select_kept_row_bit(ftl_select *s, int32_t vector, int32_t address) {
  const ftl_select_row_bits *bits = &s->row_bits;
  int32_t predicate = bits->value[vector];
  if (!stays(vector, bits->num_vectors)) {
    predicate = ftl_select_temp(s, 0);
    ftl_opcode opcode = bits->in_words ? FTL_OP_LOP : FTL_OP_ISETP;
    ftl_draft_inst *test = ftl_select_add(s, opcode, 1, predicate, bits->value[vector], NONE, NONE);
    if (bits->in_words) test->inst.arg = FTL_LOP_TESTS;
  }
  return (ftl_select_row_bit){predicate, own_address(s, vector, address)};
}
