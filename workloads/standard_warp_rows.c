// Source: aten/src/ATen/native/cuda/PersistentSoftmax.cuh (softmax_warp_forward, softmax_warp_backward). A lane holds
// every 32nd column of its row in fp32, and loads and stores them one by one, two bytes each. An exponential is
// computed once, and divided by the sum. Rows of up to 128 columns, of which a warp has two there, are one a warp here.
#include "workloads/standard_warp_rows.h"

#include <math.h>
#include <stdio.h>

#include "base/integer.h"

enum { ROWS = 4, STEP_COLUMNS = 64, MOST_STEPS = FTL_WARP_ROW_COLUMNS_LATELY / STEP_COLUMNS };
// A load and the conversion of what it brings stand under one predicate, whether the row has the column. ptxas has six
// for them, so that six columns of a lane are on their way at once.
enum { COLUMNS_UNDER_WAY = 6, STEPS_UNDER_WAY = COLUMNS_UNDER_WAY * FTL_WARP_LANES / STEP_COLUMNS };
// Each result stands behind branches, whether the row has the column, and whether its sum is 0, where it is not a
// number (SASS of that source by nvcc 13: EXIT, BSSY, 2 BRA, BSYNC, S2R, ULDC).
enum { SUM_CHECK_INSTS = 7 };
static const ftl_value_layout by_lanes = {FTL_WARP_LANES, 1};
static const float ln_2 = 0.693147181F;

typedef struct warp_rows {
  ftl_builder *b;
  const ftl_attention *a;
  ftl_attention_tile tile;
  int64_t columns;
  int32_t num_steps, step_columns;
} warp_rows;

bool ftl_standard_warp_holds_row(const ftl_attention *a, int64_t most_columns) {
  return ftl_standard_scores_shape(a).num_columns <= most_columns;
}

// What lanes hold is a power of two, from one column each.
static warp_rows warp_rows_of(ftl_builder *b, const ftl_attention *a) {
  warp_rows w = {.b = b, .a = a, .columns = ftl_standard_scores_shape(a).num_columns, .step_columns = FTL_WARP_LANES};
  while (w.step_columns < STEP_COLUMNS && w.step_columns < w.columns) w.step_columns *= 2;
  w.num_steps = 1;
  while ((int64_t)w.num_steps * w.step_columns < w.columns) w.num_steps *= 2;
  ftl_builder_role(b, "main", ROWS, 0);
  w.tile = ftl_standard_row_grid(b, a, a->seqlen_q, ROWS);
  return w;
}

static int32_t declare_step(const warp_rows *w, const char *matrix, int32_t step, ftl_dtype dtype) {
  char name[FTL_TILE_NAME_BYTES];
  snprintf(name, sizeof name, "%s%d", matrix, step);
  return ftl_builder_tile_by_rows(w->b, name, dtype, ROWS, w->step_columns, by_lanes);
}

static ftl_expr column_of(const warp_rows *w, int32_t step) { return ftl_const(w->b, (int64_t)step * w->step_columns); }

static ftl_tile_ref step_ref(const warp_rows *w, int32_t tensor, int32_t step) {
  ftl_tile_ref ref =
      ftl_attention_query_ref(&w->tile, tensor, w->tile.row, ROWS, (int32_t)ftl_smaller(w->step_columns, w->columns));
  ref.column = column_of(w, step);
  ref.column_end = ftl_const(w->b, w->columns);
  return ref;
}

// A matrix's row in fp32, and what is on its way from memory or to it.
typedef struct held_matrix {
  int32_t x[MOST_STEPS], stored[STEPS_UNDER_WAY];
} held_matrix;

static held_matrix declare_matrix(const warp_rows *w, const char *name, const char *stored_name) {
  held_matrix m;
  for (int32_t i = 0; i < w->num_steps; i++) m.x[i] = declare_step(w, name, i, FTL_FP32);
  for (int32_t i = 0; i < STEPS_UNDER_WAY; i++) m.stored[i] = declare_step(w, stored_name, i, w->a->dtype);
  return m;
}

// `outside` where there is no column.
static void load_step(const warp_rows *w, const held_matrix *m, int32_t tensor, int32_t step, float outside) {
  int32_t stored = m->stored[step % STEPS_UNDER_WAY];
  ftl_load_tile_or(w->b, stored, step_ref(w, tensor, step), outside);
  ftl_convert(w->b, m->x[step], stored);
}

static void store_step(const warp_rows *w, const held_matrix *m, int32_t tensor, int32_t step, int32_t check_insts) {
  int32_t stored = m->stored[step % STEPS_UNDER_WAY];
  ftl_convert(w->b, stored, m->x[step]);
  ftl_tile_ref to = step_ref(w, tensor, step);
  to.check_insts = check_insts;
  ftl_store(w->b, to, stored, -1);
}

// The LSE, ln(sum) + max.
static void store_lse(const warp_rows *w, int32_t lse, int32_t top, int32_t sum) {
  ftl_unary(w->b, FTL_ELEM_LOG2, sum, sum);
  ftl_elem(w->b, FTL_ELEM_FMA, top, ftl_value_operand(sum), ftl_immediate(ln_2), ftl_value_operand(top));
  ftl_store_rows(w->b, ftl_attention_query_ref(&w->tile, lse, w->tile.row, ROWS, 1), top);
}

void ftl_standard_write_warp_softmax(ftl_builder *b, const ftl_attention *a, int32_t s, int32_t p, int32_t lse) {
  warp_rows w = warp_rows_of(b, a);
  int32_t top = ftl_builder_rows_by_rows(b, "max", ROWS, by_lanes),
          sum = ftl_builder_rows_by_rows(b, "sum", ROWS, by_lanes);
  int32_t shift = ftl_builder_rows_by_rows(b, "shift", ROWS, by_lanes);
  ftl_fill(b, top, -INFINITY);
  ftl_fill(b, sum, 0);
  held_matrix m = declare_matrix(&w, "x", "s");
  for (int32_t i = 0; i < w.num_steps; i++) {
    load_step(&w, &m, s, i, -INFINITY);
    if (a->seqlen_kv < w.columns)  // columns that fill the row's last 16 bytes
      ftl_mask(b, m.x[i], w.tile.row, column_of(&w, i), FTL_ALWAYS, ftl_const(b, a->seqlen_kv));
    ftl_reduce_rows(b, FTL_ELEM_MAX, top, m.x[i]);
  }
  ftl_reduce_lanes(b, FTL_ELEM_MAX, top);
  ftl_unary(b, FTL_ELEM_ZERO_IF_NEG_INF, shift, top);
  for (int32_t i = 0; i < w.num_steps; i++) {
    ftl_binary(b, FTL_ELEM_SUB, m.x[i], m.x[i], ftl_value_operand(shift));
    ftl_unary(b, FTL_ELEM_EXP, m.x[i], m.x[i]);
    ftl_reduce_rows(b, FTL_ELEM_ADD, sum, m.x[i]);
  }
  ftl_reduce_lanes(b, FTL_ELEM_ADD, sum);
  for (int32_t i = 0; i < w.num_steps; i++) {
    ftl_binary(b, FTL_ELEM_DIV, m.x[i], m.x[i], ftl_value_operand(sum));
    store_step(&w, &m, p, i, SUM_CHECK_INSTS);
  }
  store_lse(&w, lse, top, sum);
}

void ftl_standard_write_warp_gradient(ftl_builder *b, const ftl_attention *a, int32_t weighed, int32_t p) {
  warp_rows w = warp_rows_of(b, a);
  int32_t sum = ftl_builder_rows_by_rows(b, "sum", ROWS, by_lanes);
  ftl_fill(b, sum, 0);
  held_matrix g = declare_matrix(&w, "x", "g"), held_p = declare_matrix(&w, "y", "p");
  for (int32_t i = 0; i < w.num_steps; i++) {
    load_step(&w, &g, weighed, i, 0);
    load_step(&w, &held_p, p, i, 0);
    ftl_reduce_rows(b, FTL_ELEM_ADD, sum, g.x[i]);
  }
  ftl_reduce_lanes(b, FTL_ELEM_ADD, sum);
  for (int32_t i = 0; i < w.num_steps; i++) {
    ftl_binary(b, FTL_ELEM_MUL, held_p.x[i], held_p.x[i], ftl_value_operand(sum));
    ftl_binary(b, FTL_ELEM_SUB, g.x[i], g.x[i], ftl_value_operand(held_p.x[i]));
    store_step(&w, &g, weighed, i, 0);
  }
}
