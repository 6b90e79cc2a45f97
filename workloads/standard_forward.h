// A launch of unfused attention's forward pass: what standard_attention.c declares and standard_products.c multiplies.
#ifndef FTL_WORKLOADS_STANDARD_FORWARD_H
#define FTL_WORKLOADS_STANDARD_FORWARD_H

#include "workloads/standard_attention.h"

typedef struct ftl_standard_forward {
  const ftl_spec *spec;
  ftl_builder *b;
  ftl_attention a;          // as launches walk it
  ftl_attention_tensors t;  // the same in every launch
  int32_t s;
  ftl_standard_added padding, hidden;  // with padding_mask; causal, window and mask as a matrix
  int32_t seen;                        // table: of each block of the mask 1 or 0, row by row; -1: none
  int32_t scaled;                      // s, but of eager_matmul
  int32_t p;                           // s, but of eager PyTorch
  int32_t dropped, kept;               // with dropout; without, `dropped` is p
  float product_scale;                 // of S, where it is made
  ftl_attention_tensors rows;          // q, k and v as products read them: copies of eager PyTorch, else those of t
  int32_t scaled_k;                    // eager_einsum: K / sqrt(head_dim)
} ftl_standard_forward;

// Eager PyTorch's launches around the products and the softmax (standard_eager.c).
void ftl_standard_declare_eager(ftl_standard_forward *f);
void ftl_standard_write_scaled_keys(const ftl_standard_forward *f);
void ftl_standard_write_rows_of_q(const ftl_standard_forward *f);
void ftl_standard_write_rows_of_k(const ftl_standard_forward *f);
void ftl_standard_write_rows_of_v(const ftl_standard_forward *f);
void ftl_standard_write_scaled_scores(const ftl_standard_forward *f);

// S = Q K^T, a CTA a tile; scaled and masked by blocks where launches leave out what is hidden.
void ftl_standard_write_scores(const ftl_standard_forward *f);
// O = P V, a CTA block_m rows.
void ftl_standard_write_outputs(const ftl_standard_forward *f);

#endif
