#include "engine/sampled/pace.h"

#include <math.h>

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

double ftl_pace_deviation(double standard, int64_t cta, int64_t step, double cycles) {
  double deviation = standard * spread_of(cta, step);
  return deviation > -cycles ? deviation : -cycles;
}
