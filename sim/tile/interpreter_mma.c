// Products of register tiles and ring stages, in the types of tensor instructions.
#include <math.h>

#include "tile/interpreter_internal.h"

static const float *transpose(float *to, const float *b, int32_t rows, int32_t columns) {
  for (int32_t r = 0; r < rows; r++)
    for (int32_t c = 0; c < columns; c++)
      to[(size_t)c * (size_t)rows + (size_t)r] = b[(size_t)r * (size_t)columns + (size_t)c];
  return to;
}

// What a product multiplies and adds up in.
typedef struct product_types {
  ftl_dtype operands, sums;
} product_types;

// One row of sums [n] += a [k] * b [k][b_pitch], k from `first` to `last`.
static void add_products(float *row, const float *a, const float *b, int32_t n, int32_t first, int32_t last,
                         int32_t b_pitch) {
  for (int32_t i = first; i < last; i++) {
    const float *b_row = b + (size_t)i * (size_t)b_pitch;
    for (int32_t c = 0; c < n; c++) row[c] += a[i] * b_row[c];
  }
}

static void add_products_of_pairs(float *row, const float *a, const float *b, int32_t n, int32_t first, int32_t last,
                                  int32_t b_pitch) {
  for (int32_t i = first; i < last; i++) {
    const float *b_row = b + (size_t)i * (size_t)b_pitch;
    for (int32_t c = 0; c < n; c++)
      row[c] +=
          (float)(ftl_int4x2_low(a[i]) * ftl_int4x2_low(b_row[c]) + ftl_int4x2_high(a[i]) * ftl_int4x2_high(b_row[c]));
  }
}

// What of k is summed, and the term that B begins with.
typedef struct k_span {
  int32_t first, end, first_of_b;
} k_span;

// dst [m][n] += a [m][k] * b [k][b_pitch]; 16-bit sums are rounded after every 16 of k, as an instruction leaves them.
static void accumulate(product_types types, float *dst, const float *a, const float *b, int32_t m, int32_t n, int32_t k,
                       int32_t b_pitch, k_span span) {
  enum { K_STEP = 16 };
  for (int32_t r = 0; r < m; r++) {
    float *row = dst + (size_t)r * (size_t)n;
    const float *a_row = a + (size_t)r * (size_t)k;
    for (int32_t first = span.first; first < span.end; first += K_STEP) {
      int32_t last = first + K_STEP < span.end ? first + K_STEP : span.end;
      int32_t of_b = span.first_of_b;
      (types.operands == FTL_INT4X2 ? add_products_of_pairs : add_products)(row, a_row + of_b, b, n, first - of_b,
                                                                            last - of_b, b_pitch);
      for (int32_t c = 0; c < n && types.sums == FTL_FP16; c++) row[c] = ftl_dtype_round(FTL_FP16, row[c]);
    }
  }
}

// Integers are held as fp32 here, which is exact to 2^24.
static ftl_status check_exact(const ftl_interpreter *in, const ftl_exec_event *event, ftl_error *error) {
  static const float largest = 16777216.0f;
  const ftl_value *dst = ftl_value_info(in, event->op->dst);
  if (dst->dtype != FTL_INT32) return FTL_OK;
  for (size_t i = 0; i < ftl_value_size(in, event->op->dst); i++)
    if (fabsf(in->values[event->op->dst].x[i]) > largest)
      return ftl_interpret_fail(in, event, error, "a sum of %s beyond 2^24, up to which the interpreter is exact",
                                dst->name);
  return FTL_OK;
}

ftl_status ftl_interpret_mma(ftl_interpreter *in, const ftl_exec_event *event, ftl_error *error) {
  const ftl_tile_op *op = event->op;
  const ftl_ring *ring = &in->program->rings[op->ring];
  ftl_value_data *dst = &in->values[op->dst];
  if (!dst->written) return ftl_interpret_not_written(in, event, op->dst, error);
  if (op->ring_a < 0 && !in->values[op->a.value].written)
    return ftl_interpret_not_written(in, event, op->a.value, error);
  bool fetched = op->b.value >= 0;
  if (fetched && !in->values[op->b.value].written) return ftl_interpret_not_written(in, event, op->b.value, error);
  const float *a = op->ring_a < 0 ? in->values[op->a.value].x : in->rings[op->ring_a].stages[event->stage_a];
  const float *b = fetched ? in->values[op->b.value].x : in->rings[op->ring].stages[event->stage];
  if (op->transpose_b && !fetched) b = transpose(in->transposed, b, ring->rows, ring->columns);
  if (op->transpose_a) {
    const ftl_ring *ring_a = &in->program->rings[op->ring_a];
    a = transpose(in->transposed_a, a, ring_a->rows, ring_a->columns);
  }
  int32_t groups = ftl_num_groups_of(in, op->dst), share = ring->rows / groups;
  int32_t m = ftl_value_info(in, op->dst)->rows, n = ftl_value_info(in, op->dst)->columns;
  int32_t k = op->transpose_b ? ring->columns : share, b_pitch = op->transpose_b ? ring->rows : ring->columns;
  int32_t next_share = op->transpose_b ? share : share * b_pitch;
  if (fetched) b_pitch = n;
  if (op->num_k > 0) {  // B may have fewer terms than A
    const ftl_ring *ring_a = &in->program->rings[op->ring_a];
    k = op->transpose_a ? ring_a->rows : ring_a->columns;
  }
  if (op->ring_a >= 0) a += (size_t)op->ring_row * (size_t)k;
  product_types types = {ring->dtype, ftl_value_info(in, op->dst)->dtype};
  k_span span = {op->first_k, op->num_k > 0 ? op->first_k + op->num_k : k,
                 op->first_k - ftl_tile_first_term_of_b(in->program, op)};
  for (int32_t g = 0; g < groups; g++) {
    const float *of_group = fetched ? transpose(in->transposed, b + (size_t)g * (size_t)n * (size_t)k, n, k)
                                    : b + (size_t)g * (size_t)next_share;
    accumulate(types, dst->x + (size_t)g * (size_t)m * (size_t)n,
               op->ring_a < 0 ? a + (size_t)g * (size_t)m * (size_t)k : a, of_group, m, n, k, b_pitch, span);
  }
  dst->queries = op->ring_a < 0 ? in->values[op->a.value].queries : in->rings[op->ring_a].sources[event->stage_a];
  dst->queries.row += op->ring_a < 0 ? 0 : op->ring_row;
  dst->keys = fetched ? in->values[op->b.value].keys : in->rings[op->ring].sources[event->stage];
  return check_exact(in, event, error);
}
