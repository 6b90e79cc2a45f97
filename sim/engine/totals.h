// What a run of one launch counted, at one SM clock. `full` and `sampled` fill the same struct; answer.c turns it into
// metrics.
#ifndef FTL_ENGINE_TOTALS_H
#define FTL_ENGINE_TOTALS_H

#include <stdint.h>

#include "machine/memory.h"
#include "machine/sm/sm.h"

typedef struct ftl_totals {
  int64_t sm_khz;
  int64_t cycles;          // SM cycles from the first CTA's start to the last CTA's end
  ftl_sm_counters sm;      // summed over SMs
  int64_t full_sm_cycles;  // of `sampled`: SM cycles of the same work where each SM holds all CTAs that fit
  ftl_memory_counters memory;
  double error_bound_cycles_pct, error_bound_hbm_bytes_pct;  // relative to `full`
} ftl_totals;

// sum += part, field by field.
void ftl_sm_counters_add(ftl_sm_counters *sum, const ftl_sm_counters *part);

#endif
