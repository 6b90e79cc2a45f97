// A CTA keeps block_n rows of two tensors and walks block_m rows of two others a step. Source: T. Dao,
// arXiv:2307.08691, algorithm 2, divided into kernels as Triton's fused-attention tutorial is (_attn_bwd_dkdv,
// _attn_bwd_dq).
#include "workloads/backward_products.h"

#include "tile/dropout.h"

enum { SCORES, PRODUCTS };  // S = kept x stepped of Q and K; dP = kept x stepped of dO and V

// A launch of products: two tiles are kept, two are walked in steps.
typedef struct products {
  ftl_backward *f;
  int32_t kept_tensor[2], step_tensor[2];
  ftl_expr kept_head, step_head;
  int32_t role, kept[2], step[2];             // rings
  int32_t scores, products, probs, d_scores;  // S, then P; dP, then dS; each rounded to 16 bits
  int32_t lse, delta;                         // COLUMNS of dK and dV's kernel, ROWS of dQ's
  int32_t lse_ring, delta_ring;  // of these columns, where steps refill late; -1: loaded as they are needed
  ftl_query_steps steps;
  int32_t listed;  // table: the tiles at these positions; -1: the positions are tiles
  // Each loop over steps fills its buffers, refills them after a step's products and leaves none full.
  bool refills_late;
  int32_t refill_barrier;     // named: all warps have left the buffers that a late refill writes
  int32_t late[4], num_late;  // rings that a step waits for at once then
} products;

// ---- what cannot exist on any GPU ----

ftl_status ftl_backward_check_products(const ftl_spec *spec, ftl_error *error) {
  const int64_t *v = spec->value;
  int64_t block_n = v[FTL_PARAM_block_n], num_warps = v[FTL_PARAM_num_warps];
  ftl_status status = ftl_attention_check_stages(spec, error);
  if (status != FTL_OK) return status;
  if (v[FTL_PARAM_mma] == FTL_SPEC_MMA_WGMMA && num_warps % 4 != 0)
    return ftl_error_set(error, FTL_INFEASIBLE, "num_warps=%lld: with wgmma it must be a multiple of 4",
                         (long long)num_warps);
  if (block_n % (16 * num_warps) != 0)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "block_n=%lld num_warps=%lld: the warps share the block_n rows that a CTA keeps, each a "
                         "multiple of 16",
                         (long long)block_n, (long long)num_warps);
  if (v[FTL_PARAM_refill] == FTL_REFILL_LATE &&
      (v[FTL_PARAM_copy] != FTL_SPEC_COPY_CP_ASYNC || v[FTL_PARAM_num_stages] == 1))
    return ftl_error_set(error, FTL_INFEASIBLE, "refill=late: of backward steps with copy=cp_async, num_stages >= 2");
  if (v[FTL_PARAM_dropout_p] != 0 && v[FTL_PARAM_block_m] % FTL_DROPOUT_COLUMNS != 0)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "block_m=%lld: with dropout_p random numbers come for %d keys at a time, a multiple of that",
                         (long long)v[FTL_PARAM_block_m], FTL_DROPOUT_COLUMNS);
  return FTL_OK;
}

// ---- declarations and loads ----

// Of Q and K, and of V and dO.
static int32_t columns_of(const products *p, int i) { return i == SCORES ? p->f->a.head_dim : p->f->a.head_dim_v; }

static void declare(products *p) {
  ftl_builder *b = p->f->b;
  const ftl_attention *a = &p->f->a;
  const int32_t padded[] = {a->padded_head_dim, a->padded_head_dim_v};
  int32_t role = ftl_builder_role(b, "main", p->f->num_warps, 0), readers = 1 << role;
  p->role = role;
  p->lse_ring = p->delta_ring = -1;
  for (int i = 0; i < 2; i++)
    p->kept[i] = ftl_builder_ring(b, i ? "kept 1" : "kept 0", a->dtype, a->block_n, padded[i], 1, role, readers);
  for (int i = 0; i < 2; i++)
    p->step[i] =
        ftl_builder_ring(b, i ? "step 1" : "step 0", a->dtype, a->block_m, padded[i], p->f->num_stages, role, readers);
  p->scores = ftl_builder_tile(b, "s", FTL_FP32, a->block_n, a->block_m);
  p->products = ftl_builder_tile(b, "dp", FTL_FP32, a->block_n, a->block_m);
  p->probs = ftl_builder_tile(b, "p", a->dtype, a->block_n, a->block_m);
  p->d_scores = ftl_builder_tile(b, "ds", a->dtype, a->block_n, a->block_m);
  p->refills_late = p->f->spec->value[FTL_PARAM_refill] == FTL_REFILL_LATE;
  if (!p->refills_late) return;
  p->refill_barrier = ftl_builder_named_barrier(b, "refill", readers);
  for (int i = 0; i < 2; i++) p->late[p->num_late++] = p->step[i];
}

// Under a block mask the steps are those of the kept tile's list.
static void choose_steps(products *p, ftl_query_steps steps) {
  p->steps = steps;
  p->listed = -1;
  if (p->f->lists == NULL) return;
  ftl_listed_tiles listed = ftl_tile_lists_declare(p->f->b, p->f->lists, p->f->tile.row);
  p->listed = listed.tiles;
  p->steps = (ftl_query_steps){listed.range.first, listed.range.whole, listed.range.unmasked, listed.range.end};
}

static ftl_expr row_of_step(const products *p, ftl_expr j) {
  ftl_expr tile = p->listed < 0 ? j : ftl_lookup(p->f->b, p->listed, j);
  return ftl_mul(p->f->b, tile, ftl_const(p->f->b, p->f->a.block_m));
}

static void load_kept(const products *p) {
  for (int i = 0; i < 2; i++)
    ftl_fill_stage(
        p->f->b, p->kept[i],
        ftl_backward_ref(p->f, p->kept_tensor[i], p->kept_head, p->f->tile.row, p->f->a.block_n, columns_of(p, i)));
}

// An empty stage from step `end` on.
static void load_step_before(const products *p, int i, ftl_expr j, ftl_expr end) {
  ftl_tile_ref ref =
      ftl_backward_ref(p->f, p->step_tensor[i], p->step_head, row_of_step(p, j), p->f->a.block_m, columns_of(p, i));
  ref.present = ftl_sub(p->f->b, end, j);
  ftl_fill_stage(p->f->b, p->step[i], ref);
}

static void load_step(const products *p, int i, ftl_expr j) { load_step_before(p, i, j, p->steps.end); }

static int32_t num_ahead(const products *p) { return p->f->num_stages - 1; }

static void load_columns_before(const products *p, int32_t ring, int32_t tensor, ftl_expr j, ftl_expr end) {
  if (ring < 0) return;
  ftl_tile_ref ref = ftl_backward_ref(p->f, tensor, p->step_head, row_of_step(p, j), p->f->a.block_m, 1);
  ref.present = ftl_sub(p->f->b, end, j);
  ftl_fill_stage(p->f->b, ring, ref);
}

// All that step j reads of memory.
static void load_all_before(const products *p, ftl_expr j, ftl_expr end) {
  for (int i = 0; i < 2; i++) load_step_before(p, i, j, end);
  load_columns_before(p, p->lse_ring, p->f->t.lse, j, end);
  load_columns_before(p, p->delta_ring, p->f->t.delta, j, end);
}

// The buffers that are asked for ahead of steps first .. end-1.
static void fill_ahead(const products *p, ftl_expr first, ftl_expr end) {
  for (int32_t j = 0; j < num_ahead(p); j++) load_all_before(p, ftl_add(p->f->b, first, ftl_const(p->f->b, j)), end);
}

// Stages that were asked for past the last step are empty: the next loop must find none.
static void drain(const products *p) {
  for (int32_t i = 0; i < p->num_late; i++) {
    for (int32_t j = 0; j < num_ahead(p); j++) {
      ftl_wait(p->f->b, p->late[i]);
      ftl_release(p->f->b, p->late[i]);
    }
  }
}

// Refilled early: what is read next is waited for; then the step num_stages - 1 ahead is asked for.
static void next_early(const products *p, int i, ftl_expr j) {
  if (p->refills_late) return;
  ftl_builder *b = p->f->b;
  int32_t ahead = num_ahead(p);
  if (ahead == 0) load_step(p, i, j);
  ftl_wait(b, p->step[i]);
  if (ahead > 0) load_step(p, i, ftl_add(b, j, ftl_const(b, ahead)));
}

// Refilled late: all that a step reads, at once.
static void begin_late(const products *p) {
  for (int32_t i = 0; i < p->num_late; i++) ftl_wait(p->f->b, p->late[i]);
}

static void leave_early(const products *p, int i) {
  if (!p->refills_late) ftl_release(p->f->b, p->step[i]);
}

// The tiles ahead, when the step's last product runs; `end`: of the loop.
static void refill_late(const products *p, ftl_expr j, ftl_expr end) {
  ftl_expr ahead = ftl_add(p->f->b, j, ftl_const(p->f->b, num_ahead(p)));
  ftl_sync(p->f->b, p->refill_barrier);
  load_all_before(p, ahead, end);
  for (int i = 0; i < 2; i++) ftl_release(p->f->b, p->step[i]);
}

static void start(const products *p) {
  ftl_builder *b = p->f->b;
  load_kept(p);
  if (!p->refills_late) fill_ahead(p, p->steps.first, p->steps.end);
  for (int i = 0; i < 2; i++) ftl_wait(b, p->kept[i]);
}

// ---- one step ----

// kept x stepped^T
static void multiply_step(const products *p, int i, int32_t result) {
  ftl_fill(p->f->b, result, 0.0f);
  ftl_mma_shared(p->f->b, result, p->kept[i], p->step[i], true);
}

// dS = P (dP - delta)
static void differentiate(const products *p) {
  ftl_backward_differentiate(p->f, p->products, p->scores, p->delta);
  ftl_convert(p->f->b, p->d_scores, p->products);
}

typedef void (*step_fn)(const products *p, ftl_expr j, bool masked, const int32_t *accumulators);

static void loop(const products *p, ftl_expr lo, ftl_expr hi, bool masked, step_fn step, const int32_t *accumulators) {
  if (lo == hi) return;  // empty whatever the CTA
  if (p->refills_late) fill_ahead(p, lo, hi);
  ftl_expr j = ftl_loop_value(p->f->b, ftl_loop(p->f->b, lo, hi));
  begin_late(p);
  step(p, j, masked, accumulators);
  if (p->refills_late) refill_late(p, j, hi);
  ftl_end_loop(p->f->b);
  drain(p);
}

static void walk(const products *p, step_fn step, const int32_t *accumulators) {
  loop(p, p->steps.first, p->steps.whole, true, step, accumulators);
  loop(p, p->steps.whole, p->steps.unmasked, false, step, accumulators);
  loop(p, p->steps.unmasked, p->steps.end, true, step, accumulators);
  for (int i = 0; i < 2; i++) ftl_release(p->f->b, p->kept[i]);
}

static void store_accumulator(const products *p, int i, int32_t tensor, int32_t value) {
  const ftl_backward *f = p->f;
  ftl_store(f->b, ftl_backward_ref(f, tensor, f->tile.head, f->tile.row, f->a.block_n, columns_of(p, i)), value,
            p->kept[i]);
}

// ---- dK and dV: keys are kept, queries walked, on transposed scores ----

static void load_columns_early(const products *p, int32_t value, int32_t tensor, ftl_expr query) {
  if (p->refills_late) return;
  ftl_load_columns(p->f->b, value, ftl_backward_ref(p->f, tensor, p->step_head, query, p->f->a.block_m, 1));
}

// What has come through shared memory leaves its stage free.
static void fetch_columns(const products *p, int32_t value, int32_t ring) {
  if (ring < 0) return;
  ftl_fetch(p->f->b, value, ring);
  ftl_release(p->f->b, ring);
}

static void step_dk_dv(const products *p, ftl_expr j, bool masked, const int32_t *accumulators) {
  const ftl_backward *f = p->f;
  ftl_builder *b = f->b;
  ftl_expr query = row_of_step(p, j);
  next_early(p, SCORES, j);
  load_columns_early(p, p->lse, f->t.lse, query);
  load_columns_early(p, p->delta, f->t.delta, query);
  fetch_columns(p, p->lse, p->lse_ring);
  multiply_step(p, SCORES, p->scores);
  if (masked) ftl_attention_mask_transposed(b, &f->a, f->lengths, p->scores, f->tile.row, query);
  ftl_backward_prepare_lse(f, p->lse);
  ftl_backward_exponentiate(f, p->scores, p->lse);
  ftl_attention_dropout_by_sign(b, &f->a, &f->tile, p->scores, query, f->tile.row, true);
  ftl_backward_round_probs(f, p->probs, p->scores);
  next_early(p, PRODUCTS, j);
  ftl_mma_value(b, accumulators[1], p->probs, p->step[PRODUCTS], false);
  multiply_step(p, PRODUCTS, p->products);
  leave_early(p, PRODUCTS);
  fetch_columns(p, p->delta, p->delta_ring);
  differentiate(p);
  ftl_mma_value(b, accumulators[0], p->d_scores, p->step[SCORES], false);
  leave_early(p, SCORES);
}

static void declare_columns(products *p) {
  ftl_builder *b = p->f->b;
  int32_t rows = p->f->a.block_m;
  p->lse = ftl_builder_columns(b, "lse", rows);
  p->delta = ftl_builder_columns(b, "delta", rows);
  if (!p->refills_late) return;
  p->lse_ring = ftl_builder_ring(b, "lse", FTL_FP32, rows, 1, num_ahead(p), p->role, 1 << p->role);
  p->delta_ring = ftl_builder_ring(b, "delta", FTL_FP32, rows, 1, num_ahead(p), p->role, 1 << p->role);
  p->late[p->num_late++] = p->lse_ring;
  p->late[p->num_late++] = p->delta_ring;
}

void ftl_backward_write_dk_dv(ftl_backward *f) {
  ftl_builder *b = f->b;
  const ftl_attention *a = &f->a;
  ftl_backward_keep(f, a->seqlen_kv, a->block_n);
  ftl_backward_needs_queries(f);
  products p = {.f = f,
                .kept_tensor = {f->t.k, f->t.v},
                .step_tensor = {f->t.q, f->t.d_o},
                .kept_head = f->tile.kv_head,
                .step_head = f->tile.head};
  declare(&p);
  int32_t accumulators[2];
  for (int i = 0; i < 2; i++)
    accumulators[i] =
        ftl_builder_tile(b, i ? "dv" : "dk", FTL_FP32, a->block_n, i ? a->padded_head_dim_v : a->padded_head_dim);
  declare_columns(&p);
  choose_steps(&p, ftl_backward_query_steps(f));
  start(&p);
  for (int i = 0; i < 2; i++) ftl_fill(b, accumulators[i], 0.0f);
  walk(&p, step_dk_dv, accumulators);
  ftl_backward_scale(f, accumulators[0], true);
  ftl_backward_scale(f, accumulators[1], false);
  store_accumulator(&p, 0, f->t.d_k_of_heads, accumulators[0]);
  store_accumulator(&p, 1, f->t.d_v_of_heads, accumulators[1]);
}

// ---- dQ: queries are kept, keys walked ----

static void step_dq(const products *p, ftl_expr j, bool masked, const int32_t *accumulators) {
  const ftl_backward *f = p->f;
  ftl_builder *b = f->b;
  ftl_expr key = row_of_step(p, j);
  next_early(p, SCORES, j);
  multiply_step(p, SCORES, p->scores);
  if (masked) ftl_attention_mask_lengths(b, &f->a, f->lengths, p->scores, f->tile.row, key, 0);
  ftl_backward_exponentiate(f, p->scores, p->lse);
  ftl_attention_dropout_by_sign(b, &f->a, &f->tile, p->scores, f->tile.row, key, false);
  next_early(p, PRODUCTS, j);
  multiply_step(p, PRODUCTS, p->products);
  leave_early(p, PRODUCTS);
  differentiate(p);
  ftl_mma_value(b, accumulators[0], p->d_scores, p->step[SCORES], false);
  leave_early(p, SCORES);
}

// Tiles of block_n queries see these steps of block_m keys.
static ftl_query_steps key_steps(const ftl_backward *f) {
  ftl_attention kept_queries = f->a;
  kept_queries.block_m = f->a.block_n;
  kept_queries.block_n = f->a.block_m;
  ftl_key_range keys = ftl_attention_keys_lengths(f->b, &kept_queries, f->lengths, f->tile.row);
  return (ftl_query_steps){keys.first, keys.whole, keys.unmasked, keys.end};
}

void ftl_backward_write_dq(ftl_backward *f) {
  ftl_builder *b = f->b;
  const ftl_attention *a = &f->a;
  ftl_backward_keep(f, a->seqlen_q, a->block_n);
  products p = {.f = f,
                .kept_tensor = {f->t.q, f->t.d_o},
                .step_tensor = {f->t.k, f->t.v},
                .kept_head = f->tile.head,
                .step_head = f->tile.kv_head};
  declare(&p);
  int32_t accumulator = ftl_builder_tile(b, "dq", FTL_FP32, a->block_n, a->padded_head_dim);
  p.lse = ftl_builder_rows(b, "lse", a->block_n);
  p.delta = ftl_builder_rows(b, "delta", a->block_n);
  choose_steps(&p, key_steps(f));
  start(&p);
  ftl_load_rows(b, p.lse, ftl_backward_ref(f, f->t.lse, f->tile.head, f->tile.row, a->block_n, 1));
  ftl_load_rows(b, p.delta, ftl_backward_ref(f, f->t.delta, f->tile.head, f->tile.row, a->block_n, 1));
  ftl_backward_prepare_lse(f, p.lse);
  ftl_fill(b, accumulator, 0.0f);
  walk(&p, step_dq, &accumulator);
  ftl_backward_scale(f, accumulator, true);
  store_accumulator(&p, 0, f->t.d_q, accumulator);
}
