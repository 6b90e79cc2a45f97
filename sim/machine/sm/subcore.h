// A sub-core: which of its warps may issue, and when its pipes are free.
#ifndef FTL_MACHINE_SM_SUBCORE_H
#define FTL_MACHINE_SM_SUBCORE_H

#include "arch/arch_limits.h"
#include "machine/sm/mio.h"
#include "machine/sm/pipes.h"
#include "machine/sm/warp.h"

enum {
  SM_MAX_POSITIONS = FTL_ARCH_MAX_sm_max_warps,  // all on one sub-core
  SM_YIELD_INSTS = 6,  // of instructions two cycles apart one in so many lets other warps go first
};

_Static_assert(SM_MAX_POSITIONS <= 64, "positions are the bits of a word");

typedef struct sm_run {  // a run of one warp that is issued as one event: see run.c
  int64_t start, count, interval;
  int32_t position;  // -1: none
} sm_run;

struct sm_subcore {
  int32_t index;                    // of the SM's
  int64_t *next;                    // in sm->next: nothing can issue before this cycle
  int64_t ready[SM_MAX_POSITIONS];  // SM_NEVER: blocked, or no warp
  uint64_t awake;                   // positions where it is a cycle
  uint8_t pipe[SM_MAX_POSITIONS];
  int64_t pipe_free[FTL_SM_PIPE_COUNT];
  int64_t pipe_kept[FTL_SM_PIPE_COUNT];     // the same, but for mma.syncs that wait for operands of others
  int32_t pipe_taker[FTL_SM_PIPE_COUNT];    // position of the warp that issued there last
  int32_t num_positions, last;              // `last`: of the warp that issued last
  int64_t last_issue;                       // when it did
  int64_t pace_start;                       // when it would have begun, had it issued every second cycle: see sm_paced
  int64_t eligible_at;                      // when `eligible`, and no other, may issue; SM_NEVER: to be found anew
  uint64_t eligible;                        // positions
  uint32_t not_selected[SM_MAX_POSITIONS];  // cycles since `settled` in which another warp was chosen
  uint32_t undispatched[SM_MAX_POSITIONS];  // the same in which the sub-core was frozen
  int64_t age[SM_MAX_POSITIONS];            // order of arrival: CTAs, and within one its warps by the policy
  sm_warp *warps[SM_MAX_POSITIONS];
  sm_run run;
  int64_t dispatch_free;  // all that has issued is dispatched by then
  int64_t thaws;          // nothing issues before this cycle: see operands.h
  uint64_t frozen;        // positions whose cycles before it count as undispatched already
  int64_t reads_until;    // beside a wgmma: of what has issued
  int64_t taken;          // cycles of the wgmmas since the tensor cores were idle last
  int64_t mio_ready;      // the next instruction may go to the LSU from this cycle on
  uint32_t mio_order;     // of the next instruction that comes
  sm_mio_queue queues[SM_QUEUES];
};

typedef struct sm_policy {
  int32_t (*pick)(const sm_subcore *sc, uint64_t eligible);  // a position among the bits of `eligible`, at least one
  int64_t goes_on_cycles;  // with the warp that issued last, if it can so many cycles later or sooner
  bool youngest_of_cta;    // among the warps of a CTA the last counts as the oldest
  bool yields;             // looks at sm_paced
} sm_policy;

// ---- run.c ----
// Issues what it can of the run that the warp begins as one event; false: nothing.
bool ftl_sm_run_try(const ftl_sm *sm, sm_subcore *sc, int32_t position, int64_t now);
// It ends before `cycle`: what is left of it issues one by one.
void ftl_sm_run_cut(sm_subcore *sc, int64_t cycle);
// Gives the cycle of the last instruction that issued. The warp has issued all of its run where repeat_left is 0.
int64_t ftl_sm_run_finish(ftl_sm *sm, sm_subcore *sc);

// When the warp may issue as things stand.
static inline int64_t sm_issues_at(const sm_subcore *sc, int32_t position) {
  int64_t ready = sc->ready[position], pipe = sc->pipe_free[sc->pipe[position]];
  return ready > pipe ? ready : pipe;
}

static inline uint64_t sm_others_awake(const sm_subcore *sc, int32_t position) {
  return sc->awake & ~(UINT64_C(1) << position);
}

// Something else than its own issuing has changed what the sub-core may issue.
static inline void sm_subcore_changed(sm_subcore *sc) { sc->eligible_at = SM_NEVER; }

// The same, and it may issue something from `cycle` on.
static inline void sm_subcore_wake(sm_subcore *sc, int64_t cycle) {
  sm_subcore_changed(sc);
  if (cycle < *sc->next && sc->run.position >= 0) ftl_sm_run_cut(sc, cycle);
  if (cycle < *sc->next) *sc->next = cycle;
}

// The warp at `position` issues.
static inline void sm_note_issue(sm_subcore *sc, int32_t position, int64_t now, bool yields) {
  if (yields) {
    int64_t distance = now - sc->last_issue;
    bool goes_on = position == sc->last && distance <= 2;
    sc->pace_start = goes_on ? sc->pace_start + (distance & 1) : now;
  }
  sc->last = position;
  sc->last_issue = now;
}

// Of the instructions of the warp that issued last, how many in a row came two cycles after the one before, modulo
// SM_YIELD_INSTS.
static inline int64_t sm_paced(const sm_subcore *sc) { return (sc->last_issue - sc->pace_start) / 2 % SM_YIELD_INSTS; }

// The compiler's stall counts hold a warp while it keeps the pipe of its next instruction busy itself: it is not ready
// before (a `wait`), and a throttle is what other warps do to it. They know nothing of dispatch. 0 where that does not
// hold it.
static inline int64_t sm_own_pipe_free(const sm_subcore *sc, const sm_warp *w) {
  uint8_t pipe = w->op->pipe;
  if (pipe <= FTL_SM_PIPE_GMMA) return sc->pipe_taker[pipe] == w->position ? sc->pipe_kept[pipe] : 0;
  return pipe <= FTL_SM_PIPE_LG ? w->mio_free : 0;
}

#endif
