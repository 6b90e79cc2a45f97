// One prediction: a workload's configuration on a GPU.
#ifndef FTL_ENGINE_PREDICT_H
#define FTL_ENGINE_PREDICT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "arch/arch.h"
#include "lower/warp_program.h"
#include "workloads/spec.h"

typedef enum ftl_metric {
#define FTL_METRIC(id, name, unit, combine, doc) FTL_METRIC_##id,
#include "engine/metrics.def"
#undef FTL_METRIC
  FTL_METRIC_COUNT
} ftl_metric;

typedef enum ftl_combine { FTL_COMBINE_SUM, FTL_COMBINE_MAX, FTL_COMBINE_MEAN } ftl_combine;
typedef struct ftl_metric_info {
  const char *name, *unit, *doc;
  ftl_combine combine;
} ftl_metric_info;
// Static.
const ftl_metric_info *ftl_metric_get(ftl_metric metric);
int ftl_metric_find(const char *name);  // -1: none
// "long_scoreboard" of FTL_METRIC_stall_long_scoreboard, into a buffer of at least 32 bytes.
const char *ftl_stall_name(ftl_metric stall, char *buffer);

typedef struct ftl_metrics {
  double value[FTL_METRIC_COUNT];
} ftl_metrics;

typedef enum ftl_resource {
#define FTL_RESOURCE(id, name, full) FTL_RESOURCE_##id,
#include "engine/resources.def"
#undef FTL_RESOURCE
  FTL_RESOURCE_COUNT
} ftl_resource;
typedef struct ftl_resource_info {
  const char *id, *name, *full;
} ftl_resource_info;
// Static.
const ftl_resource_info *ftl_resource_get(ftl_resource resource);
// Of FTL_RESOURCE_COUNT shares the largest.
ftl_resource ftl_resource_most_used(const float *usage_pct);

// What bounds a launch: a resource near its peak; SMs without a CTA; or, where neither does, why warps wait.
typedef enum ftl_bound { FTL_BOUND_RESOURCE, FTL_BOUND_IDLE_SMS, FTL_BOUND_STALL } ftl_bound;
typedef struct ftl_bottleneck {
  ftl_bound bound;
  ftl_resource resource;  // of FTL_BOUND_RESOURCE
  ftl_metric stall;       // of FTL_BOUND_STALL: FTL_METRIC_stall_wait, ...
} ftl_bottleneck;
// In a few words; static.
const char *ftl_bottleneck_name(ftl_bottleneck bottleneck);

typedef struct ftl_kernel_answer {
  char name[FTL_TILE_NAME_BYTES];
  ftl_metrics metrics;
  // What follows is of a prediction just made: a database does not keep it.
  ftl_bottleneck bottleneck;
  float usage_pct[FTL_RESOURCE_COUNT];  // of each resource's peak; sets of answers are large
} ftl_kernel_answer;

typedef struct ftl_prediction {
  ftl_spec spec;  // completed; `auto` values resolved
  bool feasible;
  char reason[FTL_ERROR_MESSAGE_BYTES];  // when not feasible
  int num_kernels;
  int longest_kernel;  // which takes the most cycles; of a prediction just made, as its bottleneck
  ftl_kernel_answer kernels[FTL_MAX_LAUNCHES];
  ftl_metrics metrics;                                       // combined over the launches
  char bottleneck[48];                                       // of the longest launch, its name
  double error_bound_cycles_pct, error_bound_hbm_bytes_pct;  // relative to `full`; 0 under full
  double wall_s;  // host seconds: the only field that may differ between two runs
} ftl_prediction;

typedef struct ftl_predict_options {
  int num_threads;            // host threads for `full` (results are the same on any number); 0: 1
  bool no_bulk;               // every instruction its own event
  const atomic_bool *cancel;  // may be NULL; when it becomes true the run ends with FTL_INTERRUPTED
} ftl_predict_options;

// `spec` must be complete (ftl_spec_complete). An infeasible configuration is FTL_OK with feasible == false.
FTL_MUST_USE ftl_status ftl_predict(const ftl_spec *spec, const ftl_arch *arch, const ftl_predict_options *options,
                                    ftl_prediction *out, ftl_error *error);

// The warp program of launch `launch_idx` (for `foretile trace` and tests); FTL_INFEASIBLE with the reason.
// *tile must be destroyed after *warps.
FTL_MUST_USE ftl_status ftl_predict_programs(const ftl_spec *spec, const ftl_arch *arch, int launch_idx,
                                             ftl_tile_program **tile, ftl_warp_program **warps, ftl_error *error);

// Flat text trace of one CTA: "warp pc opcode repeat dst srcs | sectors", one instruction a line; at most max_lines.
FTL_MUST_USE ftl_status ftl_trace_write(FILE *out, const ftl_warp_program *program, int64_t cta, int64_t max_lines,
                                        ftl_error *error);
// Chrome-trace JSON of one SM in launch `launch_idx`, over SM cycles [from, until): what each warp issues, at most two
// million instructions; where it was cut stands behind the events (otherData).
FTL_MUST_USE ftl_status ftl_timeline_write(FILE *out, const ftl_spec *spec, const ftl_arch *arch, int launch_idx,
                                           int64_t from_cycle, int64_t until_cycle, ftl_error *error);

#endif
