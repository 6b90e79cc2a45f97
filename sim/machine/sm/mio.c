// From a sub-core's queue to the SM's LSU: one instruction at a time for the SM, sub-cores in turn.
//
// A sub-core sends one instruction in mio.issue_interval_cycles, the LSU takes one in mio.lsu_interval_cycles and not
// before the data pipe is free, so what waits for banks backs up into the queues. An instruction may be taken in the
// cycle in which it issued; its place in the queue is free from the next cycle on. Source of the two intervals: Huerta
// et al., Analyzing Modern NVIDIA GPU cores, MICRO 2025.
#include "machine/sm/state.h"

static int64_t latest(int64_t a, int64_t b) { return a > b ? a : b; }

static bool is_store(const ftl_sm *sm, const sm_mio_entry *entry) {
  uint8_t opcode = sm->program->insts[entry->op->inst].opcode;
  return opcode == FTL_OP_STG || opcode == FTL_OP_STL || opcode == FTL_OP_RED;
}

// When the sub-core's first instruction may be sent.
static int64_t ready_of(const ftl_sm *sm, const sm_subcore *sc) {
  return is_store(sm, &sc->mio[sc->mio_head]) ? latest(sc->mio_ready, sm->store_free) : sc->mio_ready;
}

// The queue has room, or lines may be asked for, from `cycle` on.
static void open_pipes(ftl_sm *sm, sm_subcore *sc, int64_t cycle) {
  sc->pipe_free[FTL_SM_PIPE_MIO] = cycle;
  sc->pipe_free[FTL_SM_PIPE_LG] = sm->lg_closed ? SM_NEVER : cycle;
  if (cycle < *sc->next) {
    if (sc->run.position >= 0) ftl_sm_run_cut(sc, cycle);
    if (cycle < *sc->next) *sc->next = cycle;
  }
}

void ftl_sm_mio_push(ftl_sm *sm, sm_subcore *sc, sm_warp *w, int64_t now, bool last, int32_t stage) {
  int32_t entries = (int32_t)sm->arch->mio_queue_entries, at = sc->mio_head + sc->mio_count++;
  const sm_op *op = w->op;
  sm_mio_entry *entry = &sc->mio[at < entries ? at : at - entries];
  entry->op = op;
  entry->warp = w;
  entry->stage = stage;
  entry->last = last;
  sm->mio_waiting++;
  w->outstanding++;
  if (op->kind == SM_GLOBAL) {
    if (!sm->program->accesses[op->access].is_local) entry->place = w->places[sm->program->accesses[op->access].ref];
    entry->group = (uint16_t)(w->cp_closed % SM_GROUPS);
  }
  if (sc->mio_count == entries) {
    sc->pipe_free[FTL_SM_PIPE_MIO] = sc->pipe_free[FTL_SM_PIPE_LG] = SM_NEVER;
  }
  int64_t taken = latest(latest(now, ready_of(sm, sc)), latest(sm->lsu_free, sm->data_free));
  if (sc->mio_count == 1 && taken < sm->mio_next) sm->mio_next = taken;
}

// The sub-core whose turn it is among those that may send at `now`; -1: none.
static int32_t next_in_turn(const ftl_sm *sm, int64_t now) {
  for (int32_t i = 0; i < sm->num_subcores; i++) {
    int32_t s = sm->mio_turn + i;
    if (s >= sm->num_subcores) s -= sm->num_subcores;
    if (sm->subcores[s].mio_count > 0 && ready_of(sm, &sm->subcores[s]) <= now) return s;
  }
  return -1;
}

static void find_next(ftl_sm *sm, int64_t from) {
  int64_t ready = SM_NEVER;
  if (sm->mio_waiting > 0)
    for (int32_t s = 0; s < sm->num_subcores; s++)
      if (sm->subcores[s].mio_count > 0 && ready_of(sm, &sm->subcores[s]) < ready)
        ready = ready_of(sm, &sm->subcores[s]);
  sm->mio_next = ready == SM_NEVER ? SM_NEVER : latest(latest(ready, from), latest(sm->lsu_free, sm->data_free));
}

static int64_t take(ftl_sm *sm, const sm_mio_entry *entry, int64_t now) {
  const sm_op *op = entry->op;
  switch (op->kind) {
    case SM_SHARED:
      if (entry->last)
        ftl_sm_token_set(sm, entry->warp, op->destination, now, now + op->latency + op->extra_cycles, op->producer);
      return op->data_cycles;
    case SM_GLOBAL:
      return ftl_sm_lsu_access(sm, entry, now);
    case SM_TILE_ASK:
      ftl_sm_tile_ask(sm, entry->warp, now);
      return 0;
    case SM_MBAR_EXPECT:
      ftl_sm_mbar_expect(sm, entry->stage, now);
      return 0;
    case SM_MBAR_RELEASE:
      ftl_sm_mbar_release(sm, entry->stage, 1, now);
      ftl_sm_release_to_peers(sm, entry->stage, now);
      return 0;
    default:
      return 0;
  }
}

static void count_shared(ftl_sm *sm, const ftl_warp_inst *inst) {
  if (inst->opcode != FTL_OP_LDS && inst->opcode != FTL_OP_STS && inst->opcode != FTL_OP_LDSM &&
      inst->opcode != FTL_OP_CP_ASYNC)
    return;
  sm->counters.shared_wavefronts += inst->wavefronts;
  sm->counters.bank_conflicts += inst->conflicts;
}

void ftl_sm_mio_serve(ftl_sm *sm, int64_t now) {
  if (latest(sm->lsu_free, sm->data_free) > now) {  // the data pipe was taken meanwhile
    find_next(sm, now);
    return;
  }
  int32_t s = next_in_turn(sm, now);
  if (s >= 0) {
    sm_subcore *sc = &sm->subcores[s];
    sm_mio_entry entry = sc->mio[sc->mio_head];
    bool was_full = sc->mio_count == sm->arch->mio_queue_entries;
    if (++sc->mio_head == sm->arch->mio_queue_entries) sc->mio_head = 0;
    sc->mio_count--;
    sm->mio_waiting--;
    sm->mio_turn = s + 1 < sm->num_subcores ? s + 1 : 0;
    sc->mio_ready = now + sm->arch->mio_issue_interval_cycles;
    sm->lsu_free = now + sm->arch->mio_lsu_interval_cycles;
    if (was_full) open_pipes(sm, sc, now + 1);
    count_shared(sm, &sm->program->insts[entry.op->inst]);
    int64_t cycles = take(sm, &entry, now);
    if (cycles > 0) sm_reserve_data(sm, now, cycles);
    ftl_sm_outstanding_done(sm, entry.warp, now + 1);
  }
  find_next(sm, now + 1);
}

void ftl_sm_lg_add(ftl_sm *sm, int32_t lines) {
  sm->lg_pending += lines;
  bool closed = sm->lg_pending > 0 && sm->lg_pending + sm->code.gate_lines > sm->arch->l1_max_pending_lines;
  if (closed == sm->lg_closed) return;
  sm->lg_closed = closed;
  for (int32_t s = 0; s < sm->num_subcores; s++) {
    sm_subcore *sc = &sm->subcores[s];
    bool full = sc->mio_count == sm->arch->mio_queue_entries;
    if (closed)
      sc->pipe_free[FTL_SM_PIPE_LG] = SM_NEVER;
    else if (!full)
      open_pipes(sm, sc, sm->floor);
  }
}
