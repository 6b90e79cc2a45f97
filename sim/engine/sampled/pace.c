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

double ftl_pace_shared_drift(int64_t permille, int32_t others, int64_t iterations, double cycles) {
  return (double)permille / 1000 * cycles * sqrt((double)others / (double)iterations);
}

double ftl_pace_settling(int64_t settling_iterations, int64_t done, int64_t iterations, double cycles) {
  int64_t left = settling_iterations - done;
  if (left <= 0) return 0;
  double share = (double)(iterations < left ? iterations : left) / (double)settling_iterations;
  return cycles / (double)iterations * sqrt(share / 12);
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

double ftl_pace_of_age(double age_cycles, double place, int32_t num_ctas) {
  return num_ctas > 1 ? age_cycles * place / (num_ctas - 1) : 0;
}
