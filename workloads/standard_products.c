// The two products of unfused attention, forward.
#include "base/integer.h"
#include "workloads/staged_store.h"
#include "workloads/standard_forward.h"

// ---- S = Q K^T ----

// Of a block mask, 1 if the tile's block is seen, else 0.
static ftl_expr block_is_seen(const ftl_standard_forward *f, ftl_expr row, ftl_expr column) {
  ftl_builder *b = f->b;
  int64_t edge = f->spec->value[FTL_PARAM_mask_block];
  ftl_expr block = ftl_const(b, edge), columns = ftl_const(b, ftl_divide_up(f->a.seqlen_kv, edge));
  return ftl_lookup(b, f->seen, ftl_add(b, ftl_mul(b, ftl_div(b, row, block), columns), ftl_div(b, column, block)));
}

typedef struct scores_tile {
  ftl_attention_tile query;
  ftl_expr column;
  ftl_expr seen;  // under a block mask: 1 or 0
  int32_t ring_q, ring_k, value, staging;
} scores_tile;

static scores_tile scores_tile_of(const ftl_standard_forward *f, ftl_expr m, ftl_expr n) {
  const ftl_attention *a = &f->a;
  ftl_builder *b = f->b;
  scores_tile t = {.query = ftl_attention_tile_at(b, f->spec, a, m), .column = ftl_mul(b, n, ftl_const(b, a->block_n))};
  int32_t role = ftl_builder_role(b, "main", (int32_t)f->spec->value[FTL_PARAM_num_warps], 0);
  t.ring_q = ftl_builder_ring(b, "q", a->dtype, a->block_m, a->padded_head_dim, 1, role, 1 << role);
  bool of_columns = ftl_standard_copies_tokens(f->spec);
  t.ring_k = ftl_builder_ring(b, "k", a->dtype, of_columns ? a->padded_head_dim : a->block_n,
                              of_columns ? a->block_n : a->padded_head_dim, 1, role, 1 << role);
  t.value = ftl_builder_tile(b, "s", FTL_FP32, a->block_m, a->block_n);
  t.staging =
      ftl_standard_staging(f->spec, b, a->block_m, a->block_n, (int64_t)(a->block_m + a->block_n) * a->padded_head_dim);
  if (f->seen >= 0) t.seen = block_is_seen(f, t.query.row, t.column);
  return t;
}

// block_n keys; of eager PyTorch, whose copy of K is transposed, as many columns of it.
static ftl_tile_ref keys_of(const ftl_standard_forward *f, const scores_tile *t) {
  const ftl_attention *a = &f->a;
  if (!ftl_standard_copies_tokens(f->spec))
    return ftl_attention_key_ref(&t->query, f->rows.k, t->column, a->block_n, a->head_dim);
  ftl_tile_ref ref = ftl_attention_key_ref(&t->query, f->rows.k, ftl_const(f->b, 0), (int32_t)a->head_dim,
                                           ftl_standard_tile_columns(a));
  ref.column = t->column;
  return ref;
}

// 0 where a block mask hides the tile.
static void multiply_scores(const ftl_standard_forward *f, const scores_tile *t) {
  const ftl_attention *a = &f->a;
  ftl_builder *b = f->b;
  ftl_fill(b, t->value, 0);
  if (f->seen >= 0) ftl_loop(b, ftl_const(b, 0), t->seen);
  ftl_fill_stage(b, t->ring_q, ftl_attention_query_ref(&t->query, f->rows.q, t->query.row, a->block_m, a->head_dim));
  ftl_fill_stage(b, t->ring_k, keys_of(f, t));
  ftl_wait(b, t->ring_q);
  ftl_wait(b, t->ring_k);
  ftl_mma_shared(b, t->value, t->ring_q, t->ring_k, !ftl_standard_copies_tokens(f->spec));
  ftl_release(b, t->ring_q);
  ftl_release(b, t->ring_k);
  if (f->seen >= 0) ftl_end_loop(b);
}

static void store_scores(const ftl_standard_forward *f, const scores_tile *t) {
  const ftl_attention *a = &f->a;
  ftl_builder *b = f->b;
  if (f->product_scale != 1) ftl_binary(b, FTL_ELEM_MUL, t->value, t->value, ftl_immediate(f->product_scale));
  if (f->seen >= 0) {
    ftl_expr last = ftl_mul(b, t->seen, ftl_const(b, a->seqlen_kv));  // no key before key 0
    ftl_mask(b, t->value, t->query.row, t->column, FTL_ALWAYS, last);
  }
  ftl_tile_ref to = ftl_attention_query_ref(&t->query, f->s, t->query.row, a->block_m, ftl_standard_tile_columns(a));
  to.column = t->column;
  ftl_staged_store(b, to, t->value, t->staging);
}

void ftl_standard_write_scores(const ftl_standard_forward *f) {
  const ftl_attention *a = &f->a;
  ftl_builder *b = f->b;
  int64_t num_n_tiles = ftl_divide_up(a->seqlen_kv, a->block_n);
  ftl_expr num_n = ftl_const(b, num_n_tiles), n = ftl_mod(b, ftl_cta(b), num_n);
  scores_tile t = scores_tile_of(f, ftl_div(b, ftl_cta(b), num_n), n);
  ftl_key_range keys = ftl_attention_keys(b, a, t.query.row);
  // a CTA beyond the diagonal, or before the window, has nothing to do
  bool some_unseen = ftl_attention_band_of(a).has_right;
  if (some_unseen) ftl_loop_once(b, ftl_const(b, 0), ftl_standard_is_seen(b, a, &keys, n));
  multiply_scores(f, &t);
  store_scores(f, &t);
  if (some_unseen) ftl_end_loop(b);
  ftl_builder_grid(b, a->batch * a->heads * a->num_m_tiles * num_n_tiles, false, FTL_TILES_BY_STRIDE);
}

// ---- O = P V ----
typedef struct outputs {
  const ftl_standard_forward *f;
  int32_t ring_p, ring_v;
  ftl_attention_tile tile;
  ftl_key_range keys;
} outputs;

// P and V of key tile j; empty stages past the last.
static void load_tiles(const outputs *p, ftl_expr j) {
  const ftl_standard_forward *f = p->f;
  ftl_builder *b = f->b;
  ftl_expr key = ftl_mul(b, j, ftl_const(b, f->a.block_n)), exists = ftl_sub(b, p->keys.end, j);
  ftl_tile_ref of_p =
      ftl_attention_query_ref(&p->tile, f->dropped, p->tile.row, f->a.block_m, ftl_standard_tile_columns(&f->a));
  of_p.column = key;
  of_p.present = exists;
  ftl_tile_ref of_v = ftl_attention_key_ref(&p->tile, f->rows.v, key, f->a.block_n, f->a.head_dim_v);
  of_v.present = exists;
  ftl_acquire(b, p->ring_p);
  ftl_acquire(b, p->ring_v);
  ftl_load(b, p->ring_p, of_p);
  ftl_load(b, p->ring_v, of_v);
  ftl_commit(b, p->ring_p);
  ftl_commit(b, p->ring_v);
}

void ftl_standard_write_outputs(const ftl_standard_forward *f) {
  const ftl_attention *a = &f->a;
  ftl_builder *b = f->b;
  int32_t num_stages = (int32_t)f->spec->value[FTL_PARAM_num_stages];
  int32_t role = ftl_builder_role(b, "main", (int32_t)f->spec->value[FTL_PARAM_num_warps], 0);
  outputs p = {.f = f, .tile = ftl_attention_tile_of(b, f->spec, a)};
  p.keys = ftl_attention_keys(b, a, p.tile.row);
  p.ring_p = ftl_builder_ring(b, "p", a->dtype, a->block_m, a->block_n, num_stages, role, 1 << role);
  p.ring_v = ftl_builder_ring(b, "v", a->dtype, a->block_n, a->padded_head_dim_v, num_stages, role, 1 << role);
  int32_t output = ftl_builder_tile(b, "o", FTL_FP32, a->block_m, a->padded_head_dim_v);
  ftl_fill(b, output, 0);
  for (int32_t j = 0; j < num_stages - 1; j++) load_tiles(&p, ftl_add(b, p.keys.first, ftl_const(b, j)));
  ftl_expr j = ftl_loop_value(b, ftl_loop(b, p.keys.first, p.keys.end));
  load_tiles(&p, ftl_add(b, j, ftl_const(b, num_stages - 1)));
  ftl_wait(b, p.ring_p);
  ftl_wait(b, p.ring_v);
  ftl_mma_shared(b, output, p.ring_p, p.ring_v, false);
  ftl_release(b, p.ring_p);
  ftl_release(b, p.ring_v);
  ftl_end_loop(b);
  int32_t staging = ftl_standard_staging(f->spec, b, a->block_m, a->padded_head_dim_v,
                                         num_stages * (a->block_m + (int64_t)a->padded_head_dim_v) * a->block_n);
  ftl_tile_ref to = ftl_attention_query_ref(&p.tile, f->t.o, p.tile.row, a->block_m, a->head_dim_v);
  ftl_staged_store(b, to, output, staging);
  ftl_builder_grid(b, a->batch * a->heads * a->num_m_tiles, false, FTL_TILES_BY_STRIDE);
}
