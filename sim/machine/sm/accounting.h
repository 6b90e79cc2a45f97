// Every cycle of a warp before `settled` has a reason, once.
#ifndef FTL_MACHINE_SM_ACCOUNTING_H
#define FTL_MACHINE_SM_ACCOUNTING_H

#include "machine/sm/state.h"

// The pipe is about to be taken, or held anew: what waited for it while it was held.
void ftl_sm_count_held(sm_subcore *sc, uint8_t pipe);
static inline void sm_note_held(sm_subcore *sc, uint8_t pipe) {
  if (sc->held_pipes >> pipe & 1) ftl_sm_count_held(sc, pipe);
}

// It is free later than pipe_held says.
static inline void sm_set_held(sm_subcore *sc, uint8_t pipe) {
  if (pipe < FTL_SM_PIPE_TENSOR) sc->held_pipes |= 1u << pipe;
}

// The pipe takes nothing before `until`, though it has room. `wanted`: the pipes for which warps may have waited.
static inline void sm_hold(sm_subcore *sc, uint8_t pipe, int64_t now, int64_t until, uint32_t wanted) {
  if (sc->pipe_free[pipe] >= until) return;
  if (sc->pipe_free[pipe] <= now + 1) {  // it has room until then
    if (sc->held_pipes & wanted & 1u << pipe) ftl_sm_count_held(sc, pipe);
    sc->pipe_held[pipe] = now + 1;
  }
  sc->pipe_free[pipe] = until;
  sm_set_held(sc, pipe);
}

// Those that the next instructions of warps are for that do not wait for something whose time nobody knows.
static inline uint32_t sm_pipes_wanted(const sm_subcore *sc) {
  uint32_t pipes = 0;
  for (uint64_t awake = sc->awake; awake; awake &= awake - 1) pipes |= 1u << sc->pipe[__builtin_ctzll(awake)];
  return pipes;
}

// Beside a product a sub-core's pipes get their operands one after the other, whichever they are.
static inline void sm_hold_beside_product(sm_subcore *sc, int64_t now, int64_t until) {
  uint32_t wanted = sc->held_pipes ? sm_pipes_wanted(sc) : 0;
  for (uint8_t pipe = FTL_SM_PIPE_FP32; pipe <= FTL_SM_PIPE_SFU; pipe++) sm_hold(sc, pipe, now, until, wanted);
}

// The warp's cycles from `settled` to `until`, of which it was ready in some.
void ftl_sm_settle_ready(ftl_sm *sm, sm_subcore *sc, sm_warp *w, int64_t until);
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
