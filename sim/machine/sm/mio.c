// From a sub-core's queues to the SM's LSU: one instruction at a time for the SM, sub-cores in turn.
//
// A sub-core has a queue for shared memory, shuffles and mbarriers and one for local and global memory, and sends the
// older of the two first instructions that may go: one in mio.issue_interval_cycles. The LSU takes one in
// mio.lsu_interval_cycles and holds it until the data pipe begins with it, mio.lsu_queue_entries at most: what waits
// for banks fills the LSU's queue and then backs up into those of the sub-cores. A cp.async has no data yet and needs
// no room there, but takes the data pipe for as long as its data would, and what its sub-core sends to shared memory
// behind it does not pass it, unless it waits for lines in flight. An access to local or global memory also waits until
// the addresses of the copy before have gone, a cycle a line, and the lines of the program's largest one would still
// fit. An instruction may be taken in the cycle in which it issued; its place in the sub-core's queue is free from the
// next cycle on.
// Sources: of the two intervals Huerta et al., Analyzing Modern NVIDIA GPU cores, MICRO 2025; of the queues
// micro_ldmatrix_queue.csv, of that for global memory micro_pending_lines.csv and what Nsight Compute calls
// lg_throttle; of copies beside other instructions micro_copy_beside.csv and h100/micro_copy_pipe.csv.
#include "machine/sm/state.h"

bool ftl_sm_mio_queue_create(ftl_sm *sm, sm_mio_queue *queue, int64_t entries, bool has_places) {
  uint32_t size = 1;
  while (size < entries) size *= 2;
  *queue = (sm_mio_queue){
      .mask = size - 1, .capacity = (int32_t)entries, .entries = FTL_ARENA_NEW(&sm->arena, sm_mio_entry, size)};
  if (!queue->entries || !has_places) return queue->entries != NULL;
  ftl_tile_place *places = FTL_ARENA_NEW(&sm->arena, ftl_tile_place, size);
  for (uint32_t i = 0; places && i < size; i++) queue->entries[i].place = &places[i];
  return places != NULL;
}

// When the LSU has room for another instruction with data: once the data pipe has begun with the oldest that may wait.
static int64_t room_at(const ftl_sm *sm) { return *sm->lsu_room; }

static void hold(ftl_sm *sm, int64_t start) {
  if (sm->lsu_room == &sm->data_free) return;
  *sm->lsu_room++ = start;
  if (sm->lsu_room == sm->lsu_end) sm->lsu_room = sm->lsu_starts;
}

static const sm_mio_entry *first_of(const sm_mio_queue *q) { return &q->entries[q->head & q->mask]; }

// Whether the lines of the first access to local or global memory might not fit beside those in flight.
static bool is_closed(const ftl_sm *sm, const sm_op *op) { return op->is_load ? sm->lg_load_closed : sm->lg_closed; }

// When the first instruction of a queue may be sent; SM_NEVER: not before lines have come, or there is none.
static int64_t ready_of(const ftl_sm *sm, const sm_subcore *sc, int queue) {
  const sm_mio_queue *q = &sc->queues[queue];
  if (q->count == 0 || (queue == SM_QUEUE_LG && is_closed(sm, first_of(q)->op))) return SM_NEVER;
  if (queue == SM_QUEUE_MIO) return sc->mio_ready;
  int64_t ready = sm_later(sc->mio_ready, sm->lines_free);
  return first_of(q)->op->is_store ? sm_later(ready, sm->store_free) : ready;
}

static bool is_older(const sm_mio_queue *a, const sm_mio_queue *b) {
  return (int32_t)(first_of(a)->order - first_of(b)->order) < 0;
}

// Whether the sub-core's next instruction is a copy, which does not wait for the data pipe; it passes none that does,
// and none that does passes it.
static bool is_copy_next(const sm_subcore *sc) {
  const sm_mio_queue *mio = &sc->queues[SM_QUEUE_MIO], *lg = &sc->queues[SM_QUEUE_LG];
  return lg->count > 0 && first_of(lg)->op->opcode == FTL_OP_CP_ASYNC && (mio->count == 0 || is_older(lg, mio));
}

// To be called when another instruction is the first of a queue, when the store port or the path of lines is taken, and
// when lines in flight close the way or open it.
static inline void find_ready(ftl_sm *sm, const sm_subcore *sc) {
  int32_t s = sc->index;
  if (sc->queues[SM_QUEUE_LG].count == 0) {  // the usual case; no copy is next since the last one was taken
    sm->mio_first_ready[s] = sc->queues[SM_QUEUE_MIO].count > 0 ? sc->mio_ready : SM_NEVER;
    return;
  }
  int64_t mio = ready_of(sm, sc, SM_QUEUE_MIO), lg = ready_of(sm, sc, SM_QUEUE_LG);
  bool copies = is_copy_next(sc);
  sm->copies_next = (sm->copies_next & ~(1u << s)) | (uint32_t)copies << s;
  sm->copy_first_ready[s] = lg;
  sm->mio_first_ready[s] = copies ? (sm->lg_closed ? mio : SM_NEVER) : sm_earlier(mio, lg);
}

// What waits for the path of lines, the store port or lines in flight.
__attribute__((noinline)) static void find_lines_ready(ftl_sm *sm) {
  for (int32_t s = 0; s < sm->num_subcores; s++)
    if (sm->subcores[s].queues[SM_QUEUE_LG].count > 0) find_ready(sm, &sm->subcores[s]);
}

// The queue that may send at `now`, of two the one whose first instruction is older.
static int queue_at(const ftl_sm *sm, const sm_subcore *sc, int64_t now) {
  if (sc->queues[SM_QUEUE_LG].count == 0) return SM_QUEUE_MIO;
  if (sm->copies_next >> sc->index & 1) return sm->lg_closed ? SM_QUEUE_MIO : SM_QUEUE_LG;
  if (ready_of(sm, sc, SM_QUEUE_LG) > now) return SM_QUEUE_MIO;
  if (ready_of(sm, sc, SM_QUEUE_MIO) > now) return SM_QUEUE_LG;
  return is_older(&sc->queues[SM_QUEUE_MIO], &sc->queues[SM_QUEUE_LG]) ? SM_QUEUE_MIO : SM_QUEUE_LG;
}

static const ftl_sm_pipe pipe_of[SM_QUEUES] = {FTL_SM_PIPE_MIO, FTL_SM_PIPE_LG};

void ftl_sm_mio_push(ftl_sm *sm, sm_subcore *sc, sm_warp *w, int64_t now, bool last, int32_t stage) {
  const sm_op *op = w->op;
  int queue = op->pipe == FTL_SM_PIPE_LG ? SM_QUEUE_LG : SM_QUEUE_MIO;
  sm_mio_queue *q = &sc->queues[queue];
  sm_mio_entry *entry = &q->entries[(q->head + (uint32_t)q->count++) & q->mask];
  entry->op = op;
  entry->warp = w;
  entry->stage = stage;
  entry->last = last;
  entry->order = sc->mio_order++;
  w->outstanding++;
  if (op->kind == SM_GLOBAL) {
    if (!sm->program->accesses[op->access].is_local) *entry->place = w->places[sm->program->accesses[op->access].ref];
    entry->group = (uint16_t)(w->cp_closed % SM_GROUPS);
  }
  if (q->count == q->capacity) sc->pipe_free[op->pipe] = SM_NEVER;
  if (q->count > 1) return;
  find_ready(sm, sc);
  int64_t taken = sm_later(sm->mio_first_ready[sc->index], room_at(sm));
  if (sm->copies_next >> sc->index & 1) taken = sm_earlier(taken, sm->copy_first_ready[sc->index]);
  taken = sm_later(sm_later(now, taken), sm->lsu_free);
  if (taken < sm->mio_next) sm->mio_next = taken;
}

// The sub-core whose turn it is among those that may send at `now`; -1: none.
static int32_t next_in_turn(const ftl_sm *sm, int64_t now) {
  uint32_t may = 0;
  if (room_at(sm) <= now)
    for (int32_t s = SM_SUBCORES - 1; s >= 0; s--) may = 2 * may + (sm->mio_first_ready[s] <= now);
  for (uint32_t copies = sm->copies_next; copies; copies &= copies - 1)
    if (sm->copy_first_ready[__builtin_ctz(copies)] <= now) may |= copies & -copies;
  if (may == 0) return -1;
  uint32_t after = may >> sm->mio_turn << sm->mio_turn;
  return __builtin_ctz(after ? after : may);
}

static void find_next(ftl_sm *sm, int64_t from) {
  const int64_t *first = sm->mio_first_ready;
  int64_t ready = sm_earlier(sm_earlier(first[0], first[1]), sm_earlier(first[2], first[3]));
  ready = sm_later(ready, room_at(sm));
  for (uint32_t copies = sm->copies_next; copies; copies &= copies - 1)
    ready = sm_earlier(ready, sm->copy_first_ready[__builtin_ctz(copies)]);
  sm->mio_next = ready == SM_NEVER ? SM_NEVER : sm_later(sm_later(ready, from), sm->lsu_free);
}

// Apart from the most frequent kind, whose registers it would save.
__attribute__((noinline)) static int64_t take_other(ftl_sm *sm, const sm_mio_entry *entry, int64_t now) {
  switch (entry->op->kind) {
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

static inline int64_t take(ftl_sm *sm, const sm_mio_entry *entry, int64_t now) {
  const sm_op *op = entry->op;
  if (op->kind != SM_SHARED) return take_other(sm, entry, now);
  if (entry->last)
    sm_token_set(sm, entry->warp, op->destination, now, sm_data_start(sm, now) + op->latency + op->extra_cycles,
                 op->producer);
  return op->data_cycles;
}

// Takes the first instruction from one of the sub-core's queues.
static void serve_first(ftl_sm *sm, sm_subcore *sc, int64_t now) {
  int queue = queue_at(sm, sc, now);
  sm_mio_queue *q = &sc->queues[queue];
  const sm_mio_entry *entry = first_of(q);  // nothing is pushed before the end of this
  const sm_op *op = entry->op;
  q->head++;
  if (queue == SM_QUEUE_LG) sm->copies_next &= ~(1u << sc->index);  // until find_ready sees another
  sc->mio_ready = now + sm->arch->mio_issue_interval_cycles;
  sm->lsu_free = now + sm->arch->mio_lsu_interval_cycles;
  if (q->count-- == q->capacity) {
    sc->pipe_free[pipe_of[queue]] = now + 1;
    sm_subcore_wake(sc, now + 1);
  }
  sm->counters.shared_wavefronts += op->shared_wavefronts;
  sm->counters.bank_conflicts += op->bank_conflicts;
  if (op->kind == SM_SHARED && sm_wgmma_runs(sm, now)) sm->data_free = sm_later(sm->data_free, sm_window(sm, now));
  int64_t lines_free = sm->lines_free, cycles = take(sm, entry, now);
  if (cycles > 0) {
    int64_t start = sm_data_start(sm, now);
    sm_reserve_wavefronts(sm, now, cycles);
    hold(sm, start);
  }
  sm_outstanding_done(sm, entry->warp, now + 1);
  if (op->is_store || sm->lines_free != lines_free) find_lines_ready(sm);
  find_ready(sm, sc);
}

void ftl_sm_mio_serve(ftl_sm *sm, int64_t now) {
  int32_t s = next_in_turn(sm, now);
  if (s >= 0) {  // else the data pipe was taken meanwhile, where the LSU holds nothing
    sm->mio_turn = s + 1 < sm->num_subcores ? s + 1 : 0;
    serve_first(sm, &sm->subcores[s], now);
  }
  find_next(sm, now + 1);
}

void ftl_sm_mio_stores_wait(ftl_sm *sm) { find_lines_ready(sm); }

void ftl_sm_lg_close(ftl_sm *sm, bool closed, bool load_closed) {
  bool opens = (sm->lg_closed && !closed) || (sm->lg_load_closed && !load_closed);
  sm->lg_closed = closed;
  sm->lg_load_closed = load_closed;
  find_lines_ready(sm);
  if (opens) find_next(sm, sm->floor);
}
