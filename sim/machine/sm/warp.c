// A warp between two instructions: loops, tiles and other marks, what the next instruction waits for, coming and going.
#include <string.h>

#include "machine/sm/accounting.h"

static sm_subcore *subcore_of(ftl_sm *sm, const sm_warp *w) { return &sm->subcores[w->subcore]; }

static void warp_ready(ftl_sm *sm, sm_warp *w, int64_t cycle, ftl_stall reason) {
  sm_subcore *sc = subcore_of(sm, w);
  int64_t own = sm_own_pipe_free(sc, w);
  if (own > cycle) {
    cycle = own;
    reason = FTL_STALL_WAIT;
  }
  w->blocked = SM_RUNS;
  w->reason = (uint8_t)reason;
  w->repeat_left = w->op->repeat;
  sc->ready[w->position] = cycle;
  sc->awake |= UINT64_C(1) << w->position;
  sc->pipe[w->position] = w->op->pipe;
  sm_subcore_wake(sc, cycle);
}

void ftl_sm_warp_block(ftl_sm *sm, sm_warp *w, sm_block block, ftl_stall reason) {
  w->blocked = (uint8_t)block;
  w->reason = (uint8_t)reason;
  sm_subcore *sc = subcore_of(sm, w);
  sc->ready[w->position] = SM_NEVER;
  sc->awake &= ~(UINT64_C(1) << w->position);
}

typedef struct wait {
  int64_t ready;  // SM_NEVER: not known yet
  ftl_stall reason;
  sm_block block;
} wait;

static wait later_of(wait a, int64_t ready, ftl_stall reason, sm_block block) {
  return ready > a.ready ? (wait){ready, reason, block} : a;
}

// What instructions wait for besides tokens.
static wait special_wait(const ftl_sm *sm, const sm_warp *w, wait so_far) {
  const sm_op *op = w->op;
  if (op->held && w->barrier_opens == SM_NEVER) return (wait){SM_NEVER, FTL_STALL_BARRIER, SM_BEHIND_BARRIER};
  if (op->held) so_far = later_of(so_far, w->barrier_opens, FTL_STALL_BARRIER, SM_BEHIND_BARRIER);
  if (op->awaits & w->pending) return (wait){SM_NEVER, FTL_STALL_LONG_SCOREBOARD, SM_ON_SCOREBOARD};
  switch (op->kind) {
    case SM_CP_WAIT:
      if (w->cp_closed <= op->arg) return so_far;
      if (w->cp_done + op->arg < w->cp_closed) return (wait){SM_NEVER, FTL_STALL_LONG_SCOREBOARD, SM_ON_CP_GROUP};
      return later_of(so_far, w->cp_arrived[(w->cp_closed - op->arg - 1) % SM_GROUPS], FTL_STALL_LONG_SCOREBOARD,
                      SM_ON_CP_GROUP);
    case SM_WGMMA:
    case SM_WGMMA_WAIT:
      return later_of(so_far, ftl_sm_gmma_ready(sm, w), op->kind == SM_WGMMA ? FTL_STALL_GMMA : FTL_STALL_BARRIER,
                      SM_ON_GMMA);
    case SM_GLOBAL:
      return op->counts && w->loads >= sm->arch->l1_max_warp_loads ? (wait){SM_NEVER, FTL_STALL_MISC, SM_ON_LOADS}
                                                                   : so_far;
    case SM_TMA_STORE_WAIT:
      return w->tma_stores > w->op->arg ? (wait){SM_NEVER, FTL_STALL_LONG_SCOREBOARD, SM_ON_TMA_STORE} : so_far;
    default:
      return so_far;
  }
}

void ftl_sm_warp_evaluate(ftl_sm *sm, sm_warp *w, int64_t earliest, ftl_stall reason) {
  uint32_t last = sm_latest_source(w);
  if (last >= SM_TOKEN_PENDING) {
    ftl_sm_warp_block(sm, w, SM_ON_TOKEN, sm_stall_of(last));
    return;
  }
  int64_t tokens_ready = sm->base + (last >> SM_TOKEN_SHIFT);
  if (tokens_ready > earliest) {
    earliest = tokens_ready;
    reason = sm_stall_of(last);
  }
  if (w->op->special) {
    wait w2 = special_wait(sm, w, (wait){earliest, reason, SM_RUNS});
    earliest = w2.ready;
    reason = w2.reason;
    if (earliest == SM_NEVER) {
      ftl_sm_warp_block(sm, w, w2.block, reason);
      return;
    }
  }
  warp_ready(sm, w, earliest, reason);
}

// ---- marks ----
static const ftl_warp_loop *loop_of(const ftl_sm *sm, const sm_op *op) { return &sm->program->loops[op->loop]; }

static void enter_loop(ftl_sm *sm, sm_warp *w) {
  const ftl_warp_loop *loop = loop_of(sm, w->op);
  const ftl_tile_program *tile = sm->program->tile;
  int64_t lo = ftl_expr_eval(tile, loop->lo, &w->point), hi = ftl_expr_eval(tile, loop->hi, &w->point);
  w->point.loop[loop->loop_var] = lo;
  w->loop_hi[loop->loop_var] = hi;
  w->op = lo < hi ? w->op + 1 : w->first_op + loop->end + 1;
}

static void repeat_loop(ftl_sm *sm, sm_warp *w) {
  const ftl_warp_loop *loop = loop_of(sm, w->op);
  int64_t next = ++w->point.loop[loop->loop_var];
  w->op = next < w->loop_hi[loop->loop_var] ? w->first_op + loop->begin + 1 : w->op + 1;
}

static void place_tile(ftl_sm *sm, sm_warp *w) {
  w->places[w->op->access] = ftl_tile_place_of(sm->program->tile, &sm->program->refs[w->op->access], &w->point);
}

static void close_gmma_group(ftl_sm *sm, sm_warp *w) {
  const sm_warpgroup *group = &sm->warpgroups[w->warpgroup];
  w->gmma_end[w->gmma_closed++ % SM_GROUPS] = group->issued[w->warp_in_role % SM_WARPGROUP];
}

// Takes marks until the next instruction that this warp issues.
static void pass_marks(ftl_sm *sm, sm_warp *w, int64_t now) {
  while (w->op->special) {
    const sm_op *op = w->op;
    if ((op->flags & FTL_INST_WARP0) && w->warp_in_role != 0) {
      w->op++;
      continue;
    }
    switch (op->kind) {
      case SM_LOOP:
        enter_loop(sm, w);
        continue;
      case SM_END_LOOP:
        repeat_loop(sm, w);
        continue;
      case SM_TILE:
        place_tile(sm, w);
        break;
      case SM_WGMMA_COMMIT:
        close_gmma_group(sm, w);
        break;
      case SM_MBAR_ADVANCE:
        ftl_sm_mbar_advance(sm, w, op->arg, now);
        break;
      case SM_MARK:
        break;
      default:
        return;
    }
    w->op++;
  }
}

void ftl_sm_warp_advance(ftl_sm *sm, sm_warp *w, int64_t now, int64_t earliest, ftl_stall reason) {
  w->op++;
  if (w->op->special) {
    pass_marks(sm, w, now);
    if (w->op->kind == SM_END) {
      ftl_sm_warp_leave(sm, w, earliest);
      return;
    }
  }
  if (w->op->num_lines) {
    int64_t fetched = ftl_sm_code_fetch(sm, w->op, earliest);
    if (fetched > earliest) {
      earliest = fetched;
      reason = FTL_STALL_NO_INSTRUCTION;
    }
  }
  w->not_before = earliest;
  ftl_sm_warp_evaluate(sm, w, earliest, reason);
}

void ftl_sm_warp_resume(ftl_sm *sm, sm_warp *w, int64_t now, int64_t earliest, ftl_stall reason) {
  sm_settle(sm, subcore_of(sm, w), w, now);
  ftl_sm_warp_advance(sm, w, now, earliest, reason);
}

void ftl_sm_warp_retry(ftl_sm *sm, sm_warp *w, int64_t now) {
  sm_settle(sm, subcore_of(sm, w), w, now);
  int64_t earliest = sm_later(sm_later(w->settled, sm->floor), w->not_before);
  ftl_sm_warp_evaluate(sm, w, earliest, (ftl_stall)w->reason);
}

// ---- coming and going ----
static void reset_warp(ftl_sm *sm, sm_warp *w) {
  memset(w->tokens, 0, sizeof(uint32_t) * (size_t)sm->code.num_tokens);
  w->cp_closed = w->cp_done = w->gmma_closed = 0;
  memset(w->cp_pending, 0, sizeof w->cp_pending);
  memset(w->cp_arrived, 0, sizeof w->cp_arrived);
  memset(w->filled, 0, sizeof w->filled);
  memset(w->waited, 0, sizeof w->waited);
  memset(w->released, 0, sizeof w->released);
  memset(w->places, 0, sizeof *w->places * (size_t)sm->program->num_refs);
  w->outstanding = w->tma_stores = w->loads = w->pending = 0;
  memset(w->counting, 0, sizeof w->counting);
  w->tiles_done = 0;
}

static int64_t age_of(const ftl_sm *sm, const sm_warp *w) {
  int32_t num_warps = sm->program->num_warps;
  return sm->num_launched * num_warps + (sm->policy.youngest_of_cta ? num_warps - 1 - w->warp : w->warp);
}

void ftl_sm_warp_start(ftl_sm *sm, sm_warp *w, int64_t cta, int64_t cycle) {
  sm_subcore *sc = subcore_of(sm, w);
  reset_warp(sm, w);
  w->point = (ftl_expr_point){.cta = cta, .warp = w->warp_in_role};
  w->start = w->settled = cycle;
  w->mio_free = w->not_before = w->barrier_opens = 0;
  w->last_pipe = FTL_SM_PIPE_COUNT;
  sc->age[w->position] = age_of(sm, w);
  sc->not_selected[w->position] = sc->undispatched[w->position] = 0;
  w->op = w->first_op - 1;
  ftl_sm_warp_advance(sm, w, cycle, cycle, FTL_STALL_WAIT);
}

static void check_accounts(const ftl_sm *sm) {
  int64_t resident = sm->gone_warp_cycles, reasons = 0;
  for (int i = 0; i < FTL_STALL_COUNT; i++)
    if (i != FTL_STALL_SELECTED) reasons += sm->counters.stall_cycles[i];
  for (int i = 0; i < FTL_SM_PIPE_COUNT; i++) reasons += sm->counters.pipe_insts[i];  // selected
  for (int32_t i = 0; i < sm->config.num_slots * sm->program->num_warps; i++)
    if (sm->warps[i].blocked != SM_GONE) resident += sm->warps[i].settled - sm->warps[i].start;
  FTL_CHECK(resident == reasons, "SM %d: %lld resident warp cycles, %lld with a reason", sm->config.sm_idx,
            (long long)resident, (long long)reasons);
}

static void finish_cta(ftl_sm *sm, int32_t slot_idx, int64_t cycle) {
  sm_slot *slot = &sm->slots[slot_idx];
  int64_t from = cycle;  // the first cycle of any resident CTA
  for (int32_t i = 0; i < sm->config.num_slots; i++)
    if (sm->slots[i].busy && sm->slots[i].start < from) from = sm->slots[i].start;
  if (from < sm->active_until) from = sm->active_until;
  if (cycle > from) sm->counters.active_cycles += cycle - from;
  if (cycle > sm->active_until) sm->active_until = cycle;
  slot->busy = false;
  sm->num_resident--;
  sm->finished[sm->num_finished++] = (ftl_sm_finished){.time = cycle, .cta = slot->cta, .slot = slot_idx};
  check_accounts(sm);
}

void ftl_sm_warp_leave(ftl_sm *sm, sm_warp *w, int64_t cycle) {
  sm_settle(sm, subcore_of(sm, w), w, cycle);
  ftl_sm_warp_block(sm, w, SM_GONE, FTL_STALL_DRAIN);
  sm->gone_warp_cycles += cycle - w->start;
  if (--sm->slots[w->slot].warps_left == 0) finish_cta(sm, w->slot, cycle);
}
