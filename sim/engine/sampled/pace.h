// How far apart CTAs drift that do the same. On the H200 the end times of CTAs of one wave that share their slot on the
// SM and their head spread like a random walk: by 65 to 95 ns times the square root of the time in us, from 57 us to 2
// ms, with one CTA an SM or two, 64 rows or 128 (kernels/measurements/cta_trace.csv). What causes it is not known: it
// neither follows the SM's distance from L2 (correlation 0.07) nor lasts from one CTA to the next (-0.18). So a step
// deviates by the hash of what it is: the same in every run, and on average by nothing.
// Numbers: sm.drift_ns.
#ifndef FTL_ENGINE_SAMPLED_PACE_H
#define FTL_ENGINE_SAMPLED_PACE_H

#include <stdint.h>

// A step of `cta` that takes `cycles` of a clock of sm_khz on average: what to add to that. Uniform, its standard
// deviation drift_ns * sqrt(us); never less than -cycles.
double ftl_pace_deviation(int64_t drift_ns, int64_t sm_khz, int64_t cta, int64_t step, double cycles);

#endif
