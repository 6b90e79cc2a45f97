#include "workloads/kept_softmax.h"

#include <math.h>

#include "base/integer.h"

enum { VECTOR_BYTES = 16 };

static const float log2_e = 1.44269504F;

static int32_t num_threads(const ftl_kept_softmax *s) { return s->num_warps * FTL_WARP_LANES; }

// Adjacent columns that a thread loads and stores at once. Triton knows of a row's length only whether it is a multiple
// of 16 (tt.divisibility): of any other one a row may begin anywhere, so that its elements are loaded and stored one by
// one (AxisInfo.cpp, Coalesce.cpp).
static int32_t vector_columns(const ftl_kept_softmax *s) {
  enum { KNOWN_DIVISOR = 16 };
  if (s->columns % KNOWN_DIVISOR != 0) return 1;
  return (int32_t)ftl_smaller(VECTOR_BYTES / ftl_dtype_bytes(s->dtype), s->block_columns / num_threads(s));
}

// All columns of the block; what lies past the row's end is masked, since its length is a run-time number.
static ftl_tile_ref row_ref(ftl_builder *b, const ftl_kept_softmax *s, int32_t tensor) {
  return (ftl_tile_ref){.tensor = tensor,
                        .batch = s->batch,
                        .head = s->head,
                        .row = s->row,
                        .present = FTL_ALWAYS,
                        .rows = 1,
                        .columns = (int32_t)ftl_smaller(s->block_columns, s->columns),
                        .column = ftl_const(b, 0),
                        .column_end = ftl_const(b, s->columns)};
}

static void store_lse(ftl_builder *b, const ftl_kept_softmax *s, int32_t sum, int32_t top) {
  ftl_unary(b, FTL_ELEM_LOG, sum, sum);
  ftl_binary(b, FTL_ELEM_ADD, top, top, ftl_value_operand(sum));
  ftl_tile_ref ref = row_ref(b, s, s->lse);
  ref.columns = 1;
  ref.column_end = FTL_TENSOR_END;
  ftl_store_rows(b, ref, top);
}

void ftl_kept_softmax_build(ftl_builder *b, const ftl_kept_softmax *s) {
  ftl_value_layout layout = {num_threads(s), vector_columns(s)};
  ftl_builder_role(b, "main", s->num_warps, 0);
  int32_t raw = ftl_builder_tile_by_rows(b, "row", s->dtype, 1, s->block_columns, layout);
  int32_t x = ftl_builder_tile_by_rows(b, "x", FTL_FP32, 1, s->block_columns, layout);
  int32_t top = ftl_builder_rows_by_rows(b, "max", 1, layout), sum = ftl_builder_rows_by_rows(b, "sum", 1, layout);
  ftl_load_tile_or(b, raw, row_ref(b, s, s->from), -INFINITY);
  ftl_convert(b, x, raw);
  ftl_fill(b, top, -INFINITY);
  ftl_reduce_rows(b, FTL_ELEM_MAX, top, x);
  ftl_reduce_lanes(b, FTL_ELEM_MAX, top);
  ftl_binary(b, FTL_ELEM_SUB, x, x, ftl_value_operand(top));
  ftl_binary(b, FTL_ELEM_MUL, x, x, ftl_immediate(log2_e));
  ftl_unary(b, FTL_ELEM_EXP2, x, x);
  ftl_fill(b, sum, 0);
  ftl_reduce_rows(b, FTL_ELEM_ADD, sum, x);
  ftl_reduce_lanes(b, FTL_ELEM_ADD, sum);
  ftl_binary(b, FTL_ELEM_DIV_FULL, x, x, ftl_value_operand(sum));
  ftl_convert(b, raw, x);
  ftl_store(b, row_ref(b, s, s->to), raw, -1);
  store_lse(b, s, sum, top);
}
