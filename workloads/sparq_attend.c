// Steps 2, 4 and 5 of SparQ attention: products with what was chosen.
#include "base/integer.h"
#include "workloads/online_softmax.h"
#include "workloads/sparq.h"

enum { BLOCK_M = 16, VECTOR_COLUMNS = 4 };

// ---- step 2: a CTA has block_n keys of a KV head and all of its query heads ----

void ftl_sparq_build_scores(ftl_sparq *s) {
  const ftl_attention *a = &s->a;
  ftl_builder *b = s->b;
  int64_t tiles_n = ftl_divide_up(a->seqlen_kv, a->block_n);
  ftl_expr zero = ftl_const(b, 0), head = ftl_div(b, ftl_cta(b), ftl_const(b, tiles_n));
  ftl_expr batch = ftl_div(b, head, ftl_const(b, a->kv_heads)), kv_head = ftl_mod(b, head, ftl_const(b, a->kv_heads));
  ftl_expr column = ftl_mul(b, ftl_mod(b, ftl_cta(b), ftl_const(b, tiles_n)), ftl_const(b, a->block_n));
  int32_t columns = (int32_t)ftl_smaller(a->block_n, a->seqlen_kv), group = (int32_t)s->group;
  int32_t role = ftl_builder_role(b, "main", s->num_warps, 0);
  int32_t ring_q = ftl_builder_ring(b, "q_top", a->dtype, BLOCK_M, s->r, 1, role, 1 << role);
  int32_t ring_k = ftl_builder_ring(b, "k_top", a->dtype, s->r, a->block_n, 1, role, 1 << role);
  int32_t scores = ftl_builder_tile(b, "s", FTL_FP32, BLOCK_M, a->block_n);
  ftl_builder_side_by_side(b, s->num_warps);
  int32_t inv_tau = ftl_builder_rows(b, "inv_tau", BLOCK_M);
  ftl_builder_side_by_side(b, s->num_warps);
  ftl_tile_ref gathered = ftl_sparq_ref(s->keys_by_column, batch, kv_head, zero, s->r, columns);
  gathered.column = column;
  gathered.row_end = ftl_const(b, s->r);
  gathered.pages = ftl_sparq_gather(s->components, ftl_sparq_first_entry(s, batch, kv_head, s->r), a->seqlen_kv);
  ftl_fill_stage(b, ring_q, ftl_sparq_ref(s->q_top, batch, kv_head, zero, group, s->r));
  ftl_fill_stage(b, ring_k, gathered);
  ftl_load_rows(b, inv_tau, ftl_sparq_ref(s->inv_tau, batch, kv_head, zero, group, 1));
  ftl_fill(b, scores, 0);
  ftl_wait(b, ring_q);
  ftl_wait(b, ring_k);
  ftl_mma_shared(b, scores, ring_q, ring_k, false);
  ftl_release(b, ring_q);
  ftl_release(b, ring_k);
  ftl_binary(b, FTL_ELEM_MUL, scores, scores, ftl_value_operand(inv_tau));
  ftl_tile_ref to = ftl_sparq_ref(s->scores, batch, kv_head, zero, group, columns);
  to.column = column;
  ftl_store(b, to, scores, -1);
  ftl_builder_grid(b, a->batch * a->kv_heads * tiles_n, false, FTL_TILES_BY_STRIDE);
  ftl_builder_flops(b, 2 * s->r * a->seqlen_kv * a->heads * a->batch);
}

// ---- step 4: a CTA has the chosen keys of a KV head, a tile at a time, dealt to its warps ----

typedef struct attend {
  const ftl_sparq *s;
  ftl_builder *b;
  ftl_expr batch, kv_head, first_entry, num_tiles;
  int32_t block_n;
  int32_t ring_q, ring_k, ring_v;
  int32_t scores, probs, output;  // values
  ftl_online_softmax softmax;
} attend;

static void declare_attend(attend *f) {
  const ftl_sparq *s = f->s;
  ftl_builder *b = f->b;
  ftl_expr heads = ftl_const(b, s->a.kv_heads);
  f->batch = ftl_div(b, ftl_cta(b), heads);
  f->kv_head = ftl_mod(b, ftl_cta(b), heads);
  f->first_entry = ftl_sparq_first_entry(s, f->batch, f->kv_head, s->k);
  f->block_n = BLOCK_M * s->num_warps;
  f->num_tiles = ftl_const(b, ftl_divide_up(s->k, f->block_n));
  int32_t role = ftl_builder_role(b, "main", s->num_warps, 0), columns = s->a.padded_head_dim;
  ftl_builder_groups(b, s->num_warps);
  f->ring_q = ftl_builder_ring(b, "q", s->a.dtype, BLOCK_M, columns, 1, role, 1 << role);
  f->ring_k = ftl_builder_ring(b, "k", s->a.dtype, f->block_n, columns, s->num_stages, role, 1 << role);
  f->ring_v = ftl_builder_ring(b, "v", s->a.dtype, f->block_n, columns, s->num_stages, role, 1 << role);
  f->scores = ftl_builder_tile(b, "s", FTL_FP32, BLOCK_M, f->block_n / s->num_warps);
  f->probs = ftl_builder_tile(b, "p", s->a.dtype, BLOCK_M, f->block_n / s->num_warps);
  f->output = ftl_builder_tile(b, "o", FTL_FP32, BLOCK_M, columns);
  f->softmax = ftl_online_softmax_declare(b, BLOCK_M, &s->a);
}

// Keys and values of tile j; empty stages past the last.
static void load_tile(const attend *f, ftl_expr j) {
  const ftl_sparq *s = f->s;
  const int32_t rings[] = {f->ring_k, f->ring_v}, tensors[] = {s->keys, s->v};
  for (int i = 0; i < 2; i++) {
    ftl_tile_ref ref = ftl_sparq_ref(tensors[i], f->batch, f->kv_head, ftl_mul(f->b, j, ftl_const(f->b, f->block_n)),
                                     f->block_n, s->a.head_dim);
    ref.present = ftl_sub(f->b, f->num_tiles, j);
    ref.row_end = ftl_const(f->b, s->k);
    ref.pages = ftl_sparq_gather(s->rows, f->first_entry, s->a.head_dim);
    ftl_fill_stage(f->b, rings[i], ref);
  }
}

static void iterate(const attend *f, ftl_expr j) {
  ftl_builder *b = f->b;
  ftl_wait(b, f->ring_k);
  ftl_wait(b, f->ring_v);
  load_tile(f, ftl_add(b, j, ftl_const(b, f->s->num_stages - 1)));
  ftl_fill(b, f->scores, 0);
  ftl_mma_shared(b, f->scores, f->ring_q, f->ring_k, true);
  ftl_release(b, f->ring_k);
  ftl_mask(b, f->scores, ftl_const(b, 0), ftl_mul(b, j, ftl_const(b, f->block_n)), FTL_ALWAYS, ftl_const(b, f->s->k));
  ftl_online_softmax_step(b, &f->softmax, f->scores, true);
  ftl_convert(b, f->probs, f->scores);
  ftl_binary(b, FTL_ELEM_MUL, f->output, f->output, ftl_value_operand(f->softmax.correction));
  ftl_mma_value(b, f->output, f->probs, f->ring_v, false);
  ftl_release(b, f->ring_v);
}

// The stages that were prefetched past the end are empty: they are read off before their memory stages the output.
static void drain(const attend *f) {
  const int32_t rings[] = {f->ring_k, f->ring_v};
  for (int ring = 0; ring < 2; ring++)
    for (int32_t i = 0; i < f->s->num_stages - 1; i++) ftl_wait(f->b, rings[ring]);
  for (int ring = 0; ring < 2; ring++)
    for (int32_t i = 0; i < f->s->num_stages - 1; i++) ftl_release(f->b, rings[ring]);
}

void ftl_sparq_build_attend(ftl_sparq *s) {
  attend f = {.s = s, .b = s->b};
  ftl_builder *b = s->b;
  ftl_expr zero = ftl_const(b, 0);
  declare_attend(&f);
  ftl_fill_stage(b, f.ring_q, ftl_sparq_ref(s->q, f.batch, f.kv_head, zero, (int32_t)s->group, s->a.head_dim));
  for (int32_t i = 0; i < s->num_stages - 1; i++) load_tile(&f, ftl_const(b, i));
  ftl_fill(b, f.output, 0);
  ftl_online_softmax_start(b, &f.softmax);
  ftl_wait(b, f.ring_q);
  iterate(&f, ftl_loop_value(b, ftl_loop(b, zero, f.num_tiles)));
  ftl_end_loop(b);
  ftl_release(b, f.ring_q);
  drain(&f);
  ftl_online_softmax_store_groups(b, &f.softmax,
                                  ftl_sparq_ref(s->o_top, f.batch, f.kv_head, zero, (int32_t)s->group, s->a.head_dim),
                                  f.output, f.ring_k, f.ring_v);
  ftl_builder_grid(b, s->a.batch * s->a.kv_heads, false, FTL_TILES_BY_STRIDE);
  ftl_builder_flops(b, 4 * s->a.head_dim * s->k * s->a.heads * s->a.batch);
}

// ---- step 5: a warp a query head ----

// x <- row `row` of a tensor of (batch, KV head)
static void load_row(const ftl_sparq *s, int32_t x, int32_t tensor, ftl_expr kv_head, ftl_expr row) {
  ftl_expr heads = ftl_const(s->b, s->a.kv_heads);
  ftl_load_tile(
      s->b, x,
      ftl_sparq_ref(tensor, ftl_div(s->b, kv_head, heads), ftl_mod(s->b, kv_head, heads), row, 1, s->a.head_dim));
}

void ftl_sparq_build_mean(ftl_sparq *s) {
  ftl_builder *b = s->b;
  const ftl_value_layout layout = {FTL_WARP_LANES, VECTOR_COLUMNS};
  enum { STEP_COLUMNS = FTL_WARP_LANES * VECTOR_COLUMNS };
  int32_t columns = ftl_round_up32(s->a.head_dim, STEP_COLUMNS);
  ftl_expr group = ftl_const(b, s->group), kv_head = ftl_div(b, ftl_cta(b), group);
  ftl_expr heads = ftl_const(b, s->a.kv_heads), query_head = ftl_mod(b, ftl_cta(b), group);
  ftl_builder_role(b, "main", 1, 0);
  int32_t o = ftl_builder_tile_by_rows(b, "o", FTL_FP32, 1, columns, layout);
  int32_t mean = ftl_builder_tile_by_rows(b, "mean", FTL_FP32, 1, columns, layout);
  int32_t alpha = ftl_builder_rows_by_rows(b, "alpha", 1, layout);
  load_row(s, o, s->o_top, kv_head, query_head);
  load_row(s, mean, s->v_mean, kv_head, ftl_const(b, 0));
  ftl_expr batch = ftl_div(b, kv_head, heads), head = ftl_mod(b, kv_head, heads);
  ftl_load_rows(b, alpha, ftl_sparq_ref(s->alpha, batch, head, query_head, 1, 1));
  ftl_binary(b, FTL_ELEM_SUB, o, o, ftl_value_operand(mean));
  ftl_elem(b, FTL_ELEM_FMA, o, ftl_value_operand(o), ftl_value_operand(alpha), ftl_value_operand(mean));
  ftl_store(b, ftl_sparq_ref(s->o, batch, head, query_head, 1, s->a.head_dim), o, -1);
  ftl_builder_grid(b, s->a.batch * s->a.heads, false, FTL_TILES_BY_STRIDE);
}
