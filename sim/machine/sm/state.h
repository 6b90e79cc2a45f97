// The state of one SM, shared by the files of this folder.
//
// Times are SM cycles. Within a cycle: replies, then sub-cores 0, 1, ... issue, then the LSU takes one instruction,
// then TMA makes a line. What an instruction decides is written at once (token words, pipe_free); what it cannot know
// yet (a reply, the LSU's choice, other warps' arrivals) leaves the warp blocked until the event that decides it wakes
// it.
//
// Invariant: a warp's cycles before `settled` are in stall_cycles, each once; sc->ready is SM_NEVER while it is
// blocked.
#ifndef FTL_MACHINE_SM_STATE_H
#define FTL_MACHINE_SM_STATE_H

#include "base/check.h"
#include "lower/walk.h"
#include "machine/sm/l1.h"
#include "machine/sm/op.h"
#include "machine/sm/pipes.h"
#include "machine/sm/sm.h"

#define SM_NEVER INT64_MAX
enum {
  SM_SUBCORES = 4,
  SM_MAX_POSITIONS = 64,
  SM_GROUPS = 64,
  SM_MAX_LINES = 256,
  SM_WARPGROUP = 4,
  SM_MAX_COPIES = 32,
  SM_FILL_BUCKETS = 1024,
  SM_LINE_COST = 16,
  SM_MAX_TILES_AHEAD = 64
};

// ---- token words: (cycle - base) << 2 | producer; the largest of a set says when all are ready and who was last ----
enum { SM_TOKEN_SHIFT = 2 };
#define SM_TOKEN_PENDING UINT32_C(0xfffffffc)  // | producer: nobody knows yet

typedef enum sm_block {
  SM_RUNS,  // ready at a known cycle
  SM_ON_TOKEN,
  SM_ON_CP_GROUP,
  SM_ON_GMMA,
  SM_ON_TMA_STORE,
  SM_ON_BARRIER,
  SM_ON_FULL,
  SM_ON_EMPTY,
  SM_ON_TILE,
  SM_ON_DRAIN,
  SM_GONE,  // no warp here
} sm_block;

typedef struct sm_warp {
  int64_t settled;
  int64_t mio_free;  // not before this cycle its next instruction for the MIO
  const sm_op *op;   // next to issue
  uint32_t *tokens;
  uint8_t repeat_left;
  uint8_t reason;   // ftl_stall of the cycles before it is ready
  uint8_t blocked;  // sm_block
  uint8_t subcore, position;
  uint8_t role;
  int16_t warp, warp_in_role;  // of the CTA, of the role
  int32_t slot;
  int32_t warpgroup;    // index into sm->warpgroups
  int32_t wait_id;      // barrier; ring stage (index into sm->stages)
  uint32_t wait_for;    // fills or arrivals
  int32_t outstanding;  // memory instructions and lines that keep the warp from leaving
  int64_t start;
  uint32_t tiles_done;
  const sm_op *first_op;
  ftl_tile_place *places;  // by tile reference
  // cp.async groups: number of groups closed; lines and instructions of each still on their way; when the last came
  uint32_t cp_closed, cp_done;  // groups < cp_done have arrived
  int32_t cp_pending[SM_GROUPS];
  int64_t cp_arrived[SM_GROUPS];  // of a group that is done: when it and all before it had arrived
  // wgmma
  uint32_t gmma_closed;
  uint32_t gmma_end[SM_GROUPS];  // wgmmas issued when group g was closed
  int32_t tma_stores;            // copies whose shared memory is not read yet
  uint32_t filled[FTL_TILE_MAX_RINGS], waited[FTL_TILE_MAX_RINGS], released[FTL_TILE_MAX_RINGS];
  ftl_expr_point point;
  int64_t loop_hi[FTL_TILE_MAX_LOOP_VARS];
  int64_t local_address_bytes;
} sm_warp;

typedef struct sm_mio_entry {
  const sm_op *op;
  sm_warp *warp;
  ftl_tile_place place;
  int32_t stage;   // mbarrier operations
  uint16_t group;  // cp.async
  bool last;       // of its run: sets the token
  uint32_t order;  // in which the sub-core's instructions came
} sm_mio_entry;

// Shared memory, shuffles and mbarriers wait in one queue of a sub-core, local and global memory in another.
enum { SM_QUEUE_MIO, SM_QUEUE_LG, SM_QUEUES };
typedef struct sm_mio_queue {
  int32_t head, count, capacity;
  sm_mio_entry *entries;  // ring
} sm_mio_queue;

typedef struct sm_run {  // a run of one warp that is issued as one event: see run.c
  int64_t start, count, interval;
  int64_t taken, charged;  // cycles that a running wgmma loses to each; of which it has lost
  int32_t position;        // -1: none
} sm_run;

typedef struct sm_subcore {
  int64_t *next;                    // in sm->next: nothing can issue before this cycle
  int64_t ready[SM_MAX_POSITIONS];  // SM_NEVER: blocked, or no warp
  uint8_t pipe[SM_MAX_POSITIONS];
  int64_t pipe_free[FTL_SM_PIPE_COUNT];
  int64_t pipe_held[FTL_SM_PIPE_COUNT];   // from this cycle until pipe_free the pipe has room, but dispatch does not
  int32_t pipe_taker[FTL_SM_PIPE_COUNT];  // position of the warp that issued there last
  int32_t num_positions, last;
  int64_t eligible_at;                      // when `eligible`, and no other, may issue; SM_NEVER: to be found anew
  uint64_t eligible;                        // positions
  uint32_t not_selected[SM_MAX_POSITIONS];  // cycles since `settled` in which another warp was chosen
  uint32_t undispatched[SM_MAX_POSITIONS];  // the same in which its pipe was held, before the pipe was taken again
  int64_t age[SM_MAX_POSITIONS];            // order of arrival
  sm_warp *warps[SM_MAX_POSITIONS];
  sm_run run;
  int64_t dispatch_free;  // all that has issued is dispatched by then
  int64_t taken;          // cycles that wgmmas lost to what has issued since the last one was reserved
  int64_t mio_ready;      // the next instruction may go to the LSU from this cycle on
  uint32_t mio_order;     // of the next instruction that comes
  sm_mio_queue queues[SM_QUEUES];
} sm_subcore;

typedef struct sm_policy {
  int32_t (*pick)(const sm_subcore *sc, uint64_t eligible);  // a position among the bits of `eligible`, at least one
  bool goes_on;                                              // with the warp that issued last, whenever it can
} sm_policy;

typedef struct sm_stage {    // a ring's stage with its two mbarriers
  uint32_t fills, arrivals;  // completed full phases; consumer arrivals, all phases together
  int32_t pending_lines;     // TMA lines (and copies not issued in full) of the current phase
  bool expected, closed;     // the producer has arrived; it went on to the next stage
  int64_t time;              // when the last line came; of a completed phase: when it completed
  int32_t consumers;
} sm_stage;

typedef struct sm_warpgroup {
  uint32_t issued[SM_WARPGROUP];
  uint32_t reserved;       // wgmmas that all four warps have issued
  int64_t end[SM_GROUPS];  // of the math, by index
} sm_warpgroup;

typedef enum sm_transaction_kind {
  SM_TX_FILL,
  SM_TX_CP,
  SM_TX_STORE,
  SM_TX_LOCAL_STORE,
  SM_TX_TMA_LOAD,
  SM_TX_TMA_STORE,
  SM_TX_TILE,
  SM_TX_PEER_LINE,
  SM_TX_PEER_ARRIVAL
} sm_transaction_kind;

typedef struct sm_transaction {
  uint8_t kind;
  uint8_t sectors;
  uint8_t is_local;
  uint8_t group;         // CP
  uint8_t priority;      // ftl_l2_priority
  uint16_t data_cycles;  // on arrival
  int32_t next;          // free list; FILL: hash chain
  int32_t waiters;       // FILL: list of sm_waiter, newest first
  int32_t stage;         // TMA_LOAD, PEER_*
  sm_warp *warp;
  uint64_t line;               // PEER_*: the first CTA of the cluster
  const ftl_mem_peers *peers;  // TMA_LOAD: who gets the line too, or NULL
} sm_transaction;

// One load that waits for lines of L1.
typedef struct sm_load {
  sm_warp *warp;
  int32_t remaining;
  int32_t next_free;
  uint16_t token;
  uint16_t data_cycles;  // cp.async: to write what came to shared memory
  uint8_t group;
  bool is_cp;
  bool sets_token;
  int64_t earliest;  // when its hits are there
} sm_load;
typedef struct sm_waiter {
  int32_t load, next;
} sm_waiter;

typedef struct sm_copy {  // a bulk tensor copy
  sm_warp *warp;
  int64_t eligible;  // first line
  int32_t rows_left;
  int32_t stage;       // loads
  uint64_t byte, end;  // of what is left of the current row
  uint64_t next_row;   // address of the row after it
  uint64_t row_step_bytes, row_bytes;
  uint8_t priority;            // ftl_l2_priority
  uint8_t cost;                // of a line, in 1/SM_LINE_COST of one: less where it stands for lines of several SMs
  const ftl_mem_peers *peers;  // who gets the lines too, or NULL
  bool is_store;
} sm_copy;

typedef struct sm_tma {
  sm_copy copies[SM_MAX_COPIES];
  int32_t num_copies, turn;
  int64_t next;                   // cycle of the next line, SM_NEVER when nothing may go
  int64_t rate_start, rate_cost;  // of lines since rate_start: line n goes at rate_start + n * 1000 / milli
  int32_t pending_cost;
} sm_tma;

typedef struct sm_code_line {
  int64_t there_at;   // when it has come
  uint64_t last_use;  // 0: not in the cache
} sm_code_line;

typedef struct sm_code_cache {
  sm_code_line *lines;
  int32_t capacity, num_held;
  uint64_t uses;
} sm_code_cache;

typedef struct sm_slot {
  bool busy;
  int64_t cta, start;
  int32_t warps_left;
  bool is_joined;  // its peers are in sm->peers
  // dynamic tiles: numbers of tiles 1, 2, ... of the CTA, by number modulo SM_MAX_TILES_AHEAD
  uint32_t tiles_assigned, tiles_known;
  int64_t tiles[SM_MAX_TILES_AHEAD];
} sm_slot;

struct ftl_sm {
  ftl_sm_config config;
  const ftl_arch *arch;
  const ftl_warp_program *program;
  int32_t num_subcores;
  bool bulk;
  sm_code code;
  int64_t now, base;
  int64_t floor;              // nothing can issue before it: this cycle, or the next once sub-cores have begun to issue
  int64_t next[SM_SUBCORES];  // of sub-cores; SM_NEVER where there is none
  sm_subcore subcores[SM_SUBCORES];
  sm_policy policy;

  // MIO and LSU
  int64_t mio_next, lsu_free, data_free, operand_free;
  // when the sub-core's first instruction may be sent, SM_NEVER where none waits: those that need the data pipe, a copy
  int64_t mio_first_ready[SM_SUBCORES], copy_first_ready[SM_SUBCORES];
  int64_t store_free;                     // when a store may be taken
  int64_t lines_free;                     // when the LSU may take another access to local or global memory
  int64_t tensor_free, gmma_busy_cycles;  // wgmma
  int32_t mio_turn;
  int32_t lg_pending;
  bool lg_closed;      // the lines of another instruction might be too many
  int64_t reply_next;  // of replies and arrivals
  int64_t barrier_free;

  sm_warp *warps;    // slot * num_warps + warp
  sm_stage *stages;  // slot * stages_per_cta + first_stage[ring] + stage
  int32_t first_stage[FTL_TILE_MAX_RINGS], stages_per_cta;
  // cluster.c
  ftl_mem_peers *peers;  // slot * num_rings + ring: the other CTAs that share the ring's loads
  ftl_mem_message *messages;
  int32_t num_messages, capacity_messages;
  uint16_t *barrier_counts;
  sm_warpgroup *warpgroups;
  int32_t warpgroups_per_cta;
  sm_slot *slots;
  sm_tma tma;
  sm_code_cache code_cache;
  sm_l1 l1;

  sm_transaction *transactions;
  sm_load *loads;
  sm_waiter *waiters;
  int32_t free_transaction, free_load, free_waiter, num_transactions, in_flight;
  int32_t *fill_buckets;
  ftl_mem_reply *replies;  // ring in order of time
  int32_t reply_head, reply_count, reply_capacity;
  ftl_mem_reply *arrivals;  // replies that wait for the fill port: ring in order of time
  int32_t arrival_head, arrival_count;
  int64_t fill_free;
  ftl_mem_request *requests;
  int32_t num_requests, capacity_requests;
  ftl_sm_finished *finished;
  int32_t num_finished;

  int64_t launch_sequence, active_until, num_events;
  int32_t num_resident;
  int64_t gone_warp_cycles;  // resident cycles of warps that have left
  ftl_sm_counters counters;
  ftl_sm_on_issue on_issue, on_jump;
  void *observer_context;
  ftl_arena arena;
};

// ---- run.c ----
// Issues what it can of the run that the warp begins as one event; false: nothing.
bool ftl_sm_run_try(const ftl_sm *sm, sm_subcore *sc, int32_t position, int64_t now, int64_t until);
// It ends before `cycle`: what is left of it issues one by one.
void ftl_sm_run_cut(sm_subcore *sc, int64_t cycle);
void ftl_sm_run_finish(ftl_sm *sm, sm_subcore *sc);
// Cycles that wgmmas lose to what the sub-core has issued before `cycle`, a run that is under way included. They count
// once.
int64_t ftl_sm_run_take(sm_subcore *sc, int64_t cycle);

// ---- accounting ----
// Cycles before `until`, and not settled yet, in which the warp could have issued but for dispatch, since its pipe was
// taken last. An mma.sync that waits for the operands of another waits for the tensor pipe: Nsight Compute calls that
// math_pipe_throttle, as it does where nothing but mma.sync is dispatched.
static inline int64_t sm_held_cycles(const sm_subcore *sc, int32_t position, int64_t until) {
  uint8_t pipe = sc->pipe[position];
  if (pipe >= FTL_SM_PIPE_TENSOR || sc->pipe_held[pipe] >= sc->pipe_free[pipe]) return 0;
  int64_t from = sc->pipe_held[pipe], ready = sc->ready[position], settled = sc->warps[position]->settled;
  if (from < ready) from = ready;
  if (from < settled) from = settled;
  if (until > sc->pipe_free[pipe]) until = sc->pipe_free[pipe];
  return until > from ? until - from : 0;
}

// The pipe is about to be taken, or held anew: what waited for it while it was held.
static inline void sm_note_held(sm_subcore *sc, uint8_t pipe) {
  if (pipe >= FTL_SM_PIPE_TENSOR || sc->pipe_held[pipe] >= sc->pipe_free[pipe]) return;
  for (int32_t i = 0; i < sc->num_positions; i++)
    if (sc->pipe[i] == pipe) sc->undispatched[i] += (uint32_t)sm_held_cycles(sc, i, sc->pipe_free[pipe]);
}

static inline void sm_settle(ftl_sm *sm, sm_subcore *sc, sm_warp *w, int64_t until) {
  int64_t from = w->settled;
  if (from >= until) return;
  int64_t ready = sc->ready[w->position], held = sc->undispatched[w->position] + sm_held_cycles(sc, w->position, until);
  w->settled = until;
  if (ready >= until) {
    sm->counters.stall_cycles[w->reason] += until - from;
    return;
  }
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

// When the warp may issue as things stand.
static inline int64_t sm_issues_at(const sm_subcore *sc, int32_t position) {
  int64_t ready = sc->ready[position], pipe = sc->pipe_free[sc->pipe[position]];
  return ready > pipe ? ready : pipe;
}

// Something else than its own issuing has changed what the sub-core may issue.
static inline void sm_subcore_changed(sm_subcore *sc) { sc->eligible_at = SM_NEVER; }

// The same, and it may issue something from `cycle` on.
static inline void sm_subcore_wake(sm_subcore *sc, int64_t cycle) {
  sm_subcore_changed(sc);
  if (cycle < *sc->next && sc->run.position >= 0) ftl_sm_run_cut(sc, cycle);
  if (cycle < *sc->next) *sc->next = cycle;
}

// The compiler's stall counts hold a warp while it keeps the pipe of its next instruction busy itself: it is not ready
// before (a `wait`), and a throttle is what other warps do to it. They know nothing of dispatch. 0 where that does not
// hold it.
static inline int64_t sm_own_pipe_free(const sm_subcore *sc, const sm_warp *w) {
  uint8_t pipe = w->op->pipe;
  if (pipe <= FTL_SM_PIPE_GMMA) return sc->pipe_taker[pipe] == w->position ? sc->pipe_held[pipe] : 0;
  return pipe <= FTL_SM_PIPE_LG ? w->mio_free : 0;
}

// A wgmma reads and writes its accumulators in the register file. Another instruction then waits for its operands.
static inline bool sm_wgmma_runs(const ftl_sm *sm, int64_t now) { return sm->tensor_free > now; }

static inline int64_t sm_interval(const ftl_sm *sm, const sm_op *op, int64_t now) {
  return op->interval + (op->held && sm_wgmma_runs(sm, now) ? op->held : 0);
}

// When all source tokens of the warp's next instruction are ready: the latest of their words.
static inline uint32_t sm_latest_source(const sm_warp *w) {
  const uint16_t *sources = w->op->sources;
  const uint32_t *tokens = w->tokens;
  uint32_t a = tokens[sources[0]], b = tokens[sources[1]], c = tokens[sources[2]], d = tokens[sources[3]];
  a = a > b ? a : b;
  c = c > d ? c : d;
  return a > c ? a : c;
}

// ftl_sm_code_fetch for the usual case, one line that has come; false: any other case, and nothing is changed.
static inline bool sm_code_is_there(ftl_sm *sm, const sm_op *op, int64_t now) {
  sm_code_line *line = &sm->code_cache.lines[op->line];
  if (op->num_lines != 1 || line->last_use == 0 || line->there_at > now) return false;
  line->last_use = ++sm->code_cache.uses;
  return true;
}

// What a wait for a token of this word is called.
static inline ftl_stall sm_stall_of(uint32_t word) {
  static const uint8_t stalls[4] = {FTL_STALL_WAIT, FTL_STALL_SHORT_SCOREBOARD, FTL_STALL_LONG_SCOREBOARD,
                                    FTL_STALL_WAIT};
  return (ftl_stall)stalls[word & 3];
}

static inline int32_t sm_num_sectors(uint8_t mask) {
  static const uint8_t counts[16] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};
  return counts[mask & 15];
}

static inline uint32_t sm_token_word(const ftl_sm *sm, int64_t cycle, uint32_t producer) {
  return (uint32_t)(cycle - sm->base) << SM_TOKEN_SHIFT | producer;
}

// The data pipe (32 banks and the crossbar) is taken for `cycles` from `cycle` on; gives the cycle after the last.
// Operand reads of a wgmma that is under way lose what is taken.
static inline int64_t sm_reserve_data(ftl_sm *sm, int64_t cycle, int64_t cycles) {
  int64_t start = sm->data_free > cycle ? sm->data_free : cycle;
  sm->data_free = start + cycles;
  if (sm->operand_free > cycle) sm->operand_free += cycles;
  return sm->data_free;
}

// ---- warp.c ----
// Finds when the warp's next instruction may issue, not before `earliest`; `reason`: of the wait until then.
void ftl_sm_warp_evaluate(ftl_sm *sm, sm_warp *w, int64_t earliest, ftl_stall reason);
// Goes on to the next instruction that issues; pseudo instructions take effect at `now`.
void ftl_sm_warp_advance(ftl_sm *sm, sm_warp *w, int64_t now, int64_t earliest, ftl_stall reason);
// Settles the blocked warp and goes on after (advance) or evaluates again the instruction that it is blocked at.
void ftl_sm_warp_resume(ftl_sm *sm, sm_warp *w, int64_t now, int64_t earliest, ftl_stall reason);
void ftl_sm_warp_retry(ftl_sm *sm, sm_warp *w, int64_t now);
void ftl_sm_warp_block(ftl_sm *sm, sm_warp *w, sm_block block, ftl_stall reason);
void ftl_sm_warp_leave(ftl_sm *sm, sm_warp *w, int64_t cycle);
void ftl_sm_warp_start(ftl_sm *sm, sm_warp *w, int64_t cta, int64_t cycle);
void ftl_sm_token_set(ftl_sm *sm, sm_warp *w, uint16_t token, int64_t now, int64_t cycle, uint32_t producer);
void ftl_sm_outstanding_done(ftl_sm *sm, sm_warp *w, int64_t now);
// ---- code_cache.c ----
bool ftl_sm_code_cache_create(ftl_sm *sm);  // false: out of memory
// When the code that the warp's next instruction begins has come; asks for what is not there.
int64_t ftl_sm_code_fetch(ftl_sm *sm, const sm_op *op, int64_t now);
// ---- core.c ----
void ftl_sm_run(ftl_sm *sm, int64_t until);

// ---- mio.c ----
bool ftl_sm_mio_queue_create(ftl_sm *sm, sm_mio_queue *queue, int64_t entries);  // false: out of memory
void ftl_sm_mio_push(ftl_sm *sm, sm_subcore *sc, sm_warp *w, int64_t now, bool last, int32_t stage);
void ftl_sm_mio_serve(ftl_sm *sm, int64_t now);
void ftl_sm_lg_add(ftl_sm *sm, int32_t lines);  // lines in flight, negative when they have come

// ---- lsu.c ----
int64_t ftl_sm_lsu_access(ftl_sm *sm, const sm_mio_entry *entry, int64_t now);  // gives the data cycles it takes
void ftl_sm_cp_commit(ftl_sm *sm, sm_warp *w, int64_t now);
void ftl_sm_cp_arrive(ftl_sm *sm, sm_warp *w, int32_t group, int64_t now, int64_t arrived);
void ftl_sm_fill_reply(ftl_sm *sm, int32_t index, int64_t now);

// ---- transactions.c ----
bool ftl_sm_transactions_create(ftl_sm *sm);
int32_t ftl_sm_request(ftl_sm *sm, int64_t now, const ftl_line *line, ftl_mem_kind kind, sm_transaction what);
void ftl_sm_replies(ftl_sm *sm, int64_t now);

// ---- tma.c ----
void ftl_sm_tma_issue(ftl_sm *sm, sm_warp *w, int64_t now);
void ftl_sm_tma_step(ftl_sm *sm, int64_t now);
void ftl_sm_tma_reply(ftl_sm *sm, const sm_transaction *tx, int64_t now);
void ftl_sm_tma_peer_line(ftl_sm *sm, int32_t stage, int64_t now);  // that another CTA asked for

// ---- barrier.c ----
sm_stage *ftl_sm_stage(ftl_sm *sm, const sm_warp *w, int32_t ring, uint32_t fill, int32_t *index);
void ftl_sm_barrier_come(ftl_sm *sm, sm_warp *w, int64_t now);
void ftl_sm_mbar_acquire(ftl_sm *sm, sm_warp *w, int64_t now);
void ftl_sm_mbar_wait(ftl_sm *sm, sm_warp *w, int64_t now);
void ftl_sm_mbar_expect(ftl_sm *sm, int32_t stage, int64_t now);
void ftl_sm_mbar_release(ftl_sm *sm, int32_t stage, uint32_t count, int64_t now);
void ftl_sm_mbar_advance(ftl_sm *sm, sm_warp *w, int32_t ring, int64_t now);
void ftl_sm_stage_try_complete(ftl_sm *sm, int32_t stage, int64_t now);

// ---- tiles.c ----
void ftl_sm_tile_ask(ftl_sm *sm, sm_warp *w, int64_t now);
void ftl_sm_tile_wait(ftl_sm *sm, sm_warp *w, int64_t now);
void ftl_sm_tile_reply(ftl_sm *sm, int32_t slot, int64_t now);
// The tile with which the warp goes on, or -1.
int64_t ftl_sm_next_tile(const ftl_sm *sm, const sm_warp *w);

// ---- cluster.c ----
bool ftl_sm_cluster_create(ftl_sm *sm);
int32_t ftl_sm_cluster_ctas(const ftl_warp_program *program);  // 1 without clusters
// Lines and arrivals that may be on their way from other CTAs at once.
int32_t ftl_sm_cluster_transactions(const ftl_sm *sm);
// CTAs whose readers a stage of the ring waits for.
int32_t ftl_sm_sharing_ctas(const ftl_sm *sm, int32_t ring);
// Who shares the ring's loads with the CTA in the slot; NULL: nobody.
const ftl_mem_peers *ftl_sm_peers(const ftl_sm *sm, int32_t slot, int32_t ring);
// A warp of this CTA has released the stage: the others hear of it.
void ftl_sm_release_to_peers(ftl_sm *sm, int32_t stage, int64_t now);
void ftl_sm_peer_reply(ftl_sm *sm, const sm_transaction *tx, int64_t now);

// ---- gmma.c ----
void ftl_sm_gmma_issue(ftl_sm *sm, sm_warp *w, int64_t now);
// When the warp's WGMMA or WGMMA_WAIT may issue; SM_NEVER: nobody knows yet.
int64_t ftl_sm_gmma_ready(const ftl_sm *sm, const sm_warp *w);

#endif
