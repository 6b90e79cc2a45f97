// The element-wise launches of unfused attention, which a CTA a row streams through registers: scale, masks, dropout
// and its gradient, and what PyTorch adds to them. Each reads and writes a whole N x N matrix, which is what fusing
// them saves.
#include "workloads/standard_attention.h"
#include "workloads/standard_rows.h"

void ftl_standard_write_scale(ftl_builder *b, const ftl_attention *a, int32_t matrix, float scale) {
  ftl_standard_rows r = ftl_standard_rows_of(b, a);
  ftl_standard_rows_role(&r);
  int32_t x16 = ftl_standard_rows_tile(&r, "x", a->dtype), x = ftl_standard_rows_tile(&r, "x32", FTL_FP32);
  ftl_expr column = ftl_standard_rows_begin_steps(&r);
  ftl_load_tile(b, x16, ftl_standard_rows_ref(&r, matrix, column));
  ftl_convert(b, x, x16);
  ftl_binary(b, FTL_ELEM_MUL, x, x, ftl_immediate(scale));
  ftl_convert(b, x16, x);
  ftl_store(b, ftl_standard_rows_ref(&r, matrix, column), x16, -1);
  ftl_end_loop(b);
}

void ftl_standard_write_sum(const ftl_standard_rows *r, int32_t s, ftl_standard_added added) {
  ftl_builder *b = r->b;
  ftl_dtype dtype = r->a->dtype;
  ftl_standard_rows_role(r);
  int32_t s16 = ftl_standard_rows_tile(r, "s", dtype), y16 = ftl_standard_rows_tile(r, "added", dtype);
  int32_t x = ftl_standard_rows_tile(r, "s32", FTL_FP32), y = ftl_standard_rows_tile(r, "added32", FTL_FP32);
  ftl_expr column = ftl_standard_rows_begin_steps(r);
  ftl_load_tile(b, s16, ftl_standard_rows_ref(r, s, column));
  ftl_load_tile(b, y16, ftl_standard_added_ref(r, added, column));
  ftl_convert(b, x, s16);
  ftl_convert(b, y, y16);
  ftl_binary(b, FTL_ELEM_ADD, x, x, ftl_value_operand(y));
  ftl_convert(b, s16, x);
  ftl_store(b, ftl_standard_rows_ref(r, s, column), s16, -1);
  ftl_end_loop(b);
}

void ftl_standard_write_product(ftl_builder *b, const ftl_attention *a, int32_t matrix, int32_t by) {
  ftl_standard_rows r = ftl_standard_rows_of(b, a);
  ftl_standard_rows_role(&r);
  int32_t x16 = ftl_standard_rows_tile(&r, "x", a->dtype), y16 = ftl_standard_rows_tile(&r, "y", a->dtype);
  int32_t x = ftl_standard_rows_tile(&r, "x32", FTL_FP32), y = ftl_standard_rows_tile(&r, "y32", FTL_FP32);
  ftl_expr column = ftl_standard_rows_begin_steps(&r);
  ftl_load_tile(b, x16, ftl_standard_rows_ref(&r, matrix, column));
  ftl_load_tile(b, y16, ftl_standard_rows_ref(&r, by, column));
  ftl_convert(b, x, x16);
  ftl_convert(b, y, y16);
  ftl_binary(b, FTL_ELEM_MUL, x, x, ftl_value_operand(y));
  ftl_convert(b, x16, x);
  ftl_store(b, ftl_standard_rows_ref(&r, matrix, column), x16, -1);
  ftl_end_loop(b);
}

void ftl_standard_write_fill(ftl_builder *b, const ftl_attention *a, int32_t matrix) {
  ftl_standard_rows r = ftl_standard_rows_of(b, a);
  ftl_standard_rows_role(&r);
  int32_t zero = ftl_standard_rows_tile(&r, "zero", FTL_FP32);
  ftl_fill(b, zero, 0);
  ftl_expr column = ftl_standard_rows_begin_steps(&r);
  ftl_store(b, ftl_standard_rows_ref(&r, matrix, column), zero, -1);
  ftl_end_loop(b);
}

void ftl_standard_write_copy(const ftl_standard_rows *r, int32_t from, int32_t to) {
  ftl_standard_rows_role(r);
  int32_t x = ftl_standard_rows_tile(r, "x", r->a->dtype);
  ftl_expr column = ftl_standard_rows_begin_steps(r);
  ftl_load_tile(r->b, x, ftl_standard_rows_ref(r, from, column));
  ftl_store(r->b, ftl_standard_rows_ref(r, to, column), x, -1);
  ftl_end_loop(r->b);
}

void ftl_standard_write_dropout(ftl_builder *b, const ftl_attention *a, int32_t p, int32_t dropped, int32_t kept) {
  ftl_standard_rows r = ftl_standard_rows_of(b, a);
  ftl_standard_rows_role(&r);
  int32_t p16 = ftl_standard_rows_tile(&r, "p", a->dtype), x = ftl_standard_rows_tile(&r, "p32", FTL_FP32);
  int32_t keep = ftl_standard_rows_tile(&r, "kept", FTL_FP32);
  ftl_expr column = ftl_standard_rows_begin_steps(&r);
  ftl_load_tile(b, p16, ftl_standard_rows_ref(&r, p, column));
  ftl_convert(b, x, p16);
  ftl_standard_rows_draw(&r, keep, column);
  ftl_standard_rows_drop(&r, x, keep);
  ftl_convert(b, p16, x);
  ftl_store(b, ftl_standard_rows_ref(&r, dropped, column), p16, -1);
  ftl_store(b, ftl_standard_rows_ref(&r, kept, column), keep, -1);
  ftl_end_loop(b);
}

void ftl_standard_write_dropout_gradient(ftl_builder *b, const ftl_attention *a, int32_t d_p, int32_t kept) {
  ftl_standard_rows r = ftl_standard_rows_of(b, a);
  ftl_standard_rows_role(&r);
  int32_t d_p16 = ftl_standard_rows_tile(&r, "dp", a->dtype), x = ftl_standard_rows_tile(&r, "dp32", FTL_FP32);
  int32_t keep8 = ftl_standard_rows_tile(&r, "kept", FTL_INT8), keep = ftl_standard_rows_tile(&r, "kept32", FTL_FP32);
  ftl_expr column = ftl_standard_rows_begin_steps(&r);
  ftl_load_tile(b, d_p16, ftl_standard_rows_ref(&r, d_p, column));
  ftl_load_tile(b, keep8, ftl_standard_rows_ref(&r, kept, column));
  ftl_convert(b, x, d_p16);
  ftl_convert(b, keep, keep8);
  ftl_standard_rows_drop(&r, x, keep);
  ftl_convert(b, d_p16, x);
  ftl_store(b, ftl_standard_rows_ref(&r, d_p, column), d_p16, -1);
  ftl_end_loop(b);
}
