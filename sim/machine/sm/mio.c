// From a sub-core's queue to the SM's LSU: one instruction at a time for the SM, sub-cores in turn.
//
// A sub-core sends one instruction in mio.issue_interval_cycles, the LSU takes one in mio.lsu_interval_cycles and not
// before the data pipe is free, so what waits for banks backs up into the queues. An instruction may be taken in the
// cycle in which it issued; its place in the queue is free from the next cycle on. Source of the two intervals: Huerta
// et al., Analyzing Modern NVIDIA GPU cores, MICRO 2025.
#include "machine/sm/state.h"

static int64_t latest(int64_t a, int64_t b) { return a > b ? a : b; }

static int32_t index_of(const ftl_sm *sm, const sm_subcore *sc) { return (int32_t)(sc - sm->subcores); }

// To be called when another instruction is the first of the queue, or when the store port is taken.
static void find_ready(ftl_sm *sm, const sm_subcore *sc) {
  int64_t ready = sc->mio_count > 0 ? sc->mio_ready : SM_NEVER;
  if (sc->mio_count > 0 && sc->mio[sc->mio_head].op->is_store) ready = latest(ready, sm->store_free);
  sm->mio_first_ready[index_of(sm, sc)] = ready;
}

// The queue has room, or lines may be asked for, from `cycle` on.
static void open_pipes(ftl_sm *sm, sm_subcore *sc, int64_t cycle) {
  sc->pipe_free[FTL_SM_PIPE_MIO] = cycle;
  sc->pipe_free[FTL_SM_PIPE_LG] = sm->lg_closed ? SM_NEVER : cycle;
  sm_subcore_wake(sc, cycle);
}

void ftl_sm_mio_push(ftl_sm *sm, sm_subcore *sc, sm_warp *w, int64_t now, bool last, int32_t stage) {
  int32_t entries = (int32_t)sm->arch->mio_queue_entries, at = sc->mio_head + sc->mio_count++;
  const sm_op *op = w->op;
  sm_mio_entry *entry = &sc->mio[at < entries ? at : at - entries];
  entry->op = op;
  entry->warp = w;
  entry->stage = stage;
  entry->last = last;
  w->outstanding++;
  if (op->kind == SM_GLOBAL) {
    if (!sm->program->accesses[op->access].is_local) entry->place = w->places[sm->program->accesses[op->access].ref];
    entry->group = (uint16_t)(w->cp_closed % SM_GROUPS);
  }
  if (sc->mio_count == entries) {
    sc->pipe_free[FTL_SM_PIPE_MIO] = sc->pipe_free[FTL_SM_PIPE_LG] = SM_NEVER;
  }
  if (sc->mio_count > 1) return;
  find_ready(sm, sc);
  int64_t taken = latest(latest(now, sm->mio_first_ready[index_of(sm, sc)]), latest(sm->lsu_free, sm->data_free));
  if (taken < sm->mio_next) sm->mio_next = taken;
}

// The sub-core whose turn it is among those that may send at `now`; -1: none.
static int32_t next_in_turn(const ftl_sm *sm, int64_t now) {
  uint32_t may = 0;
  for (int32_t s = 0; s < SM_SUBCORES; s++) may |= (uint32_t)(sm->mio_first_ready[s] <= now) << s;
  if (may == 0) return -1;
  uint32_t after = may >> sm->mio_turn << sm->mio_turn;
  return __builtin_ctz(after ? after : may);
}

static void find_next(ftl_sm *sm, int64_t from) {
  int64_t ready = SM_NEVER;
  for (int32_t s = 0; s < SM_SUBCORES; s++) ready = sm->mio_first_ready[s] < ready ? sm->mio_first_ready[s] : ready;
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

// Takes the first instruction from the sub-core's queue.
static void serve_first(ftl_sm *sm, sm_subcore *sc, int64_t now) {
  int32_t entries = (int32_t)sm->arch->mio_queue_entries;
  const sm_mio_entry *entry = &sc->mio[sc->mio_head];  // nothing is pushed before the end of this
  const sm_op *op = entry->op;
  sc->mio_head = sc->mio_head + 1 < entries ? sc->mio_head + 1 : 0;
  sc->mio_ready = now + sm->arch->mio_issue_interval_cycles;
  sm->lsu_free = now + sm->arch->mio_lsu_interval_cycles;
  if (sc->mio_count-- == entries) open_pipes(sm, sc, now + 1);
  sm->counters.shared_wavefronts += op->shared_wavefronts;
  sm->counters.bank_conflicts += op->bank_conflicts;
  int64_t cycles = take(sm, entry, now);
  if (cycles > 0) sm_reserve_data(sm, now, cycles);
  ftl_sm_outstanding_done(sm, entry->warp, now + 1);
  find_ready(sm, sc);
  for (int32_t s = 0; op->is_store && s < sm->num_subcores; s++) find_ready(sm, &sm->subcores[s]);
}

void ftl_sm_mio_serve(ftl_sm *sm, int64_t now) {
  if (latest(sm->lsu_free, sm->data_free) > now) {  // the data pipe was taken meanwhile
    find_next(sm, now);
    return;
  }
  int32_t s = next_in_turn(sm, now);
  if (s >= 0) {
    sm->mio_turn = s + 1 < sm->num_subcores ? s + 1 : 0;
    serve_first(sm, &sm->subcores[s], now);
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
    if (closed) {
      sc->pipe_free[FTL_SM_PIPE_LG] = SM_NEVER;
      sm_subcore_changed(sc);
    } else if (!full) {
      open_pipes(sm, sc, sm->floor);
    }
  }
}
