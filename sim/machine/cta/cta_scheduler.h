// The CTA scheduler: which CTA starts on which SM, and when.
// Models: placement order over SMs, one CTA per cta_interval_cycles and GPC, refill when a CTA ends, launch order of
// the
//   grid; CTAs that are handed out by index (0, 1, 2 ...); clusters, whose CTAs start together on SMs of one GPC.
// Does not model: several kernels at once, priorities.
// Numbers: launch.cta_interval_cycles, launch.cta_start_cycles; placement order: docs/model_cta_scheduler.md.
#ifndef FTL_MACHINE_CTA_CTA_SCHEDULER_H
#define FTL_MACHINE_CTA_CTA_SCHEDULER_H

#include <stdint.h>

#include "arch/arch.h"
#include "base/status.h"

typedef struct ftl_cta_scheduler ftl_cta_scheduler;

typedef struct ftl_cta_start {
  int64_t cta;
  int64_t cycle;  // first instruction
  int32_t sm, slot;
} ftl_cta_start;

enum { FTL_CTA_MAX_CLUSTER = 16 };

// A grid of num_ctas on SMs that hold ctas_per_sm each. Each cluster_ctas in a row (1: no clusters; at most the SMs of
// a GPC) are a cluster.
FTL_MUST_USE ftl_status ftl_cta_scheduler_create(ftl_cta_scheduler **out, const ftl_arch *arch, int64_t num_ctas,
                                                 int32_t ctas_per_sm, int32_t cluster_ctas, ftl_error *error);
void ftl_cta_scheduler_destroy(ftl_cta_scheduler *scheduler);

// CTAs that the GPU holds at once: in each GPC as many clusters as its SMs take, one CTA of a cluster an SM.
int64_t ftl_cta_num_resident(const ftl_arch *arch, int32_t ctas_per_sm, int32_t cluster_ctas);

// The next cluster of the first fill, its CTAs in order of index: gives cluster_ctas, or 0 when every slot is filled or
// the grid is used up.
int32_t ftl_cta_scheduler_fill(ftl_cta_scheduler *scheduler, ftl_cta_start starts[FTL_CTA_MAX_CLUSTER]);
// A CTA has left (sm, slot) in `cycle`: gives the cluster that starts for it, or 0 when no CTA is left or the GPC has
// not room for a cluster yet. Calls must be in order of (cycle, sm, slot).
int32_t ftl_cta_scheduler_refill(ftl_cta_scheduler *scheduler, int32_t sm, int32_t slot, int64_t cycle,
                                 ftl_cta_start starts[FTL_CTA_MAX_CLUSTER]);
// CTAs not started yet.
int64_t ftl_cta_scheduler_num_left(const ftl_cta_scheduler *scheduler);
// Lets the next CTA be `num_ctas` further on, as if those between had run (skipped waves).
void ftl_cta_scheduler_skip(ftl_cta_scheduler *scheduler, int64_t num_ctas);

#endif
