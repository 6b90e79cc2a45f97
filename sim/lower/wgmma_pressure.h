// Registers that the wgmmas of a role hold at once: accumulators and A operands, from their issue to the wait for them.
//
// Where these alone exceed the budget, ptxas gives up the overlap and waits for each wgmma before the next ("C7512
// Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient register resources"). Of
// the kernels in kernels/attention it does so for those that keep 256 of 255 (128 x 128 tiles of 4 warps, head_dim 128)
// or 160 of 160 registers (192 x 128 of three warpgroups); spilled addresses alone do not make it.
#ifndef FTL_LOWER_WGMMA_PRESSURE_H
#define FTL_LOWER_WGMMA_PRESSURE_H

#include "lower/registers.h"

// The most of any wgmma; 0 without wgmmas. `scratch`: two zeroed sets of num_words each, left undefined.
int32_t ftl_wgmma_pressure(const ftl_draft *draft, const ftl_flow *flow, const ftl_liveness *liveness,
                           uint64_t *scratch);

// Whether ptxas finds moves of a product's accumulators between its wgmmas, and so waits for each of them before the
// next (its message C7515): where products run on into the next step, A and B have two buffers each, and A's tile has
// more rows than a step has of K. Read off 37 kernels that Triton compiles of kernels/foreign/triton_product.py
// (docs/model_schedule.md).
bool ftl_wgmma_moves_accumulators(const ftl_tile_program *tile, const ftl_role *role);

#endif
