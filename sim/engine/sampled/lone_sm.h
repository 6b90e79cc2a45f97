// One SM against a memory that answers every request after a set latency, through the SM's read port.
#ifndef FTL_ENGINE_SAMPLED_LONE_SM_H
#define FTL_ENGINE_SAMPLED_LONE_SM_H

#include "arch/arch.h"
#include "machine/sm/sm.h"

// SM cycles until a line is at the SM, unloaded. Half of the lines have their home on the SM's side of L2 and come
// sooner than the others; of either one chunk comes last in as many as a DRAM channel serves between two refreshes for
// each that one holds up (dram.trefi_cycles / dram.trfc_cycles; chunks of machine/dram/map.h). Ascending. Lines of
// local memory, which the SM has stored itself, come from its side of L2 whatever the others are waited for.
typedef struct ftl_lone_latency {
  int64_t near_cycles, far_cycles, last_cycles;
  int64_t local_cycles;
} ftl_lone_latency;

// How the lines of a tile come that is there after latency_cycles: its last ones are those from the other side of L2,
// or those that a refresh of DRAM holds up. What is late by more queues for bandwidth, all lines alike.
ftl_lone_latency ftl_lone_latency_of(const ftl_arch *arch, int64_t sm_khz, int64_t latency_cycles);

enum { FTL_NO_CTA = -1 };

// What each slot runs: CTA cta[r * num_slots + slot] in round r, the first from cycle start[slot] on and each of the
// others as soon as a slot is filled again behind the one before. Of the last round slots may have FTL_NO_CTA. end[] is
// when each ended.
typedef struct ftl_lone_ctas {
  int32_t num_slots, num_rounds;
  const int64_t *cta, *start;
  int64_t *end;
} ftl_lone_ctas;

// Runs until all CTAs have ended. At most `capacity` slots (the SM's). on_issue hears of every instruction; with
// config->bulk, which is faster, of branches and exits. FTL_RUN_FAILED never happens: a stuck SM is a broken invariant.
FTL_MUST_USE ftl_status ftl_lone_sm_run(const ftl_sm_config *config, int64_t sm_khz, ftl_lone_latency latency,
                                        const ftl_lone_ctas *ctas, ftl_sm_on_issue on_issue, void *context,
                                        ftl_sm_counters *counters, ftl_error *error);

#endif
