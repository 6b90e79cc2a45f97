// What of shared memory a CTA's rings take, and which warps meet at its barriers.
#ifndef FTL_LOWER_SHARED_PLACES_H
#define FTL_LOWER_SHARED_PLACES_H

#include "lower/fragment.h"
#include "lower/lower.h"
#include "lower/shared_layout.h"

// Fills in the rings, barrier_warps and shared_bytes of `program`, whose tile and num_warps are known, and the layout
// of each ring. `options` are resolved. FTL_INFEASIBLE when a CTA of the chip may not have as much.
FTL_MUST_USE ftl_status ftl_shared_places_take(ftl_warp_program *program, ftl_shared_layout *layouts,
                                               const ftl_arch *arch, const ftl_lower_options *options,
                                               const ftl_fragment_shape *shape, ftl_error *error);

#endif
