// Source: FlashAttention-2's library, csrc/flash_attn/src/flash_bwd_kernel.h (compute_dq_dk_dv_1colblock, convert_dQ);
// the algorithm is arXiv:2307.08691, algorithm 2. A step, for block_m queries against the block_n keys of the CTA:
//   S = Q K^T, P = exp(scale S - LSE), dP = dO V^T, dS = P (dP - delta); P and dS go to shared memory;
//   dV += P^T dO, dQ's sum += dS K (atomics), dK += dS^T Q.
// The last queries come first. Q has num_stages buffers, dO one, which is filled while dQ and dK are computed.
#include "workloads/backward_atomics.h"

#include "tile/dropout.h"

enum { SLAB = 16 };  // rows and columns that a warp holds are multiples of it

// ---- how the warps share a tile ----

// Warps side by side, so that a warp's part, of a multiple of `unit` columns, is as square as it can be: it reads
// operands for rows + columns. 0: none.
static int32_t warps_per_row_in_units(int32_t num_warps, int32_t rows, int32_t columns, int32_t unit) {
  int32_t best = 0, least = INT32_MAX;
  for (int32_t across = 1; across <= num_warps; across++) {
    int32_t down = num_warps / across;
    if (num_warps % across != 0 || rows % (SLAB * down) != 0 || columns % (unit * across) != 0) continue;
    if (rows / down + columns / across >= least) continue;
    least = rows / down + columns / across;
    best = across;
  }
  return best;
}

static int32_t warps_per_row(int32_t num_warps, int32_t rows, int32_t columns) {
  return warps_per_row_in_units(num_warps, rows, columns, SLAB);
}

// Of the scores: dropout's random numbers come for 32 keys at a time.
static int32_t warps_per_score_row(int32_t num_warps, int32_t block_m, int32_t block_n, bool drops) {
  return warps_per_row_in_units(num_warps, block_m, block_n, drops ? FTL_DROPOUT_COLUMNS : SLAB);
}

static int32_t tile_of(const ftl_backward *f, const char *name, ftl_dtype dtype, int32_t rows, int32_t columns) {
  int32_t tile = ftl_builder_tile(f->b, name, dtype, rows, columns);
  ftl_builder_side_by_side(f->b, warps_per_row(f->num_warps, rows, columns));
  return tile;
}

static int32_t warps_per_row_of_scores(const ftl_backward *f) {
  return warps_per_score_row(f->num_warps, f->a.block_m, f->a.block_n, f->a.dropout_p > 0);
}

static int32_t score_tile_of(const ftl_backward *f, const char *name, ftl_dtype dtype) {
  int32_t tile = ftl_builder_tile(f->b, name, dtype, f->a.block_m, f->a.block_n);
  ftl_builder_side_by_side(f->b, warps_per_row_of_scores(f));
  return tile;
}

// A number a row of the scores.
static int32_t rows_of_scores(const ftl_backward *f, const char *name) {
  int32_t rows = ftl_builder_rows(f->b, name, f->a.block_m);
  ftl_builder_side_by_side(f->b, warps_per_row_of_scores(f));
  return rows;
}

ftl_status ftl_backward_check_atomics(const ftl_spec *spec, ftl_error *error) {
  const int64_t *v = spec->value;
  int32_t num_warps = (int32_t)v[FTL_PARAM_num_warps], block_m = (int32_t)v[FTL_PARAM_block_m];
  int32_t block_n = (int32_t)v[FTL_PARAM_block_n], columns = ftl_backward_padded_columns(v[FTL_PARAM_head_dim]);
  int32_t columns_v = ftl_backward_padded_columns(ftl_spec_head_dim_v(spec));
  bool drops = v[FTL_PARAM_dropout_p] != 0;
  if (v[FTL_PARAM_mma] == FTL_SPEC_MMA_WGMMA)
    return ftl_error_set(error, FTL_INFEASIBLE, "dq=atomics: its warps stand side by side, which needs mma=mma");
  bool fits = warps_per_row(num_warps, block_m, block_n) > 0 && warps_per_row(num_warps, block_n, columns) > 0 &&
              warps_per_row(num_warps, block_n, columns_v) > 0 && warps_per_row(num_warps, block_m, columns) > 0;
  if (fits && warps_per_score_row(num_warps, block_m, block_n, drops) > 0) return FTL_OK;
  if (fits)
    return ftl_error_set(
        error, FTL_INFEASIBLE,
        "block_m=%d block_n=%d num_warps=%d: with dropout_p random numbers come for %d keys at a time: "
        "the warps share block_m x block_n in parts of multiples of %d x %d",
        block_m, block_n, num_warps, FTL_DROPOUT_COLUMNS, SLAB, FTL_DROPOUT_COLUMNS);
  return ftl_error_set(
      error, FTL_INFEASIBLE,
      "block_m=%d block_n=%d num_warps=%d: the warps share tiles of block_m x block_n, block_n x %d and "
      "block_m x %d in parts of multiples of %d rows and columns",
      block_m, block_n, num_warps, warps_per_row(num_warps, block_n, columns) > 0 ? columns_v : columns, columns, SLAB);
}

// ---- the kernel of the products ----

typedef struct fused {
  ftl_backward *f;
  int32_t q, k, v, d_o, p, d_s;  // rings
  int32_t scores, products;      // S, then P; dP, then dS
  int32_t probs, d_scores;       // P and dS, rounded
  int32_t d_q, d_k, d_v, lse, delta;
  ftl_query_steps steps;  // the query tiles that see any of the keys
  int32_t listed;         // table: the tiles at these positions; -1: the positions are tiles
} fused;

static fused declare(ftl_backward *f) {
  ftl_builder *b = f->b;
  const ftl_attention *a = &f->a;
  int32_t role = ftl_builder_role(b, "main", f->num_warps, 0), readers = 1 << role, d = a->padded_head_dim;
  int32_t d_v = a->padded_head_dim_v;
  return (fused){
      .f = f,
      .k = ftl_builder_ring(b, "k", a->dtype, a->block_n, d, 1, role, readers),
      .v = ftl_builder_ring(b, "v", a->dtype, a->block_n, d_v, 1, role, readers),
      .q = ftl_builder_ring(b, "q", a->dtype, a->block_m, d, f->num_stages, role, readers),
      .d_o = ftl_builder_ring(b, "do", a->dtype, a->block_m, d_v, 1, role, readers),
      .p = ftl_builder_ring(b, "p", a->dtype, a->block_m, a->block_n, 1, role, readers),
      .d_s = ftl_builder_ring(b, "ds", a->dtype, a->block_m, a->block_n, 1, role, readers),
      .scores = score_tile_of(f, "s", FTL_FP32),
      .products = score_tile_of(f, "dp", FTL_FP32),
      .probs = score_tile_of(f, "p", a->dtype),
      .d_scores = score_tile_of(f, "ds", a->dtype),
      .d_q = tile_of(f, "dq", FTL_FP32, a->block_m, d),
      .d_k = tile_of(f, "dk", FTL_FP32, a->block_n, d),
      .d_v = tile_of(f, "dv", FTL_FP32, a->block_n, d_v),
      .lse = rows_of_scores(f, "lse"),
      .delta = rows_of_scores(f, "delta"),
  };
}

// First row of the query tile of step j, counted from the last tile.
static ftl_expr row_of_step(const fused *p, ftl_expr j) {
  ftl_builder *b = p->f->b;
  ftl_expr position = ftl_sub(b, ftl_sub(b, p->steps.end, ftl_const(b, 1)), j);
  ftl_expr tile = p->listed < 0 ? position : ftl_lookup(b, p->listed, position);
  return ftl_mul(b, tile, ftl_const(b, p->f->a.block_m));
}

static ftl_expr is_present(const fused *p, ftl_expr j) {
  return ftl_sub(p->f->b, ftl_sub(p->f->b, p->steps.end, p->steps.first), j);
}

// Rows of step j of a tensor like Q; absent past the last step.
static ftl_tile_ref step_ref(const fused *p, int32_t tensor, ftl_expr j, int32_t columns) {
  ftl_tile_ref ref = ftl_backward_ref(p->f, tensor, p->f->tile.head, row_of_step(p, j), p->f->a.block_m, columns);
  ref.present = is_present(p, j);
  return ref;
}

static ftl_tile_ref sum_ref(const fused *p, ftl_expr j) {
  ftl_tile_ref ref = ftl_backward_sum_ref(p->f, row_of_step(p, j));
  ref.present = is_present(p, j);
  return ref;
}

static void load_q(const fused *p, ftl_expr j) {
  ftl_fill_stage(p->f->b, p->q, step_ref(p, p->f->t.q, j, p->f->a.head_dim));
}
static void load_d_o(const fused *p, ftl_expr j) {
  ftl_fill_stage(p->f->b, p->d_o, step_ref(p, p->f->t.d_o, j, p->f->a.head_dim_v));
}

static void load_rows(const fused *p, ftl_expr j) {
  ftl_load_rows(p->f->b, p->lse, step_ref(p, p->f->t.lse, j, 1));
  ftl_load_rows(p->f->b, p->delta, step_ref(p, p->f->t.delta, j, 1));
}

static void start(const fused *p) {
  ftl_builder *b = p->f->b;
  const ftl_backward_tensors *t = &p->f->t;
  ftl_expr zero = ftl_const(b, 0);
  load_q(p, zero);
  load_d_o(p, zero);
  load_rows(p, zero);
  int32_t kept[] = {t->k, t->v}, rings[] = {p->k, p->v}, columns[] = {p->f->a.head_dim, p->f->a.head_dim_v};
  for (int i = 0; i < 2; i++)
    ftl_fill_stage(b, rings[i],
                   ftl_backward_ref(p->f, kept[i], p->f->tile.kv_head, p->f->tile.row, p->f->a.block_n, columns[i]));
  for (int32_t j = 1; j < p->f->num_stages - 1; j++) load_q(p, ftl_const(b, j));
  for (int i = 0; i < 2; i++) ftl_wait(b, rings[i]);
  ftl_fill(b, p->d_k, 0.0f);
  ftl_fill(b, p->d_v, 0.0f);
}

// To shared memory, where all warps read it.
static void publish(const fused *p, int32_t value, int32_t ring) {
  ftl_builder *b = p->f->b;
  ftl_acquire(b, ring);
  ftl_put(b, ring, value);
  ftl_commit(b, ring);
}

static void multiply(const fused *p, int32_t result, int32_t ring_a, int32_t ring_b, bool transpose_b) {
  ftl_fill(p->f->b, result, 0.0f);
  ftl_mma_shared(p->f->b, result, ring_a, ring_b, transpose_b);
}

static void step_scores(const fused *p, ftl_expr j, bool masked) {
  const ftl_backward *f = p->f;
  ftl_builder *b = f->b;
  ftl_expr query = row_of_step(p, j);
  ftl_wait(b, p->q);
  ftl_wait(b, p->d_o);
  multiply(p, p->scores, p->q, p->k, true);
  if (masked) ftl_attention_mask_lengths(b, &f->a, f->lengths, p->scores, query, f->tile.row, 0);
  ftl_backward_prepare_lse(f, p->lse);
  ftl_backward_exponentiate(f, p->scores, p->lse);
  ftl_attention_dropout_by_sign(b, &f->a, &f->tile, p->scores, query, f->tile.row, false);
  ftl_backward_round_probs(f, p->probs, p->scores);
  publish(p, p->probs, p->p);
  multiply(p, p->products, p->d_o, p->v, true);
  ftl_backward_differentiate(f, p->products, p->scores, p->delta);
  ftl_convert(b, p->d_scores, p->products);
  publish(p, p->d_scores, p->d_s);
}

static void step_gradients(const fused *p, ftl_expr j) {
  ftl_builder *b = p->f->b;
  ftl_expr next = ftl_add(b, j, ftl_const(b, 1));
  ftl_wait(b, p->p);
  ftl_wait(b, p->d_s);
  ftl_mma_shared(b, p->d_v, p->p, p->d_o, false);
  ftl_transposed_a(b);
  ftl_release(b, p->p);
  ftl_release(b, p->d_o);
  load_d_o(p, next);
  multiply(p, p->d_q, p->d_s, p->k, false);
  load_rows(p, next);
  ftl_atomic_add(b, sum_ref(p, j), p->d_q, FTL_ADD_IN_LINES);
  ftl_mma_shared(b, p->d_k, p->d_s, p->q, false);
  ftl_transposed_a(b);
  ftl_release(b, p->d_s);
  ftl_release(b, p->q);
}

static void loop(const fused *p, ftl_expr lo, ftl_expr hi, bool masked) {
  if (lo == hi) return;  // empty whatever the CTA
  ftl_builder *b = p->f->b;
  ftl_expr j = ftl_loop_value(b, ftl_loop(b, lo, hi)), ahead = ftl_const(b, p->f->num_stages - 1);
  step_scores(p, j, masked);
  if (p->f->num_stages > 1) load_q(p, ftl_add(b, j, ahead));
  step_gradients(p, j);
  if (p->f->num_stages == 1) load_q(p, ftl_add(b, j, ftl_const(b, 1)));
  ftl_end_loop(b);
}

// Steps that see all keys of the CTA; none where the last keys do not fill their tile, whose rest is masked.
static ftl_expr num_unmasked(const ftl_backward *f, const ftl_query_steps *steps) {
  ftl_builder *b = f->b;
  const ftl_attention *a = &f->a;
  ftl_expr unmasked = ftl_sub(b, steps->unmasked, steps->whole);
  if (f->packed == NULL && a->seqlen_kv % a->block_n == 0) return unmasked;
  ftl_expr left = ftl_sub(b, f->lengths.seqlen_kv, f->tile.row);
  ftl_expr is_whole = ftl_min(b, ftl_const(b, 1), ftl_div(b, left, ftl_const(b, a->block_n)));
  return ftl_mul(b, is_whole, unmasked);
}

// Under a block mask the steps are those of the key tile's list, which has those seen in part last.
static void walk_listed(fused *p) {
  ftl_builder *b = p->f->b;
  ftl_listed_tiles listed = ftl_tile_lists_declare(b, p->f->lists, p->f->tile.row);
  p->listed = listed.tiles;
  p->steps = (ftl_query_steps){listed.range.first, listed.range.whole, listed.range.unmasked, listed.range.end};
  ftl_expr num_partial = ftl_sub(b, p->steps.end, p->steps.unmasked);
  start(p);
  loop(p, ftl_const(b, 0), num_partial, true);
  loop(p, num_partial, ftl_sub(b, p->steps.end, p->steps.first), false);
}

static void walk_queries(fused *p) {
  ftl_builder *b = p->f->b;
  p->listed = -1;
  p->steps = ftl_backward_query_steps(p->f);
  ftl_expr from = ftl_sub(b, p->steps.end, p->steps.unmasked);
  ftl_expr to = ftl_add(b, from, num_unmasked(p->f, &p->steps));
  start(p);
  loop(p, ftl_const(b, 0), from, true);
  loop(p, from, to, false);
  loop(p, to, ftl_sub(b, p->steps.end, p->steps.first), true);
}

static void store_of_keys(const fused *p, int32_t tensor, int32_t columns, int32_t value, int32_t staging) {
  const ftl_backward *f = p->f;
  ftl_store(f->b, ftl_backward_ref(f, tensor, f->tile.head, f->tile.row, f->a.block_n, columns), value, staging);
}

void ftl_backward_write_dq_dk_dv(ftl_backward *f) {
  ftl_backward_keep(f, f->a.seqlen_kv, f->a.block_n);
  ftl_backward_needs_queries(f);
  fused p = declare(f);
  if (f->lists != NULL)
    walk_listed(&p);
  else
    walk_queries(&p);
  ftl_release(f->b, p.k);
  ftl_release(f->b, p.v);
  ftl_backward_scale(f, p.d_k, true);
  ftl_backward_scale(f, p.d_v, false);
  store_of_keys(&p, f->t.d_k_of_heads, f->a.head_dim, p.d_k, p.k);
  store_of_keys(&p, f->t.d_v_of_heads, f->a.head_dim_v, p.d_v, p.v);
}

// ---- dQ from its sum ----

void ftl_backward_convert_dq(ftl_backward *f) {
  ftl_builder *b = f->b;
  const ftl_attention *a = &f->a;
  ftl_backward_keep(f, a->seqlen_q, a->block_m);
  if (f->packed != NULL)
    ftl_builder_needs(b, f->t.d_q_sum, a->heads * f->packed->num_tiles * a->block_m * a->padded_head_dim);
  int32_t role = ftl_builder_role(b, "main", f->num_warps, 0);
  int32_t staging = ftl_builder_ring(b, "dq", a->dtype, a->block_m, a->padded_head_dim, 1, role, 1 << role);
  int32_t d_q = tile_of(f, "dq", FTL_FP32, a->block_m, a->padded_head_dim);
  ftl_load_tile(b, d_q, ftl_backward_sum_ref(f, f->tile.row));
  ftl_backward_scale(f, d_q, true);
  ftl_store(b, ftl_backward_ref(f, f->t.d_q, f->tile.head, f->tile.row, a->block_m, a->head_dim), d_q, staging);
}
