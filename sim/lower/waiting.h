// Registers of what waits while the loops of CUTLASS's code run: numbers that an iteration leaves to the next beside
// what products add to (row sums and maxima, counters, limits of rows from the step that finds them to the last that
// masks), and what only stands behind the loops (places, pointers of outputs).
//
// ptxas orders loops whose source has two sets of fragments as if these were not there, and takes as many registers as
// are then missing out afterwards: FlashAttention-2's forward kernels in PyTorch (sm_90) load 17 words a step and store
// 14 of 128 x 64 tiles at head_dim 128, where row sums, the counter and pointers go through memory, 29 and 6 of 128 x
// 128 at 64 (kernels/measurements/pc_sampling_flash_loop.csv), and their fragments stand as far ahead as the source has
// them (docs/model_schedule.md).
#ifndef FTL_LOWER_WAITING_H
#define FTL_LOWER_WAITING_H

#include "lower/registers.h"

// Of each stretch: those that are live where its code between loop boundaries begins or ends. NULL when memory is out.
int32_t *ftl_waiting_registers(const ftl_draft *draft, const ftl_flow *flow, const ftl_liveness *liveness,
                               ftl_arena *arena);

#endif
