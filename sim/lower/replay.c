#include "lower/replay.h"

#include <stdlib.h>

#include "lower/replay_fills.h"

enum { WARPS_A_GROUP = 4 };

// A copy or read whose end is not known yet, and the group that it belongs to.
typedef struct pending {
  int32_t ring;
  int64_t fill;
  int64_t group;  // commits of the warp before the one that closes it
} pending;

typedef struct pending_list {
  pending *entries;
  int32_t count, capacity;
  int64_t num_commits;
} pending_list;

// What an LDG brought to a token on its way to a ring's stage.
typedef struct carried {
  const ftl_access *access;  // NULL: nothing
  ftl_tile_place place;
} carried;

typedef struct warp_state {
  ftl_walk walk;
  const ftl_warp_inst *inst;  // to be run next; NULL at the end
  int32_t warp, index;        // in the CTA; in the role
  bool at_barrier;
  ftl_vector_clock clock;
  ftl_tile_place *places;  // by reference
  carried *carried;        // by token
  int64_t filling[FTL_TILE_MAX_RINGS], waited[FTL_TILE_MAX_RINGS], released[FTL_TILE_MAX_RINGS];
  pending_list copies, wgmmas;
} warp_state;

typedef struct named_barrier {
  int32_t num_here;         // warps that have come in this phase
  ftl_vector_clock joined;  // what they know
} named_barrier;

typedef struct replay {
  const ftl_warp_program *program;
  int64_t cta;
  ftl_coverage *coverage;
  ftl_replay_ring rings[FTL_TILE_MAX_RINGS];
  named_barrier barriers[FTL_MAX_BARRIER_IDS];
  warp_state *warps;
  int32_t num_warps;
  bool out_of_memory;
} replay;

typedef enum outcome { DONE, BLOCKED, BROKEN } outcome;

// ---- groups ----
static bool pend(pending_list *list, int32_t ring, int64_t fill) {
  if (list->count == list->capacity) {
    int32_t capacity = list->capacity ? list->capacity * 2 : 64;
    pending *larger = realloc(list->entries, sizeof *larger * (size_t)capacity);
    if (!larger) return false;
    list->entries = larger;
    list->capacity = capacity;
  }
  list->entries[list->count++] = (pending){ring, fill, list->num_commits};
  return true;
}

// Ends what belongs to all but the last `groups_left` committed groups.
static void settle(replay *r, warp_state *w, pending_list *list, int64_t groups_left, bool reads) {
  int32_t kept = 0;
  for (int32_t i = 0; i < list->count; i++) {
    pending p = list->entries[i];
    if (p.group >= list->num_commits - groups_left) {
      list->entries[kept++] = p;
      continue;
    }
    ftl_replay_fill *fill = &r->rings[p.ring].fills[p.fill];
    (reads ? fill->reading : fill->in_flight)[w->warp]--;
    (reads ? fill->read_at : fill->copied_at)[w->warp] = w->clock.of[w->warp];
  }
  list->count = kept;
}

// ---- stages ----
static ftl_replay_fill *fill_at(replay *r, int32_t ring, int64_t fill) {
  ftl_replay_fill *f = ftl_replay_fill_at(&r->rings[ring], fill);
  r->out_of_memory |= !f;
  return f;
}

static const char *begin_copy(replay *r, warp_state *w, int32_t ring, ftl_replay_fill **out) {
  *out = fill_at(r, ring, w->filling[ring]);
  if (!*out) return "out of memory";
  (*out)->begun = true;
  return ftl_replay_may_overwrite(&r->rings[ring], w->filling[ring], &w->clock);
}

static const char *copy_async(replay *r, warp_state *w, const ftl_warp_inst *inst) {
  const ftl_access *access = &r->program->accesses[inst->access];
  const ftl_tile_place *place = &w->places[access->ref];
  if (place->num_rows == 0) return NULL;
  ftl_replay_fill *fill;
  const char *problem = begin_copy(r, w, inst->ring_a, &fill);
  if (problem) return problem;
  if (inst->opcode == FTL_OP_CP_ASYNC) {
    fill->in_flight[w->warp]++;
    if (!pend(&w->copies, inst->ring_a, w->filling[inst->ring_a])) return "out of memory";
  } else if (fill->committed) {
    return "copies into a stage whose copies were all announced";
  }
  return ftl_coverage_load(r->coverage, inst->ring_a, w->filling[inst->ring_a], access, place, w->index);
}

static const char *load_to_registers(replay *r, warp_state *w, const ftl_warp_inst *inst) {
  const ftl_access *access = &r->program->accesses[inst->access];
  if (inst->ring_a == FTL_NO_RING)
    return ftl_coverage_load_direct(r->coverage, r->program->refs[access->ref].tensor, access, &w->places[access->ref],
                                    w->index);
  w->carried[inst->destination] = (carried){access, w->places[access->ref]};
  return NULL;
}

static const char *store_to_stage(replay *r, warp_state *w, const ftl_warp_inst *inst) {
  if (inst->ring_a == FTL_NO_RING) return NULL;
  ftl_replay_fill *fill;
  const char *problem = begin_copy(r, w, inst->ring_a, &fill);
  if (problem) return problem;
  fill->copied_at[w->warp] = w->clock.of[w->warp];
  for (int k = 0; k < inst->num_sources - inst->num_awaited && !problem; k++) {
    carried *c = &w->carried[inst->sources[k]];
    if (!c->access) continue;
    problem = ftl_coverage_load(r->coverage, inst->ring_a, w->filling[inst->ring_a], c->access, &c->place, w->index);
    c->access = NULL;
  }
  return problem;
}

static const char *read_stage(replay *r, warp_state *w, int32_t ring, bool async) {
  int64_t fill = w->waited[ring] - 1;
  if (fill < w->released[ring]) return "reads a stage that it has not waited for, or has given back";
  ftl_replay_fill *f = fill_at(r, ring, fill);
  if (!f) return "out of memory";
  const char *problem =
      ftl_replay_may_read(&r->rings[ring], fill, w->warp, &w->clock, ftl_coverage_is_full(r->coverage, ring, fill));
  if (problem) return problem;
  if (!async) {
    f->read_at[w->warp] = w->clock.of[w->warp];
    return NULL;
  }
  f->reading[w->warp]++;
  return pend(&w->wgmmas, ring, fill) ? NULL : "out of memory";
}

static const char *read_stages(replay *r, warp_state *w, const ftl_warp_inst *inst) {
  const char *problem = NULL;
  bool async = inst->opcode == FTL_OP_WGMMA;
  if (inst->ring_a != FTL_NO_RING) problem = read_stage(r, w, inst->ring_a, async);
  if (!problem && inst->ring_b != FTL_NO_RING) problem = read_stage(r, w, inst->ring_b, async);
  return problem;
}

static const char *release(replay *r, warp_state *w, const ftl_warp_inst *inst, bool arrives) {
  int32_t ring = inst->arg;
  int64_t fill = w->released[ring]++;
  if (fill >= w->waited[ring]) return "gives back a stage that it has not waited for";
  ftl_replay_fill *f = fill_at(r, ring, fill);
  if (!f) return "out of memory";
  bool may_read = (inst->flags & FTL_INST_RUNS_ON) != 0;  // who fills it again has to see that this is over
  if (!may_read && f->reading[w->warp] > 0) return "gives back a stage that a wgmma may still read";
  if (arrives) {
    // the producer goes on with the first of them that suffice: it knows nothing of later ones
    if (f->num_releases++ < r->program->rings[ring].num_consumer_warps) ftl_clock_join(&f->released_at, &w->clock);
  }
  return NULL;
}

static const char *store_to_tensor(replay *r, warp_state *w, const ftl_warp_inst *inst) {
  const ftl_access *access = &r->program->accesses[inst->access];
  return ftl_coverage_store(r->coverage, r->program->refs[access->ref].tensor, access, &w->places[access->ref],
                            w->index);
}

// ---- waiting ----
static outcome acquire(replay *r, warp_state *w, int32_t ring) {
  int64_t before = w->filling[ring] - r->rings[ring].num_stages;
  if (before < 0) return DONE;
  ftl_replay_fill *f = fill_at(r, ring, before);
  if (!f || f->num_releases < r->program->rings[ring].num_consumer_warps) return BLOCKED;
  ftl_clock_join(&w->clock, &f->released_at);
  return DONE;
}

static outcome wait_full(replay *r, warp_state *w, int32_t ring) {
  ftl_replay_fill *f = fill_at(r, ring, w->waited[ring]);
  if (!f || !f->expected || !f->committed) return BLOCKED;
  ftl_clock_join(&w->clock, &f->committed_at);
  w->waited[ring]++;
  return DONE;
}

static bool meets(const warp_state *a, const warp_state *b) {
  if (a->walk.role != b->walk.role) return false;
  return !(a->inst->flags & FTL_INST_WARPGROUP) || a->index / WARPS_A_GROUP == b->index / WARPS_A_GROUP;
}

// The last to arrive lets the others go and orders all of them.
static outcome barrier(replay *r, warp_state *w) {
  w->at_barrier = true;
  ftl_vector_clock joined = w->clock;
  for (int32_t i = 0; i < r->num_warps; i++) {
    warp_state *other = &r->warps[i];
    if (!meets(w, other)) continue;
    if (!other->at_barrier || !other->inst || other->inst->arg != w->inst->arg) return BLOCKED;
    ftl_clock_join(&joined, &other->clock);
  }
  for (int32_t i = 0; i < r->num_warps; i++) {
    warp_state *other = &r->warps[i];
    if (!meets(w, other)) continue;
    other->at_barrier = false;
    other->clock = joined;
    other->clock.of[other->warp]++;
    if (other != w) other->inst = ftl_walk_next(&other->walk);
  }
  return DONE;
}

// Barriers between roles count warps, whoever they are; the last to come lets go those that wait.
static outcome named_barrier_come(replay *r, warp_state *w, bool waits) {
  uint16_t id = w->inst->arg;
  named_barrier *barrier = &r->barriers[id];
  ftl_clock_join(&barrier->joined, &w->clock);
  w->at_barrier = waits;
  if (++barrier->num_here < r->program->barrier_warps[id]) return waits ? BLOCKED : DONE;
  for (int32_t i = 0; i < r->num_warps; i++) {
    warp_state *other = &r->warps[i];
    if (!other->at_barrier || other->inst->arg != id) continue;
    other->at_barrier = false;
    ftl_clock_join(&other->clock, &barrier->joined);
    other->clock.of[other->warp]++;
    if (other != w) other->inst = ftl_walk_next(&other->walk);
  }
  *barrier = (named_barrier){0};
  return DONE;
}

// ---- one instruction ----
static outcome checked(const char *problem, const char **out) {
  *out = problem;
  return problem ? BROKEN : DONE;
}

static const char *announce(replay *r, warp_state *w, const ftl_warp_inst *inst) {
  ftl_replay_fill *f = fill_at(r, inst->arg, w->filling[inst->arg]);
  if (!f) return "out of memory";
  if (inst->opcode == FTL_OP_MBAR_EXPECT) {
    f->expected = true;
  } else {
    f->committed = true;
    w->filling[inst->arg]++;
  }
  ftl_clock_join(&f->committed_at, &w->clock);
  return NULL;
}

static outcome run_inst(replay *r, warp_state *w, const char **problem) {
  const ftl_warp_inst *inst = w->inst;
  w->clock.of[w->warp]++;
  switch (inst->opcode) {
    case FTL_OP_TILE:
      w->places[inst->access] = ftl_tile_place_of(r->program->tile, &r->program->refs[inst->access], &w->walk.point);
      return DONE;
    case FTL_OP_CP_ASYNC:
    case FTL_OP_TMA_LOAD:
      return checked(copy_async(r, w, inst), problem);
    case FTL_OP_LDG:
      return checked(load_to_registers(r, w, inst), problem);
    case FTL_OP_STS:
      return checked(store_to_stage(r, w, inst), problem);
    case FTL_OP_STG:
    case FTL_OP_RED:
    case FTL_OP_TMA_STORE:
      return checked(store_to_tensor(r, w, inst), problem);
    case FTL_OP_LDS:
    case FTL_OP_LDSM:
    case FTL_OP_WGMMA:
      return checked(read_stages(r, w, inst), problem);
    case FTL_OP_CP_COMMIT:
      w->copies.num_commits++;
      return DONE;
    case FTL_OP_CP_WAIT:
      settle(r, w, &w->copies, inst->arg, false);
      return DONE;
    case FTL_OP_WGMMA_COMMIT:
      w->wgmmas.num_commits++;
      return DONE;
    case FTL_OP_WGMMA_WAIT:
      settle(r, w, &w->wgmmas, inst->arg, true);
      return DONE;
    case FTL_OP_RING_READ:
      w->waited[inst->arg]++;
      return DONE;
    case FTL_OP_RING_FREE:
      return checked(release(r, w, inst, false), problem);
    case FTL_OP_MBAR_RELEASE:
      return checked(release(r, w, inst, true), problem);
    case FTL_OP_MBAR_EXPECT:
    case FTL_OP_MBAR_ADVANCE:
      return checked(announce(r, w, inst), problem);
    case FTL_OP_MBAR_ACQUIRE:
      return acquire(r, w, inst->arg);
    case FTL_OP_MBAR_WAIT:
      return wait_full(r, w, inst->arg);
    case FTL_OP_BAR_SYNC:
      return r->program->barrier_warps[inst->arg] ? named_barrier_come(r, w, true) : barrier(r, w);
    case FTL_OP_BAR_ARRIVE:
      return named_barrier_come(r, w, false);
    default:
      return DONE;
  }
}

static ftl_status failure(const replay *r, const warp_state *w, const char *what, ftl_error *error) {
  const ftl_warp_inst *inst = w->inst;
  int32_t ring = inst->ring_a != FTL_NO_RING ? inst->ring_a : inst->ring_b != FTL_NO_RING ? inst->ring_b : -1;
  return ftl_error_set(error, FTL_RUN_FAILED, "%s: CTA %lld, warp %d, instruction %d (%s%s%s): %s",
                       r->program->tile->name, (long long)r->cta, w->warp, w->walk.pc - 1,
                       ftl_opcode_name(inst->opcode), ring >= 0 ? " on ring " : "",
                       ring >= 0 ? r->program->tile->rings[ring].name : "", what);
}

// Runs a warp until it waits or ends. *moved: whether it ran anything.
static ftl_status run_warp(replay *r, warp_state *w, bool *moved, ftl_error *error) {
  while (w->inst && !w->at_barrier) {
    const char *problem = NULL;
    switch (run_inst(r, w, &problem)) {
      case BROKEN:
        return failure(r, w, problem, error);
      case BLOCKED:
        if (r->out_of_memory) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
        *moved |= w->at_barrier;
        return FTL_OK;
      case DONE:
        break;
    }
    *moved = true;
    w->inst = ftl_walk_next(&w->walk);
  }
  return FTL_OK;
}

static ftl_status run_all(replay *r, ftl_error *error) {
  for (bool moved = true; moved;) {
    moved = false;
    for (int32_t i = 0; i < r->num_warps; i++) {
      ftl_status status = run_warp(r, &r->warps[i], &moved, error);
      if (status != FTL_OK) return status;
    }
  }
  for (int32_t i = 0; i < r->num_warps; i++)
    if (r->warps[i].inst) return failure(r, &r->warps[i], "waits for ever", error);
  return FTL_OK;
}

static bool replay_init(replay *r) {
  const ftl_warp_program *p = r->program;
  for (int32_t i = 0; i < p->num_rings; i++) r->rings[i].num_stages = p->rings[i].num_stages;
  r->warps = calloc((size_t)p->num_warps, sizeof *r->warps);
  if (!r->warps) return false;
  for (int32_t role = 0; role < p->num_roles; role++) {
    for (int32_t i = 0; i < p->roles[role].num_warps; i++) {
      warp_state *w = &r->warps[r->num_warps];
      *w = (warp_state){.walk = ftl_walk_start(p, role, i, r->cta), .warp = r->num_warps++, .index = i};
      w->places = calloc((size_t)p->num_refs + 1, sizeof *w->places);
      w->carried = calloc(FTL_MAX_TOKENS, sizeof *w->carried);
      if (!w->places || !w->carried) return false;
      w->inst = ftl_walk_next(&w->walk);
    }
  }
  return true;
}

static void replay_fini(replay *r) {
  for (int32_t i = 0; i < r->num_warps; i++) {
    free(r->warps[i].places);
    free(r->warps[i].carried);
    free(r->warps[i].copies.entries);
    free(r->warps[i].wgmmas.entries);
  }
  free(r->warps);
  for (int i = 0; i < FTL_TILE_MAX_RINGS; i++) free(r->rings[i].fills);
}

ftl_status ftl_replay(const ftl_warp_program *program, int64_t cta, ftl_coverage *coverage, ftl_error *error) {
  if (program->num_warps > FTL_REPLAY_MAX_WARPS)
    return ftl_error_set(error, FTL_RUN_FAILED, "%s: %d warps, at most %d can be followed", program->tile->name,
                         program->num_warps, FTL_REPLAY_MAX_WARPS);
  replay r = {.program = program, .cta = cta, .coverage = coverage};
  ftl_status status = replay_init(&r) ? run_all(&r, error) : ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  replay_fini(&r);
  return status;
}
