#include "tile/exec.h"

#include <stddef.h>
#include <stdio.h>

typedef struct ring_state {
  int64_t acquired, committed;  // stages, since the start of the CTA
  int64_t waited[FTL_TILE_MAX_ROLES], released[FTL_TILE_MAX_ROLES];
  bool loaded[FTL_TILE_MAX_STAGES];  // something was loaded since the stage was acquired
} ring_state;

typedef struct barrier_state {
  int32_t here_mask;  // roles that have come in this phase
  int64_t phase;
} barrier_state;

typedef struct role_state {
  int32_t next_op;
  bool syncs;  // waits for the end of phase sync_phase of the barrier of next_op
  int64_t sync_phase;
  ftl_expr_point point;
  int64_t loop_lo[FTL_TILE_MAX_LOOP_VARS], loop_hi[FTL_TILE_MAX_LOOP_VARS];
  bool done;
} role_state;

typedef struct exec {
  const ftl_tile_program *program;
  const ftl_exec_options *options;
  ring_state rings[FTL_TILE_MAX_RINGS];
  barrier_state barriers[FTL_TILE_MAX_BARRIERS];
  role_state roles[FTL_TILE_MAX_ROLES];
  int64_t num_steps;
} exec;

typedef enum outcome { PROGRESS, BLOCKED, FAILED } outcome;

static outcome protocol_error(const exec *e, int32_t op_idx, int32_t ring, const char *what, ftl_error *error) {
  char where[FTL_TILE_WHERE_BYTES];
  ftl_error_set(error, FTL_RUN_FAILED, "%s: %s",
                ftl_tile_op_where(e->program, op_idx, e->program->rings[ring].name, where), what);
  return FAILED;
}

// ---- rings ----

static int64_t least_released(const exec *e, int32_t ring) {
  int64_t least = INT64_MAX;
  for (int32_t role = 0; role < e->program->num_roles; role++) {
    if ((e->program->rings[ring].consumers_mask >> role & 1) == 0) continue;
    int64_t released = e->rings[ring].released[role];
    if (released < least) least = released;
  }
  return least;
}

static outcome acquire(exec *e, int32_t op_idx, int32_t ring, int32_t *stage, ftl_error *error) {
  ring_state *state = &e->rings[ring];
  if (state->acquired != state->committed)
    return protocol_error(e, op_idx, ring, "the stage acquired before is not committed", error);
  if (state->acquired - least_released(e, ring) >= e->program->rings[ring].num_stages) return BLOCKED;
  *stage = (int32_t)(state->acquired % e->program->rings[ring].num_stages);
  state->loaded[*stage] = false;
  state->acquired++;
  return PROGRESS;
}

static outcome commit(exec *e, int32_t op_idx, int32_t ring, ftl_error *error) {
  ring_state *state = &e->rings[ring];
  if (state->acquired == state->committed) return protocol_error(e, op_idx, ring, "no stage is acquired", error);
  state->committed++;
  return PROGRESS;
}

static outcome wait_full(exec *e, int32_t role, int32_t ring) {
  ring_state *state = &e->rings[ring];
  if (state->waited[role] >= state->committed) return BLOCKED;
  state->waited[role]++;
  return PROGRESS;
}

static outcome release(exec *e, int32_t op_idx, int32_t role, int32_t ring, ftl_error *error) {
  ring_state *state = &e->rings[ring];
  if (state->released[role] >= state->waited[role])
    return protocol_error(e, op_idx, ring, "the stage was not waited for", error);
  state->released[role]++;
  return PROGRESS;
}

static outcome filled_stage(exec *e, int32_t op_idx, int32_t ring, bool present, int32_t *stage, ftl_error *error) {
  ring_state *state = &e->rings[ring];
  if (state->acquired == state->committed) return protocol_error(e, op_idx, ring, "no stage is acquired", error);
  *stage = (int32_t)(state->committed % e->program->rings[ring].num_stages);
  if (present) state->loaded[*stage] = true;
  return PROGRESS;
}

static outcome read_stage(const exec *e, int32_t op_idx, int32_t role, int32_t ring, int32_t *stage, ftl_error *error) {
  const ring_state *state = &e->rings[ring];
  if (state->waited[role] <= state->released[role])
    return protocol_error(e, op_idx, ring, "reads a stage that was not waited for, or was released", error);
  *stage = (int32_t)((state->waited[role] - 1) % e->program->rings[ring].num_stages);
  return PROGRESS;
}

// The role that fills a ring may write to it while it is idle; a reader may while it holds every stage, so that none is
// being filled. Rows that other readers still need are the program's own care: they are NaN afterwards.
static outcome staging_free(const exec *e, int32_t op_idx, int32_t role, int32_t ring, ftl_error *error) {
  const ring_state *state = &e->rings[ring];
  const ftl_ring *info = &e->program->rings[ring];
  if (info->producer == role) {
    if (state->acquired == least_released(e, ring)) return PROGRESS;
    return protocol_error(e, op_idx, ring, "the staging ring still holds a stage", error);
  }
  if (state->waited[role] - state->released[role] == info->num_stages) return PROGRESS;
  return protocol_error(e, op_idx, ring, "stages through a ring that this role does not hold whole", error);
}

// ---- named barriers ----

static outcome come(exec *e, int32_t op_idx, int32_t role, int32_t barrier, ftl_error *error) {
  barrier_state *state = &e->barriers[barrier];
  const ftl_named_barrier *info = &e->program->barriers[barrier];
  if (state->here_mask >> role & 1) {
    char where[FTL_TILE_WHERE_BYTES];
    ftl_error_set(error, FTL_RUN_FAILED, "%s: role %s comes twice in one phase",
                  ftl_tile_op_where(e->program, op_idx, info->name, where), e->program->roles[role].name);
    return FAILED;
  }
  state->here_mask |= 1 << role;
  if (state->here_mask == info->roles_mask) {
    state->here_mask = 0;
    state->phase++;
  }
  return PROGRESS;
}

// Comes once, however often it is asked; then waits for the end of the phase.
static outcome sync_barrier(exec *e, int32_t op_idx, int32_t role_idx, int32_t barrier, ftl_error *error) {
  role_state *role = &e->roles[role_idx];
  if (!role->syncs) {
    role->syncs = true;
    role->sync_phase = e->barriers[barrier].phase;
    if (come(e, op_idx, role_idx, barrier, error) == FAILED) return FAILED;
  }
  if (e->barriers[barrier].phase == role->sync_phase) return BLOCKED;
  role->syncs = false;
  return PROGRESS;
}

// ---- loops ----

static void loop_begin(exec *e, role_state *role, const ftl_tile_op *op) {
  int64_t lo = ftl_expr_eval(e->program, op->lo, &role->point), hi = ftl_expr_eval(e->program, op->hi, &role->point);
  role->next_op++;
  role->point.loop[op->loop_var] = role->loop_lo[op->loop_var] = lo;
  role->loop_hi[op->loop_var] = hi;
  if (lo < hi) return;
  while (e->program->ops[role->next_op].kind != FTL_TILE_END_LOOP ||
         e->program->ops[role->next_op].loop_var != op->loop_var)
    role->next_op++;
  role->next_op++;
}

static void loop_end(exec *e, role_state *role, const ftl_tile_op *op) {
  int64_t *value = &role->point.loop[op->loop_var];
  int64_t half = e->options->max_trips / 2, hi = role->loop_hi[op->loop_var];
  ++*value;
  if (half > 0 && *value == role->loop_lo[op->loop_var] + half && hi - half > *value) *value = hi - half;
  if (*value >= hi) {
    role->next_op++;
    return;
  }
  while (e->program->ops[role->next_op].kind != FTL_TILE_LOOP ||
         e->program->ops[role->next_op].loop_var != op->loop_var)
    role->next_op--;
  role->next_op++;
}

// ---- one op ----

static bool ref_is_present(const exec *e, const ftl_tile_ref *ref, const ftl_expr_point *point) {
  return ref->present == FTL_ALWAYS || ftl_expr_eval(e->program, ref->present, point) > 0;
}

// What an op has to wait for, and what it changes for other ops' waits.
static outcome protocol_op(exec *e, ftl_exec_event *event, ftl_error *error) {
  const ftl_tile_op *op = event->op;
  int32_t role = event->role_idx;
  switch (op->kind) {
    case FTL_TILE_ACQUIRE:
      return acquire(e, event->op_idx, op->ring, &event->stage, error);
    case FTL_TILE_COMMIT:
      return commit(e, event->op_idx, op->ring, error);
    case FTL_TILE_WAIT:
      return wait_full(e, role, op->ring);
    case FTL_TILE_RELEASE:
      return release(e, event->op_idx, role, op->ring, error);
    case FTL_TILE_LOAD:
      return filled_stage(e, event->op_idx, op->ring, event->present, &event->stage, error);
    case FTL_TILE_PUT:
      return filled_stage(e, event->op_idx, op->ring, true, &event->stage, error);
    case FTL_TILE_TRANSPOSE:
      if (read_stage(e, event->op_idx, role, op->ring_a, &event->stage_a, error) == FAILED) return FAILED;
      return filled_stage(e, event->op_idx, op->ring, true, &event->stage, error);
    case FTL_TILE_DEQUANTIZE:
      if (read_stage(e, event->op_idx, role, op->ring_a, &event->stage_a, error) == FAILED ||
          read_stage(e, event->op_idx, role, op->ring_scales, &event->stage_scales, error) == FAILED)
        return FAILED;
      return filled_stage(e, event->op_idx, op->ring, true, &event->stage, error);
    case FTL_TILE_STORE_MERGED:
      if (staging_free(e, event->op_idx, role, op->ring_a, error) == FAILED) return FAILED;
      return staging_free(e, event->op_idx, role, op->ring, error);
    case FTL_TILE_STORE:
    case FTL_TILE_REDUCE_WARPS:
    case FTL_TILE_REDUCE_GROUPS:
    case FTL_TILE_GATHER:
      return op->ring < 0 ? PROGRESS : staging_free(e, event->op_idx, role, op->ring, error);
    case FTL_TILE_FETCH:
      return read_stage(e, event->op_idx, role, op->ring, &event->stage, error);
    case FTL_TILE_ARRIVE:
      return come(e, event->op_idx, role, op->barrier, error);
    case FTL_TILE_SYNC:
      return sync_barrier(e, event->op_idx, role, op->barrier, error);
    case FTL_TILE_MMA:
      if (op->ring_a >= 0 && read_stage(e, event->op_idx, role, op->ring_a, &event->stage_a, error) == FAILED)
        return FAILED;
      if (op->b.value >= 0) return PROGRESS;
      return read_stage(e, event->op_idx, role, op->ring, &event->stage, error);
    default:
      return PROGRESS;
  }
}

static outcome op_step(exec *e, int32_t role_idx, ftl_error *error) {
  role_state *role = &e->roles[role_idx];
  const ftl_tile_op *op = &e->program->ops[role->next_op];
  if (op->kind == FTL_TILE_LOOP) {
    loop_begin(e, role, op);
    return PROGRESS;
  }
  if (op->kind == FTL_TILE_END_LOOP) {
    loop_end(e, role, op);
    return PROGRESS;
  }
  ftl_exec_event event = {.op = op, .point = &role->point, .op_idx = role->next_op, .role_idx = role_idx};
  bool has_ref = ftl_tile_op_loads(op->kind) || ftl_tile_op_stores(op->kind);
  event.present = has_ref && ref_is_present(e, &op->ref, &role->point);
  outcome result = protocol_op(e, &event, error);
  if (result != PROGRESS) return result;
  if (e->options->visit && e->options->visit(e->options->context, &event, error) != FTL_OK) return FAILED;
  role->next_op++;
  return PROGRESS;
}

// ---- the CTA ----

static void role_start_tile(const exec *e, int32_t role_idx, int64_t tile, role_state *role) {
  const ftl_role *info = &e->program->roles[role_idx];
  int32_t num_done_before = tile == e->options->first_tile ? 0 : info->num_setup_ops;
  *role = (role_state){.next_op = info->first_op + num_done_before, .point = {.cta = tile}};
  role->done = tile >= e->program->num_ctas;
}

static bool out_of_steps(const exec *e) { return e->options->max_steps > 0 && e->num_steps >= e->options->max_steps; }

// Runs until the role waits, fails, is done or has run max_ops; *moved tells whether any op ran.
static outcome role_run(exec *e, int32_t role_idx, int64_t max_ops, bool *moved, ftl_error *error) {
  const ftl_role *info = &e->program->roles[role_idx];
  role_state *role = &e->roles[role_idx];
  for (int64_t i = 0; i < max_ops && !role->done && !out_of_steps(e); i++) {
    e->num_steps++;
    if (role->next_op == info->first_op + info->num_ops) {
      role_start_tile(e, role_idx, role->point.cta + e->options->tile_stride, role);
      *moved = true;
      continue;
    }
    outcome result = op_step(e, role_idx, error);
    if (result != PROGRESS) return result;
    *moved = true;
  }
  return PROGRESS;
}

// The roles that a waiting op waits for, a bit each.
static int32_t awaited_roles(const exec *e, int32_t role, const ftl_tile_op *op) {
  if (op->kind == FTL_TILE_SYNC)
    return e->program->barriers[op->barrier].roles_mask & ~e->barriers[op->barrier].here_mask;
  const ftl_ring *ring = &e->program->rings[op->ring];
  if (op->kind != FTL_TILE_ACQUIRE) return 1 << ring->producer & ~(1 << role);
  int32_t late = 0;
  for (int32_t i = 0; i < e->program->num_roles; i++)
    if (e->rings[op->ring].acquired - e->rings[op->ring].released[i] >= ring->num_stages) late |= 1 << i;
  return late & ring->consumers_mask & ~(1 << role);
}

typedef char deadlock_text[FTL_ERROR_MESSAGE_BYTES];

// "role a waits for ever in CTA 0, for b (done) c": b will do nothing any more.
static void describe_waiting(const exec *e, int32_t role_idx, deadlock_text text) {
  const role_state *role = &e->roles[role_idx];
  const ftl_tile_op *op = &e->program->ops[role->next_op];
  size_t size = sizeof(deadlock_text);
  int32_t awaited = awaited_roles(e, role_idx, op);
  int used = snprintf(text, size, "role %s waits for ever in CTA %lld%s", e->program->roles[role_idx].name,
                      (long long)role->point.cta, awaited ? ", for" : ", for itself");
  for (int32_t i = 0; i < e->program->num_roles; i++)
    if (awaited >> i & 1)
      used += snprintf(text + used, size - (size_t)used, " %s%s", e->program->roles[i].name,
                       e->roles[i].done ? " (done)" : "");
}

// The first role that waits, and where the others do.
static ftl_status deadlock(const exec *e, ftl_error *error) {
  char first_where[FTL_TILE_WHERE_BYTES] = "", where[FTL_TILE_WHERE_BYTES];
  deadlock_text first = "", others = "";
  size_t used = 0;
  for (int32_t i = 0; i < e->program->num_roles; i++) {
    if (e->roles[i].done) continue;
    const ftl_tile_op *op = &e->program->ops[e->roles[i].next_op];
    const char *object =
        op->kind == FTL_TILE_SYNC ? e->program->barriers[op->barrier].name : e->program->rings[op->ring].name;
    bool is_first = first[0] == '\0';
    ftl_tile_op_where(e->program, e->roles[i].next_op, object, is_first ? first_where : where);
    if (is_first)
      describe_waiting(e, i, first);
    else if (used < sizeof others)
      used +=
          (size_t)snprintf(others + used, sizeof others - used, "; %s waits at %s", e->program->roles[i].name, where);
  }
  return ftl_error_set(error, FTL_RUN_FAILED, "%s: %s%s", first_where, first, others);
}

// The op of the ring's filling role that comes last: a commit, in a program that passed the check.
static int32_t last_commit(const exec *e, int32_t ring) {
  int32_t last = 0;
  for (int32_t i = 0; i < e->program->num_ops; i++)
    if (e->program->ops[i].ring == ring && e->program->ops[i].kind <= FTL_TILE_COMMIT) last = i;
  return last;
}

// What a consumer may leave behind: nothing read and not released, and unread stages only if they are empty.
static ftl_status ring_check_end(const exec *e, int32_t ring, int32_t role, ftl_error *error) {
  const ring_state *state = &e->rings[ring];
  const char *what = NULL;
  if (state->acquired != state->committed) what = "a stage was acquired and not committed";
  if (state->released[role] != state->waited[role]) what = "a stage was waited for and not released";
  if (e->program->persistent && state->waited[role] != state->committed) what = "a persistent CTA left a stage unread";
  for (int64_t stage = state->waited[role]; stage < state->committed; stage++)
    if (state->loaded[stage % e->program->rings[ring].num_stages]) what = "a loaded stage was never waited for";
  if (!what) return FTL_OK;
  const char *name = e->program->rings[ring].name;
  if (!e->program->source)
    return ftl_error_set(error, FTL_RUN_FAILED, "%s: at the end: ring %s: %s", e->program->name, name, what);
  char where[FTL_TILE_WHERE_BYTES];
  ftl_tile_op_where(e->program, last_commit(e, ring), name, where);
  return ftl_error_set(error, FTL_RUN_FAILED, "%s: at the end of a CTA: %s", where, what);
}

static ftl_status check_end(const exec *e, ftl_error *error) {
  for (int32_t ring = 0; ring < e->program->num_rings; ring++) {
    for (int32_t role = 0; role < e->program->num_roles; role++) {
      if ((e->program->rings[ring].consumers_mask >> role & 1) == 0) continue;
      ftl_status status = ring_check_end(e, ring, role, error);
      if (status != FTL_OK) return status;
    }
  }
  return FTL_OK;
}

static bool is_done(const exec *e) {
  for (int32_t i = 0; i < e->program->num_roles; i++)
    if (!e->roles[i].done) return false;
  return true;
}

// Every role but a late one as far as it comes; the late one, if all others wait, by one op.
static outcome run_turn(exec *e, bool *moved, ftl_error *error) {
  int32_t late = e->options->late_role - FTL_FIRST_LATE_ROLE;
  for (int32_t i = 0; i < e->program->num_roles; i++)
    if (i != late && role_run(e, i, INT64_MAX, moved, error) == FAILED) return FAILED;
  return late >= 0 && !*moved ? role_run(e, late, 1, moved, error) : PROGRESS;
}

static ftl_status run_roles(exec *e, ftl_error *error) {
  ftl_error local = {0};  // the caller's may be NULL, and a visitor's status must not be lost
  for (;;) {
    bool moved = false;
    if (run_turn(e, &moved, &local) == FAILED) return ftl_error_set(error, local.status, "%s", local.message);
    if (out_of_steps(e)) return FTL_OK;
    if (is_done(e)) return check_end(e, error);
    if (!moved) return deadlock(e, error);
  }
}

ftl_status ftl_exec_cta(const ftl_tile_program *program, const ftl_exec_options *options, ftl_error *error) {
  exec e = {.program = program, .options = options};
  for (int32_t i = 0; i < program->num_roles; i++) role_start_tile(&e, i, options->first_tile, &e.roles[i]);
  ftl_status status = run_roles(&e, error);
  if (options->num_steps) *options->num_steps = e.num_steps;
  return status;
}
