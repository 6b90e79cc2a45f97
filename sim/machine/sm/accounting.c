#include "machine/sm/accounting.h"

void ftl_sm_settle_ready(ftl_sm *sm, sm_subcore *sc, sm_warp *w, int64_t until) {
  int64_t from = w->settled, ready = sc->ready[w->position];
  bool is_frozen = until < sc->thaws && sc->frozen >> w->position & 1;
  int64_t to_come = is_frozen ? sc->thaws - until : 0, undispatched = sc->undispatched[w->position] - to_come;
  w->settled = until;
  if (ready > from) {
    sm->counters.stall_cycles[w->reason] += ready - from;
    from = ready;
  }
  int64_t not_selected = sc->not_selected[w->position];
  FTL_CHECK(until - from >= not_selected + undispatched,
            "warp %d: more cycles with a reason than cycles, at cycle %lld", w->warp, (long long)until);
  sm->counters.stall_cycles[FTL_STALL_NOT_SELECTED] += not_selected;
  sm->counters.stall_cycles[FTL_STALL_DISPATCH_STALL] += undispatched;
  sm->counters.stall_cycles[w->op->throttle] += until - from - not_selected - undispatched;
  sc->not_selected[w->position] = 0;
  sc->undispatched[w->position] = (uint32_t)to_come;
}
