// The gradient of the softmax of unfused attention, a CTA a row: dS = P (dP - rowsum(P dP)), in place of dP; fused,
// with the gradients of dropout and of the scale in it.
#include "workloads/standard_attention.h"

typedef struct row_pass {
  const ftl_standard_gradient *g;
  ftl_standard_rows rows;
  int32_t raw[2], x[2];  // P, dP; as stored and in fp32
  int32_t keep8, keep;   // what dropout kept, likewise
  int32_t sum;
} row_pass;

static row_pass row_pass_of(ftl_builder *b, const ftl_attention *a, const ftl_standard_gradient *g) {
  static const char *const names[2][2] = {{"p", "p32"}, {"dp", "dp32"}};
  row_pass r = {.g = g, .rows = ftl_standard_rows_of(b, a)};
  ftl_standard_rows_role(&r.rows);
  for (int i = 0; i < 2; i++) {
    r.raw[i] = ftl_standard_rows_tile(&r.rows, names[i][0], a->dtype);
    r.x[i] = ftl_standard_rows_tile(&r.rows, names[i][1], FTL_FP32);
  }
  r.sum = ftl_builder_rows_by_rows(b, "sum", 1, r.rows.layout);
  if (g->kept < 0) return r;
  r.keep8 = ftl_standard_rows_tile(&r.rows, "kept", FTL_INT8);
  r.keep = ftl_standard_rows_tile(&r.rows, "kept32", FTL_FP32);
  return r;
}

// Begins a loop over the row's steps with P and dP of one of them in fp32; gives its first column.
static ftl_expr begin_step(const row_pass *r) {
  ftl_builder *b = r->rows.b;
  ftl_expr column = ftl_standard_rows_begin_steps(&r->rows);
  const int32_t tensors[2] = {r->g->p, r->g->d_p};
  for (int k = 0; k < 2; k++) ftl_load_tile(b, r->raw[k], ftl_standard_rows_ref(&r->rows, tensors[k], column));
  for (int k = 0; k < 2; k++) ftl_convert(b, r->x[k], r->raw[k]);
  if (r->g->kept < 0) return column;
  ftl_load_tile(b, r->keep8, ftl_standard_rows_ref(&r->rows, r->g->kept, column));
  ftl_convert(b, r->keep, r->keep8);
  ftl_standard_rows_drop(&r->rows, r->x[1], r->keep);
  return column;
}

void ftl_standard_write_d_scores(ftl_builder *b, const ftl_attention *a, const ftl_standard_gradient *g) {
  row_pass r = row_pass_of(b, a, g);
  ftl_fill(b, r.sum, 0);
  begin_step(&r);
  ftl_binary(b, FTL_ELEM_MUL, r.x[0], r.x[0], ftl_value_operand(r.x[1]));
  ftl_reduce_rows(b, FTL_ELEM_ADD, r.sum, r.x[0]);
  ftl_end_loop(b);
  ftl_reduce_lanes(b, FTL_ELEM_ADD, r.sum);
  ftl_expr column = begin_step(&r);
  ftl_binary(b, FTL_ELEM_SUB, r.x[1], r.x[1], ftl_value_operand(r.sum));
  ftl_binary(b, FTL_ELEM_MUL, r.x[1], r.x[1], ftl_value_operand(r.x[0]));
  if (g->scale != 1) ftl_binary(b, FTL_ELEM_MUL, r.x[1], r.x[1], ftl_immediate(g->scale));
  ftl_convert(b, r.raw[1], r.x[1]);
  ftl_store(b, ftl_standard_rows_ref(&r.rows, g->d_p, column), r.raw[1], -1);
  ftl_end_loop(b);
}
