// What a chip must have to run a tile program, asked before anything is lowered.
#ifndef FTL_LOWER_CHIP_FEATURES_H
#define FTL_LOWER_CHIP_FEATURES_H

#include "arch/arch.h"
#include "base/status.h"
#include "lower/lower.h"
#include "tile/tile.h"

// FTL_INFEASIBLE, and what the chip lacks or the program breaks: types, L2 priorities, threads a CTA, clusters,
// producer warps, rows of rings. `copy` is resolved.
FTL_MUST_USE ftl_status ftl_lower_check_features(const ftl_tile_program *tile, const ftl_arch *arch, ftl_copy copy,
                                                 ftl_error *error);

#endif
