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
  int32_t dropped, kept;               // with dropout; without, `dropped` is s
} ftl_standard_forward;

// S = Q K^T, a CTA a tile; scaled and masked by blocks where launches leave out what is hidden.
void ftl_standard_write_scores(const ftl_standard_forward *f);
// O = P V, a CTA block_m rows.
void ftl_standard_write_outputs(const ftl_standard_forward *f);

#endif
