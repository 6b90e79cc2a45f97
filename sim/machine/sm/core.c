// The cycles of an SM: which events are next, which warp of a sub-core issues, and what issuing does.
#include "machine/sm/accounting.h"
#include "machine/sm/operands.h"

// ---- what issuing does, by kind ----
static void issue_branch(ftl_sm *sm, sm_warp *w, int64_t now) {
  const ftl_warp_loop *loop = w->op->loop >= 0 ? &sm->program->loops[w->op->loop] : NULL;
  bool taken = w->op->flags & FTL_INST_GUARD ? (w->op->flags & FTL_INST_SKIPS) != 0
                                             : !loop || w->point.loop[loop->loop_var] + 1 < w->loop_hi[loop->loop_var];
  if (taken)
    ftl_sm_warp_advance(sm, w, now, now + 1 + sm->arch->branch_redirect_cycles, FTL_STALL_BRANCH_RESOLVING);
  else
    ftl_sm_warp_advance(sm, w, now, now + 1 + sm->arch->branch_not_taken_cycles, FTL_STALL_WAIT);
}

// The end of the code: a persistent CTA's warp goes on with its next tile.
static void issue_exit(ftl_sm *sm, sm_warp *w, int64_t now) {
  int64_t next = ftl_sm_next_tile(sm, w);
  if (next >= 0) {
    w->point = (ftl_expr_point){.cta = next, .warp = w->point.warp};
    w->tiles_done++;
    w->op = w->first_op + sm->program->roles[w->role].tile_inst - 1;
    ftl_sm_warp_advance(sm, w, now, now + 1 + sm->arch->branch_redirect_cycles, FTL_STALL_BRANCH_RESOLVING);
  } else if (w->outstanding == 0) {
    ftl_sm_warp_leave(sm, w, now + 1);
  } else {
    ftl_sm_warp_block(sm, w, SM_ON_DRAIN, FTL_STALL_DRAIN);
  }
}

static void issue_parameter(ftl_sm *sm, sm_subcore *sc, sm_warp *w, int64_t now, bool last) {
  int64_t there = ftl_sm_parameter_fetch(sm, w, now), usual = now + w->op->latency;
  if (last)
    w->tokens[w->op->destination] =
        there > usual ? sm_token_word(sm, there, SM_PRODUCER_PARAMETER) : sm_token_word(sm, usual, SM_PRODUCER_FIXED);
  else
    sc->ready[w->position] = now + w->op->interval;
}

// The producer's or consumer's stage that the LSU will find when it takes the instruction.
static int32_t stage_of(ftl_sm *sm, sm_warp *w) {
  int32_t index = -1, ring = w->op->arg;
  if (w->op->kind == SM_MBAR_EXPECT) ftl_sm_stage(sm, w, ring, w->filled[ring], &index);
  if (w->op->kind == SM_MBAR_RELEASE) ftl_sm_stage(sm, w, ring, w->released[ring]++, &index);
  return index;
}

__attribute__((noinline)) static void tell(const ftl_sm *sm, const ftl_sm_on_issue *observer, const sm_warp *w,
                                           int64_t now) {
  (*observer)(sm->observer_context, now, w->slot, w->warp, w->point.cta, &sm->program->insts[w->op->inst]);
}

// An instruction for the LSU: the sub-core's queue has it, and its warp's next one has to keep its distance.
static void enqueue(ftl_sm *sm, sm_subcore *sc, sm_warp *w, int64_t now, bool last, int32_t stage) {
  w->mio_free = now + sm->arch->mio_warp_interval_cycles;
  if (!last) sc->ready[w->position] = w->mio_free;
  ftl_sm_mio_push(sm, sc, w, now, last, stage);
}

// The most frequent kind, apart from the others.
__attribute__((noinline)) static void issue_shared(ftl_sm *sm, sm_subcore *sc, sm_warp *w, int64_t now, bool last) {
  if (last) w->tokens[w->op->destination] = SM_TOKEN_PENDING | w->op->producer;
  enqueue(sm, sc, w, now, last, -1);
}

// true: the instruction has decided how its warp goes on; false: the warp goes on with what follows.
__attribute__((noinline)) static bool issue_kind(ftl_sm *sm, sm_subcore *sc, sm_warp *w, int64_t now, bool last) {
  switch (w->op->kind) {
    case SM_PARAMETER:
      issue_parameter(sm, sc, w, now, last);
      break;
    case SM_GLOBAL:
      if (w->op->opcode == FTL_OP_CP_ASYNC) w->cp_pending[w->cp_closed % SM_GROUPS]++;
      w->loads += w->op->counts;
      if (w->op->scoreboard) sm_count_load(w, w->op->scoreboard - 1);
      break;
    case SM_CP_COMMIT:
      ftl_sm_cp_commit(sm, w, now);
      break;
    case SM_WGMMA:
      ftl_sm_gmma_issue(sm, w, now);
      break;
    case SM_TMA:
      ftl_sm_tma_issue(sm, w, now);
      break;
    default:
      break;
  }
  if (w->op->pipe == FTL_SM_PIPE_MIO || w->op->pipe == FTL_SM_PIPE_LG) enqueue(sm, sc, w, now, last, stage_of(sm, w));
  if (!last) return false;
  if (sm->on_jump && (w->op->kind == SM_BRANCH || w->op->kind == SM_EXIT)) tell(sm, &sm->on_jump, w, now);
  if (w->op->kind == SM_GLOBAL) w->tokens[w->op->destination] = SM_TOKEN_PENDING | w->op->producer;
  if (w->op->kind == SM_TMA) w->tokens[w->op->destination] = sm_token_word(sm, now + w->op->latency, w->op->producer);
  switch (w->op->kind) {
    case SM_BRANCH:
      issue_branch(sm, w, now);
      return true;
    case SM_JOIN:
      ftl_sm_warp_advance(sm, w, now, now + 1 + sm->arch->branch_join_cycles, FTL_STALL_BRANCH_RESOLVING);
      return true;
    case SM_EXIT:
      issue_exit(sm, w, now);
      return true;
    case SM_PROXY_FENCE:
      ftl_sm_warp_advance(sm, w, now, now + w->op->latency, FTL_STALL_LONG_SCOREBOARD);
      return true;
    case SM_BARRIER: {
      bool defers = w->op->defers;
      ftl_sm_barrier_come(sm, w, now);
      return !defers;
    }
    case SM_BARRIER_ARRIVE:
      ftl_sm_barrier_come(sm, w, now);
      return false;
    case SM_MBAR_ACQUIRE:
      ftl_sm_mbar_acquire(sm, w, now);
      return true;
    case SM_MBAR_WAIT:
      ftl_sm_mbar_wait(sm, w, now);
      return true;
    case SM_TILE_WAIT:
      ftl_sm_tile_wait(sm, w, now);
      return true;
    default:
      return false;
  }
}

// ftl_sm_warp_advance for the usual case: `op`, the next instruction, is there and waits for its tokens only.
static inline void go_on(ftl_sm *sm, sm_subcore *sc, sm_warp *w, int32_t position, const sm_op *op, int64_t now) {
  if (op->special || (op->num_lines && !sm_code_is_there(sm, op, now + 1))) {
    ftl_sm_warp_advance(sm, w, now, now + op->stall, FTL_STALL_WAIT);
    return;
  }
  w->op = op;
  w->repeat_left = op->repeat;
  sc->pipe[position] = op->pipe;
  if (op->stall_covers) {
    sc->ready[position] = now + op->stall;
    return;
  }
  uint32_t latest = sm_latest_source(w);
  if (latest >= SM_TOKEN_PENDING) {
    ftl_sm_warp_block(sm, w, SM_ON_TOKEN, sm_stall_of(latest));
    return;
  }
  int64_t ready = sm->base + (latest >> SM_TOKEN_SHIFT), own = sm_own_pipe_free(sc, w);
  int64_t earliest = now + op->stall > own ? now + op->stall : own;
  sc->ready[position] = ready > earliest ? ready : earliest;
  if (ready > earliest) w->reason = (uint8_t)sm_stall_of(latest);
}

static inline void issue(ftl_sm *sm, sm_subcore *sc, int32_t position, int64_t now) {
  sm_warp *w = sc->warps[position];
  const sm_op *op = w->op;
  sm_settle(sm, sc, w, now);
  w->settled = now + 1;
  sm_note_issue(sc, position, now, sm->policy.yields);
  sc->pipe_kept[op->pipe] = sc->pipe_free[op->pipe] = now + op->interval;
  sc->pipe_taker[op->pipe] = position;
  w->last_pipe = op->pipe;
  int64_t read = op->dispatch ? sm_dispatch(sm, sc, op, now) : now;
  bool waits = op->freezes && (read > now || sm_wgmma_runs(sm, now));
  sm->counters.pipe_insts[op->pipe]++;
  if (sm->on_issue) tell(sm, &sm->on_issue, w, now);
  int32_t reads = w->repeat_left == op->repeat ? op->first_reads : op->reads;
  bool last = --w->repeat_left == 0;
  w->reason = FTL_STALL_WAIT;
  sc->ready[position] = now + 1;
  if (op->kind != SM_FIXED) {
    if (op->kind == SM_SHARED)
      issue_shared(sm, sc, w, now, last);
    else if (issue_kind(sm, sc, w, now, last))
      return;
  } else if (last) {
    int64_t from = op->pipe == FTL_SM_PIPE_TENSOR ? read : now;
    w->tokens[op->destination] = sm_token_word(sm, from + op->latency, op->producer);
  } else {
    sc->ready[position] = now + op->interval;
  }
  if (last) go_on(sm, sc, w, position, op + 1, now);
  if (waits) ftl_sm_wait_for_operands(sm, sc, op, reads, now);
}

__attribute__((noinline)) static void finish_run(ftl_sm *sm, sm_subcore *sc) {
  int32_t position = sc->run.position;
  sm_warp *w = sc->warps[position];
  const sm_op *op = w->op;
  int64_t last = ftl_sm_run_finish(sm, sc);
  if (w->repeat_left > 0) return;
  w->tokens[op->destination] = sm_token_word(sm, last + op->latency, op->producer);
  sc->ready[position] = last + 1;
  go_on(sm, sc, w, position, op + 1, last);
}

// ---- a sub-core's cycle ----
enum { FEW_POSITIONS = 4 };

// Apart from the usual cases, whose registers it would save.
__attribute__((noinline)) static void find_among_many(sm_subcore *sc, int64_t floor) {
  int64_t first = SM_NEVER;
  uint64_t eligible = 0;
  for (uint64_t awake = sc->awake; awake; awake &= awake - 1) {
    int64_t at = sm_issues_at(sc, __builtin_ctzll(awake));
    uint64_t bit = awake & -awake;
    at = at > floor ? at : floor;
    eligible = at < first ? bit : at == first ? eligible | bit : eligible;
    first = at < first ? at : first;
  }
  sc->eligible_at = first;
  sc->eligible = eligible;
}

// The same where one of the first `num` positions, few and known to the compiler, or several may issue.
static inline void find_among_few(sm_subcore *sc, int num, int64_t floor) {
  int64_t at[FEW_POSITIONS], first = SM_NEVER;
  uint64_t eligible = 0;
  for (int i = 0; i < num; i++) {
    at[i] = sm_issues_at(sc, i);
    first = at[i] < first ? at[i] : first;
  }
  first = first > floor ? first : floor;
  for (int i = num - 1; i >= 0; i--) eligible = 2 * eligible + (at[i] <= first);
  sc->eligible_at = first;
  sc->eligible = eligible;
}

// Finds the first cycle from `floor` on in which a warp may issue, and all that may.
static inline void find_eligible(sm_subcore *sc, int64_t floor) {
  uint64_t awake = sc->awake;
  if (floor < sc->thaws) floor = sc->thaws;
  if ((awake & (awake - 1)) == 0) {  // one at most
    int64_t at = awake ? sm_issues_at(sc, __builtin_ctzll(awake)) : SM_NEVER;
    sc->eligible_at = at > floor ? at : floor;
    sc->eligible = awake;
  } else if (sc->num_positions <= 2) {
    find_among_few(sc, 2, floor);
  } else if (sc->num_positions <= FEW_POSITIONS) {
    find_among_few(sc, FEW_POSITIONS, floor);
  } else {
    find_among_many(sc, floor);
  }
}

// Of several that may issue: one is chosen, the others were not selected.
static int32_t choose(const ftl_sm *sm, sm_subcore *sc) {
  int32_t chosen = sm->policy.pick(sc, sc->eligible);
  for (uint64_t others = sc->eligible & ~(UINT64_C(1) << chosen); others; others &= others - 1)
    sc->not_selected[__builtin_ctzll(others)]++;
  return chosen;
}

// Apart from the SM's loop, whose registers it would spill.
__attribute__((noinline)) static void step(ftl_sm *sm, sm_subcore *sc, int64_t now) {
  if (sc->eligible_at != now) {  // as it is where a run has begun
    if (sc->run.position >= 0) finish_run(sm, sc);
    find_eligible(sc, now);
  }
  if (sc->eligible_at == now) {
    bool is_alone = (sc->eligible & (sc->eligible - 1)) == 0;
    int32_t chosen = is_alone ? __builtin_ctzll(sc->eligible) : choose(sm, sc);
    const sm_warp *w = sc->warps[chosen];
    if (w->op->bulk && w->repeat_left > 2 && sm->bulk && ftl_sm_run_try(sm, sc, chosen, now)) return;
    issue(sm, sc, chosen, now);
    find_eligible(sc, now + 1);
  }
  *sc->next = sc->eligible_at;
}

// ---- the SM's cycles ----
static int64_t next_event(const ftl_sm *sm) {
  int64_t issues = sm_earlier(sm_earlier(sm->next[0], sm->next[1]), sm_earlier(sm->next[2], sm->next[3]));
  int64_t memory =
      sm_earlier(sm_earlier(sm->reply_next, sm->store_merge.closes), sm_earlier(sm->mio_next, sm->tma.next));
  return sm_earlier(issues, memory);
}

static void cycle(ftl_sm *sm, int64_t now) {
  sm->num_events++;
  sm->floor = now;
  if (sm->reply_next <= now) ftl_sm_replies(sm, now);
  sm->floor = now + 1;
  for (int32_t s = 0; s < SM_SUBCORES; s++)
    if (sm->next[s] <= now) step(sm, &sm->subcores[s], now);
  if (sm->store_merge.closes <= now) ftl_sm_lsu_close_lines(sm, now);
  if (sm->mio_next <= now) ftl_sm_mio_serve(sm, now);
  if (sm->tma.next <= now) ftl_sm_tma_step(sm, now);
}

void ftl_sm_run(ftl_sm *sm, int64_t until) {
  sm->until = until;
  for (int64_t now = next_event(sm); now < until; now = next_event(sm)) cycle(sm, now);
  for (int32_t s = 0; s < sm->num_subcores; s++)
    if (sm->subcores[s].run.position >= 0) finish_run(sm, &sm->subcores[s]);
  sm->floor = until;
}
