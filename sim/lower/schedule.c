#include "lower/schedule.h"

#include <string.h>

#include "lower/dag.h"
#include "lower/turns.h"

// How many instructions of each queue are looked at when registers are short: keeps the whole near O(n log n).
enum { SEARCH_WIDTH = 16 };

// A binary heap of keys, the largest first; the low half of a key is the node.
typedef struct heap {
  int64_t *keys;
  int32_t count;
} heap;

typedef struct scheduler {
  const ftl_draft *draft;
  const ftl_draft_inst *first;  // of the stretch
  const ftl_dag_node *nodes;
  const ftl_dag_edge *edges;
  const ftl_op_timings *timings;
  const uint64_t *live_out;
  int32_t num_words, num_nodes;

  uint64_t *live;
  int32_t live_registers, limit, peak;
  bool was_short;  // an instruction did not fit when its time had come
  int32_t now;     // cycles before the end of the stretch
  int32_t pipe_free_at[FTL_PIPE_COUNT];
  heap ready[FTL_PIPE_COUNT], pending;  // pending: all users placed, lead not yet over
  int32_t *ready_at, *due_at;           // by node: when its users' latencies are over, and when its lead is
  int32_t *users_left;                  // by node
  int32_t *order;                       // filled from the back
  ftl_turns turns;
} scheduler;

static int32_t node_of(int64_t key) { return (int32_t)(key & INT32_MAX); }
static int64_t key_of(int32_t rank, int32_t node) { return (int64_t)rank << 32 | node; }

static void heap_sift_up(heap *h, int32_t at) {
  int64_t key = h->keys[at];
  while (at > 0 && h->keys[(at - 1) / 2] < key) {
    h->keys[at] = h->keys[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  h->keys[at] = key;
}

static void heap_sift_down(heap *h, int32_t at) {
  int64_t key = h->keys[at];
  for (int32_t child = 2 * at + 1; child < h->count; child = 2 * at + 1) {
    if (child + 1 < h->count && h->keys[child + 1] > h->keys[child]) child++;
    if (h->keys[child] <= key) break;
    h->keys[at] = h->keys[child];
    at = child;
  }
  h->keys[at] = key;
}

static void heap_push(heap *h, int64_t key) {
  h->keys[h->count++] = key;
  heap_sift_up(h, h->count - 1);
}

static int64_t heap_remove(heap *h, int32_t at) {
  int64_t removed = h->keys[at];
  h->keys[at] = h->keys[--h->count];
  if (at < h->count) {
    heap_sift_down(h, at);
    heap_sift_up(h, at);
  }
  return removed;
}

static ftl_op_timing timing_of(const scheduler *s, int32_t node) {
  return ftl_op_timing_of(s->timings, &s->first[node].inst);
}

// Loads go as soon as (backwards: as late as) their latency allows, before all else: waiting longer for a slot would
// only lengthen the life of what they load. The others go by their longest path from the start.
static int64_t ready_key(const scheduler *s, int32_t node) {
  const ftl_draft_inst *inst = &s->first[node];
  bool is_load = timing_of(s, node).pipe == FTL_PIPE_MIO && inst->destination != FTL_NO_VALUE;
  return key_of(s->nodes[node].depth_cycles + (is_load ? INT32_MAX / 2 : 0), node);
}

static bool reads_before(const scheduler *s, const ftl_draft_inst *inst, int32_t read_idx, int32_t value) {
  // Only sources repeat: destinations and waits are each named once.
  for (int32_t k = 0; k < read_idx && k < inst->num_sources; k++) {
    if (ftl_inst_read(s->draft, inst, k) == value) return true;
  }
  return false;
}

// Change of the live registers from after to before the instruction; *needed: the most it needs at any moment.
static int32_t pressure_delta(const scheduler *s, int32_t node, int32_t *needed) {
  const ftl_draft_inst *inst = &s->first[node];
  const ftl_draft_value *values = s->draft->values;
  bool overwrites = ftl_inst_overwrites(inst);
  int32_t delta = 0, during = 0;
  int32_t num_writes = ftl_inst_num_writes(inst);
  for (int32_t k = 0; k < num_writes; k++) {
    int32_t registers = values[inst->destination + k].num_registers;
    bool is_live = ftl_set_has(s->live, inst->destination + k);
    during += is_live ? 0 : registers;
    if (is_live && overwrites) delta -= registers;
  }
  int32_t num_reads = ftl_inst_num_reads(inst);
  for (int32_t k = 0; k < num_reads; k++) {
    int32_t value = ftl_inst_read(s->draft, inst, k);
    bool ends_here = overwrites && value >= inst->destination && value < inst->destination + num_writes;
    bool starts = ends_here || !ftl_set_has(s->live, value);
    if (starts && !reads_before(s, inst, k, value)) delta += values[value].num_registers;
  }
  *needed = s->live_registers + (delta > during ? delta : during);
  return delta;
}

// So many registers are live that ptxas has none to spare for fragments on their way.
static bool is_crowded(const scheduler *s) {
  return s->draft->crowded_above > 0 && s->live_registers > s->draft->crowded_above;
}

static void place(scheduler *s, int32_t node) {
  const ftl_draft_inst *inst = &s->first[node];
  int32_t needed;
  s->live_registers += pressure_delta(s, node, &needed);
  if (needed > s->peak) s->peak = needed;
  for (int32_t k = 0; ftl_inst_overwrites(inst) && k < ftl_inst_num_writes(inst); k++)
    ftl_set_drop(s->live, inst->destination + k);
  int32_t num_reads = ftl_inst_num_reads(inst);
  for (int32_t k = 0; k < num_reads; k++) ftl_set_add(s->live, ftl_inst_read(s->draft, inst, k));

  ftl_op_timing timing = timing_of(s, node);
  if (s->now < s->ready_at[node]) s->now = s->ready_at[node];
  if (s->now < s->pipe_free_at[timing.pipe]) s->now = s->pipe_free_at[timing.pipe];
  const ftl_dag_node *n = &s->nodes[node];
  bool is_crowded_product = inst->inst.opcode == FTL_OP_MMA && is_crowded(s);
  for (int32_t e = n->first_edge; e < n->first_edge + n->num_edges; e++) {
    int32_t earlier = s->edges[e].node;
    bool is_near = is_crowded_product && s->first[earlier].inst.opcode == FTL_OP_LDSM;
    int32_t ready_at = s->now + (is_near ? 1 : s->edges[e].latency_cycles);
    int32_t due_at = s->now + (is_near ? 1 : s->edges[e].lead_cycles);
    if (ready_at > s->ready_at[earlier]) s->ready_at[earlier] = ready_at;
    if (due_at > s->due_at[earlier]) s->due_at[earlier] = due_at;
    if (--s->users_left[earlier] == 0) heap_push(&s->pending, key_of(INT32_MAX - s->due_at[earlier], earlier));
  }
  s->pipe_free_at[timing.pipe] = s->now + timing.interval_cycles * inst->inst.repeat;
  if (timing.pipe != FTL_PIPE_NONE) s->now += inst->inst.repeat;
}

static void wake(scheduler *s) {
  while (s->pending.count && s->due_at[node_of(s->pending.keys[0])] <= s->now) {
    int32_t node = node_of(heap_remove(&s->pending, 0));
    heap_push(&s->ready[timing_of(s, node).pipe], ready_key(s, node));
  }
}

// The next cycle in which an instruction's latency or pipe lets it go.
static int32_t next_event(const scheduler *s) {
  int32_t next = INT32_MAX;
  if (s->pending.count) next = s->due_at[node_of(s->pending.keys[0])];
  for (int p = 0; p < FTL_PIPE_COUNT; p++) {
    if (s->ready[p].count && s->pipe_free_at[p] < next) next = s->pipe_free_at[p];
  }
  return next;
}

typedef struct choice {
  heap *from;
  int32_t at;
  int32_t node;
} choice;

// The best instruction whose latency and pipe allow this cycle.
static bool choose_by_time(scheduler *s, choice *out) {
  int64_t best = -1;
  for (int p = 0; p < FTL_PIPE_COUNT; p++) {
    heap *h = &s->ready[p];
    if (h->count == 0 || s->pipe_free_at[p] > s->now || h->keys[0] <= best) continue;
    best = h->keys[0];
    *out = (choice){h, 0, node_of(best)};
  }
  return best >= 0;
}

// Registers are short: of the instructions that dependencies allow, the best that fits, or else the one that adds
// least.
static void choose_by_pressure(scheduler *s, choice *out) {
  int32_t least = INT32_MAX;
  int64_t best = -1;
  for (int p = 0; p <= FTL_PIPE_COUNT; p++) {
    heap *h = p < FTL_PIPE_COUNT ? &s->ready[p] : &s->pending;
    for (int32_t at = 0; at < h->count && at < SEARCH_WIDTH; at++) {
      int32_t node = node_of(h->keys[at]), needed;
      int32_t delta = pressure_delta(s, node, &needed);
      if (needed <= s->limit) delta = INT32_MIN;  // all that fit are alike
      int64_t key = ready_key(s, node);
      if (delta > least || (delta == least && key <= best)) continue;
      least = delta;
      best = key;
      *out = (choice){h, at, node};
    }
  }
}

// What is begun here and awaited after the stretch: asynchronous copies, loads whose destination lives on.
static int32_t awaited_later(const scheduler *s, int32_t node) {
  const ftl_draft_inst *inst = &s->first[node];
  int32_t background = inst->effects & FTL_EFFECT_AMID ? 0 : ftl_op_background_cycles(s->timings, &inst->inst);
  if (background > 0 || inst->destination == FTL_NO_VALUE) return background;
  ftl_op_timing timing = timing_of(s, node);
  return timing.pipe == FTL_PIPE_MIO && ftl_set_has(s->live_out, inst->destination) ? timing.latency_cycles : 0;
}

static void start(scheduler *s, int32_t limit) {
  memcpy(s->live, s->live_out, sizeof(uint64_t) * (size_t)s->num_words);
  s->live_registers = 0;
  for (int32_t w = 0; w < s->num_words; w++) {
    for (uint64_t bits = s->live[w]; bits; bits &= bits - 1)
      s->live_registers += s->draft->values[w * 64 + __builtin_ctzll(bits)].num_registers;
  }
  s->limit = limit;
  s->peak = s->live_registers;
  s->was_short = false;
  s->now = 0;
  s->pending.count = 0;
  for (int p = 0; p < FTL_PIPE_COUNT; p++) s->pipe_free_at[p] = s->ready[p].count = 0;
  for (int32_t node = 0; node < s->num_nodes; node++) {
    s->ready_at[node] = s->due_at[node] = awaited_later(s, node);
    s->users_left[node] = s->nodes[node].num_later;
    if (s->users_left[node] == 0) heap_push(&s->pending, key_of(INT32_MAX - s->due_at[node], node));
  }
}

// Fills s->order and gives the peak of live registers.
static int32_t schedule_once(scheduler *s, int32_t limit) {
  start(s, limit);
  for (int32_t left = s->num_nodes; left > 0;) {
    wake(s);
    choice chosen;
    if (!choose_by_time(s, &chosen)) {
      s->now = next_event(s);
      continue;
    }
    int32_t needed;
    pressure_delta(s, chosen.node, &needed);
    if (needed > s->limit) {
      s->was_short = true;
      choose_by_pressure(s, &chosen);
    }
    heap_remove(chosen.from, chosen.at);
    place(s, chosen.node);
    s->order[--left] = chosen.node;
  }
  return s->peak;
}

static void offer(const scheduler *s, heap *from, int32_t at, int64_t *best, choice *out) {
  int32_t node = node_of(from->keys[at]), needed;
  int64_t key = ready_key(s, node);
  if (key <= *best) return;
  pressure_delta(s, node, &needed);
  if (node != s->turns.last && (needed > s->limit || !ftl_turns_allow(&s->turns, s->live, node, s->limit))) return;
  *best = key;
  *out = (choice){from, at, node};
}

// The best whose latency and pipe allow this cycle, and which leaves enough registers to those before it. The last
// that is left always does, though it may not be among the first of its queue.
static bool choose_in_turn(scheduler *s, choice *out) {
  int64_t best = -1;
  int32_t last_pipe = timing_of(s, s->turns.last).pipe;
  for (int p = 0; p < FTL_PIPE_COUNT; p++) {
    heap *h = &s->ready[p];
    if (s->pipe_free_at[p] > s->now) continue;
    for (int32_t at = 0; at < h->count; at++)
      if (at < SEARCH_WIDTH || (p == last_pipe && node_of(h->keys[at]) == s->turns.last)) offer(s, h, at, &best, out);
  }
  return best >= 0;
}

// Never needs more registers than the written order or `limit`, whichever is more.
static int32_t schedule_in_turn(scheduler *s, int32_t limit) {
  memcpy(s->live, s->live_out, sizeof(uint64_t) * (size_t)s->num_words);
  int32_t written_peak = ftl_turns_start(&s->turns, s->first, s->num_nodes, s->live, s->num_words);
  start(s, written_peak > limit ? written_peak : limit);
  for (int32_t left = s->num_nodes; left > 0;) {
    wake(s);
    choice chosen = {0};
    if (!choose_in_turn(s, &chosen)) {
      int32_t next = next_event(s);
      s->now = next > s->now ? next : s->now + 1;
      continue;
    }
    heap_remove(chosen.from, chosen.at);
    ftl_turns_take(&s->turns, s->live, chosen.node);
    place(s, chosen.node);
    s->order[--left] = chosen.node;
  }
  return s->peak;
}

static int32_t schedule_as_written(scheduler *s) {
  start(s, 0);
  for (int32_t node = s->num_nodes - 1; node >= 0; node--) {
    place(s, node);
    s->order[node] = node;
  }
  return s->peak;
}

// The order as written, or if fewer registers suffice for it the one that always takes what adds least.
static int32_t schedule_frugally(scheduler *s) {
  int32_t frugal_peak = schedule_once(s, 0), written_peak = schedule_as_written(s);
  return written_peak <= frugal_peak ? written_peak : schedule_once(s, 0);
}

// False if no order that was tried fits.
static bool schedule_stretch(scheduler *s, int32_t limit, bool is_final) {
  int32_t peak = schedule_once(s, limit), cycles = s->now;
  bool fits = peak <= limit;
  if (fits && !s->was_short) return true;
  if (!fits && schedule_once(s, 2 * limit - peak) <= limit) return true;
  bool fits_in_turn = schedule_in_turn(s, limit) <= limit;
  if (fits && (!fits_in_turn || cycles <= s->now)) schedule_once(s, limit);
  if (fits || fits_in_turn) return true;
  return !is_final && schedule_frugally(s) <= limit;
}

static int32_t longest_stretch(const ftl_flow *flow) {
  int32_t longest = 1;
  for (int32_t i = 0; i < flow->num_stretches; i++) {
    int32_t length = flow->stretches[i].end - flow->stretches[i].begin;
    if (length > longest) longest = length;
  }
  return longest;
}

static bool scheduler_init(scheduler *s, const ftl_draft *draft, const ftl_liveness *liveness, int32_t max_nodes,
                           ftl_arena *arena) {
  *s = (scheduler){.draft = draft, .num_words = liveness->num_words};
  s->live = FTL_ARENA_NEW(arena, uint64_t, liveness->num_words);
  s->ready_at = FTL_ARENA_NEW(arena, int32_t, max_nodes);
  s->due_at = FTL_ARENA_NEW(arena, int32_t, max_nodes);
  s->users_left = FTL_ARENA_NEW(arena, int32_t, max_nodes);
  s->order = FTL_ARENA_NEW(arena, int32_t, max_nodes);
  int64_t *keys = FTL_ARENA_NEW(arena, int64_t, (FTL_PIPE_COUNT + 1) * max_nodes);
  if (!s->live || !s->ready_at || !s->due_at || !s->users_left || !s->order || !keys) return false;
  for (int p = 0; p < FTL_PIPE_COUNT; p++) s->ready[p].keys = keys + (size_t)p * (size_t)max_nodes;
  s->pending.keys = keys + (size_t)FTL_PIPE_COUNT * (size_t)max_nodes;
  return ftl_turns_init(&s->turns, draft, max_nodes, arena);
}

bool ftl_schedule(ftl_draft *draft, const ftl_flow *flow, const ftl_liveness *liveness, const ftl_arch *arch,
                  int32_t limit, const int32_t *waiting, bool is_final, bool *fits, ftl_arena *arena) {
  ftl_op_timings timings;
  ftl_op_timings_init(&timings, arch, &draft->product);
  if (draft->fragments_early) ftl_op_timings_move_fragments(&timings, arch);
  if (draft->fragments_near) ftl_op_timings_near_fragments(&timings);
  int32_t max_nodes = longest_stretch(flow);
  scheduler s;
  ftl_draft_inst *reordered = FTL_ARENA_NEW(arena, ftl_draft_inst, max_nodes);
  if (!reordered || !scheduler_init(&s, draft, liveness, max_nodes, arena)) return false;
  s.timings = &timings;
  ftl_dag *dag = ftl_dag_create(draft->num_values, max_nodes);
  bool done = dag != NULL;
  *fits = true;
  for (int32_t i = 0; done && i < flow->num_stretches; i++) {
    const ftl_stretch *stretch = &flow->stretches[i];
    s.num_nodes = stretch->end - stretch->begin;
    if (s.num_nodes < 2) continue;
    done = ftl_dag_build(dag, draft, stretch, &timings);
    if (!done) break;
    s.first = &draft->insts[stretch->begin];
    s.nodes = ftl_dag_nodes(dag);
    s.edges = ftl_dag_edges(dag);
    s.live_out = &liveness->live_out[(size_t)i * (size_t)liveness->num_words];
    if (!schedule_stretch(&s, limit + (waiting ? waiting[i] : 0), is_final)) *fits = false;
    for (int32_t k = 0; k < s.num_nodes; k++) reordered[k] = s.first[s.order[k]];
    memcpy(&draft->insts[stretch->begin], reordered, sizeof *reordered * (size_t)s.num_nodes);
  }
  ftl_dag_destroy(dag);
  return done;
}
