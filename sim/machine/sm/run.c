// Runs as one event: a run of instructions on a pipe of the sub-core's own issues as one; up to its last but one where
// what follows it is more than an instruction that waits for its tokens.
//
// It does while what it keeps waiting cannot issue between its instructions: warps that are not ready before its end;
// and where the policy goes on with the warp that issued last an interval before, those that wait for the same pipe,
// which is taken again whenever it is free, and, where the run issues in every cycle, those that wait for the other
// pipes of the sub-core.
// What becomes able to issue meanwhile cuts the run there. Every counter is as if the instructions issued one by one.
#include "base/integer.h"
#include "machine/sm/accounting.h"

// The warp at `position` waits however long the run goes on.
static bool gives_way(const ftl_sm *sm, const sm_subcore *sc, int32_t position, uint8_t pipe, int64_t interval) {
  if (interval > sm->policy.goes_on_cycles) return false;
  return sc->pipe[position] == pipe || (interval == 1 && sc->pipe[position] <= FTL_SM_PIPE_SFU);
}

// Until when nothing else of the sub-core can issue between the run's instructions.
static int64_t undisturbed_until(const ftl_sm *sm, const sm_subcore *sc, int32_t position, int64_t interval) {
  int64_t limit = SM_NEVER;
  for (uint64_t others = sm_others_awake(sc, position); others; others &= others - 1) {
    int32_t i = __builtin_ctzll(others);
    int64_t at = sm_issues_at(sc, i);
    if (at < limit && !gives_way(sm, sc, i, sc->pipe[position], interval)) limit = at;
  }
  return limit;
}

bool ftl_sm_run_try(const ftl_sm *sm, sm_subcore *sc, int32_t position, int64_t now) {
  const sm_warp *w = sc->warps[position];
  if (sc->dispatch_free > now || sm_wgmma_runs(sm, now)) return false;  // they may freeze
  int64_t interval = w->op->interval, limit = undisturbed_until(sm, sc, position, interval);
  if (sm->until < limit) limit = sm->until;
  if (limit <= now + interval) return false;
  int64_t count = w->repeat_left;
  if (limit - now <= (count - 1) * interval)
    count = ftl_divide_up(limit - now, interval);
  else if (!sm_ends_alone(sm, w, now))
    count--;
  sc->run = (sm_run){.start = now, .count = count, .interval = interval, .position = position};
  *sc->next = now + (count - 1) * interval + 1;
  return true;
}

void ftl_sm_run_cut(sm_subcore *sc, int64_t cycle) {
  sm_run *run = &sc->run;
  int64_t count = ftl_divide_up(cycle - run->start, run->interval);
  if (count < run->count) run->count = count;
  *sc->next = run->start + (run->count - 1) * run->interval + 1;
}

// The warps that could have issued instead of the run's second and later instructions. (Of the first, the policy
// chose.)
static void count_not_selected(sm_subcore *sc, const sm_run *run, int64_t last, uint64_t others) {
  uint8_t pipe = sc->pipe[run->position];
  for (; others; others &= others - 1) {
    int32_t i = __builtin_ctzll(others);
    int64_t at = sc->pipe[i] == pipe ? sc->ready[i] : sm_issues_at(sc, i);
    if (at > last) continue;
    int64_t missed = (last - at) / run->interval + 1;
    sc->not_selected[i] += (uint32_t)(missed < run->count - 1 ? missed : run->count - 1);
  }
}

int64_t ftl_sm_run_finish(ftl_sm *sm, sm_subcore *sc) {
  const sm_run run = sc->run;
  sc->run.position = -1;
  sm_subcore_changed(sc);
  FTL_CHECK(run.count > 0, "SM %d: a run is cut before it began", sm->config.sm_idx);
  sm_warp *w = sc->warps[run.position];
  const sm_op *op = w->op;
  int64_t later = run.count - 1, last = run.start + later * run.interval;
  uint64_t others = sm_others_awake(sc, run.position);
  count_not_selected(sc, &run, last, others);
  sm_settle(sm, sc, w, run.start);
  sm->counters.stall_cycles[FTL_STALL_WAIT] += later * (op->interval - 1);
  w->settled = last + 1;
  w->reason = FTL_STALL_WAIT;
  w->repeat_left = (uint8_t)(w->repeat_left - run.count);
  sm_note_issue(sc, run.position, run.start, sm->policy.yields);
  if (run.interval == 1) sc->pace_start += later;
  if (run.interval > 2 && later > 0) sc->pace_start = last;
  sc->last_issue = last;
  sc->pipe_kept[op->pipe] = sc->pipe_free[op->pipe] = last + run.interval;
  sc->pipe_taker[op->pipe] = run.position;
  w->last_pipe = op->pipe;
  if (op->dispatch) sc->dispatch_free = last + 1;
  sc->ready[run.position] = last + op->interval;
  sm->counters.pipe_insts[op->pipe] += run.count;
  return last;
}
