#include "engine/sampled/pace.h"

#include <math.h>

#include "engine/power.h"
#include "machine/l2/hash.h"

// In [-sqrt(3), sqrt(3)): mean 0, variance 1.
static double spread_of(int64_t cta, int64_t step) {
  uint64_t bits = ftl_l2_mix(ftl_l2_mix((uint64_t)cta) + (uint64_t)step) >> 40;
  return ((double)bits / 16777216.0 - 0.5) * 2 * sqrt(3.0);
}

double ftl_pace_drift(int64_t drift_ns, int64_t sm_khz, double cycles) {
  double cycles_per_us = (double)sm_khz / 1000;
  return (double)drift_ns / 1000 * cycles_per_us * sqrt(cycles / cycles_per_us);
}

double ftl_pace_shared_drift(int64_t permille, int32_t others, int64_t iterations, double cycles) {
  return (double)permille / 1000 * cycles * sqrt((double)others / (double)iterations);
}

int64_t ftl_pace_store_spread(int64_t permille, int64_t sent_bytes, int64_t stored_bytes) {
  int64_t again_bytes = sent_bytes - stored_bytes;
  if (again_bytes <= 0) return 0;
  return again_bytes < stored_bytes ? permille * again_bytes / stored_bytes : permille;
}

double ftl_pace_stores_at_once(int32_t num_sms, int32_t all_sms) {
  double share = (double)num_sms / all_sms;
  return share * share;
}

double ftl_pace_deviation(double standard, int64_t cta, int64_t step, double cycles) {
  double deviation = standard * spread_of(cta, step);
  return deviation > -cycles ? deviation : -cycles;
}

int64_t ftl_pace_gpc_clock_spread(const ftl_arch *arch, int64_t sm_khz) {
  const int64_t some_tensor_macs = 1;
  bool is_limited = sm_khz < ftl_power_top_khz(arch, some_tensor_macs);
  return is_limited ? arch->sm_gpc_limited_clock_spread_ppm : arch->sm_gpc_clock_spread_ppm;
}

double ftl_pace_of_gpc(int64_t spread_ppm, int32_t gpc, int32_t num_gpcs) {
  int32_t rank = gpc % 2 == 0 ? gpc / 2 : num_gpcs - 1 - gpc / 2;
  double n = num_gpcs;
  double unit = n > 1 ? sqrt(3 / (n * n - 1)) : 0;  // ranks 2 apart from -(n-1) to n-1: variance (n*n-1)/3
  return (double)spread_ppm / 1e6 * unit * (2 * rank - (n - 1));
}

double ftl_pace_of_age(int64_t spread_permille, int32_t num_older, int32_t others) {
  return others > 0 ? (double)spread_permille / 1000 * ((double)num_older / others - 0.5) : 0;
}
