// FlashAttention-2, backward: dQ, dK and dV from dO, recomputing P from Q, K and the LSE that the forward pass kept.
// Source: T. Dao, arXiv:2307.08691, algorithm 2. By default (dq=atomics) one kernel adds dQ up while it computes dK and
// dV, and another converts it: as FlashAttention-2's library does (backward_atomics.c), or as kernels written by hand
// (backward_transposed.c). With dq=kernel dQ has a kernel of its own, as in Triton's fused-attention tutorial
// (_attn_bwd_preprocess, _attn_bwd_dkdv, _attn_bwd_dq); its launches:
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
#include "base/integer.h"
#include "workloads/backward.h"
#include "workloads/backward_atomics.h"
#include "workloads/backward_products.h"
#include "workloads/backward_transposed.h"

static void set_defaults(ftl_spec *spec) {
  bool has_wgmma = spec->value[FTL_PARAM_mma] == FTL_SPEC_MMA_WGMMA;
  ftl_spec_set_default(spec, FTL_PARAM_dq, has_wgmma ? FTL_DQ_KERNEL : FTL_DQ_ATOMICS);
  bool atomics = spec->value[FTL_PARAM_dq] == FTL_DQ_ATOMICS;
  ftl_spec_set_default(spec, FTL_PARAM_block_m, atomics ? 64 : 32);
  ftl_spec_set_default(spec, FTL_PARAM_block_n, 128);
  if (!atomics) return;
  ftl_spec_set_default(spec, FTL_PARAM_num_warps, 8);
  ftl_spec_set_default(spec, FTL_PARAM_mma, FTL_SPEC_MMA_MMA);
}

// As FlashAttention-2's run_mha_bwd_hdim128: fewer keys a CTA where shared memory is small.
static void resolve(ftl_spec *spec, const ftl_arch *arch) {
  enum { NARROW_BELOW_BYTES = 144 * 1024, WIDEST_AS_ALWAYS = 96, NARROW_ROWS = 64 };
  bool is_narrow = arch->shared_max_bytes_per_cta < NARROW_BELOW_BYTES && ftl_spec_widest_head(spec) > WIDEST_AS_ALWAYS;
  if (!ftl_backward_adds_dq(spec) || !is_narrow) return;
  ftl_spec_set_default(spec, FTL_PARAM_block_n, ftl_smaller(spec->value[FTL_PARAM_block_n], NARROW_ROWS));
}

// What CTAs keep, and walk, in a launch.
typedef enum launch_walk { STREAMS_ROWS, KEEPS_KEYS, KEEPS_QUERIES, CONVERTS_SUM } launch_walk;

typedef struct launch {
  const char *name;
  void (*write)(ftl_backward *f);
  // Of the five that the algorithm needs those that sum over, or write, columns of Q and K (S, dK, dQ), and of V (dP,
  // dV).
  int64_t num_of_keys, num_of_values;
  launch_walk walk;
} launch;

// ---- what the launches of one specification share ----

typedef struct batch {
  const ftl_spec *spec;
  ftl_spec tokens;                          // of packed sequences: all tokens
  ftl_packed_batch *kept_rows, *step_rows;  // tiles of block_n and of block_m tokens; NULL: no packed sequences
  ftl_tile_lists of_keys, of_queries;       // what a tile of block_n of them walks
} batch;

static void batch_fini(batch *c) {
  ftl_packed_batch_destroy(c->kept_rows);
  ftl_packed_batch_destroy(c->step_rows);
  ftl_tile_lists_fini(&c->of_keys);
  ftl_tile_lists_fini(&c->of_queries);
}

static ftl_status batch_init(batch *c, const ftl_spec *spec, ftl_error *error) {
  int64_t block_m = spec->value[FTL_PARAM_block_m], block_n = spec->value[FTL_PARAM_block_n];
  ftl_tile_walk keeps_queries = {.kept_tokens = block_n, .step_tokens = block_m}, keeps_keys = keeps_queries;
  keeps_keys.keeps_keys = true;
  *c = (batch){.spec = spec};
  ftl_status status = ftl_packed_batch_create(&c->kept_rows, spec, block_n, error);
  if (status == FTL_OK) status = ftl_packed_batch_create(&c->step_rows, spec, block_m, error);
  if (status == FTL_OK) status = ftl_tile_lists_init(&c->of_keys, spec, keeps_keys, error);
  if (status == FTL_OK && !ftl_backward_adds_dq(spec))
    status = ftl_tile_lists_init(&c->of_queries, spec, keeps_queries, error);
  if (status == FTL_OK && c->kept_rows != NULL) c->tokens = ftl_packed_batch_tokens(c->kept_rows, spec);
  if (status != FTL_OK) batch_fini(c);
  return status;
}

static int64_t flops_of(const batch *c, const launch *l) {
  ftl_attention a = ftl_attention_of(c->spec);
  int64_t of_two = ftl_attention_forward_flops(&a);
  if (c->kept_rows != NULL) of_two = ftl_packed_batch_flops(c->kept_rows, &a);
  if (c->of_keys.tiles != NULL) of_two = ftl_attention_flops_of_pairs(&a, c->of_keys.num_pairs);
  return ftl_attention_flops_of_columns(&a, of_two, l->num_of_keys * a.head_dim + l->num_of_values * a.head_dim_v);
}

// ---- the launches ----

static ftl_status build_launch(const batch *c, const launch *l, ftl_tile_program **out, ftl_error *error) {
  ftl_builder *b;
  ftl_status status = ftl_builder_create(&b, l->name, error);
  if (status != FTL_OK) return status;
  bool packed = c->kept_rows != NULL;
  ftl_backward f = ftl_backward_of(b, packed ? &c->tokens : c->spec, packed ? c->kept_rows->num_sequences : 0);
  f.packed = l->walk == CONVERTS_SUM ? c->step_rows : c->kept_rows;
  const ftl_tile_lists *lists = l->walk == KEEPS_KEYS ? &c->of_keys : &c->of_queries;
  f.lists = lists->tiles != NULL ? lists : NULL;
  if (c->of_keys.tiles != NULL) ftl_attention_needs_keys(b, &f.a, f.t.k, f.t.v, c->of_keys.num_keys);
  l->write(&f);
  ftl_builder_flops(b, flops_of(c, l));
  status = ftl_builder_finish(b, out, error);
  ftl_builder_destroy(b);
  return status;
}

static ftl_status check_refill(const ftl_spec *spec, bool atomics, ftl_error *error) {
  int64_t refill = spec->value[FTL_PARAM_refill];
  bool is_early = refill == FTL_REFILL_EARLY || refill == FTL_REFILL_AUTO;
  if (is_early || (refill == FTL_REFILL_LATE && !atomics)) return FTL_OK;
  return ftl_error_set(error, FTL_INFEASIBLE, "backward steps refill early, or late with dq=kernel");
}

// What only transposed scores have.
static ftl_status check_shared(const ftl_spec *spec, ftl_error *error) {
  bool loops = ftl_backward_loops_heads(spec), by_fragments = ftl_backward_adds_by_fragments(spec);
  if (!by_fragments && !loops) return ftl_backward_check_atomics(spec, error);
  return ftl_error_set(error, FTL_INFEASIBLE, "%s: only with p_operand=registers",
                       loops ? "kv_group=loop" : "dq_adds other than lines");
}

// With a kernel for dQ nothing is added up, and each head's keys have a CTA.
static ftl_status check_kernel(const ftl_spec *spec, ftl_error *error) {
  const int64_t *v = spec->value;
  const char *taken = NULL;
  if (v[FTL_PARAM_p_operand] == FTL_P_OPERAND_REGISTERS) taken = "p_operand=registers";
  if (ftl_backward_adds_by_fragments(spec)) taken = "dq_adds other than lines";
  if (v[FTL_PARAM_kv_group] == FTL_KV_GROUP_LOOP && ftl_backward_is_grouped(spec)) taken = "kv_group=loop";
  if (taken == NULL) return ftl_backward_check_products(spec, error);
  return ftl_error_set(error, FTL_INFEASIBLE, "%s: only with dq=atomics", taken);
}

static ftl_status build(const ftl_spec *spec, ftl_tile_program **launches, int *num_launches, ftl_error *error) {
  static const launch with_kernel[] = {{"flash2_bwd_delta", ftl_backward_write_delta, 0, 0, STREAMS_ROWS},
                                       {"flash2_bwd_dk_dv", ftl_backward_write_dk_dv, 2, 2, KEEPS_KEYS},
                                       {"flash2_bwd_dq", ftl_backward_write_dq, 1, 0, KEEPS_QUERIES},
                                       {"flash2_bwd_add_heads", ftl_backward_add_up_heads, 0, 0, STREAMS_ROWS}};
  static const launch with_atomics[] = {{"flash2_bwd_delta", ftl_backward_write_delta, 0, 0, STREAMS_ROWS},
                                        {"flash2_bwd_dq_dk_dv", ftl_backward_write_dq_dk_dv, 3, 2, KEEPS_KEYS},
                                        {"flash2_bwd_convert_dq", ftl_backward_convert_dq, 0, 0, CONVERTS_SUM},
                                        {"flash2_bwd_add_heads", ftl_backward_add_up_heads, 0, 0, STREAMS_ROWS}};
  static const launch transposed[] = {{"flash2_bwd_delta", ftl_backward_write_delta, 0, 0, STREAMS_ROWS},
                                      {"flash2_bwd_dq_dk_dv", ftl_backward_write_transposed, 3, 2, KEEPS_KEYS},
                                      {"flash2_bwd_convert_dq", ftl_backward_convert_dq, 0, 0, CONVERTS_SUM},
                                      {"flash2_bwd_add_heads", ftl_backward_add_up_heads, 0, 0, STREAMS_ROWS}};
  bool atomics = ftl_backward_adds_dq(spec);
  bool is_transposed = atomics && spec->value[FTL_PARAM_p_operand] == FTL_P_OPERAND_REGISTERS;
  const launch *all = is_transposed ? transposed : atomics ? with_atomics : with_kernel;
  int wanted = ftl_backward_is_grouped(spec) && !ftl_backward_loops_heads(spec) ? 4 : 3;
  batch c;
  *num_launches = 0;
  ftl_status status = check_refill(spec, atomics, error);
  if (status == FTL_OK && is_transposed) status = ftl_backward_check_transposed(spec, error);
  if (status == FTL_OK && atomics && !is_transposed) status = check_shared(spec, error);
  if (status == FTL_OK && !atomics) status = check_kernel(spec, error);
  if (status == FTL_OK) status = batch_init(&c, spec, error);
  if (status != FTL_OK) return status;
  for (int i = 0; status == FTL_OK && i < wanted; i++) {
    status = build_launch(&c, &all[i], &launches[i], error);
    if (status == FTL_OK) *num_launches = i + 1;
  }
  batch_fini(&c);
  return status;
}

const ftl_workload ftl_workload_flash2_bwd = {
    .name = "flash2_bwd",
    .doc =
        "FlashAttention-2 backward: delta, then dK and dV by tiles of keys, and dQ by a kernel of its own or by "
        "atomics",
    .accepts = (FTL_TAKES_ALL | FTL_TAKES_DQ_FORM | FTL_TAKES_MASK | FTL_TAKES(dropout_p) | FTL_TAKES(lengths) |
                FTL_TAKES_SOFTMAX_FORM | FTL_TAKES(head_order) | FTL_TAKES(refill)) &
               ~(FTL_TAKES(row_sums) | FTL_TAKES(guard) | FTL_TAKES(persistent) | FTL_TAKES(splits) |
                 FTL_TAKES(softmax) | FTL_TAKES(q_operand) | FTL_TAKES(schedule)),
    .packs_queries = true,
    .set_defaults = set_defaults,
    .resolve = resolve,
    .build = build,
};
