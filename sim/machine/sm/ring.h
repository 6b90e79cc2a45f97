// The stages of rings in shared memory with their mbarriers, and named barriers (barrier.c).
#ifndef FTL_MACHINE_SM_RING_H
#define FTL_MACHINE_SM_RING_H

#include "machine/sm/warp.h"

typedef struct sm_stage {    // a ring's stage with its two mbarriers
  uint32_t fills, arrivals;  // completed full phases; consumer arrivals, all phases together
  int32_t pending_lines;     // TMA lines (and copies not issued in full) of the current phase
  bool expected, closed;     // the producer has arrived; it went on to the next stage
  int64_t time;              // when the last line came; of a completed phase: when it completed
} sm_stage;

// The stage that the warp's CTA has for fill number `fill` of a ring, and its index among those of the SM.
sm_stage *ftl_sm_stage(ftl_sm *sm, const sm_warp *w, int32_t ring, uint32_t fill, int32_t *index);
// The warp issues BAR.SYNC or BAR.ARRIVE in cycle `now`; the last of those that meet opens the barrier.
void ftl_sm_barrier_come(ftl_sm *sm, sm_warp *w, int64_t now);
// The warp goes on once the stage of its next fill is empty.
void ftl_sm_mbar_acquire(ftl_sm *sm, sm_warp *w, int64_t now);
// The warp goes on once the fill that it waits for next is full.
void ftl_sm_mbar_wait(ftl_sm *sm, sm_warp *w, int64_t now);
// The producer arrives at the stage's full barrier.
void ftl_sm_mbar_expect(ftl_sm *sm, int32_t stage, int64_t now);
// So many consumer warps arrive at the stage's empty barrier.
void ftl_sm_mbar_release(ftl_sm *sm, int32_t stage, uint32_t count, int64_t now);
// The warp goes on to the ring's next fill; with a producer's first warp all copies into the stage have been issued.
void ftl_sm_mbar_advance(ftl_sm *sm, sm_warp *w, int32_t ring, int64_t now);
// Ends the stage's phase if the producer has arrived and gone on and no line is missing.
void ftl_sm_stage_try_complete(ftl_sm *sm, int32_t stage, int64_t now);

#endif
