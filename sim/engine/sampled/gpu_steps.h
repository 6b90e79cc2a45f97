// The whole GPU as tile-step events: every CTA walks its segments, each taking the time that one SM was found to need,
// stretched by what its loads have to wait for. Carries the drift between CTAs, and so the order in which L2 is asked.
#ifndef FTL_ENGINE_SAMPLED_GPU_STEPS_H
#define FTL_ENGINE_SAMPLED_GPU_STEPS_H

#include "engine/sampled/step_times.h"
#include "engine/sampled/traffic.h"
#include "engine/sampled/walk_plan.h"

typedef struct ftl_gpu_steps {
  int64_t end_cycle;               // SM cycles
  int64_t sm_active_cycles;        // summed over SMs
  int64_t cta_cycles;              // residence summed over CTAs
  int64_t skipped_ctas;            // stood in for by periods that agreed; no result, but what tests look at
  int64_t period_spread_permille;  // difference of the last two periods when CTAs were skipped
  ftl_traffic_counts counts;       // skipped CTAs included
} ftl_gpu_steps;

// `times` measures what is asked for first; `traffic` is left as the launch leaves it. FTL_INTERRUPTED, FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_gpu_steps_run(const ftl_launch *launch, const ftl_segments *segments, ftl_step_times *times,
                                          ftl_walk_plan plan, ftl_traffic *traffic, ftl_gpu_steps *out,
                                          ftl_error *error);

#endif
