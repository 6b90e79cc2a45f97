// How far apart CTAs drift that do the same. On the H200, loops of plain arithmetic and of L2 loads with one CTA an SM
// spread like a random walk, by 6 to 15 ns (standard deviation) times the square root of the time in us, from 6 us to
// 800 us (kernels/measurements/micro_drift.csv). Several CTAs of an SM, or CTAs that fight for DRAM, drift further,
// from what they share. So a step deviates by the hash of what it is: the same in every run, and on average by nothing.
// Numbers: sm.drift_ns.
#ifndef FTL_ENGINE_SAMPLED_PACE_H
#define FTL_ENGINE_SAMPLED_PACE_H

#include <stdint.h>

// A step of `cta` that takes `cycles` of a clock of sm_khz on average: what to add to that. Uniform, its standard
// deviation drift_ns * sqrt(us); never less than -cycles.
double ftl_pace_deviation(int64_t drift_ns, int64_t sm_khz, int64_t cta, int64_t step, double cycles);

#endif
