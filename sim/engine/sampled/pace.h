// How far apart CTAs drift that do the same. What is random is a hash of what a step is, the same in every run.
//
// On the H200 (kernels/measurements/micro_gpc_drift.csv, cta_drift.csv) loops of arithmetic take the same number of
// cycles on every SM, to the cycle. Loops that load drift apart inside a GPC, one CTA an SM, by up to 20 ns (standard
// deviation) times the square root of the time in us, attention kernels by 13 after their first tiles. CTAs that share
// an SM drift by more, since what one gets of the SM hangs on where in its iteration the others are: by 2.3 to 5.2 % of
// an iteration for each other CTA, times the square root of the iterations, where loops fetch ahead (cta_spread.csv).
// Those that came first are ahead, by up to 29 %: two by 16.6 % where they start together, by a little less than
// 16.6 (1 - 2 x) % where they start a share x of their time apart (cta_age.csv), since each is the older one for a part
// of it. GPCs have clocks of their own (engine/gpc_clock.h): after some waves each GPC takes its next CTAs in a block.
// Numbers: sm.drift_ns, sm.shared_drift_permille, sm.waiting_drift_permille, sm.settling_iterations,
// sm.age_spread_permille,
// sm.store_spread_permille.
#ifndef FTL_ENGINE_SAMPLED_PACE_H
#define FTL_ENGINE_SAMPLED_PACE_H

#include <stdint.h>

// Standard deviation of a step that takes `cycles` of a clock of sm_khz on average: drift_ns * sqrt(us), in cycles.
double ftl_pace_drift(int64_t drift_ns, int64_t sm_khz, double cycles);
// The same of `iterations` that take `cycles` together on an SM that `others` share: that of each other CTA, and of
// each iteration, adds to the variance.
double ftl_pace_shared_drift(int64_t permille, int32_t others, int64_t iterations, double cycles);
// What iterations of CTAs that settle add to that: in the loop's first settling_iterations they come to any phase of an
// iteration. `done`: of the loop, before these.
double ftl_pace_settling(int64_t settling_iterations, int64_t done, int64_t iterations, double cycles);
// By how much straight code deviates that stores stored_bytes in sectors of sent_bytes: all of `permille` where each
// sector goes twice or more, the share of it that goes again where fewer do.
int64_t ftl_pace_store_spread(int64_t permille, int64_t sent_bytes, int64_t stored_bytes);
// The share of that which is left where so many SMs store at a time: it grows with what each meets of the others', and
// their number. Of 66 of 132 SMs 22 % of that of all, of 16 SMs 1.5 %, by micro_store_spread.csv: nearly the square.
double ftl_pace_stores_at_once(int32_t num_sms, int32_t all_sms);
// What to add to a step of `cta` that takes `cycles` on average and deviates by `standard`. Uniform; never less than
// -cycles.
double ftl_pace_deviation(double standard, int64_t cta, int64_t step, double cycles);

// By how many cycles a CTA's segment takes longer than the mean, of the num_ctas that an SM holds, where the youngest
// one's takes age_cycles longer than the oldest one's. `place`: half the difference of how many of those in the segment
// came before the CTA and after it.
double ftl_pace_of_age(double age_cycles, double place, int32_t num_ctas);

#endif
