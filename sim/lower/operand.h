// Shared-memory accesses by which a warp loads mma operands and stores accumulators: real lane addresses.
// Sources: PTX ISA (ldmatrix: lane i gives the address of row i % 8 of 8x8 matrix i / 8; mma.m8n8k4 fragments).
#ifndef FTL_LOWER_OPERAND_H
#define FTL_LOWER_OPERAND_H

#include "lower/fragment.h"
#include "lower/shared_layout.h"

typedef enum ftl_operand_kind {
  FTL_OPERAND_A,     // stored [m][k]
  FTL_OPERAND_B_NK,  // stored [n][k]: K of QK^T
  FTL_OPERAND_B_KN,  // stored [k][n]: V of PV; ldmatrix.trans
  FTL_OPERAND_KIND_COUNT
} ftl_operand_kind;

// Loading the block of 16 rows and 32 bytes at (row, column) of a stage ([k][n]: 16 x 16): one ldmatrix.x4, or (quad
// pairs) one of its two 16-byte LDS. Lanes beyond the layout's columns are idle.
ftl_wavefronts ftl_operand_wavefronts(const ftl_fragment_shape *shape, const ftl_shared_layout *layout,
                                      ftl_operand_kind kind, int32_t row, int32_t column);

// Storing packed pairs of a 16 x 16 block of accumulators at (row, column): one of its four 4-byte STS.
ftl_wavefronts ftl_accumulator_wavefronts(const ftl_fragment_shape *shape, const ftl_shared_layout *layout, int32_t row,
                                          int32_t column);

#endif
