#include "machine/sm/accounting.h"

// Of the cycles in which a pipe is held, from `held` to `until`, those not settled yet in which the warp could have
// issued but for dispatch. An mma.sync that waits for the operands of another waits for the tensor pipe: Nsight Compute
// calls that math_pipe_throttle, as it does where nothing but mma.sync is dispatched.
static inline int64_t held_cycles(const sm_subcore *sc, int32_t position, int64_t held, int64_t until) {
  int64_t from = held, ready = sc->ready[position];
  if (ready >= until) return 0;
  int64_t settled = sc->warps[position]->settled;
  if (from < ready) from = ready;
  if (from < settled) from = settled;
  return until > from ? until - from : 0;
}

void ftl_sm_count_held(sm_subcore *sc, uint8_t pipe) {
  int64_t held = sc->pipe_held[pipe], until = sc->pipe_free[pipe];
  sc->held_pipes &= ~(1u << pipe);
  for (uint64_t awake = sc->awake; awake; awake &= awake - 1) {
    int32_t i = __builtin_ctzll(awake);
    if (sc->pipe[i] == pipe) sc->undispatched[i] += (uint32_t)held_cycles(sc, i, held, until);
  }
}

void ftl_sm_settle_ready(ftl_sm *sm, sm_subcore *sc, sm_warp *w, int64_t until) {
  int64_t from = w->settled, ready = sc->ready[w->position], held = sc->undispatched[w->position];
  uint8_t pipe = sc->pipe[w->position];
  if (sc->held_pipes >> pipe & 1) {
    int64_t free = sc->pipe_free[pipe] < until ? sc->pipe_free[pipe] : until;
    held += held_cycles(sc, w->position, sc->pipe_held[pipe], free);
  }
  w->settled = until;
  if (ready > from) {
    sm->counters.stall_cycles[w->reason] += ready - from;
    from = ready;
  }
  int64_t not_selected = sc->not_selected[w->position];
  FTL_CHECK(until - from >= not_selected + held, "warp %d: more cycles with a reason than cycles, at cycle %lld",
            w->warp, (long long)until);
  sm->counters.stall_cycles[FTL_STALL_NOT_SELECTED] += not_selected;
  sm->counters.stall_cycles[FTL_STALL_DISPATCH_STALL] += held;
  sm->counters.stall_cycles[w->op->throttle] += until - from - not_selected - held;
  sc->not_selected[w->position] = sc->undispatched[w->position] = 0;
}
