// Softmax of rows that keeps their exponentials in registers, in fp32, a CTA a row: each is computed once, where
// row_softmax.h holds the row as stored and exponentiates for the sum and for the result. As Triton compiles
// kernels/foreign/triton_softmax.py: a block of as many columns as the next power of two has, masked at the row's end.
#ifndef FTL_WORKLOADS_KEPT_SOFTMAX_H
#define FTL_WORKLOADS_KEPT_SOFTMAX_H

#include "tile/builder.h"

enum { FTL_KEPT_MAX_THREAD_COLUMNS = 256 };

typedef struct ftl_kept_softmax {
  ftl_dtype dtype;
  int32_t from, to, lse;      // tensors
  ftl_expr batch, head, row;  // of the CTA's row
  int32_t num_warps;
  int32_t block_columns;  // the CTA's threads times a power of two, FTL_KEPT_MAX_THREAD_COLUMNS at most
  int64_t columns;        // of a row, at most block_columns
} ftl_kept_softmax;
// The kernel's role and all its operations.
void ftl_kept_softmax_build(ftl_builder *builder, const ftl_kept_softmax *softmax);

#endif
