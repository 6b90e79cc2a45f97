// The softmax of rows that one warp holds, and its gradient, as eager PyTorch has them up to 1024 columns
// (version 2.11 forward up to 2048).
#ifndef FTL_WORKLOADS_STANDARD_WARP_ROWS_H
#define FTL_WORKLOADS_STANDARD_WARP_ROWS_H

#include "workloads/standard_attention.h"

// Whether a warp holds a row of S, of at most so many columns.
enum { FTL_WARP_ROW_COLUMNS = 1024, FTL_WARP_ROW_COLUMNS_LATELY = 2048 };
bool ftl_standard_warp_holds_row(const ftl_attention *a, int64_t most_columns);
// P = softmax(S), and its LSE.
void ftl_standard_write_warp_softmax(ftl_builder *builder, const ftl_attention *a, int32_t s, int32_t p, int32_t lse);
// dS = G - P rowsum(G) in the place of `weighed`, G = P dP.
void ftl_standard_write_warp_gradient(ftl_builder *builder, const ftl_attention *a, int32_t weighed, int32_t p);

#endif
