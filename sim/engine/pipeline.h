// Runs the launches of a prediction: cache states between them, and the SM clock that their power allows.
#ifndef FTL_ENGINE_PIPELINE_H
#define FTL_ENGINE_PIPELINE_H

#include "engine/launch.h"
#include "engine/predict.h"
#include "engine/sampled/walk_plan.h"
#include "engine/work.h"

typedef struct ftl_pipeline_launch {
  ftl_launch launch;
  ftl_static_work work;
  ftl_walk_plan plan;  // of a sampled run: set by ftl_pipeline_run
  ftl_totals totals;   // set by ftl_pipeline_run
  int64_t whole_ctas;  // of a probe of whole periods: CTAs of the launch that it begins; else 0
} ftl_pipeline_launch;

// L2 before each launch.
typedef struct ftl_pipeline_caches {
  bool fouled;  // `cold` means as a 256 MB fill left L2 (stream), not as Nsight Compute does (ncu)
  bool warm;    // every launch finds L2 as an earlier run of the pipeline left it
  bool chain;   // the launches after the first find L2 as the one before left it
} ftl_pipeline_caches;

typedef struct ftl_pipeline {
  ftl_pipeline_launch launches[FTL_MAX_LAUNCHES];
  int num_launches;
  ftl_pipeline_caches caches;
  bool full;
  int64_t num_in_a_row;  // times that the launches run back to back until the clock is theirs; 1: on their own
  int64_t held_khz;      // SM clock that the user holds; 0: as power allows
} ftl_pipeline;

// Fills in what ftl_pipeline_launch says. The status is that of the first launch that fails.
FTL_MUST_USE ftl_status ftl_pipeline_run(ftl_pipeline *pipeline, ftl_error *error);

#endif
