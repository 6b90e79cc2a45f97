// Registers of what waits while the loops of CUTLASS's code run: offsets of copies, and what only stands behind the
// loops (places, pointers of outputs).
//
// ptxas orders loops whose source has two sets of fragments as if these were not there, and takes them out of registers
// afterwards: FlashAttention-2's forward kernels in PyTorch (sm_90) load 29 words a step and store 6 of 128 x 128 tiles
// at head_dim 64, whose offsets are 28, 17 and 14 of 128 x 64 at 128, whose offsets are 12 (local sectors of
// kernels/measurements/foreign_library_ncu.csv), and their fragments stand as far ahead as the source has them
// (docs/model_schedule.md).
#ifndef FTL_LOWER_WAITING_H
#define FTL_LOWER_WAITING_H

#include "lower/registers.h"

// `accessed`: a zeroed set of num_words, left undefined.
int32_t ftl_waiting_registers(const ftl_draft *draft, const ftl_flow *flow, const ftl_liveness *liveness,
                              uint64_t *accessed);

#endif
