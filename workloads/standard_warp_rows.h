// The softmax of rows that one warp holds, and its gradient, as eager PyTorch has them up to 1024 columns.
#ifndef FTL_WORKLOADS_STANDARD_WARP_ROWS_H
#define FTL_WORKLOADS_STANDARD_WARP_ROWS_H

#include "workloads/standard_attention.h"

// Whether a warp holds a row of S.
bool ftl_standard_warp_holds_row(const ftl_attention *a);
// P = softmax(S), and its LSE.
void ftl_standard_write_warp_softmax(ftl_builder *builder, const ftl_attention *a, int32_t s, int32_t p, int32_t lse);
// dS = G - P rowsum(G) in the place of `weighed`, G = P dP.
void ftl_standard_write_warp_gradient(ftl_builder *builder, const ftl_attention *a, int32_t weighed, int32_t p);

#endif
