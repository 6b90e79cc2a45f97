// Steps 1 and 3 of SparQ attention: the largest of a row, chosen by all warps of a CTA that hold it.
#include <math.h>

#include "base/integer.h"
#include "workloads/sparq.h"

enum { VECTOR_COLUMNS = 4, ELEMENTS_A_THREAD = 16, MOST_WARPS = 32, LEAST_WARPS = 4 };

static const float log2_e = 1.44269504F;

typedef struct chooser {
  const ftl_sparq *s;
  ftl_builder *b;
  ftl_expr batch, kv_head;
  ftl_value_layout layout;
  int32_t columns;  // of the tiles: at least those of the row
} chooser;

// A CTA a KV head, whose warps share a row of `length`.
static chooser begin(const ftl_sparq *s, int64_t length, int32_t num_warps) {
  ftl_builder *b = s->b;
  ftl_expr heads = ftl_const(b, s->a.kv_heads);
  int32_t threads = num_warps * FTL_WARP_LANES;
  ftl_builder_role(b, "main", num_warps, 0);
  ftl_builder_grid(b, s->a.batch * s->a.kv_heads, false, FTL_TILES_BY_STRIDE);
  return (chooser){.s = s,
                   .b = b,
                   .batch = ftl_div(b, ftl_cta(b), heads),
                   .kv_head = ftl_mod(b, ftl_cta(b), heads),
                   .layout = {threads, VECTOR_COLUMNS},
                   .columns = (int32_t)ftl_divide_up(length, threads * VECTOR_COLUMNS) * threads * VECTOR_COLUMNS};
}

static int32_t tile(const chooser *c, const char *name, ftl_dtype dtype) {
  return ftl_builder_tile_by_rows(c->b, name, dtype, 1, c->columns, c->layout);
}

static int32_t row(const chooser *c, const char *name) { return ftl_builder_rows_by_rows(c->b, name, 1, c->layout); }

static ftl_tile_ref row_ref(const chooser *c, int32_t tensor, ftl_expr query_head, int64_t columns) {
  return ftl_sparq_ref(tensor, c->batch, c->kv_head, query_head, 1, (int32_t)columns);
}

// What `ranks` numbers goes to the entries of (batch, KV head) of a table.
static void store_choice(const chooser *c, int32_t table, int32_t ranks, int32_t count) {
  ftl_expr zero = ftl_const(c->b, 0), first = ftl_sparq_first_entry(c->s, c->batch, c->kv_head, count);
  ftl_store_top(c->b, ftl_sparq_ref(table, zero, zero, first, count, 1), -1, ranks);
}

// chosen <- 1 where `ranks` numbers, 0 where it is -1
static void mark_chosen(ftl_builder *b, int32_t chosen, int32_t ranks) {
  ftl_elem(b, FTL_ELEM_FMA, chosen, ftl_value_operand(ranks), ftl_immediate(-1), ftl_immediate(-1));
  ftl_binary(b, FTL_ELEM_MAX, chosen, chosen, ftl_immediate(-1));
  ftl_binary(b, FTL_ELEM_MUL, chosen, chosen, ftl_immediate(-1));
}

// sum <- of x's columns
static void sum_columns(ftl_builder *b, int32_t sum, int32_t x) {
  ftl_fill(b, sum, 0);
  ftl_reduce_rows(b, FTL_ELEM_ADD, sum, x);
  ftl_reduce_lanes(b, FTL_ELEM_ADD, sum);
}

// Begins the walk over the query heads of the group.
static ftl_expr each_query_head(const chooser *c) {
  return ftl_loop_value(c->b, ftl_loop(c->b, ftl_const(c->b, 0), ftl_const(c->b, c->s->group)));
}

// ---- step 1: components ----

typedef struct query {
  int32_t raw, x, magnitude;  // tiles
} query;

static void load_query(const chooser *c, const query *q, ftl_expr query_head) {
  ftl_load_tile(c->b, q->raw, row_ref(c, c->s->q, query_head, c->s->a.head_dim));
  ftl_convert(c->b, q->x, q->raw);
  ftl_binary(c->b, FTL_ELEM_MUL, q->magnitude, q->x, ftl_immediate(-1));
  ftl_binary(c->b, FTL_ELEM_MAX, q->magnitude, q->magnitude, ftl_value_operand(q->x));
}

// 1 / tau = (D * the chosen magnitudes / all)^(-1/2)
static void store_inv_tau(const chooser *c, const query *q, int32_t chosen, ftl_expr query_head) {
  ftl_builder *b = c->b;
  int32_t all = row(c, "all"), top = row(c, "top");
  sum_columns(b, all, q->magnitude);
  ftl_binary(b, FTL_ELEM_MUL, q->magnitude, q->magnitude, ftl_value_operand(chosen));
  sum_columns(b, top, q->magnitude);
  ftl_unary(b, FTL_ELEM_RECIP, all, all);
  ftl_binary(b, FTL_ELEM_MUL, top, top, ftl_value_operand(all));
  ftl_unary(b, FTL_ELEM_LOG2, top, top);
  ftl_elem(b, FTL_ELEM_FMA, top, ftl_value_operand(top), ftl_immediate(-0.5F),
           ftl_immediate(-0.5F * log2f((float)c->s->a.head_dim)));
  ftl_unary(b, FTL_ELEM_EXP2, top, top);
  ftl_store_rows(b, row_ref(c, c->s->inv_tau, query_head, 1), top);
}

void ftl_sparq_build_components(ftl_sparq *s) {
  chooser c = begin(s, s->a.head_dim, 1);
  ftl_builder *b = s->b;
  query q = {tile(&c, "q16", s->a.dtype), tile(&c, "q", FTL_FP32), tile(&c, "magnitude", FTL_FP32)};
  int32_t ranks = tile(&c, "ranks", FTL_FP32), chosen = tile(&c, "chosen", FTL_FP32);
  ftl_fill(b, ranks, 0);
  load_query(&c, &q, each_query_head(&c));
  ftl_binary(b, FTL_ELEM_ADD, ranks, ranks, ftl_value_operand(q.magnitude));
  ftl_end_loop(b);
  ftl_top(b, ranks, ranks, s->r);
  store_choice(&c, s->components, ranks, s->r);
  mark_chosen(b, chosen, ranks);
  ftl_expr query_head = each_query_head(&c);
  load_query(&c, &q, query_head);
  ftl_store_top(b, row_ref(&c, s->q_top, query_head, s->r), q.x, ranks);
  store_inv_tau(&c, &q, chosen, query_head);
  ftl_end_loop(b);
}

// ---- step 3: keys ----

typedef struct softmax_row {
  int32_t x;         // tile
  int32_t max, sum;  // rows
} softmax_row;

static void load_softmax(const chooser *c, const softmax_row *r, ftl_expr query_head) {
  ftl_builder *b = c->b;
  ftl_load_tile(b, r->x, row_ref(c, c->s->scores, query_head, c->s->a.seqlen_kv));
  ftl_mask(b, r->x, ftl_const(b, 0), ftl_const(b, 0), FTL_ALWAYS, ftl_const(b, c->s->a.seqlen_kv));
  ftl_fill(b, r->max, -INFINITY);
  ftl_reduce_rows(b, FTL_ELEM_MAX, r->max, r->x);
  ftl_reduce_lanes(b, FTL_ELEM_MAX, r->max);
  ftl_binary(b, FTL_ELEM_SUB, r->x, r->x, ftl_value_operand(r->max));
  ftl_binary(b, FTL_ELEM_MUL, r->x, r->x, ftl_immediate(log2_e));
  ftl_unary(b, FTL_ELEM_EXP2, r->x, r->x);
  sum_columns(b, r->sum, r->x);
  ftl_unary(b, FTL_ELEM_RECIP, r->sum, r->sum);
  ftl_binary(b, FTL_ELEM_MUL, r->x, r->x, ftl_value_operand(r->sum));
}

// The latest keys come before all others: no weight, a sum of softmaxes of `group` heads, is as large as theirs. x is
// free to be overwritten.
static void prefer_latest(const chooser *c, int32_t weights, int32_t x) {
  if (c->s->local == 0) return;
  ftl_builder *b = c->b;
  ftl_fill(b, x, 2.0F * (float)c->s->group);
  ftl_mask(b, x, ftl_const(b, 0), ftl_const(b, 0), FTL_ALWAYS, ftl_const(b, c->s->a.seqlen_kv));
  ftl_mask_left(b, ftl_const(b, c->s->a.seqlen_kv - c->s->local));
  ftl_binary(b, FTL_ELEM_MAX, weights, weights, ftl_value_operand(x));
}

static int32_t warps_for(int64_t length) {
  int32_t num_warps = LEAST_WARPS;
  while (num_warps < MOST_WARPS && num_warps * FTL_WARP_LANES * ELEMENTS_A_THREAD < length) num_warps *= 2;
  return num_warps;
}

void ftl_sparq_build_keys(ftl_sparq *s) {
  chooser c = begin(s, s->a.seqlen_kv, warps_for(s->a.seqlen_kv));
  ftl_builder *b = s->b;
  softmax_row r = {tile(&c, "scores", FTL_FP32), row(&c, "max"), row(&c, "sum")};
  int32_t ranks = tile(&c, "ranks", FTL_FP32);
  ftl_fill(b, ranks, 0);
  load_softmax(&c, &r, each_query_head(&c));
  ftl_binary(b, FTL_ELEM_ADD, ranks, ranks, ftl_value_operand(r.x));
  ftl_end_loop(b);
  ftl_mask(b, ranks, ftl_const(b, 0), ftl_const(b, 0), FTL_ALWAYS, ftl_const(b, s->a.seqlen_kv));
  prefer_latest(&c, ranks, r.x);
  ftl_top(b, ranks, ranks, s->k);
  store_choice(&c, s->rows, ranks, s->k);
  mark_chosen(b, ranks, ranks);
  ftl_expr query_head = each_query_head(&c);
  load_softmax(&c, &r, query_head);
  ftl_binary(b, FTL_ELEM_MUL, r.x, r.x, ftl_value_operand(ranks));
  sum_columns(b, r.sum, r.x);
  ftl_store_rows(b, row_ref(&c, s->alpha, query_head, 1), r.sum);
  ftl_end_loop(b);
}
