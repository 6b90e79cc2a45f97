// Every cycle of a warp before `settled` has a reason, once.
#ifndef FTL_MACHINE_SM_ACCOUNTING_H
#define FTL_MACHINE_SM_ACCOUNTING_H

#include "machine/sm/state.h"

// The warp's cycles from `settled` to `until`, of which it was ready in some.
void ftl_sm_settle_ready(ftl_sm *sm, sm_subcore *sc, sm_warp *w, int64_t until);
// The same of any warp: cycles in which it was not ready have its reason.
static inline void sm_settle(ftl_sm *sm, sm_subcore *sc, sm_warp *w, int64_t until) {
  if (w->settled >= until) return;
  if (sc->ready[w->position] < until) {
    ftl_sm_settle_ready(sm, sc, w, until);
    return;
  }
  sm->counters.stall_cycles[w->reason] += until - w->settled;
  w->settled = until;
}

#endif
