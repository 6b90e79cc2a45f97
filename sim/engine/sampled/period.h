// The period of a grid: after how many CTAs the same work comes again on other addresses (the next head).
#ifndef FTL_ENGINE_SAMPLED_PERIOD_H
#define FTL_ENGINE_SAMPLED_PERIOD_H

#include "engine/sampled/segments.h"

// The smallest P, a divisor of the grid, such that CTA i and CTA i+P have the same loops and access the same tiles at
// addresses that differ by the same distance for every i. 0 where there is none below the whole grid, or where a
// table decides what the iterations of a loop access.
int64_t ftl_period_find(const ftl_segments *segments, const ftl_warp_program *program);
// Whether a table decides what the iterations of a loop access, or what CTAs do that the comparison may pass over.
bool ftl_tables_decide(const ftl_segments *segments, const ftl_warp_program *program);

#endif
