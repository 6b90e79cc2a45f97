// What an iteration's time owes to the latency of its loads, apart from what the runs it was measured in scatter by.
//
// Each latency is a run of its own, whose warps fall into step in their own way: iterations that wait for none of their
// loads differ by some percent between latencies, in either direction (2477, 2360 and 2395 cycles at 249, 647 and 1294
// for tiles of 128 x 64 on 8 warps). Taken as they are, a CTA whose loads come from DRAM would outrun those whose loads
// it brought to L2, or fall behind them, by that in every iteration. On the H200 loops that fetch ahead stay within 90
// cycles over 512 iterations (kernels/measurements/micro_gpc_drift.csv, ahead_64 and ahead_256).
#ifndef FTL_ENGINE_SAMPLED_LATENCY_POOL_H
#define FTL_ENGINE_SAMPLED_LATENCY_POOL_H

#include "engine/sampled/segments.h"

// Of a lone CTA's iteration at one latency.
typedef struct ftl_latency_point {
  int64_t time_sixteenths, latency_cycles;
} ftl_latency_point;

// Whether an iteration that asks for its loads `lookahead` iterations before it waits for them has time for the latency
// of `longer`, going by its length at the shortest one.
bool ftl_latency_fits(ftl_latency_point shortest, ftl_latency_point longer, int32_t lookahead);
// Whether it is not longer by the latency either: by less than half of what that is longer by.
bool ftl_latency_is_unseen(ftl_latency_point shortest, ftl_latency_point longer);
// Iterations by which the loads of a loop run ahead, the least of them; 0 where it has none.
int32_t ftl_latency_lookahead(const ftl_segment *loop);

// Two times of which the second is of a longer latency: their mean where that is hidden, or where it is the shorter
// time, which a longer latency never makes it. Gives by how much they change.
int64_t ftl_latency_pool(int64_t *time_sixteenths, int64_t *longer_sixteenths, bool is_hidden);

#endif
