// What eager PyTorch adds to unfused attention's forward pass, in the two programs that FlashAttention's benchmarks
// time: `eager_baddbmm` (benchmarks/benchmark_flash_attention.py of FlashAttention 2: torch.baddbmm, whose alpha scales
// S) and `eager_einsum` (of FlashAttention 1: torch.einsum of Q and K / sqrt(head_dim)). Their launches were watched
// (kernels/foreign/eager_attention.py, kernels/measurements/eager_timeline.csv): Q, K and V are copied for the batched
// products, heads before tokens, K transposed (the program permutes it, and reshape makes it so); a mask is a launch
// over all scores. Not here: the launches that make the mask itself, one matrix for all heads.
#include "workloads/standard_forward.h"

void ftl_standard_declare_eager(ftl_standard_forward *f) {
  const ftl_attention *a = &f->a;
  ftl_builder *b = f->b;
  ftl_tensor_shape queries = ftl_contiguous(a->batch, a->heads, a->seqlen_q, a->head_dim);
  ftl_tensor_shape keys = ftl_contiguous(a->batch, a->heads, a->seqlen_kv, a->head_dim);
  f->p = ftl_builder_tensor(b, "p", a->dtype, FTL_TENSOR_TEMP, ftl_standard_scores_shape(a));
  if (a->dropout_p == 0) f->dropped = f->p;
  f->rows.q = ftl_builder_tensor(b, "q_rows", a->dtype, FTL_TENSOR_TEMP, queries);
  f->rows.k =
      ftl_builder_tensor(b, "k_columns", a->dtype, FTL_TENSOR_TEMP,
                         ftl_contiguous(a->batch, a->heads, a->head_dim, ftl_standard_scores_shape(a).num_columns));
  f->rows.v = ftl_builder_tensor(b, "v_rows", a->dtype, FTL_TENSOR_TEMP, keys);
  f->scaled_k = f->t.k;
  if (ftl_standard_is_einsum(f->spec))
    f->scaled_k = ftl_builder_tensor(b, "k_scaled", a->dtype, FTL_TENSOR_TEMP,
                                     ftl_attention_shape(f->spec, a->heads, a->seqlen_kv, a->head_dim));
  else
    f->product_scale = a->scale;
}

static void write_rows(const ftl_standard_forward *f, int32_t from, int32_t to, int64_t num_tokens) {
  ftl_standard_write_tokens(
      f->b, &f->a,
      &(ftl_standard_tokens){
          .from = {from}, .to = {to, -1}, .num_tokens = num_tokens, .scale = 1, .index_insts = FTL_EAGER_COPY_INSTS});
}

void ftl_standard_write_rows_of_q(const ftl_standard_forward *f) { write_rows(f, f->t.q, f->rows.q, f->a.seqlen_q); }
void ftl_standard_write_rows_of_k(const ftl_standard_forward *f) {
  ftl_standard_write_transposed(f->b, &f->a, f->scaled_k, f->rows.k);
}
void ftl_standard_write_rows_of_v(const ftl_standard_forward *f) { write_rows(f, f->t.v, f->rows.v, f->a.seqlen_kv); }

void ftl_standard_write_scaled_keys(const ftl_standard_forward *f) {
  ftl_standard_write_tokens(f->b, &f->a,
                            &(ftl_standard_tokens){.from = {f->t.k},
                                                   .to = {f->scaled_k, -1},
                                                   .num_tokens = f->a.seqlen_kv,
                                                   .scale = f->a.scale,
                                                   .index_insts = FTL_EAGER_SCALE_INSTS});
}
