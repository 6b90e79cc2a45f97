// Which tiles flash3_fwd copies, and when: by a producer that fills stages as consumers empty them, or by the role that
// computes, ahead of its own use.
#include "workloads/flash3.h"

// ---- tiles ----

ftl_expr ftl_flash3_key(const ftl_flash3 *f, ftl_expr j) {
  return ftl_tile_lists_token(f->b, &f->lists, f->listed, j, f->a.block_n);
}

static ftl_tile_ref in_sequence(const ftl_flash3 *f, ftl_tile_ref ref) {
  return ftl_packed_ref(f->b, f->tile.origin, f->tile.row_end, ref);
}

ftl_tile_ref ftl_flash3_query_ref(const ftl_flash3 *f, int32_t tensor, ftl_expr row, int32_t rows, int32_t columns) {
  return in_sequence(f, ftl_attention_query_ref(&f->tile.tile, tensor, row, rows, columns));
}

static void walk_range(const ftl_flash3 *f, ftl_expr lo, ftl_expr hi, bool masked, ftl_flash3_step step,
                       const void *role) {
  if (lo == hi) return;  // empty whatever the CTA
  step(role, ftl_loop_value(f->b, ftl_loop(f->b, lo, hi)), masked);
  ftl_end_loop(f->b);
}

static void walk_from(const ftl_flash3 *f, ftl_expr from, ftl_flash3_step step, const void *role) {
  ftl_expr whole = ftl_max(f->b, from, f->keys.whole), unmasked = ftl_max(f->b, whole, f->keys.unmasked);
  if (whole != from) walk_range(f, from, whole, true, step, role);
  walk_range(f, whole, unmasked, false, step, role);
  walk_range(f, unmasked, f->keys.end, true, step, role);
}

void ftl_flash3_walk_all(const ftl_flash3 *f, ftl_flash3_step step, const void *role) {
  walk_from(f, f->keys.first, step, role);
}

void ftl_flash3_walk_rest(const ftl_flash3 *f, ftl_flash3_step step, const void *role) {
  walk_from(f, ftl_add(f->b, f->keys.first, ftl_const(f->b, 1)), step, role);
}

// ---- copies ----

static void copy_queries(const ftl_flash3 *f) {
  ftl_fill_stage(f->b, f->ring_q, ftl_flash3_query_ref(f, f->t.q, f->tile.tile.row, f->a.block_m, f->a.head_dim));
}

static void copy_tile(const ftl_flash3 *f, int32_t ring, int32_t tensor, int32_t columns, ftl_expr j,
                      ftl_expr present) {
  ftl_tile_ref ref =
      in_sequence(f, ftl_attention_key_ref(&f->tile.tile, tensor, ftl_flash3_key(f, j), f->a.block_n, columns));
  ref.present = present;
  ftl_fill_stage(f->b, ring, ref);
}

// Tile j of K, or of V, to the next stage; an empty stage unless `present` > 0.
static void copy_keys(const ftl_flash3 *f, ftl_expr j, ftl_expr present) {
  copy_tile(f, f->ring_k, f->t.k, f->a.head_dim, j, present);
}
static void copy_values(const ftl_flash3 *f, ftl_expr j, ftl_expr present) {
  copy_tile(f, f->ring_v, f->t.v, f->a.head_dim_v, j, present);
}

// ---- a producer ----

static void transpose_values(const ftl_flash3 *f) {
  ftl_wait(f->b, f->ring_v);
  ftl_acquire(f->b, f->ring_vt);
  ftl_transpose(f->b, f->ring_vt, f->ring_v);
  ftl_commit(f->b, f->ring_vt);
  ftl_release(f->b, f->ring_v);
}

static void copy_keys_and_values(const ftl_flash3 *f, ftl_expr j) {
  copy_keys(f, j, FTL_ALWAYS);
  copy_values(f, j, FTL_ALWAYS);
}

// fp8: while this tile is on its way, the values of the one before are transposed.
static void produce_step(const void *role, ftl_expr j, bool masked) {
  (void)masked;
  const ftl_flash3 *f = role;
  copy_keys_and_values(f, j);
  if (f->is_fp8) transpose_values(f);
}

// As many steps as the consumers' loop has.
void ftl_flash3_produce(const ftl_flash3 *f) {
  copy_queries(f);
  if (f->softmax_takes_turns) {
    ftl_flash3_walk_all(f, produce_step, f);
    return;
  }
  copy_keys_and_values(f, f->keys.first);
  ftl_flash3_walk_rest(f, produce_step, f);
  if (f->is_fp8) transpose_values(f);
}

// ---- a role that copies for itself ----

// 1 or more if tile j exists.
static ftl_expr exists(const ftl_flash3 *f, ftl_expr j) { return ftl_sub(f->b, f->keys.end, j); }

// Values lag a tile behind keys, as their product does.
void ftl_flash3_prefetch(const ftl_flash3 *f) {
  copy_queries(f);
  for (int32_t i = 0; i < f->num_stages; i++) {
    ftl_expr j = ftl_add(f->b, f->keys.first, ftl_const(f->b, i));
    copy_keys(f, j, exists(f, j));
    if (i + 1 < f->num_stages) copy_values(f, j, exists(f, j));
  }
}

// The stages of K and V that the step before gave back are filled again.
void ftl_flash3_copy_ahead(const ftl_flash3 *f, ftl_expr j) {
  ftl_expr next_k = ftl_add(f->b, j, ftl_const(f->b, f->num_stages - 1));
  copy_keys(f, next_k, exists(f, next_k));
  ftl_expr next_v = ftl_add(f->b, j, ftl_const(f->b, f->num_stages - 2));
  copy_values(f, next_v, exists(f, next_v));
}

static void read_off(const ftl_flash3 *f, int32_t ring, int32_t num_stages) {
  for (int32_t i = 0; i < num_stages; i++) {
    ftl_wait(f->b, ring);
    ftl_release(f->b, ring);
  }
}

void ftl_flash3_drain(const ftl_flash3 *f) {
  read_off(f, f->ring_k, f->num_stages - 1);
  read_off(f, f->ring_v, f->num_stages - 2);
}
