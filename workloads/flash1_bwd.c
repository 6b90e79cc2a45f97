// FlashAttention-1, backward. Source: T. Dao et al., arXiv:2205.14135, algorithm 4, as its implementation has it
// (HazyResearch/flash-attention v1, csrc/flash_attn/src/fmha_dgrad_kernel_1xN_loop.h): a CTA a head; the outer loop
// walks blocks of keys, whose dK and dV stay in registers, the inner one 16 queries a step. P is computed again, on
// transposed scores, so that P^T and dS^T are A operands where they were computed:
//   S^T = K Q^T, P^T = exp(scale S^T - LSE), dV += P^T dO, dP^T = V dO^T, dS^T = P^T (dP^T - delta), dK += dS^T Q,
//   dQ = dQ' + dS K.
// dS goes through shared memory for dQ, whose sum over the blocks of keys is read from memory and written in every
// step, in fp32 until the last block that its queries see.
//
// Launches: delta = rowsum(dO O), which the implementation computes with the first block; the gradients; with fewer
// key/value heads than heads, the sums of dK and dV.
#include "base/integer.h"
#include "workloads/backward.h"
#include "workloads/flash1.h"

enum { ACCUMULATOR_COLUMNS = 8 };

static const float log2_e = 1.44269504088896340736f;

typedef struct flash1_bwd {
  ftl_flash1 f;
  const ftl_backward *backward;
  ftl_backward_tensors t;
  int32_t q, k, v, d_o, d_s, d_q_staging;     // rings
  int32_t scores, products, probs, d_scores;  // transposed: S, then P; dP, then dS; each rounded
  int32_t d_k, d_v, d_q, lse, delta;
  int32_t rows_d_q, previous_d_q;  // row-wise
} flash1_bwd;

// ---- declarations ----

// All warps stand side by side for dQ, whose columns they share.
static int32_t padded(int32_t columns, int32_t num_warps) {
  int32_t unit = ACCUMULATOR_COLUMNS * num_warps;
  return ftl_round_up32(columns, unit);
}

static void declare_rings(flash1_bwd *w, int32_t role) {
  ftl_builder *b = w->f.b;
  const ftl_attention *a = &w->f.a;
  int32_t self = 1 << role, d = a->padded_head_dim, d_v = a->padded_head_dim_v, stages = w->f.num_stages;
  w->k = ftl_builder_ring(b, "k", a->dtype, a->block_n, d, 1, role, self);
  w->v = ftl_builder_ring(b, "v", a->dtype, a->block_n, d_v, 1, role, self);
  w->q = ftl_builder_ring(b, "q", a->dtype, a->block_m, d, stages, role, self);
  w->d_o = ftl_builder_ring(b, "do", a->dtype, a->block_m, d_v, stages, role, self);
  w->d_s = ftl_builder_ring(b, "ds", a->dtype, a->block_n, a->block_m, 1, role, self);
  w->d_q_staging = ftl_builder_ring(b, "dq", FTL_FP32, a->block_m, d, 1, role, self);
}

static void declare_values(flash1_bwd *w) {
  ftl_builder *b = w->f.b;
  const ftl_attention *a = &w->f.a;
  int32_t d = a->padded_head_dim;
  ftl_value_layout layout = ftl_flash1_row_layout(&w->f, d);
  w->scores = ftl_builder_tile(b, "s", FTL_FP32, a->block_n, a->block_m);
  w->products = ftl_builder_tile(b, "dp", FTL_FP32, a->block_n, a->block_m);
  w->probs = ftl_builder_tile(b, "p", a->dtype, a->block_n, a->block_m);
  w->d_scores = ftl_builder_tile(b, "ds", a->dtype, a->block_n, a->block_m);
  w->d_k = ftl_builder_tile(b, "dk", FTL_FP32, a->block_n, d);
  w->d_v = ftl_builder_tile(b, "dv", FTL_FP32, a->block_n, a->padded_head_dim_v);
  w->d_q = ftl_builder_tile(b, "dq", FTL_FP32, a->block_m, d);
  ftl_builder_side_by_side(b, w->f.num_warps);
  w->lse = ftl_builder_columns(b, "lse", a->block_m);
  w->delta = ftl_builder_columns(b, "delta", a->block_m);
  w->rows_d_q = ftl_builder_tile_by_rows(b, "rows_dq", FTL_FP32, a->block_m, d, layout);
  w->previous_d_q = ftl_builder_tile_by_rows(b, "previous_dq", FTL_FP32, a->block_m, d, layout);
}

// ---- one step ----

// P^T. Queries that see no key have an LSE of -inf, and scores of -inf: P must be 0, not NaN.
static void recompute(const flash1_bwd *w, const ftl_flash1_block *block, ftl_expr row) {
  ftl_builder *b = w->f.b;
  const ftl_attention *a = &w->f.a;
  ftl_fill(b, w->scores, 0);
  ftl_mma_shared(b, w->scores, w->k, w->q, true);
  if (ftl_flash1_is_masked(&w->f)) ftl_attention_mask_transposed(b, a, w->f.lengths, w->scores, block->key, row);
  if (a->causal) ftl_unary(b, FTL_ELEM_ZERO_IF_NEG_INF, w->lse, w->lse);
  ftl_binary(b, FTL_ELEM_MUL, w->lse, w->lse, ftl_immediate(-log2_e));
  ftl_elem(b, FTL_ELEM_FMA, w->scores, ftl_value_operand(w->scores), ftl_immediate(a->scale * log2_e),
           ftl_value_operand(w->lse));
  ftl_unary(b, FTL_ELEM_EXP2, w->scores, w->scores);
  ftl_attention_dropout_by_sign(b, a, &w->f.tile, w->scores, row, block->key, true);
  ftl_backward_round_probs(w->backward, w->probs, w->scores);
}

// dV, dS and dK; dS is left in shared memory.
static void differentiate(const flash1_bwd *w) {
  ftl_builder *b = w->f.b;
  ftl_mma_value(b, w->d_v, w->probs, w->d_o, false);
  ftl_fill(b, w->products, 0);
  ftl_mma_shared(b, w->products, w->v, w->d_o, true);
  ftl_release(b, w->d_o);
  ftl_backward_differentiate(w->backward, w->products, w->scores, w->delta);
  ftl_convert(b, w->d_scores, w->products);
  ftl_acquire(b, w->d_s);
  ftl_put(b, w->d_s, w->d_scores);
  ftl_commit(b, w->d_s);
  ftl_mma_value(b, w->d_k, w->d_scores, w->q, false);
  ftl_release(b, w->q);
}

// Whether some query tile may have a dQ' of blocks before this one.
static bool has_previous(const flash1_bwd *w, const ftl_flash1_block *block) {
  return !block->is_first && w->f.num_key_blocks > 1;
}

// dQ' of a query tile; of a list those that see this block first have none: 0.
static void load_previous(const flash1_bwd *w, const ftl_flash1_block *block, ftl_expr step) {
  if (!has_previous(w, block)) return;
  ftl_builder *b = w->f.b;
  ftl_tile_ref ref = ftl_flash1_rows_ref(&w->f, w->t.d_q_sum, ftl_flash1_row(&w->f, block, step), w->f.a.head_dim);
  if (block->listed >= 0) ref.present = ftl_add(b, ftl_sub(b, step, block->seen), ftl_const(b, 1));
  ftl_load_tile(b, w->previous_d_q, ref);
}

static void add_to_d_q(const flash1_bwd *w, const ftl_flash1_block *block, ftl_expr step) {
  ftl_builder *b = w->f.b;
  const ftl_attention *a = &w->f.a;
  ftl_expr row = ftl_flash1_row(&w->f, block, step);
  ftl_wait(b, w->d_s);
  ftl_fill(b, w->d_q, 0);
  ftl_mma_shared(b, w->d_q, w->d_s, w->k, false);
  ftl_transposed_a(b);
  ftl_release(b, w->d_s);
  ftl_gather(b, FTL_ELEM_ADD, w->rows_d_q, w->d_q, w->d_q_staging);
  if (has_previous(w, block)) ftl_binary(b, FTL_ELEM_ADD, w->rows_d_q, w->rows_d_q, ftl_value_operand(w->previous_d_q));
  ftl_tile_ref sum = ftl_flash1_rows_ref(&w->f, w->t.d_q_sum, row, a->head_dim),
               result = ftl_flash1_rows_ref(&w->f, w->t.d_q, row, a->head_dim);
  if (ftl_flash1_try_restrict(&w->f, block, step, false, &sum)) ftl_store(b, sum, w->rows_d_q, -1);
  if (!ftl_flash1_try_restrict(&w->f, block, step, true, &result)) return;
  ftl_backward_scale(w->backward, w->rows_d_q, true);
  ftl_store(b, result, w->rows_d_q, -1);
}

// ---- the kernel ----

static void load_step(const flash1_bwd *w, const ftl_flash1_block *block, ftl_expr step) {
  ftl_builder *b = w->f.b;
  ftl_expr row = ftl_flash1_row(&w->f, block, step);
  const int32_t rings[2] = {w->q, w->d_o}, tensors[2] = {w->t.q, w->t.d_o};
  const int32_t columns[2] = {w->f.a.head_dim, w->f.a.head_dim_v};
  for (int k = 0; k < 2; k++) {
    ftl_tile_ref ref = ftl_flash1_rows_ref(&w->f, tensors[k], row, columns[k]);
    ref.present = ftl_sub(b, block->end, step);
    ftl_fill_stage(b, rings[k], ref);
  }
}

static void write_steps(const flash1_bwd *w, const ftl_flash1_block *block) {
  ftl_builder *b = w->f.b;
  ftl_expr step = ftl_loop_value(b, ftl_loop(b, block->first, block->end)), row = ftl_flash1_row(&w->f, block, step);
  load_step(w, block, ftl_add(b, step, ftl_const(b, w->f.num_stages - 1)));
  ftl_load_columns(b, w->lse, ftl_flash1_rows_ref(&w->f, w->t.lse, row, 1));
  ftl_load_columns(b, w->delta, ftl_flash1_rows_ref(&w->f, w->t.delta, row, 1));
  load_previous(w, block, step);
  ftl_wait(b, w->q);
  ftl_wait(b, w->d_o);
  recompute(w, block, row);
  differentiate(w);
  add_to_d_q(w, block, step);
  ftl_end_loop(b);
}

static void store_of_keys(const flash1_bwd *w, const ftl_flash1_block *block, int32_t tensor, int32_t columns,
                          int32_t value) {
  ftl_tile_ref ref = ftl_flash1_ref(&w->f, tensor, w->f.tile.head, block->key, w->f.a.block_n, columns);
  ftl_store(w->f.b, ref, value, -1);
}

static void write_block(void *context, const ftl_flash1_block *block) {
  const flash1_bwd *w = context;
  ftl_builder *b = w->f.b;
  int32_t ahead = w->f.num_stages - 1;
  ftl_fill_stage(b, w->k, ftl_flash1_keys_ref(&w->f, block, w->t.k, w->f.a.head_dim));
  ftl_fill_stage(b, w->v, ftl_flash1_keys_ref(&w->f, block, w->t.v, w->f.a.head_dim_v));
  for (int32_t i = 0; i < ahead; i++) load_step(w, block, ftl_add(b, block->first, ftl_const(b, i)));
  ftl_wait(b, w->k);
  ftl_wait(b, w->v);
  ftl_fill(b, w->d_k, 0);
  ftl_fill(b, w->d_v, 0);
  write_steps(w, block);
  for (int32_t stage = 0; stage < ahead; stage++) {  // the empty ones past the last query
    ftl_wait(b, w->q);
    ftl_wait(b, w->d_o);
    ftl_release(b, w->q);
    ftl_release(b, w->d_o);
  }
  ftl_release(b, w->k);
  ftl_release(b, w->v);
  ftl_backward_scale(w->backward, w->d_k, true);
  ftl_backward_scale(w->backward, w->d_v, false);
  store_of_keys(w, block, w->t.d_k_of_heads, w->f.a.head_dim, w->d_k);
  store_of_keys(w, block, w->t.d_v_of_heads, w->f.a.head_dim_v, w->d_v);
}

static void write_gradients(ftl_backward *backward) {
  ftl_builder *b = backward->b;
  flash1_bwd w = {
      .f = ftl_flash1_of(b, backward->spec, backward->lists, backward->packed), .backward = backward, .t = backward->t};
  ftl_flash1_set_tile(&w.f);
  ftl_attention *a = &w.f.a;
  if (w.t.d_q_sum >= 0) ftl_builder_needs(b, w.t.d_q_sum, ftl_flash1_num_partial_rows(&w.f) * a->head_dim);
  a->padded_head_dim = padded(a->padded_head_dim, w.f.num_warps);
  a->padded_head_dim_v = padded(a->padded_head_dim_v, w.f.num_warps);
  int32_t role = ftl_builder_role(b, "main", w.f.num_warps, 0);
  declare_rings(&w, role);
  declare_values(&w);
  ftl_flash1_each_block(&w.f, write_block, &w);
  ftl_flash1_grid(&w.f);
}

// ---- the launches ----

// dQ' in fp32, in every launch, so that each tensor has one address; -1 where one block holds all keys.
static int32_t declare_d_q_sum(const ftl_backward *f) {
  if (ftl_flash1_num_key_blocks(&f->a, f->packed) == 1) return -1;
  return ftl_builder_tensor(f->b, "dq_sum", FTL_FP32, FTL_TENSOR_TEMP,
                            ftl_contiguous(f->a.batch, f->a.heads, f->a.seqlen_q, f->a.head_dim));
}

typedef struct launch {
  const char *name;
  void (*write)(ftl_backward *f);
  int64_t num_of_keys, num_of_values;  // products of columns of Q and K (S, dK, dQ), and of V (dP, dV)
  bool adds_up_d_q;
} launch;

// What the launches of one specification share.
typedef struct problem {
  const ftl_spec *spec;
  ftl_spec tokens;  // of packed sequences: all tokens
  ftl_packed_batch *packed;
  ftl_tile_lists lists;
} problem;

static int64_t flops_of(const problem *p, const launch *l) {
  ftl_attention a = ftl_attention_of(p->spec);
  int64_t of_two = ftl_attention_forward_flops(&a);
  if (p->packed != NULL) of_two = ftl_packed_batch_flops(p->packed, &a);
  if (p->lists.tiles != NULL) of_two = ftl_attention_flops_of_pairs(&a, p->lists.num_pairs);
  return ftl_attention_flops_of_columns(&a, of_two, l->num_of_keys * a.head_dim + l->num_of_values * a.head_dim_v);
}

static ftl_status build_launch(const problem *p, const launch *l, ftl_tile_program **out, ftl_error *error) {
  ftl_builder *b;
  ftl_status status = ftl_builder_create(&b, l->name, error);
  if (status != FTL_OK) return status;
  bool is_packed = p->packed != NULL;
  ftl_backward f = ftl_backward_of(b, is_packed ? &p->tokens : p->spec, is_packed ? p->packed->num_sequences : 0);
  f.lists = &p->lists;
  f.packed = p->packed;
  int32_t d_q_sum = declare_d_q_sum(&f);
  if (l->adds_up_d_q) f.t.d_q_sum = d_q_sum;
  l->write(&f);
  ftl_builder_flops(b, flops_of(p, l));
  status = ftl_builder_finish(b, out, error);
  ftl_builder_destroy(b);
  return status;
}

static ftl_status problem_init(problem *p, const ftl_spec *spec, ftl_error *error) {
  *p = (problem){.spec = spec};
  ftl_status status = ftl_flash1_check(spec, error);
  if (status == FTL_OK) status = ftl_flash1_pack(&p->packed, spec, error);
  if (status == FTL_OK) status = ftl_flash1_lists_init(&p->lists, spec, error);
  if (status == FTL_OK && p->packed != NULL) p->tokens = ftl_packed_batch_tokens(p->packed, spec);
  return status;
}

static ftl_status build(const ftl_spec *spec, ftl_tile_program **launches, int *num_launches, ftl_error *error) {
  static const launch all[] = {{"flash1_bwd_delta", ftl_backward_write_delta, 0, 0, false},
                               {"flash1_bwd", write_gradients, 3, 2, true},
                               {"flash1_bwd_add_heads", ftl_backward_add_up_heads, 0, 0, false}};
  *num_launches = 0;
  problem p;
  ftl_status status = problem_init(&p, spec, error);
  int wanted = spec->value[FTL_PARAM_heads] == spec->value[FTL_PARAM_kv_heads] ? 2 : 3;
  for (int i = 0; status == FTL_OK && i < wanted; i++) {
    status = build_launch(&p, &all[i], &launches[i], error);
    if (status == FTL_OK) *num_launches = i + 1;
  }
  ftl_tile_lists_fini(&p.lists);
  ftl_packed_batch_destroy(p.packed);
  return status;
}

static void set_defaults(ftl_spec *spec) {
  ftl_flash1_set_defaults(spec);
  ftl_spec_set_default(spec, FTL_PARAM_num_warps, 8);
}

const ftl_workload ftl_workload_flash1_bwd = {
    .name = "flash1_bwd",
    .doc =
        "FlashAttention-1 backward: a CTA a head, blocks of keys outside, queries inside; dQ through memory each step",
    .accepts = FTL_FLASH1_PARAMS,
    .packs_queries = true,
    .set_defaults = set_defaults,
    .build = build,
};
