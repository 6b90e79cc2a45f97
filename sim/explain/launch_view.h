// One launch of an answer, or their sum, as an explanation shows it: where its time goes, what keeps CTAs off an SM,
// and where it stands under the roofline.
#ifndef FTL_EXPLAIN_LAUNCH_VIEW_H
#define FTL_EXPLAIN_LAUNCH_VIEW_H

#include "report/column.h"

// Tensors of a launch once against the HBM, and its FLOPs against the tensor cores at their highest clock: no kernel of
// the same types takes less, but for what it writes and leaves in L2. As scenarios/reproduction/roofline.lua has it.
typedef struct ftl_roofline {
  double flops, least_bytes, hbm_bytes, l2_bytes;
  double peak_tflops, peak_hbm_gbps, peak_l2_gbps;
  double least_time_ns;  // the longer of FLOPs at their peak and least_bytes at theirs
  bool is_compute_bound;
} ftl_roofline;

typedef struct ftl_launch_view {
  const char *name, *bottleneck;
  const ftl_metrics *metrics;
  float usage_pct[FTL_RESOURCE_COUNT];
  double time_ns;
  double overhead_ns, idle_ns, work_ns;  // these sum to time_ns: start and drain, SMs without a warp, SMs with one
  const char *limited_by;  // "registers", "shared memory", ..., or "grid" where more CTAs would fit; NULL of a sum
  ftl_roofline roofline;
} ftl_launch_view;

// Of launch `launch_idx` of a feasible answer; -1: of all together, with usage weighed by time.
ftl_launch_view ftl_launch_view_of(const ftl_row *row, int launch_idx);

// Stall reasons, the largest first, without selected; gives how many of them are worth a line.
enum { FTL_NUM_STALLS = FTL_METRIC_stall_sleeping - FTL_METRIC_stall_selected };
int ftl_launch_view_stalls(const ftl_launch_view *view, ftl_metric out[FTL_NUM_STALLS]);
// What waits for what there, in a kernel of that spec.
const char *ftl_stall_meaning(ftl_metric stall, const ftl_spec *spec);

#endif
