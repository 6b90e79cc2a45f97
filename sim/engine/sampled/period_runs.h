// Periods that come in runs: CTA i+P does what CTA i does on tiles a constant distance on, as in a period (period.h),
// until a run of periods ends and the next one begins elsewhere. With FlashAttention-2's order of grouped heads all
// sequences of a head follow each other, and then those of the next head, which read the same keys again.
//
// Where a run begins on tiles that L2 no longer has, whatever the run before it did, its periods are like any others.
#ifndef FTL_ENGINE_SAMPLED_PERIOD_RUNS_H
#define FTL_ENGINE_SAMPLED_PERIOD_RUNS_H

#include "engine/sampled/segments.h"

// The smallest P, a divisor of the grid below `most_ctas`, whose periods come in runs; 0 where there is none. Each run
// touches twice `l2_bytes` or more, and where the next begins its tiles lie apart from what the last periods that fill
// so much have touched.
int64_t ftl_period_of_runs(const ftl_segments *segments, const ftl_warp_program *program, int64_t l2_bytes,
                           int64_t most_ctas);

#endif
