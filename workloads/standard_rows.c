#include "workloads/standard_rows.h"

#include "base/integer.h"
#include "tile/dropout.h"
#include "workloads/row_softmax.h"
#include "workloads/standard_attention.h"

enum { ROW_THREADS = FTL_STANDARD_ROW_WARPS * FTL_WARP_LANES };
// PyTorch's element-wise kernels on no flat array: 128 threads, four elements each (elementwise_kernel<128, 4>).
enum { ELEMENTS_OF_A_CTA = 4 * ROW_THREADS };

ftl_attention_tile ftl_standard_row_grid(ftl_builder *b, const ftl_attention *a, int64_t num_rows, int32_t rows) {
  int64_t num_tiles = ftl_divide_up(num_rows, rows);
  ftl_expr tiles = ftl_const(b, num_tiles), heads = ftl_const(b, a->heads), head = ftl_div(b, ftl_cta(b), tiles);
  ftl_builder_grid(b, a->batch * a->heads * num_tiles, false, FTL_TILES_BY_STRIDE);
  ftl_expr row = ftl_mul(b, ftl_mod(b, ftl_cta(b), tiles), ftl_const(b, rows));
  return (ftl_attention_tile){.batch = ftl_div(b, head, heads), .head = ftl_mod(b, head, heads), .row = row};
}

// Of row number `row`, counted over all heads.
static ftl_standard_rows rows_at(ftl_builder *b, const ftl_attention *a, ftl_expr row) {
  ftl_standard_rows r = {.b = b,
                         .a = a,
                         .layout = {ROW_THREADS, FTL_ROW_VECTOR_COLUMNS},
                         .step_columns = ROW_THREADS * FTL_ROW_VECTOR_COLUMNS,
                         .ctas_per_row = 1};
  ftl_expr rows = ftl_const(b, a->seqlen_q), heads = ftl_const(b, a->heads), head = ftl_div(b, row, rows);
  r.tile = (ftl_attention_tile){
      .batch = ftl_div(b, head, heads), .head = ftl_mod(b, head, heads), .row = ftl_mod(b, row, rows)};
  ftl_expr block_m = ftl_const(b, a->block_m), block_n = ftl_const(b, a->block_n);
  ftl_key_range keys = ftl_attention_keys(b, a, ftl_mul(b, ftl_div(b, r.tile.row, block_m), block_m));
  r.begin = ftl_mul(b, keys.first, block_n);
  r.end = ftl_min(b, ftl_const(b, ftl_standard_scores_shape(a).num_columns), ftl_mul(b, keys.end, block_n));
  return r;
}

ftl_standard_rows ftl_standard_rows_of(ftl_builder *b, const ftl_attention *a) { return rows_at(b, a, ftl_cta(b)); }

ftl_standard_rows ftl_standard_rows_by_elements(ftl_builder *b, const ftl_attention *a, int32_t index_insts) {
  int64_t ctas_per_row = ftl_divide_up(ftl_standard_scores_shape(a).num_columns, ELEMENTS_OF_A_CTA);
  ftl_expr ctas = ftl_const(b, ctas_per_row), columns = ftl_const(b, ELEMENTS_OF_A_CTA);
  ftl_standard_rows r = rows_at(b, a, ftl_div(b, ftl_cta(b), ctas));
  r.layout.vector_columns = 1;
  r.step_columns = ROW_THREADS;
  r.ctas_per_row = ctas_per_row;
  r.index_insts = index_insts;
  r.begin = ftl_mul(b, ftl_mod(b, ftl_cta(b), ctas), columns);
  r.end = ftl_min(b, r.end, ftl_add(b, r.begin, columns));
  return r;
}

void ftl_standard_rows_role(const ftl_standard_rows *r) {
  ftl_builder_role(r->b, "main", FTL_STANDARD_ROW_WARPS, 0);
  ftl_builder_grid(r->b, r->a->batch * r->a->heads * r->a->seqlen_q * r->ctas_per_row, false, FTL_TILES_BY_STRIDE);
}

int32_t ftl_standard_rows_tile(const ftl_standard_rows *r, const char *name, ftl_dtype dtype) {
  return ftl_builder_tile_by_rows(r->b, name, dtype, 1, r->step_columns, r->layout);
}

ftl_expr ftl_standard_rows_begin_steps(const ftl_standard_rows *r) {
  ftl_builder *b = r->b;
  ftl_expr step = ftl_const(b, r->step_columns), columns = ftl_sub(b, r->end, r->begin);
  ftl_expr num_steps = ftl_div(b, ftl_add(b, columns, ftl_const(b, r->step_columns - 1)), step);
  ftl_expr i = ftl_loop_value(b, ftl_loop(b, ftl_const(b, 0), num_steps));
  return ftl_add(b, r->begin, ftl_mul(b, i, step));
}

ftl_tile_ref ftl_standard_rows_ref(const ftl_standard_rows *r, int32_t tensor, ftl_expr column) {
  int64_t columns = ftl_smaller(r->step_columns, ftl_standard_scores_shape(r->a).num_columns);
  ftl_tile_ref ref = ftl_attention_query_ref(&r->tile, tensor, r->tile.row, 1, (int32_t)columns);
  ref.column = column;
  ref.column_end = r->end;
  ref.index_insts = r->index_insts;
  return ref;
}

ftl_tile_ref ftl_standard_added_ref(const ftl_standard_rows *r, ftl_standard_added added, ftl_expr column) {
  ftl_tile_ref ref = ftl_standard_rows_ref(r, added.tensor, column);
  ftl_expr zero = ftl_const(r->b, 0);
  ref.head = zero;
  ref.index_insts = 0;
  if (added.of_queries)
    ref.batch = zero;
  else
    ref.row = zero;
  return ref;
}

void ftl_standard_rows_draw(const ftl_standard_rows *r, int32_t keep, ftl_expr column) {
  ftl_builder *b = r->b;
  ftl_expr sequence = ftl_add(b, ftl_mul(b, r->tile.batch, ftl_const(b, r->a->heads)), r->tile.head);
  ftl_fill(b, keep, 1);
  ftl_dropout(b, keep, sequence, r->tile.row, column, ftl_dropout_row_threshold(r->a->dropout_p));
}

void ftl_standard_rows_drop(const ftl_standard_rows *r, int32_t x, int32_t keep) {
  ftl_binary(r->b, FTL_ELEM_MUL, x, x, ftl_value_operand(keep));
  ftl_binary(r->b, FTL_ELEM_MUL, x, x, ftl_immediate(ftl_attention_dropout_scale(r->a)));
}
