// What the launches of unfused attention share: S as a matrix in memory, and how much of it they walk.
#include "base/integer.h"
#include "workloads/block_mask.h"
#include "workloads/row_softmax.h"
#include "workloads/standard_attention.h"

ftl_tensor_shape ftl_standard_scores_shape(const ftl_attention *a) {
  int64_t stride = ftl_divide_up(a->seqlen_kv, FTL_ROW_VECTOR_COLUMNS) * FTL_ROW_VECTOR_COLUMNS;
  return (ftl_tensor_shape){.num_batches = a->batch,
                            .num_heads = a->heads,
                            .num_rows = a->seqlen_q,
                            .num_columns = stride,
                            .batch_stride = a->heads * a->seqlen_q * stride,
                            .head_stride = a->seqlen_q * stride,
                            .row_stride = stride};
}

int32_t ftl_standard_tile_columns(const ftl_attention *a) {
  return (int32_t)ftl_smaller(a->block_n, ftl_standard_scores_shape(a).num_columns);
}

ftl_expr ftl_standard_is_seen(ftl_builder *b, const ftl_attention *a, const ftl_key_range *keys, ftl_expr n) {
  ftl_expr seen = ftl_min(b, ftl_const(b, 1), ftl_sub(b, keys->end, n));
  if (a->window == 0) return seen;
  return ftl_min(b, seen, ftl_add(b, ftl_sub(b, n, keys->first), ftl_const(b, 1)));
}

bool ftl_standard_skips_unseen(const ftl_spec *spec) {
  return spec->value[FTL_PARAM_elementwise] == FTL_ELEMENTWISE_EPILOGUE;
}

bool ftl_standard_is_fused(const ftl_spec *spec) { return spec->value[FTL_PARAM_elementwise] == FTL_ELEMENTWISE_FUSED; }

bool ftl_standard_is_separate(const ftl_spec *spec) {
  return spec->value[FTL_PARAM_elementwise] == FTL_ELEMENTWISE_SEPARATE;
}

bool ftl_standard_is_dropped_apart(const ftl_spec *spec) {
  return spec->value[FTL_PARAM_dropout_p] > 0 && !ftl_standard_is_fused(spec);
}

bool ftl_standard_is_einsum(const ftl_spec *spec) {
  return spec->value[FTL_PARAM_elementwise] == FTL_ELEMENTWISE_EAGER_EINSUM;
}

bool ftl_standard_is_matmul(const ftl_spec *spec) {
  return spec->value[FTL_PARAM_elementwise] == FTL_ELEMENTWISE_EAGER_MATMUL;
}

bool ftl_standard_copies_tokens(const ftl_spec *spec) {
  return spec->value[FTL_PARAM_elementwise] == FTL_ELEMENTWISE_EAGER_BADDBMM || ftl_standard_is_einsum(spec);
}

bool ftl_standard_is_eager(const ftl_spec *spec) {
  return ftl_standard_copies_tokens(spec) || ftl_standard_is_matmul(spec);
}

int ftl_standard_num_masks(const ftl_spec *spec) {
  const int64_t *value = spec->value;
  bool hides = value[FTL_PARAM_causal] != 0 || value[FTL_PARAM_window] != 0 || value[FTL_PARAM_mask] != FTL_MASK_NONE;
  return (value[FTL_PARAM_padding_mask] != 0) + hides;
}

ftl_status ftl_standard_check_eager(const ftl_spec *spec, ftl_error *error) {
  int64_t heads = spec->value[FTL_PARAM_heads], kv_heads = spec->value[FTL_PARAM_kv_heads];
  int64_t head_dim = spec->value[FTL_PARAM_head_dim], head_dim_v = ftl_spec_head_dim_v(spec);
  if (ftl_standard_is_matmul(spec) && spec->value[FTL_PARAM_pass] == FTL_PASS_BWD)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "pass=bwd: what autograd runs of elementwise=eager_matmul is not known; allowed is fwd");
  if (ftl_standard_is_matmul(spec) && spec->value[FTL_PARAM_layout] != FTL_LAYOUT_BHSD)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "layout=bshd: elementwise=eager_matmul multiplies tensors as they lie: layout=bhsd");
  if (ftl_standard_copies_tokens(spec) && head_dim_v != head_dim)
    return ftl_error_set(
        error, FTL_INFEASIBLE,
        "head_dim_v=%lld: elementwise=eager_... takes Q, K and V from one tensor, with head_dim=%lld each",
        (long long)head_dim_v, (long long)head_dim);
  if (heads == kv_heads) return ftl_standard_check_held(spec, error);
  return ftl_error_set(error, FTL_INFEASIBLE, "kv_heads=%lld: elementwise=eager_... has as many as heads, %lld",
                       (long long)kv_heads, (long long)heads);
}

ftl_attention ftl_standard_walked(const ftl_spec *spec) {
  ftl_attention a = ftl_attention_of(spec);
  if (ftl_standard_skips_unseen(spec)) return a;
  a.causal = false;
  a.window = 0;
  return a;
}

ftl_status ftl_standard_product_flops(const ftl_spec *spec, ftl_standard_flops *flops, ftl_error *error) {
  ftl_attention a = ftl_attention_of(spec);
  ftl_tile_lists lists;
  ftl_status status = ftl_tile_lists_init(&lists, spec, ftl_tile_walk_forward(spec), error);
  if (status != FTL_OK) return status;
  int64_t both = ftl_tile_lists_flops(&lists, &a);
  flops->of_keys = ftl_attention_flops_of_columns(&a, both, a.head_dim);
  flops->of_values = ftl_attention_flops_of_columns(&a, both, a.head_dim_v);
  ftl_tile_lists_fini(&lists);
  return FTL_OK;
}
