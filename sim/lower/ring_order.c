#include "lower/ring_order.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_COMMITS = 64, MAX_STATES = 4096 };

typedef struct ring_state {
  uint8_t num_busy;    // acquired and not released
  uint8_t held_tiles;  // committed tiles still in registers (copy by registers)
  uint64_t dirty;      // bit i: the i-th stage to be acquired next was read since the last barrier
} ring_state;

_Static_assert(FTL_TILE_MAX_STAGES <= 64, "a ring's stages are bits of `dirty`");

// Compared with memcmp: always zeroed first.
typedef struct state {
  int32_t op;
  int32_t num_commits;
  int8_t commits[MAX_COMMITS];  // ring of each commit since the oldest that was not waited for; -1: waited for
  bool closes[MAX_COMMITS];     // whether it is the last of its group
  ring_state rings[FTL_TILE_MAX_RINGS];
} state;

typedef struct search {
  const ftl_tile_program *tile;
  const ftl_role *role;
  ftl_copy copy;
  ftl_op_order *orders;
  state *states;  // all seen, in order of discovery
  int32_t num_states;
  bool changed;   // an order entry became stronger: start over
  bool conflict;  // paths disagree on what registers hold
  bool too_many;  // copies in flight
} search;

static const ftl_tile_op *op_at(const search *s, int32_t op) { return &s->tile->ops[s->role->first_op + op]; }

static void push(search *s, const state *from, int32_t op) {
  state next = *from;
  next.op = op;
  for (int32_t i = 0; i < s->num_states; i++)
    if (memcmp(&s->states[i], &next, sizeof next) == 0) return;
  if (s->num_states < MAX_STATES) s->states[s->num_states] = next;
  s->num_states++;
}

static void pass_barrier(state *st) {
  for (int r = 0; r < FTL_TILE_MAX_RINGS; r++) st->rings[r].dirty = 0;
}

// A run of WAITs shares one barrier, behind its last.
static bool is_last_wait(const search *s, int32_t op) {
  return op + 1 >= s->role->num_ops || op_at(s, op + 1)->kind != FTL_TILE_WAIT;
}

static bool do_acquire(search *s, state *st, const ftl_tile_op *op, ftl_op_order *order) {
  ring_state *ring = &st->rings[op->ring];
  if (ring->num_busy >= s->tile->rings[op->ring].num_stages) return false;
  if ((ring->dirty & 1) && !order->barrier_before) order->barrier_before = s->changed = true;
  if (order->barrier_before) pass_barrier(st);
  ring->dirty >>= 1;
  ring->num_busy++;
  return true;
}

static void note_tiles(search *s, bool *entry, bool reached, bool value) {
  if (reached && *entry != value) s->conflict = true;
  *entry = value;
}

bool ftl_ring_order_closes_group(const ftl_tile_program *tile, const ftl_role *role, int32_t op) {
  if (op + 1 >= role->num_ops) return true;
  const ftl_tile_op *next = &tile->ops[role->first_op + op + 1];
  return next->kind != FTL_TILE_COMMIT || ftl_tile_ring_is_stored(tile, next->ring);
}

// Stages that threads have stored are no copies: nothing is in flight when they are committed.
static bool is_stored(const search *s, int32_t ring) {
  return s->copy == FTL_COPY_TMA ? ftl_tile_ring_is_put(s->tile, ring) : ftl_tile_ring_is_stored(s->tile, ring);
}

static bool do_commit(search *s, state *st, const ftl_tile_op *op) {
  if (is_stored(s, op->ring)) return true;
  if (st->num_commits >= MAX_COMMITS) {
    s->too_many = true;
    return false;
  }
  st->closes[st->num_commits] = ftl_ring_order_closes_group(s->tile, s->role, st->op);
  st->commits[st->num_commits++] = (int8_t)op->ring;
  st->rings[op->ring].held_tiles = 1;
  return true;
}

// Groups committed after the one that has the commit `at`.
static int32_t groups_after(const state *st, int32_t at) {
  int32_t count = -1;
  for (int32_t i = at; i < st->num_commits; i++) count += st->closes[i];
  return count;
}

static void drop_waited(state *st) {
  int32_t drop = 0;
  while (drop < st->num_commits && st->commits[drop] < 0) drop++;
  st->num_commits -= drop;
  memmove(st->commits, st->commits + drop, (size_t)st->num_commits);
  memset(st->commits + st->num_commits, 0, (size_t)(MAX_COMMITS - st->num_commits));
  memmove(st->closes, st->closes + drop, sizeof *st->closes * (size_t)st->num_commits);
  memset(st->closes + st->num_commits, 0, sizeof *st->closes * (size_t)(MAX_COMMITS - st->num_commits));
}

static bool do_wait(search *s, state *st, const ftl_tile_op *op, ftl_op_order *order) {
  if (is_stored(s, op->ring)) {
    if (s->copy == FTL_COPY_TMA || is_last_wait(s, st->op)) pass_barrier(st);
    return st->rings[op->ring].num_busy > 0;
  }
  int32_t at = 0;
  while (at < st->num_commits && st->commits[at] != op->ring) at++;
  if (at == st->num_commits) return false;
  int32_t left = groups_after(st, at);
  if (!order->reached || left < order->groups_left) order->groups_left = left;
  // older commits of the same ring are the only ones whose tiles can have left the registers before
  bool in_registers = st->rings[op->ring].held_tiles != 0;
  for (int32_t i = at + 1; i < st->num_commits; i++)
    if (st->commits[i] == op->ring) in_registers = false;
  note_tiles(s, &order->store_here, order->reached, in_registers);
  if (in_registers) st->rings[op->ring].held_tiles = 0;
  st->commits[at] = -1;
  drop_waited(st);
  if (s->copy != FTL_COPY_TMA && is_last_wait(s, st->op)) pass_barrier(st);
  return true;
}

static bool do_release(search *s, state *st, const ftl_tile_op *op) {
  ring_state *ring = &st->rings[op->ring];
  if (ring->num_busy == 0) return false;
  int32_t free_stages = s->tile->rings[op->ring].num_stages - ring->num_busy;
  bool is_counted = s->copy == FTL_COPY_TMA && s->tile->rings[op->ring].counts_releases;
  if (!is_counted) ring->dirty |= UINT64_C(1) << free_stages;
  ring->num_busy--;
  return true;
}

static void do_store(search *s, state *st, const ftl_tile_op *op, ftl_op_order *order) {
  if (op->ring < 0) return;
  bool dirty = st->rings[op->ring].dirty || (op->kind == FTL_TILE_STORE_MERGED && st->rings[op->ring_a].dirty);
  if (dirty && !order->barrier_before) order->barrier_before = s->changed = true;
  pass_barrier(st);  // the staging's own
}

// False where no real path has this state (a wait for what was never committed, a full ring).
static bool do_op(search *s, state *st) {
  const ftl_tile_op *op = op_at(s, st->op);
  ftl_op_order *order = &s->orders[st->op];
  bool ok = true;
  switch (op->kind) {
    case FTL_TILE_ACQUIRE:
      ok = do_acquire(s, st, op, order);
      break;
    case FTL_TILE_LOAD:
      note_tiles(s, &order->store_pending, order->reached, st->rings[op->ring].held_tiles != 0);
      st->rings[op->ring].held_tiles = 0;
      break;
    case FTL_TILE_COMMIT:
      ok = do_commit(s, st, op);
      break;
    case FTL_TILE_WAIT:
      ok = do_wait(s, st, op, order);
      break;
    case FTL_TILE_RELEASE:
      ok = do_release(s, st, op);
      break;
    case FTL_TILE_STORE:
    case FTL_TILE_REDUCE_WARPS:
    case FTL_TILE_REDUCE_GROUPS:
    case FTL_TILE_GATHER:
    case FTL_TILE_STORE_MERGED:
      do_store(s, st, op, order);
      break;
    case FTL_TILE_BARRIER:
      pass_barrier(st);
      break;
    case FTL_TILE_SYNC:
      if (s->tile->num_roles == 1) pass_barrier(st);
      break;
    default:
      break;
  }
  if (ok) order->reached = true;
  return ok;
}

static int32_t find_loop_end(const search *s, int32_t op) {
  for (int32_t depth = 0;; op++) {
    ftl_tile_op_kind kind = op_at(s, op)->kind;
    if (kind == FTL_TILE_LOOP) depth++;
    if (kind == FTL_TILE_END_LOOP && --depth == 0) return op;
  }
}

static int32_t find_loop_begin(const search *s, int32_t op) {
  for (int32_t depth = 0;; op--) {
    ftl_tile_op_kind kind = op_at(s, op)->kind;
    if (kind == FTL_TILE_END_LOOP) depth++;
    if (kind == FTL_TILE_LOOP && --depth == 0) return op;
  }
}

// Whether the loop is known to run at least once: constant bounds.
static bool is_never_empty(const search *s, const ftl_tile_op *op) {
  const ftl_expr_node *lo = &s->tile->exprs[op->lo], *hi = &s->tile->exprs[op->hi];
  return lo->kind == FTL_EXPR_CONST && hi->kind == FTL_EXPR_CONST && lo->value < hi->value;
}

static void step(search *s, state st) {
  const ftl_tile_op *op = op_at(s, st.op);
  if (!do_op(s, &st)) return;
  if (op->kind == FTL_TILE_LOOP && !is_never_empty(s, op)) push(s, &st, find_loop_end(s, st.op) + 1);
  if (op->kind == FTL_TILE_END_LOOP) push(s, &st, find_loop_begin(s, st.op) + 1);
  push(s, &st, st.op + 1);
}

static void walk_all(search *s) {
  state start;
  memset(&start, 0, sizeof start);
  s->num_states = 0;
  s->changed = false;
  push(s, &start, 0);
  for (int32_t i = 0; i < s->num_states && i < MAX_STATES; i++)
    if (s->states[i].op < s->role->num_ops) step(s, s->states[i]);
}

ftl_status ftl_ring_order_find(const ftl_tile_program *tile, const ftl_role *role, ftl_copy copy, ftl_op_order *orders,
                               ftl_error *error) {
  search s = {.tile = tile, .role = role, .copy = copy, .orders = orders};
  s.states = malloc(sizeof(state) * MAX_STATES);
  if (!s.states) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory ordering the rings of %s", tile->name);
  memset(orders, 0, sizeof *orders * (size_t)role->num_ops);
  do walk_all(&s);
  while (s.changed && s.num_states <= MAX_STATES);
  free(s.states);
  if (s.num_states > MAX_STATES)
    return ftl_error_set(error, FTL_RUN_FAILED, "%s: the copies of role %s follow no fixed order", tile->name,
                         role->name);
  if (s.too_many)
    return ftl_error_set_about(error, FTL_INFEASIBLE, tile->name, ": role %s has more than %d tiles in flight",
                               role->name, MAX_COMMITS);
  if (copy == FTL_COPY_LDG && s.conflict)
    return ftl_error_set(error, FTL_RUN_FAILED, "%s: a tile is in registers on some paths of role %s only", tile->name,
                         role->name);
  return FTL_OK;
}
