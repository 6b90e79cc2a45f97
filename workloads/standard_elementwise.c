// The element-wise launches of unfused attention, which a CTA a row streams through registers: a padding mask, dropout
// and its gradient. Each reads and writes a whole N x N matrix, which is what fusing them saves.
#include "base/integer.h"
#include "tile/dropout.h"
#include "workloads/row_softmax.h"
#include "workloads/standard_attention.h"

enum { ROW_WARPS = 4, WARP_LANES = 32 };

typedef struct row_kernel {
  ftl_builder *b;
  const ftl_attention *a;
  ftl_value_layout layout;
  int32_t step_columns;
  ftl_attention_tile tile;  // `row` is the CTA's
  ftl_expr begin, end;      // columns of the tiles that the row's query tile sees
} row_kernel;

static row_kernel row_kernel_of(ftl_builder *b, const ftl_attention *a) {
  row_kernel k = {.b = b, .a = a, .layout = {ROW_WARPS * WARP_LANES, FTL_ROW_VECTOR_COLUMNS}};
  k.step_columns = ROW_WARPS * WARP_LANES * FTL_ROW_VECTOR_COLUMNS;
  ftl_builder_role(b, "main", ROW_WARPS, 0);
  ftl_expr rows = ftl_const(b, a->seqlen_q), heads = ftl_const(b, a->heads), head = ftl_div(b, ftl_cta(b), rows);
  k.tile = (ftl_attention_tile){
      .batch = ftl_div(b, head, heads), .head = ftl_mod(b, head, heads), .row = ftl_mod(b, ftl_cta(b), rows)};
  ftl_expr block_m = ftl_const(b, a->block_m), block_n = ftl_const(b, a->block_n);
  ftl_key_range keys = ftl_attention_keys(b, a, ftl_mul(b, ftl_div(b, k.tile.row, block_m), block_m));
  k.begin = ftl_mul(b, keys.first, block_n);
  k.end = ftl_min(b, ftl_const(b, ftl_standard_scores_shape(a).num_columns), ftl_mul(b, keys.end, block_n));
  ftl_builder_grid(b, a->batch * a->heads * a->seqlen_q, false, false);
  return k;
}

static int32_t tile_of(const row_kernel *k, const char *name, ftl_dtype dtype) {
  return ftl_builder_tile_by_rows(k->b, name, dtype, 1, k->step_columns, k->layout);
}

// Gives the first column of a step of the loop that begins.
static ftl_expr begin_steps(const row_kernel *k) {
  ftl_builder *b = k->b;
  ftl_expr step = ftl_const(b, k->step_columns), columns = ftl_sub(b, k->end, k->begin);
  ftl_expr num_steps = ftl_div(b, ftl_add(b, columns, ftl_const(b, k->step_columns - 1)), step);
  ftl_expr i = ftl_loop_value(b, ftl_loop(b, ftl_const(b, 0), num_steps));
  return ftl_add(b, k->begin, ftl_mul(b, i, step));
}

static ftl_tile_ref step_ref(const row_kernel *k, int32_t tensor, ftl_expr column) {
  int64_t columns = ftl_smaller(k->step_columns, ftl_standard_scores_shape(k->a).num_columns);
  ftl_tile_ref ref = ftl_attention_query_ref(&k->tile, tensor, k->tile.row, 1, (int32_t)columns);
  ref.column = column;
  ref.column_end = k->end;
  return ref;
}

void ftl_standard_write_padding(ftl_builder *b, const ftl_attention *a, int32_t s, int32_t padding) {
  row_kernel k = row_kernel_of(b, a);
  int32_t s16 = tile_of(&k, "s", a->dtype), padding16 = tile_of(&k, "padding", a->dtype);
  int32_t x = tile_of(&k, "s32", FTL_FP32), y = tile_of(&k, "padding32", FTL_FP32);
  ftl_expr column = begin_steps(&k), zero = ftl_const(b, 0);
  ftl_tile_ref of_padding = step_ref(&k, padding, column);
  of_padding.head = of_padding.row = zero;
  ftl_load_tile(b, s16, step_ref(&k, s, column));
  ftl_load_tile(b, padding16, of_padding);
  ftl_convert(b, x, s16);
  ftl_convert(b, y, padding16);
  ftl_binary(b, FTL_ELEM_ADD, x, x, ftl_value_operand(y));
  ftl_convert(b, s16, x);
  ftl_store(b, step_ref(&k, s, column), s16, -1);
  ftl_end_loop(b);
}

void ftl_standard_write_dropout(ftl_builder *b, const ftl_attention *a, int32_t p, int32_t dropped, int32_t kept) {
  row_kernel k = row_kernel_of(b, a);
  int32_t p16 = tile_of(&k, "p", a->dtype), x = tile_of(&k, "p32", FTL_FP32), keep = tile_of(&k, "kept", FTL_FP32);
  ftl_expr sequence = ftl_add(b, ftl_mul(b, k.tile.batch, ftl_const(b, a->heads)), k.tile.head);
  ftl_expr column = begin_steps(&k);
  ftl_load_tile(b, p16, step_ref(&k, p, column));
  ftl_convert(b, x, p16);
  ftl_fill(b, keep, 1);
  ftl_dropout(b, keep, sequence, k.tile.row, column, ftl_dropout_row_threshold(a->dropout_p));
  ftl_binary(b, FTL_ELEM_MUL, x, x, ftl_value_operand(keep));
  ftl_binary(b, FTL_ELEM_MUL, x, x, ftl_immediate(ftl_attention_dropout_scale(a)));
  ftl_convert(b, p16, x);
  ftl_store(b, step_ref(&k, dropped, column), p16, -1);
  ftl_store(b, step_ref(&k, kept, column), keep, -1);
  ftl_end_loop(b);
}

void ftl_standard_write_dropout_gradient(ftl_builder *b, const ftl_attention *a, int32_t d_p, int32_t kept) {
  row_kernel k = row_kernel_of(b, a);
  int32_t d_p16 = tile_of(&k, "dp", a->dtype), x = tile_of(&k, "dp32", FTL_FP32);
  int32_t keep8 = tile_of(&k, "kept", FTL_INT8), keep = tile_of(&k, "kept32", FTL_FP32);
  ftl_expr column = begin_steps(&k);
  ftl_load_tile(b, d_p16, step_ref(&k, d_p, column));
  ftl_load_tile(b, keep8, step_ref(&k, kept, column));
  ftl_convert(b, x, d_p16);
  ftl_convert(b, keep, keep8);
  ftl_binary(b, FTL_ELEM_MUL, x, x, ftl_value_operand(keep));
  ftl_binary(b, FTL_ELEM_MUL, x, x, ftl_immediate(ftl_attention_dropout_scale(a)));
  ftl_convert(b, d_p16, x);
  ftl_store(b, step_ref(&k, d_p, column), d_p16, -1);
  ftl_end_loop(b);
}
