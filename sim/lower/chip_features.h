// What a chip must have to run a tile program, asked before anything is lowered.
#pragma once

#include "arch/arch.h"
#include "base/status.h"
#include "lower/lower.h"
#include "tile/tile.h"

// FTL_INFEASIBLE, and what the chip lacks or the program breaks: types, L2 priorities, threads a CTA, clusters,
// producer warps, rows of rings. `copy` is resolved.
ftl_status ftl_lower_check_features(const ftl_tile_program *tile, const ftl_arch *arch, ftl_copy copy,
                                    ftl_error *error);
