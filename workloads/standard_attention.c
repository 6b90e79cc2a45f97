// Unfused attention: S = Q K^T, one tile of S a CTA; softmax of the rows of S in place, a CTA a row; O = P V, block_m
// rows a CTA. What FlashAttention saves is the traffic of S and P. Source: T. Dao et al., "FlashAttention",
// arXiv:2205.14135, algorithm 0. Mirrors kernels/attention/standard_mma.h. `elementwise` says where S is scaled and
// masked, and P dropped:
//
//   epilogue  S is scaled and masked where it is made; tiles that causal and window hide are neither computed nor read.
//             padding_mask and dropout_p are launches of their own, a CTA a row.
//   fused     The softmax does all of it on the way.
//   separate  A launch each: causal, window and mask are a matrix of 0 and -inf that is added.
//   eager_... As PyTorch runs a program of FlashAttention's benchmarks (standard_eager.c): such a matrix, Q, K and V
//             copied for the products, P not in the place of S; eager_matmul: softmax(scale * (q @ k.T)) @ v.
#include "workloads/standard_attention.h"

#include <stdlib.h>

#include "workloads/block_mask.h"
#include "workloads/staged_store.h"
#include "workloads/standard_forward.h"

// What all launches are built from.
typedef struct problem {
  const ftl_spec *spec;
  ftl_standard_flops product_flops;
  ftl_block_mask mask;   // with one
  int32_t *mask_blocks;  // of the mask: 1 where a block is seen; NULL: none, or it is part of a matrix
} problem;

// ---- what there is ----

static bool has_own_launches(const ftl_spec *spec) {
  return ftl_standard_is_separate(spec) || ftl_standard_is_eager(spec);
}
static bool has_mask(const ftl_spec *spec) { return spec->value[FTL_PARAM_mask] != FTL_MASK_NONE; }
static bool has_padding(const ftl_spec *spec) { return spec->value[FTL_PARAM_padding_mask] != 0; }

// Hidden pairs are a matrix that is added: a fused kernel can tell causal and window from its indices.
static bool has_hidden(const ftl_spec *spec) {
  bool is_banded = spec->value[FTL_PARAM_causal] != 0 || spec->value[FTL_PARAM_window] != 0;
  return has_own_launches(spec) ? is_banded || has_mask(spec) : ftl_standard_is_fused(spec) && has_mask(spec);
}

// ---- what the launches share ----

static void declare_dropout(ftl_standard_forward *f, ftl_tensor_shape scores) {
  f->dropped = ftl_builder_tensor(f->b, "dropped", f->a.dtype, FTL_TENSOR_TEMP, scores);
  f->kept = ftl_builder_tensor(f->b, "kept", FTL_INT8, FTL_TENSOR_OUTPUT, scores);
  ftl_attention_needs_pairs(f->b, &f->a, f->dropped);
  ftl_attention_needs_pairs(f->b, &f->a, f->kept);
}

// All tensors in every launch, so that they have the same addresses.
static void declare_tensors(ftl_standard_forward *f, const problem *p) {
  f->t = ftl_attention_declare(f->b, f->spec, &f->a);
  ftl_tensor_shape scores = ftl_standard_scores_shape(&f->a);
  f->s = f->scaled = f->p = f->dropped = ftl_builder_tensor(f->b, "s", f->a.dtype, FTL_TENSOR_TEMP, scores);
  f->rows = f->t;
  f->product_scale = ftl_standard_skips_unseen(f->spec) ? f->a.scale : 1;
  ftl_attention_needs_pairs(f->b, &f->a, f->s);
  int64_t num_seeing = f->a.seqlen_q - ftl_attention_first_seeing_query(&f->a);
  ftl_builder_needs(f->b, f->t.q, f->a.batch * f->a.heads * num_seeing * f->a.head_dim);
  f->padding.tensor = f->hidden.tensor = f->seen = -1;
  if (has_padding(f->spec))
    f->padding.tensor = ftl_builder_tensor(f->b, "padding", f->a.dtype, FTL_TENSOR_INPUT,
                                           ftl_contiguous(f->a.batch, 1, 1, scores.num_columns));
  if (f->a.dropout_p > 0) declare_dropout(f, scores);
  f->hidden.of_queries = true;
  if (has_hidden(f->spec))
    f->hidden.tensor = ftl_builder_tensor(f->b, "hidden", f->a.dtype, FTL_TENSOR_INPUT,
                                          ftl_contiguous(1, 1, f->a.seqlen_q, scores.num_columns));
  if (ftl_standard_is_eager(f->spec)) ftl_standard_declare_eager(f);
  if (p->mask_blocks) f->seen = ftl_builder_table(f->b, "seen", p->mask_blocks, p->mask.num_rows * p->mask.num_columns);
}

// ---- what is done to S and P ----

static void build_scale(const ftl_standard_forward *f) { ftl_standard_write_scale(f->b, &f->a, f->s, f->a.scale); }

static void build_sum(const ftl_standard_forward *f, ftl_standard_added added, int32_t index_insts) {
  ftl_standard_rows rows = ftl_standard_is_eager(f->spec) ? ftl_standard_rows_by_elements(f->b, &f->a, index_insts)
                                                          : ftl_standard_rows_of(f->b, &f->a);
  ftl_standard_write_sum(&rows, f->scaled, added);
}

static void build_mask(const ftl_standard_forward *f) { build_sum(f, f->hidden, FTL_EAGER_MASK_INSTS); }
static void build_padding(const ftl_standard_forward *f) { build_sum(f, f->padding, FTL_EAGER_PADDING_INSTS); }
static void build_dropout(const ftl_standard_forward *f) {
  ftl_standard_write_dropout(f->b, &f->a, f->p, f->dropped, f->kept);
}

static void build_softmax(const ftl_standard_forward *f) {
  if (ftl_standard_is_eager(f->spec)) {
    ftl_standard_write_held_softmax(f->b, &f->a, f->scaled, f->p, f->t.lse, ftl_standard_is_matmul(f->spec));
    return;
  }
  ftl_standard_softmax softmax = {.spec = f->spec,
                                  .s = f->s,
                                  .lse = f->t.lse,
                                  .hides_keys = has_padding(f->spec) || has_mask(f->spec) || has_hidden(f->spec),
                                  .added = {f->hidden, f->padding},
                                  .dropped = f->dropped,
                                  .kept = f->kept};
  ftl_standard_write_softmax(f->b, &softmax);
}

// ---- the workload ----

static bool is_masked_apart(const ftl_spec *spec) { return has_own_launches(spec) && has_hidden(spec); }
static bool is_padded_apart(const ftl_spec *spec) { return !ftl_standard_is_fused(spec) && has_padding(spec); }

typedef struct launch {
  const char *name;
  int num_of_keys, num_of_values;           // products of columns of Q and K, and of V
  bool (*is_wanted)(const ftl_spec *spec);  // NULL: always
  void (*build)(const ftl_standard_forward *f);
} launch;

static ftl_status build_launch(const problem *p, const launch *l, ftl_tile_program **out, ftl_error *error) {
  ftl_standard_forward f = {.spec = p->spec, .a = ftl_standard_walked(p->spec)};
  ftl_status status = ftl_builder_create(&f.b, l->name, error);
  if (status != FTL_OK) return status;
  declare_tensors(&f, p);
  l->build(&f);
  ftl_builder_flops(f.b, l->num_of_keys * p->product_flops.of_keys + l->num_of_values * p->product_flops.of_values);
  status = ftl_builder_finish(f.b, out, error);
  ftl_builder_destroy(f.b);
  return status;
}

static ftl_status problem_init(problem *p, const ftl_spec *spec, ftl_error *error) {
  *p = (problem){.spec = spec};
  ftl_status status = ftl_standard_product_flops(spec, &p->product_flops, error);
  if (status != FTL_OK || !has_mask(spec) || has_hidden(spec)) return status;
  status = ftl_block_mask_init(&p->mask, spec, error);
  if (status != FTL_OK) return status;
  p->mask_blocks = ftl_block_mask_list(&p->mask);
  return p->mask_blocks ? FTL_OK : ftl_error_set(error, FTL_NO_MEMORY, "out of memory for a mask");
}

static void problem_fini(problem *p) {
  free(p->mask_blocks);
  ftl_block_mask_fini(&p->mask);
}

static ftl_status build_forward(const ftl_spec *spec, ftl_tile_program **launches, int *num_launches,
                                ftl_error *error) {
  static const launch all[] = {{"scale_keys", 0, 0, ftl_standard_is_einsum, ftl_standard_write_scaled_keys},
                               {"copy_queries", 0, 0, ftl_standard_copies_tokens, ftl_standard_write_rows_of_q},
                               {"copy_keys", 0, 0, ftl_standard_copies_tokens, ftl_standard_write_rows_of_k},
                               {"scores", 1, 0, NULL, ftl_standard_write_scores},
                               {"scale", 0, 0, ftl_standard_is_separate, build_scale},
                               {"scale", 0, 0, ftl_standard_is_matmul, ftl_standard_write_scaled_scores},
                               {"add_mask", 0, 0, is_masked_apart, build_mask},
                               {"add_padding", 0, 0, is_padded_apart, build_padding},
                               {"softmax_rows", 0, 0, NULL, build_softmax},
                               {"dropout", 0, 0, ftl_standard_is_dropped_apart, build_dropout},
                               {"copy_values", 0, 0, ftl_standard_copies_tokens, ftl_standard_write_rows_of_v},
                               {"outputs", 0, 1, NULL, ftl_standard_write_outputs}};
  problem p;
  ftl_status status = problem_init(&p, spec, error);
  for (size_t i = 0; status == FTL_OK && i < sizeof all / sizeof *all; i++) {
    if (all[i].is_wanted != NULL && !all[i].is_wanted(spec)) continue;
    status = build_launch(&p, &all[i], &launches[*num_launches], error);
    if (status == FTL_OK) ++*num_launches;
  }
  problem_fini(&p);
  return status;
}

static ftl_status build(const ftl_spec *spec, ftl_tile_program **launches, int *num_launches, ftl_error *error) {
  *num_launches = 0;
  ftl_status status = ftl_standard_is_eager(spec) ? ftl_standard_check_eager(spec, error) : FTL_OK;
  if (status != FTL_OK) return status;
  if (spec->value[FTL_PARAM_pass] == FTL_PASS_BWD)
    return ftl_standard_build_backward(spec, launches, num_launches, error);
  status = ftl_attention_check_warps(spec, error);
  return status == FTL_OK ? build_forward(spec, launches, num_launches, error) : status;
}

int32_t ftl_standard_staging(const ftl_spec *spec, ftl_builder *b, int32_t rows, int32_t columns,
                             int64_t room_elements) {
  ftl_dtype dtype = ftl_spec_dtype(spec);
  if (spec->value[FTL_PARAM_store] != FTL_SPEC_STORE_STAGED) return -1;
  return ftl_staged_store_ring(b, "staging", dtype, rows, columns, room_elements * ftl_dtype_bytes(dtype), 0);
}

// Shared memory of the launch that needs most: a tile of scores or of their gradients, and O; backward, dQ or dK and
// dV.
static int64_t staged_bytes(const ftl_spec *spec) {
  ftl_attention a = ftl_attention_of(spec);
  int64_t m = a.block_m, n = a.block_n, stages = spec->value[FTL_PARAM_num_stages];
  int64_t columns = a.padded_head_dim > a.padded_head_dim_v ? a.padded_head_dim : a.padded_head_dim_v;
  int64_t of_scores = ftl_staged_store_bytes(m * n, (m + n) * columns);
  int64_t room = stages * (m * n + n * columns);
  if (spec->value[FTL_PARAM_pass] == FTL_PASS_BWD) room = stages * (m * n + (m > n ? m : n) * columns);
  int64_t of_rows = ftl_staged_store_bytes((m > n ? m : n) * columns, room);
  return (of_scores > of_rows ? of_scores : of_rows) * ftl_dtype_bytes(a.dtype);
}

static void resolve(ftl_spec *spec, const ftl_arch *arch) {
  (void)arch;
  ftl_stage_open_store(spec, staged_bytes(spec));
}

const ftl_workload ftl_workload_standard_attention = {
    .name = "standard_attention",
    .doc =
        "unfused attention: scores to memory, softmax of their rows in place, products with V; backward from stored P",
    .accepts = FTL_TAKES(pass) | FTL_TAKES(batch) | FTL_TAKES(heads) | FTL_TAKES(kv_heads) | FTL_TAKES(seqlen_q) |
               FTL_TAKES(seqlen_kv) | FTL_TAKES(head_dim) | FTL_TAKES(head_dim_v) | FTL_TAKES(dtype) |
               FTL_TAKES(causal) | FTL_TAKES(window) | FTL_TAKES(softmax_scale) | FTL_TAKES_MASK |
               FTL_TAKES(padding_mask) | FTL_TAKES(elementwise) | FTL_TAKES(dropout_p) | FTL_TAKES(block_m) |
               FTL_TAKES(block_n) | FTL_TAKES(num_warps) | FTL_TAKES(num_stages) | FTL_TAKES(softmax) |
               FTL_TAKES(tile_order) | FTL_TAKES(tile_reverse) | FTL_TAKES(store) | FTL_TAKES(copy) | FTL_TAKES(mma) |
               FTL_TAKES(layout) | FTL_TAKES(code) | FTL_TAKES_LAUNCH_BOUNDS | FTL_TAKES(conditions) |
               FTL_TAKES(cache) | FTL_TAKES(clock_mhz) | FTL_TAKES(detail),
    .resolve = resolve,
    .build = build,
};
