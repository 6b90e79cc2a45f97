// How far apart CTAs drift that do the same: by numbers that are hashes of what a step is, the same in every run.
//
// On the H200 (kernels/measurements/micro_gpc_drift.csv, cta_drift.csv) loops of arithmetic take the same number of
// cycles on every SM, to the cycle. Loops that load drift apart inside a GPC, one CTA an SM, by up to 20 ns (standard
// deviation) times the square root of the time in us, attention kernels by 13 after their first tiles. CTAs that share
// an SM drift by ten times that, since what one gets of the SM hangs on where in its iteration the other is: the
// detailed SM shows that unevenness itself (step_times.h).
// Numbers: sm.drift_ns.
#ifndef FTL_ENGINE_SAMPLED_PACE_H
#define FTL_ENGINE_SAMPLED_PACE_H

#include <stdint.h>

// Standard deviation of a step that takes `cycles` of a clock of sm_khz on average: drift_ns * sqrt(us), in cycles.
double ftl_pace_drift(int64_t drift_ns, int64_t sm_khz, double cycles);
// What to add to a step of `cta` that takes `cycles` on average and deviates by `standard`. Uniform; never less than
// -cycles.
double ftl_pace_deviation(double standard, int64_t cta, int64_t step, double cycles);

#endif
