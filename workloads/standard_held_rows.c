// The softmax of rows that stay in registers, and its gradient, as eager PyTorch has them: a warp a row of up to 1024
// columns (standard_warp_rows.c), else a CTA of up to 1024 threads. Source: aten/src/ATen/native/cuda/SoftMax.cu
// (SoftMax_getBlockSize: 16 bytes a thread; cunn_SoftMaxForwardReg of 2.11, which takes an element at a time, 1024
// threads of a row of 4096 in kernels/measurements/eager_ncu.csv).
#include <stdio.h>

#include "base/integer.h"
#include "workloads/row_softmax.h"
#include "workloads/standard_warp_rows.h"

enum { LEAST_WARPS = 4, MOST_WARPS = 32 };
enum { STEPS_AT_WORK = 2 };

typedef struct held_rows {
  int32_t num_warps, num_steps;  // of a row, which is a CTA's
  int32_t vector;                // adjacent columns of a thread in a step
  int64_t columns;
} held_rows;

// Of `vector` adjacent columns a thread.
static held_rows rows_by(const ftl_attention *a, int32_t vector) {
  held_rows h = {.num_warps = LEAST_WARPS, .vector = vector, .columns = ftl_standard_scores_shape(a).num_columns};
  while (h.num_warps < MOST_WARPS && h.num_warps * FTL_WARP_LANES * vector < h.columns) h.num_warps *= 2;
  h.num_steps = (int32_t)ftl_divide_up(h.columns, h.num_warps * FTL_WARP_LANES * vector);
  return h;
}

static held_rows held_rows_of(const ftl_attention *a) { return rows_by(a, FTL_ROW_VECTOR_COLUMNS); }

ftl_status ftl_standard_check_held(const ftl_spec *spec, ftl_error *error) {
  ftl_attention a = ftl_attention_of(spec);
  if (held_rows_of(&a).num_steps <= FTL_ROW_MAX_HELD_STEPS) return FTL_OK;
  return ftl_error_set(
      error, FTL_INFEASIBLE, "seqlen_kv=%lld: elementwise=eager_... holds a row in registers, up to %d",
      (long long)a.seqlen_kv, FTL_ROW_MAX_HELD_STEPS * MOST_WARPS * FTL_WARP_LANES * FTL_ROW_VECTOR_COLUMNS);
}

void ftl_standard_write_held_softmax(ftl_builder *b, const ftl_attention *a, int32_t s, int32_t p, int32_t lse,
                                     bool by_element) {
  if (ftl_standard_warp_holds_row(a, by_element ? FTL_WARP_ROW_COLUMNS_LATELY : FTL_WARP_ROW_COLUMNS)) {
    ftl_standard_write_warp_softmax(b, a, s, p, lse);
    return;
  }
  held_rows h = rows_by(a, by_element ? 1 : FTL_ROW_VECTOR_COLUMNS);
  if (h.num_steps > FTL_ROW_MAX_HELD_STEPS) h = held_rows_of(a);
  ftl_attention_tile tile = ftl_standard_row_grid(b, a, a->seqlen_q, 1);
  ftl_row_softmax softmax = {.precise = true,
                             .dtype = a->dtype,
                             .from = s,
                             .to = p,
                             .lse = lse,
                             .batch = tile.batch,
                             .head = tile.head,
                             .row = tile.row,
                             .rows = 1,
                             .num_warps = h.num_warps,
                             .columns = h.columns,
                             .vector_columns = h.vector,
                             .may_see_none = true,
                             .visible = a->seqlen_kv == h.columns ? FTL_TENSOR_END : ftl_const(b, a->seqlen_kv),
                             .end = FTL_TENSOR_END,
                             .held_steps = h.num_steps};
  ftl_row_softmax_build(b, &softmax);
}

// ---- the gradient: dS = G - P rowsum(G), of G = P dP ----

typedef struct gradient {
  held_rows h;
  ftl_builder *b;
  ftl_attention_tile tile;
  int32_t held[2][FTL_ROW_MAX_HELD_STEPS];  // G and P, as stored
  int32_t x[STEPS_AT_WORK], y[STEPS_AT_WORK], sum;
} gradient;

static int32_t declare_step(const gradient *g, const char *matrix, int32_t step, ftl_dtype dtype) {
  char name[FTL_TILE_NAME_BYTES];
  int32_t threads = g->h.num_warps * FTL_WARP_LANES;
  snprintf(name, sizeof name, "%s%d", matrix, step);
  return ftl_builder_tile_by_rows(g->b, name, dtype, 1, threads * FTL_ROW_VECTOR_COLUMNS,
                                  (ftl_value_layout){threads, FTL_ROW_VECTOR_COLUMNS});
}

static void declare(gradient *g, ftl_dtype dtype) {
  int32_t threads = g->h.num_warps * FTL_WARP_LANES;
  ftl_builder_role(g->b, "main", g->h.num_warps, 0);
  for (int32_t i = 0; i < g->h.num_steps; i++) {
    g->held[0][i] = declare_step(g, "g", i, dtype);
    g->held[1][i] = declare_step(g, "p", i, dtype);
  }
  for (int32_t i = 0; i < STEPS_AT_WORK; i++) {
    g->x[i] = declare_step(g, "x", i, FTL_FP32);
    g->y[i] = declare_step(g, "y", i, FTL_FP32);
  }
  g->sum = ftl_builder_rows_by_rows(g->b, "sum", 1, (ftl_value_layout){threads, FTL_ROW_VECTOR_COLUMNS});
}

static ftl_tile_ref step_ref(const gradient *g, int32_t tensor, int32_t step) {
  int32_t step_columns = g->h.num_warps * FTL_WARP_LANES * FTL_ROW_VECTOR_COLUMNS;
  ftl_tile_ref ref =
      ftl_attention_query_ref(&g->tile, tensor, g->tile.row, 1, (int32_t)ftl_smaller(step_columns, g->h.columns));
  ref.column = ftl_const(g->b, (int64_t)step * step_columns);
  return ref;
}

void ftl_standard_write_held_gradient(ftl_builder *b, const ftl_attention *a, int32_t weighed, int32_t p) {
  if (ftl_standard_warp_holds_row(a, FTL_WARP_ROW_COLUMNS)) {
    ftl_standard_write_warp_gradient(b, a, weighed, p);
    return;
  }
  gradient g = {.h = held_rows_of(a), .b = b};
  g.tile = ftl_standard_row_grid(b, a, a->seqlen_q, 1);
  declare(&g, a->dtype);
  const int32_t tensors[2] = {weighed, p};
  for (int32_t i = 0; i < g.h.num_steps; i++)
    for (int k = 0; k < 2; k++) ftl_load_tile(b, g.held[k][i], step_ref(&g, tensors[k], i));
  ftl_fill(b, g.sum, 0);
  for (int32_t i = 0; i < g.h.num_steps; i++) {
    ftl_convert(b, g.x[i % STEPS_AT_WORK], g.held[0][i]);
    ftl_reduce_rows(b, FTL_ELEM_ADD, g.sum, g.x[i % STEPS_AT_WORK]);
  }
  ftl_reduce_lanes(b, FTL_ELEM_ADD, g.sum);
  for (int32_t i = 0; i < g.h.num_steps; i++) {
    int32_t x = g.x[i % STEPS_AT_WORK], y = g.y[i % STEPS_AT_WORK];
    ftl_convert(b, x, g.held[0][i]);
    ftl_convert(b, y, g.held[1][i]);
    ftl_binary(b, FTL_ELEM_MUL, y, y, ftl_value_operand(g.sum));
    ftl_binary(b, FTL_ELEM_SUB, x, x, ftl_value_operand(y));
    ftl_convert(b, g.held[0][i], x);
    ftl_store(b, step_ref(&g, weighed, i), g.held[0][i], -1);
  }
}
