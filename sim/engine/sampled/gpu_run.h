// The state of a walk of tile steps, which the files gpu_*.c share: gpu_steps.c moves CTAs from step to step,
// gpu_ctas.c starts and ends them, gpu_skip.c skips those of periods to come, gpu_access.c makes their accesses.
#ifndef FTL_ENGINE_SAMPLED_GPU_RUN_H
#define FTL_ENGINE_SAMPLED_GPU_RUN_H

#include "engine/sampled/cursor.h"
#include "engine/sampled/event_heap.h"
#include "engine/sampled/gpu_steps.h"
#include "engine/sampled/l1_tiles.h"
#include "engine/sampled/local_lines.h"
#include "engine/sampled/steady.h"
#include "machine/cta/cta_scheduler.h"

// What a step's accesses do to it.
typedef struct ftl_step_wait {
  int64_t latency_cycles;              // longest of its loads; 0 without loads
  int64_t queue_ticks;                 // longest queueing of loads that it waits for itself
  int64_t least_ticks;                 // time of a group of steps for its loads ahead to arrive
  int64_t asking_ticks, intake_ticks;  // time in which the SM asks for its loads, and in which it takes them in
  ftl_tile_marks marks;                // of all its loads
  ftl_store_intake stores;             // what its stores take; of L2 0 once they are handed on
  uint64_t due;                        // arrivals that its loads set, one bit each
  bool waits;                          // for one of its loads
} ftl_step_wait;

// CTAs of a cluster take their steps together: what one waits for its peers wait for too, since they share loads. The
// state of a cluster is that of its first CTA.
typedef struct ftl_cta_state {
  int64_t cta, start_cycle;  // start_cycle: INT64_MAX where no CTA is
  int64_t next_tile;         // of a persistent CTA, after `cta`
  int64_t iteration, trips;  // in the present loop
  int64_t first_value;       // of its variable
  int64_t count;             // iterations that the present event stands for
  int64_t pace_ticks;        // of one, without queueing
  int64_t work, stored;      // done by its steps so far (ftl_gpu_run); sectors that they stored
  int64_t held_ticks;        // for which CTAs that begin as it did are held up on average before they ask for tiles
  int64_t untimed_ticks;     // of issue slots, by code whose time is that of a loop that did not run
  int64_t latency_before_cycles;  // SM cycles: longest of the loads of code whose time is that of the loop behind it
  int64_t outer, outer_left;      // value of the outer loop's variable, and iterations of it after this one
  int32_t segment;
  int32_t step;        // steps taken, all loops counted on
  int32_t first_cold;  // segments from here on are code that the SM has not run yet
  bool is_bare;        // it runs no loop, while others do
  bool is_ending;      // its last step is done: until then it shares the SM
  bool is_waiting;     // its loads are made and it is to be seen what others asked for meanwhile
  bool is_loaded;      // its next event finds all of its step over but the stores, which are still to be made
  bool is_storing;     // they are made, and L2 has yet to take them
  ftl_step_wait wait;  // then: of its loads,
  int64_t made_ticks, end_ticks;  // when they were made, and when the step would end
  // Of what steps to come need, by step modulo the most stages that a ring has.
  int64_t arrival_ticks[FTL_TILE_MAX_STAGES];
} ftl_cta_state;

typedef struct ftl_gpu_run {
  const ftl_launch *launch;
  const ftl_segments *segments;
  ftl_walk_plan plan;
  ftl_step_times *times;
  ftl_traffic *traffic;
  ftl_cta_scheduler *scheduler;
  ftl_cta_state *slots;
  double gpc_slowness[FTL_MAX_GPCS];  // by how much longer than the mean its steps take
  int64_t num_tiles_taken;            // from the counter of dynamic tiles, those at the start included
  int32_t cluster_ctas;
  int32_t *members;  // per slot of a cluster's first CTA, cluster_ctas each: the slots of its CTAs
  int32_t *sm_of_slot;
  int32_t *resident;            // CTAs per SM
  int32_t num_active_sms;       // that have some
  int64_t num_ctas;             // resident
  int64_t *active_since_cycle;  // per SM
  bool *has_code;               // per SM: a CTA has run there to its end
  ftl_cta_exprs cta_exprs;      // those of its segments
  int64_t *cta_values;          // per slot, cta_exprs.count each: at its CTA
  ftl_ref_cursor *cursors;      // per slot, num_cursors each: of the accesses of its segment
  ftl_tile_trail *trails;       // as many
  int32_t num_cursors;          // most accesses of a segment
  ftl_l1_tiles l1;              // where segments->has_direct
  ftl_ref_step steps[FTL_MAX_SEGMENTS][FTL_MAX_SEGMENT_REFS];
  bool stores_last[FTL_MAX_SEGMENTS];               // straight code that loads and stores
  bool is_timed[FTL_MAX_SEGMENTS];                  // not where a loop behind it, which ran once, has its time
  int64_t shared_drift_permille[FTL_MAX_SEGMENTS];  // of an iteration, for each other CTA on the SM; 0: straight code
  bool settles[FTL_MAX_SEGMENTS];                   // loops of wgmmas that fetch ahead, of many CTAs an SM
  bool begins_apart;  // CTAs share tiles and no loop waits for what it asks for: those that come to it apart stay so
  // By how many cycles a segment, of a loop an iteration, takes longer in the SM's youngest CTA than in its oldest.
  const double *age_cycles;
  int64_t store_spread_permille[FTL_MAX_SEGMENTS];  // of straight code that stores parts of sectors
  ftl_local_lines local;
  ftl_event_heap heap;
  int32_t ctas_per_sm, num_segments;
  ftl_gpu_steps *out;
  int64_t work_of_segment[FTL_MAX_SEGMENTS];  // what one execution takes at the shortest latency, in sixteenths
  int64_t work, num_steps;                    // done by all CTAs; steps or groups of them that they took
  int64_t period_work, period_ctas;           // of the CTAs of the first period that have ended, and their number
  int64_t period_stored;                      // sectors that they stored
  int64_t skipped_cycles;
  ftl_steady steady;
} ftl_gpu_run;

// A CTA of a cluster: its own slot, and that of the cluster's state.
typedef struct ftl_cta_member {
  int32_t slot, state_slot;
  int64_t cta;
} ftl_cta_member;

static inline int32_t ftl_gpu_sm_of(const ftl_gpu_run *run, int32_t slot) { return run->sm_of_slot[slot]; }

// CTA `rank` of the cluster whose state is in state_slot.
static inline ftl_cta_member ftl_gpu_member(const ftl_gpu_run *run, int32_t state_slot, int32_t rank) {
  return (ftl_cta_member){.slot = run->members[state_slot * run->cluster_ctas + rank],
                          .state_slot = state_slot,
                          .cta = run->slots[state_slot].cta + rank};
}

// Where the member is, for expressions: `outer` is the value of the outer loop's variable.
static inline ftl_cta_at ftl_gpu_cta_at(const ftl_gpu_run *run, ftl_cta_member member, int64_t outer) {
  const int64_t *values = &run->cta_values[member.slot * run->cta_exprs.count];
  return (ftl_cta_at){.cta = member.cta, .outer = outer, .of_cta = {.place = run->cta_exprs.place, .values = values}};
}

// ---- gpu_ctas.c ----
// The CTAs that the scheduler starts together take their slots, and their first event.
void ftl_gpu_start_cluster(ftl_gpu_run *run, const ftl_cta_start *starts);
// Called when a cluster enters a segment.
void ftl_gpu_set_cursors(ftl_gpu_run *run, int32_t slot);
// At the end of the cluster's last step: its next tile, or the CTAs that take its place.
void ftl_gpu_end_cta(ftl_gpu_run *run, int32_t slot, int64_t now_ticks);

// ---- gpu_pace.c ----
// CTAs on the slot's SM that are in other segments than its own.
int32_t ftl_gpu_num_elsewhere(const ftl_gpu_run *run, int32_t slot);
// For how long the CTA that begins in the slot is held up by the SM's others before it asks for its first tiles; *mean:
// the same of all that begin so. Both are part of the time of the first segment that has one.
int64_t ftl_gpu_hold_up(const ftl_gpu_run *run, int32_t slot, int64_t *mean_ticks);

// ---- gpu_skip.c ----
// Called when the CTA that begins a period has started: skips the periods to come once the last ones stand for them.
void ftl_gpu_consider_skip(ftl_gpu_run *run, int64_t now_ticks);

// ---- gpu_steps.c ----
// Ticks of the slot's segment, an iteration of it, with loads that take latency_cycles.
int64_t ftl_gpu_pace_of(const ftl_gpu_run *run, int32_t slot, int64_t latency_cycles);

// ---- gpu_pace.c ----
// By how much the steps of each segment may deviate.
void ftl_gpu_find_deviations(ftl_gpu_run *run);
// By how many ticks the slot's step or group of steps, which takes `ticks` on average, deviates from that: its GPC's
// clock, its turn on the SM, and at random.
int64_t ftl_gpu_deviation(const ftl_gpu_run *run, int32_t slot, int64_t ticks);

// ---- gpu_access.c ----
// Access `ref_idx` of the present segment, for the iterations that the present event stands for; what it makes the step
// wait for is added to *longest. False when memory is out.
bool ftl_gpu_try_access(ftl_gpu_run *run, ftl_cta_member member, int32_t ref_idx, int64_t now_ticks,
                        ftl_step_wait *longest);

#endif
