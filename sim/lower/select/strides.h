// Addresses of tiles whose rows lie strides apart that are 64-bit numbers at run time, in uniform registers.
// Source: SASS of PyTorch's FlashAttention-2 (sm_90).
#ifndef FTL_LOWER_SELECT_STRIDES_H
#define FTL_LOWER_SELECT_STRIDES_H

#include "lower/select/select.h"

// Of the lane's part of a row group: 64 bits, and the lower half, which takes no register of its own.
typedef struct ftl_strided {
  int32_t address, lower;
} ftl_strided;

// Whether copies work their tile's address out from its number and go from row group to row group: CUTLASS's attention.
bool ftl_select_steps_by_strides(const ftl_select *s);
ftl_strided ftl_select_strided_tile(ftl_select *s, const ftl_tile_op *op);  // its first row group
ftl_strided ftl_select_strided_group(ftl_select *s, ftl_strided previous);  // the one that follows

#endif
