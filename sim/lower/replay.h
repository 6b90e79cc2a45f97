// Runs all warps of a CTA abstractly, with vector clocks, and watches every stage of every ring.
#ifndef FTL_LOWER_REPLAY_H
#define FTL_LOWER_REPLAY_H

#include "lower/coverage.h"

// Marks what is loaded and stored in `coverage`. FTL_RUN_FAILED with the first violation: CTA, warp, instruction, ring.
FTL_MUST_USE ftl_status ftl_replay(const ftl_warp_program *program, int64_t cta, ftl_coverage *coverage,
                                   ftl_error *error);

#endif
