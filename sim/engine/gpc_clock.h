// The SM clocks of GPCs, each of which has its own.
// Models: clocks at equal distances around the launch's, slow and fast GPCs in turn; two spreads.
// Does not model: a chip's own GPCs; what a GPC's clock does within a launch. In short launches of dense products the
//   fastest GPC counts up to 5.5 % more cycles than the mean, where the power limit's work has just begun.
// Numbers: sm.gpc_clock_spread_ppm, sm.gpc_limited_clock_spread_ppm (kernels/measurements/cta_trace.csv,
//   cta_clocks.csv).
#ifndef FTL_ENGINE_GPC_CLOCK_H
#define FTL_ENGINE_GPC_CLOCK_H

#include <stdint.h>

#include "arch/arch.h"

// The standard deviation of the clocks of GPCs whose mean is sm_khz: another where the power limit, and not the onset
// of the load (onset_khz), holds that below what tensor operations allow.
int64_t ftl_gpc_clock_spread_ppm(const ftl_arch *arch, int64_t sm_khz, int64_t onset_khz);
// By how much longer than the mean a GPC's steps take, as a share.
double ftl_gpc_clock_slowness(int64_t spread_ppm, int32_t gpc, int32_t num_gpcs);
// What the fastest GPC counts for a cycle of the mean: sm__cycles_elapsed.max is that of the SM that counts most.
double ftl_gpc_clock_fastest(int64_t spread_ppm, int32_t num_gpcs);

#endif
