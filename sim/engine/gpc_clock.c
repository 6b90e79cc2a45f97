#include "engine/gpc_clock.h"

#include <math.h>
#include <stdbool.h>

#include "engine/power.h"

int64_t ftl_gpc_clock_spread_ppm(const ftl_arch *arch, int64_t sm_khz, int64_t onset_khz) {
  const int64_t some_tensor_macs = 1;
  bool is_limited = sm_khz < ftl_power_top_khz(arch, some_tensor_macs) && sm_khz != onset_khz;
  return is_limited ? arch->sm_gpc_limited_clock_spread_ppm : arch->sm_gpc_clock_spread_ppm;
}

// Half of the distance between neighbours, of clocks with a standard deviation of spread_ppm: those of n GPCs lie two
// halves apart, from -(n - 1) to n - 1, with a variance of (n * n - 1) / 3.
static double half_distance(int64_t spread_ppm, double n) {
  return n > 1 ? (double)spread_ppm / 1e6 * sqrt(3 / (n * n - 1)) : 0;
}

double ftl_gpc_clock_slowness(int64_t spread_ppm, int32_t gpc, int32_t num_gpcs) {
  int32_t rank = gpc % 2 == 0 ? gpc / 2 : num_gpcs - 1 - gpc / 2;
  return half_distance(spread_ppm, num_gpcs) * (2 * rank - (num_gpcs - 1));
}

double ftl_gpc_clock_fastest(int64_t spread_ppm, int32_t num_gpcs) {
  return 1 + half_distance(spread_ppm, num_gpcs) * (num_gpcs - 1);
}
