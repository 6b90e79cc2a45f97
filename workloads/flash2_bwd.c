// FlashAttention-2, backward: dQ, dK and dV from dO, recomputing P from Q, K and the LSE that the forward pass kept.
// Source: T. Dao, arXiv:2307.08691, algorithm 2; divided into launches as Triton's fused-attention tutorial is
// (_attn_bwd_preprocess, _attn_bwd_dkdv, _attn_bwd_dq): dQ by a kernel of its own. With dq=atomics one kernel adds dQ
// up while it computes dK and dV, and another converts it (backward_atomics.c), as FlashAttention-2's library does.
//
//   1. delta = rowsum(dO * O).
//   2. dK, dV: a CTA keeps block_n keys and walks the queries, block_m a step, on transposed scores, so that P^T and
//      dS^T are A operands where they were computed:
//        S^T = K Q^T, P^T = exp(scale S^T - LSE), dV += P^T dO, dP^T = V dO^T, dS^T = P^T (dP^T - delta), dK += dS^T Q
//   3. dQ: a CTA keeps block_n queries and walks the keys, block_m a step:
//        S = Q K^T, P = exp(scale S - LSE), dP = dO V^T, dS = P (dP - delta), dQ += dS K
//   4. Only with fewer key/value heads than heads: launch 2 leaves a dK and a dV a query head, as FlashAttention-2's
//      library does; they are added up.
//
// HBM at least: Q, K, V, O, dO, LSE in, dQ, dK, dV out, delta out and in. Q, dO, LSE and delta come again for every row
// of key tiles that runs while they are not in L2, K and V for every row of query tiles.
#include "workloads/backward.h"
#include "workloads/backward_atomics.h"

enum { SCORES, PRODUCTS };  // S = kept x stepped of Q and K; dP = kept x stepped of dO and V

static const float log2_e = 1.44269504088896340736f;

// A launch of products: two tiles are kept, two are walked in steps.
typedef struct products {
  ftl_backward *f;
  int32_t kept_tensor[2], step_tensor[2];
  ftl_expr kept_head, step_head;
  int32_t kept[2], step[2];                   // rings
  int32_t scores, products, probs, d_scores;  // S, then P; dP, then dS; each rounded to 16 bits
  int32_t lse, delta;                         // COLUMNS in launch 2, ROWS in launch 3
  ftl_expr first, end;                        // steps
} products;

// ---- what cannot exist on any GPU ----

static ftl_status check_feasible(const ftl_spec *spec, ftl_error *error) {
  const int64_t *v = spec->value;
  if (ftl_backward_adds_dq(spec)) return ftl_backward_check_atomics(spec, error);
  int64_t block_n = v[FTL_PARAM_block_n], num_warps = v[FTL_PARAM_num_warps];
  if (v[FTL_PARAM_copy] == FTL_SPEC_COPY_LDG && v[FTL_PARAM_num_stages] > 2)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "num_stages=%lld: copy=ldg keeps one tile in flight, in registers, so at most 2",
                         (long long)v[FTL_PARAM_num_stages]);
  if (v[FTL_PARAM_mma] == FTL_SPEC_MMA_WGMMA && num_warps % 4 != 0)
    return ftl_error_set(error, FTL_INFEASIBLE, "num_warps=%lld: with wgmma it must be a multiple of 4",
                         (long long)num_warps);
  if (block_n % (16 * num_warps) != 0)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "block_n=%lld num_warps=%lld: the warps share the block_n rows that a CTA keeps, each a "
                         "multiple of 16",
                         (long long)block_n, (long long)num_warps);
  return FTL_OK;
}

static void set_defaults(ftl_spec *spec) {
  bool atomics = spec->value[FTL_PARAM_dq] == FTL_DQ_ATOMICS;
  ftl_spec_set_default(spec, FTL_PARAM_block_m, atomics ? 64 : 32);
  ftl_spec_set_default(spec, FTL_PARAM_block_n, 128);
  if (!atomics) return;
  ftl_spec_set_default(spec, FTL_PARAM_num_warps, 8);
  ftl_spec_set_default(spec, FTL_PARAM_mma, FTL_SPEC_MMA_MMA);
}

// ---- declarations and loads ----

static void declare(products *p) {
  ftl_builder *b = p->f->b;
  const ftl_attention *a = &p->f->a;
  int32_t role = ftl_builder_role(b, "main", p->f->num_warps, 0), readers = 1 << role;
  for (int i = 0; i < 2; i++)
    p->kept[i] =
        ftl_builder_ring(b, i ? "kept 1" : "kept 0", a->dtype, a->block_n, a->padded_head_dim, 1, role, readers);
  for (int i = 0; i < 2; i++)
    p->step[i] = ftl_builder_ring(b, i ? "step 1" : "step 0", a->dtype, a->block_m, a->padded_head_dim,
                                  p->f->num_stages, role, readers);
  p->scores = ftl_builder_tile(b, "s", FTL_FP32, a->block_n, a->block_m);
  p->products = ftl_builder_tile(b, "dp", FTL_FP32, a->block_n, a->block_m);
  p->probs = ftl_builder_tile(b, "p", a->dtype, a->block_n, a->block_m);
  p->d_scores = ftl_builder_tile(b, "ds", a->dtype, a->block_n, a->block_m);
}

static ftl_tile_ref rows_ref(const products *p, int32_t tensor, ftl_expr head, ftl_expr row, int32_t rows,
                             int32_t columns) {
  ftl_tile_ref ref = ftl_attention_query_ref(&p->f->tile, tensor, row, rows, columns);
  ref.head = head;
  return ref;
}

static ftl_expr row_of_step(const products *p, ftl_expr j) {
  return ftl_mul(p->f->b, j, ftl_const(p->f->b, p->f->a.block_m));
}

static void load_kept(const products *p) {
  for (int i = 0; i < 2; i++)
    ftl_fill_stage(p->f->b, p->kept[i],
                   rows_ref(p, p->kept_tensor[i], p->kept_head, p->f->tile.row, p->f->a.block_n, p->f->a.head_dim));
}

// An empty stage beyond the last step.
static void load_step(const products *p, int i, ftl_expr j) {
  ftl_tile_ref ref = rows_ref(p, p->step_tensor[i], p->step_head, row_of_step(p, j), p->f->a.block_m, p->f->a.head_dim);
  ref.present = ftl_sub(p->f->b, p->end, j);
  ftl_fill_stage(p->f->b, p->step[i], ref);
}

// What is read next is waited for; then the step num_stages - 1 ahead is asked for.
static void next_step(const products *p, int i, ftl_expr j) {
  ftl_builder *b = p->f->b;
  int32_t ahead = p->f->num_stages - 1;
  if (ahead == 0) load_step(p, i, j);
  ftl_wait(b, p->step[i]);
  if (ahead > 0) load_step(p, i, ftl_add(b, j, ftl_const(b, ahead)));
}

static void start(const products *p) {
  ftl_builder *b = p->f->b;
  load_kept(p);
  for (int32_t j = 0; j < p->f->num_stages - 1; j++)
    for (int i = 0; i < 2; i++) load_step(p, i, ftl_add(b, p->first, ftl_const(b, j)));
  for (int i = 0; i < 2; i++) ftl_wait(b, p->kept[i]);
}

// ---- one step ----

static void multiply(ftl_builder *b, int32_t value, ftl_operand by) {
  ftl_elem(b, FTL_ELEM_MUL, value, ftl_value_operand(value), by, ftl_immediate(0));
}

// The LSE in the unit of exp2, negative. Queries that see no key have -inf, and scores of -inf: P must be 0, not NaN.
static void prepare_lse(const products *p) {
  ftl_builder *b = p->f->b;
  if (ftl_attention_may_see_none(&p->f->a))
    ftl_elem(b, FTL_ELEM_ZERO_IF_NEG_INF, p->lse, ftl_value_operand(p->lse), ftl_immediate(0), ftl_immediate(0));
  multiply(b, p->lse, ftl_immediate(-log2_e));
}

// kept x stepped^T
static void multiply_step(const products *p, int i, int32_t result) {
  ftl_fill(p->f->b, result, 0.0f);
  ftl_mma_shared(p->f->b, result, p->kept[i], p->step[i], true);
}

// P = exp2(scale S - LSE)
static void exponentiate(const products *p) { ftl_backward_exponentiate(p->f, p->scores, p->lse); }

// dS = P (dP - delta)
static void differentiate(const products *p) {
  ftl_builder *b = p->f->b;
  ftl_elem(b, FTL_ELEM_SUB, p->products, ftl_value_operand(p->products), ftl_value_operand(p->delta), ftl_immediate(0));
  multiply(b, p->products, ftl_value_operand(p->scores));
  ftl_convert(b, p->d_scores, p->products);
}

typedef void (*step_fn)(const products *p, ftl_expr j, bool masked, const int32_t *accumulators);

static void loop(const products *p, ftl_expr lo, ftl_expr hi, bool masked, step_fn step, const int32_t *accumulators) {
  if (lo == hi) return;  // empty whatever the CTA
  ftl_expr j = ftl_loop_value(p->f->b, ftl_loop(p->f->b, lo, hi));
  step(p, j, masked, accumulators);
  ftl_end_loop(p->f->b);
}

static void store_accumulator(const products *p, int i, int32_t tensor, int32_t value) {
  ftl_store(p->f->b, rows_ref(p, tensor, p->f->tile.head, p->f->tile.row, p->f->a.block_n, p->f->a.head_dim), value,
            p->kept[i]);
}

// ---- launch 2: dK and dV ----

static void step_dk_dv(const products *p, ftl_expr j, bool masked, const int32_t *accumulators) {
  const ftl_backward *f = p->f;
  ftl_builder *b = f->b;
  ftl_expr query = row_of_step(p, j);
  next_step(p, SCORES, j);
  ftl_load_columns(b, p->lse, rows_ref(p, f->t.lse, p->step_head, query, f->a.block_m, 1));
  ftl_load_columns(b, p->delta, rows_ref(p, f->t.delta, p->step_head, query, f->a.block_m, 1));
  multiply_step(p, SCORES, p->scores);
  if (masked) ftl_attention_mask_transposed(b, &f->a, p->scores, f->tile.row, query);
  prepare_lse(p);
  exponentiate(p);
  ftl_convert(b, p->probs, p->scores);
  next_step(p, PRODUCTS, j);
  ftl_mma_value(b, accumulators[1], p->probs, p->step[PRODUCTS], false);
  multiply_step(p, PRODUCTS, p->products);
  ftl_release(b, p->step[PRODUCTS]);
  differentiate(p);
  ftl_mma_value(b, accumulators[0], p->d_scores, p->step[SCORES], false);
  ftl_release(b, p->step[SCORES]);
}

static void write_dk_dv(ftl_backward *f) {
  ftl_builder *b = f->b;
  const ftl_attention *a = &f->a;
  ftl_backward_grid(f, a->heads, a->seqlen_kv, a->block_n);
  products p = {.f = f,
                .kept_tensor = {f->t.k, f->t.v},
                .step_tensor = {f->t.q, f->t.d_o},
                .kept_head = f->tile.kv_head,
                .step_head = f->tile.head};
  declare(&p);
  int32_t accumulators[2];
  for (int i = 0; i < 2; i++)
    accumulators[i] = ftl_builder_tile(b, i ? "dv" : "dk", FTL_FP32, a->block_n, a->padded_head_dim);
  p.lse = ftl_builder_columns(b, "lse", a->block_m);
  p.delta = ftl_builder_columns(b, "delta", a->block_m);
  ftl_query_steps steps = ftl_backward_query_steps(f);
  p.first = steps.first;
  p.end = steps.end;
  start(&p);
  for (int i = 0; i < 2; i++) ftl_fill(b, accumulators[i], 0.0f);
  loop(&p, steps.first, steps.whole, true, step_dk_dv, accumulators);
  loop(&p, steps.whole, steps.unmasked, false, step_dk_dv, accumulators);
  loop(&p, steps.unmasked, steps.end, true, step_dk_dv, accumulators);
  for (int i = 0; i < 2; i++) ftl_release(b, p.kept[i]);
  multiply(b, accumulators[0], ftl_immediate(a->scale));
  store_accumulator(&p, 0, f->t.d_k_of_heads, accumulators[0]);
  store_accumulator(&p, 1, f->t.d_v_of_heads, accumulators[1]);
}

// ---- launch 3: dQ ----

static void step_dq(const products *p, ftl_expr j, bool masked, const int32_t *accumulators) {
  const ftl_backward *f = p->f;
  ftl_builder *b = f->b;
  next_step(p, SCORES, j);
  multiply_step(p, SCORES, p->scores);
  if (masked) ftl_attention_mask(b, &f->a, p->scores, f->tile.row, row_of_step(p, j), 0);
  exponentiate(p);
  next_step(p, PRODUCTS, j);
  multiply_step(p, PRODUCTS, p->products);
  ftl_release(b, p->step[PRODUCTS]);
  differentiate(p);
  ftl_mma_value(b, accumulators[0], p->d_scores, p->step[SCORES], false);
  ftl_release(b, p->step[SCORES]);
}

static void write_dq(ftl_backward *f) {
  ftl_builder *b = f->b;
  const ftl_attention *a = &f->a;
  ftl_backward_grid(f, a->heads, a->seqlen_q, a->block_n);
  products p = {.f = f,
                .kept_tensor = {f->t.q, f->t.d_o},
                .step_tensor = {f->t.k, f->t.v},
                .kept_head = f->tile.head,
                .step_head = f->tile.kv_head};
  declare(&p);
  int32_t accumulator = ftl_builder_tile(b, "dq", FTL_FP32, a->block_n, a->padded_head_dim);
  p.lse = ftl_builder_rows(b, "lse", a->block_n);
  p.delta = ftl_builder_rows(b, "delta", a->block_n);
  ftl_attention kept_queries = *a;  // whose tiles are block_n queries and steps block_m keys
  kept_queries.block_m = a->block_n;
  kept_queries.block_n = a->block_m;
  ftl_key_range keys = ftl_attention_keys(b, &kept_queries, f->tile.row);
  p.first = keys.first;
  p.end = keys.end;
  start(&p);
  ftl_load_rows(b, p.lse, rows_ref(&p, f->t.lse, f->tile.head, f->tile.row, a->block_n, 1));
  ftl_load_rows(b, p.delta, rows_ref(&p, f->t.delta, f->tile.head, f->tile.row, a->block_n, 1));
  prepare_lse(&p);
  ftl_fill(b, accumulator, 0.0f);
  loop(&p, keys.first, keys.whole, true, step_dq, &accumulator);
  loop(&p, keys.whole, keys.unmasked, false, step_dq, &accumulator);
  loop(&p, keys.unmasked, keys.end, true, step_dq, &accumulator);
  for (int i = 0; i < 2; i++) ftl_release(b, p.kept[i]);
  multiply(b, accumulator, ftl_immediate(a->scale));
  store_accumulator(&p, 0, f->t.d_q, accumulator);
}

// ---- the launches ----

typedef struct launch {
  const char *name;
  void (*write)(ftl_backward *f);
  int64_t num_products;  // of the five that the algorithm needs: S, dP, dV, dK; dQ
} launch;

static ftl_status build(const ftl_spec *spec, ftl_tile_program **launches, int *num_launches, ftl_error *error) {
  static const launch with_kernel[] = {{"flash2_bwd_delta", ftl_backward_write_delta, 0},
                                       {"flash2_bwd_dk_dv", write_dk_dv, 4},
                                       {"flash2_bwd_dq", write_dq, 1},
                                       {"flash2_bwd_add_heads", ftl_backward_add_up_heads, 0}};
  static const launch with_atomics[] = {{"flash2_bwd_delta", ftl_backward_write_delta, 0},
                                        {"flash2_bwd_dq_dk_dv", ftl_backward_write_dq_dk_dv, 5},
                                        {"flash2_bwd_convert_dq", ftl_backward_convert_dq, 0},
                                        {"flash2_bwd_add_heads", ftl_backward_add_up_heads, 0}};
  const launch *all = ftl_backward_adds_dq(spec) ? with_atomics : with_kernel;
  *num_launches = 0;
  ftl_status status = check_feasible(spec, error);
  int wanted = spec->value[FTL_PARAM_heads] == spec->value[FTL_PARAM_kv_heads] ? 3 : 4;
  for (int i = 0; status == FTL_OK && i < wanted; i++) {
    ftl_builder *b;
    status = ftl_builder_create(&b, all[i].name, error);
    if (status != FTL_OK) break;
    ftl_backward f = ftl_backward_of(b, spec);
    all[i].write(&f);
    ftl_builder_flops(b, all[i].num_products * ftl_attention_forward_flops(&f.a) / 2);  // which are two products
    status = ftl_builder_finish(b, &launches[i], error);
    if (status == FTL_OK) *num_launches = i + 1;
    ftl_builder_destroy(b);
  }
  return status;
}

const ftl_workload ftl_workload_flash2_bwd = {
    .name = "flash2_bwd",
    .doc =
        "FlashAttention-2 backward: delta, then dK and dV by tiles of keys, and dQ by a kernel of its own or by "
        "atomics",
    .accepts =
        (FTL_TAKES_ALL | FTL_TAKES(dq) | FTL_TAKES_SOFTMAX_FORM) &
        ~(FTL_TAKES(persistent) | FTL_TAKES(splits) | FTL_TAKES(softmax) | FTL_TAKES(q_operand) | FTL_TAKES(schedule)),
    .set_defaults = set_defaults,
    .build = build,
};
