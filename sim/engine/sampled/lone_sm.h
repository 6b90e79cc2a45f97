// One SM against a memory that answers every request after a set latency, through the SM's read port.
#ifndef FTL_ENGINE_SAMPLED_LONE_SM_H
#define FTL_ENGINE_SAMPLED_LONE_SM_H

#include "arch/arch.h"
#include "machine/sm/sm.h"

// SM cycles until a line is at the SM, unloaded. Half of the lines have their home on the SM's side of L2 and come
// sooner than the others; of either one chunk comes last in as many as a DRAM channel serves between two refreshes for
// each that one holds up (dram.trefi_cycles / dram.trfc_cycles; chunks of machine/dram/map.h). Ascending.
typedef struct ftl_lone_latency {
  int64_t near_cycles, far_cycles, last_cycles;
} ftl_lone_latency;

// How the lines of a tile come that is there after latency_cycles: its last ones are those from the other side of L2,
// or those that a refresh of DRAM holds up. What is late by more queues for bandwidth, all lines alike.
ftl_lone_latency ftl_lone_latency_of(const ftl_arch *arch, int64_t sm_khz, int64_t latency_cycles);

// Starts CTA ctas[i] in slot i at cycle starts[i] and runs until all have ended; end_cycles[i] is when. At most
// `capacity` CTAs (the SM's slots). on_issue hears of every instruction; with config->bulk, which is faster, of
// branches and exits. FTL_RUN_FAILED never happens: a stuck SM is a broken invariant.
FTL_MUST_USE ftl_status ftl_lone_sm_run(const ftl_sm_config *config, int64_t sm_khz, ftl_lone_latency latency,
                                        const int64_t *ctas, const int64_t *starts, int32_t num_ctas,
                                        ftl_sm_on_issue on_issue, void *context, int64_t *end_cycles,
                                        ftl_sm_counters *counters, ftl_error *error);

#endif
