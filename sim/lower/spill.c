#include "lower/spill.h"

#include <stdlib.h>
#include <string.h>

#include "lower/spill_plan.h"

// In choosing, what a local access costs more than an ALU instruction: it goes through the LSU queue and L1.
enum { LOCAL_COST = 4 };
enum { WIDEST_ACCESS_REGISTERS = 4 };  // LDL.128

typedef struct insertion {
  int32_t value;
  int32_t next;  // in the list of its position
  bool reload;
} insertion;

// A group of a value that was chosen, as planned when it was chosen.
typedef struct placed_group {
  int32_t value;
  ftl_spill_group group;
} placed_group;

typedef struct spiller {
  ftl_draft *draft;
  ftl_spill_state state;
  int32_t reload_distance;
  uint64_t *live;  // scratch: values live at a position
  int32_t num_words;
  bool *spilled;   // by value
  int32_t *slots;  // by value
  placed_group *groups;
  insertion *insertions;
  int32_t *stores_at, *reloads_at;  // by position: heads of lists of insertions
  int32_t num_groups, num_insertions;
} spiller;

// ---- choosing ----
typedef struct appraisal {
  const spiller *spiller;
  int32_t value, position;
  int64_t cost;
  int32_t gap_end;  // end of the gap that holds `position`; -1: none does
} appraisal;

static void appraise_group(void *context, const ftl_spill_group *group) {
  appraisal *a = context;
  int32_t recompute = a->spiller->draft->values[a->value].recompute_insts;
  if (recompute > 0) {
    if (group->reload) a->cost += group->weight * recompute;
  } else {
    a->cost += group->weight * LOCAL_COST * (group->reload + group->store);
  }
}

static void appraise_gap(void *context, int32_t from, int32_t to) {
  appraisal *a = context;
  if (from <= a->position && a->position < to) a->gap_end = to;
}

static void find_live_after(spiller *s, int32_t position) {
  const ftl_spill_region *region = s->state.regions;
  while (region->end <= position) region++;
  memcpy(s->live, region->live_out, sizeof(uint64_t) * (size_t)s->num_words);
  for (int32_t i = region->end - 1; i > position; i--) ftl_live_step_back(s->draft, &s->draft->insts[i], s->live);
}

// A gap holds no access of its value, so its end says how far the next use is.
static int32_t choose_victim(spiller *s, int32_t position) {
  int32_t victim = FTL_NO_VALUE, farthest = -1;
  int64_t least = INT64_MAX;
  find_live_after(s, position);
  for (int32_t v = 0; v < s->draft->num_values; v++) {
    if (s->spilled[v] || !ftl_set_has(s->live, v) || s->draft->values[v].num_registers == 0) continue;
    appraisal a = {.spiller = s, .value = v, .position = position, .gap_end = -1};
    ftl_spill_visitor visitor = {appraise_group, appraise_gap, &a};
    if (!ftl_spill_plan(&s->state, v, &visitor) || a.gap_end < 0) continue;
    if (a.cost > least || (a.cost == least && a.gap_end <= farthest)) continue;
    victim = v;
    least = a.cost;
    farthest = a.gap_end;
  }
  return victim;
}

// ---- evicting ----
typedef struct eviction {
  spiller *spiller;
  int32_t value;
} eviction;

static void evict_group(void *context, const ftl_spill_group *group) {
  eviction *e = context;
  e->spiller->groups[e->spiller->num_groups++] = (placed_group){e->value, *group};
}

static void evict_gap(void *context, int32_t from, int32_t to) {
  eviction *e = context;
  int32_t registers = e->spiller->draft->values[e->value].num_registers;
  for (int32_t i = from; i < to; i++) e->spiller->state.pressure[i] -= registers;
}

static void evict(spiller *s, int32_t value, ftl_spill_context *spill) {
  eviction e = {s, value};
  ftl_spill_visitor visitor = {evict_group, evict_gap, &e};
  s->spilled[value] = ftl_spill_plan(&s->state, value, &visitor);
  if (s->draft->values[value].recompute_insts > 0) return;
  s->slots[value] = spill->num_slots;
  spill->num_slots += s->draft->values[value].num_registers;
  spill->spilled_registers += s->draft->values[value].num_registers;
}

static int32_t worst_position(const ftl_spill_state *state) {
  int32_t worst = -1, most = state->limit;
  for (int32_t i = 0; i < state->draft->num_insts; i++) {
    if (state->pressure[i] <= most) continue;
    most = state->pressure[i];
    worst = i;
  }
  return worst;
}

// Evicts values until registers suffice. Where nothing can leave, the excess is left.
static void evict_all(spiller *s, ftl_spill_context *spill) {
  for (int32_t at = worst_position(&s->state); at >= 0; at = worst_position(&s->state)) {
    int32_t victim = choose_victim(s, at);
    if (victim != FTL_NO_VALUE) {
      evict(s, victim, spill);
    } else {
      s->state.pressure[at] = s->state.limit;
    }
    ftl_spill_count_over(&s->state);
  }
}

// ---- rewriting ----
static void insert_before(spiller *s, int32_t *heads, int32_t position, int32_t value, bool reload) {
  s->insertions[s->num_insertions] = (insertion){value, heads[position], reload};
  heads[position] = s->num_insertions++;
}

// Where the reload goes: up to its latency ahead, as far as there are registers for it.
static int32_t reload_position(spiller *s, const ftl_spill_group *group, int32_t registers) {
  int32_t at = group->first;
  while (at > group->free_from && group->first - at < s->reload_distance &&
         s->state.pressure[at - 1] + registers <= s->state.limit) {
    at--;
    s->state.pressure[at] += registers;
  }
  return at;
}

static void plan_insertions(spiller *s) {
  for (int32_t i = 0; i <= s->draft->num_insts; i++) s->stores_at[i] = s->reloads_at[i] = -1;
  for (int32_t g = 0; g < s->num_groups; g++) {
    const ftl_spill_group *group = &s->groups[g].group;
    int32_t value = s->groups[g].value;
    bool recompute = s->draft->values[value].recompute_insts > 0;
    if (group->reload) {
      int32_t at = recompute ? group->first : reload_position(s, group, s->draft->values[value].num_registers);
      insert_before(s, s->reloads_at, at, value, true);
    }
    if (group->store && !recompute) insert_before(s, s->stores_at, group->last_write + 1, value, false);
  }
}

// A wide value takes several accesses; those of a reload after the first fill in the rest of it.
static void add_local(ftl_draft *to, const spiller *s, const insertion *what, const ftl_spill_context *spill) {
  int32_t registers = s->draft->values[what->value].num_registers;
  for (int32_t done = 0; done < registers; done += WIDEST_ACCESS_REGISTERS) {
    int32_t width = registers - done < WIDEST_ACCESS_REGISTERS ? registers - done : WIDEST_ACCESS_REGISTERS;
    ftl_draft_inst *inst = ftl_draft_add(to, what->reload ? FTL_OP_LDL : FTL_OP_STL, 1);
    inst->inst.access = spill->add_local_access(spill->context, s->slots[what->value] + done, width);
    inst->inst.wavefronts = (uint16_t)width;
    if (what->reload) {
      inst->destination = what->value;
      if (done > 0) inst->effects = FTL_EFFECT_READS_DESTINATION;
    } else {
      inst->sources[inst->num_sources++] = what->value;
    }
  }
}

static void add_list(ftl_draft *to, const spiller *s, int32_t head, const ftl_spill_context *spill) {
  for (int32_t at = head; at >= 0; at = s->insertions[at].next) {
    const insertion *what = &s->insertions[at];
    int32_t recompute = s->draft->values[what->value].recompute_insts;
    if (recompute > 0) {
      ftl_draft_add(to, FTL_OP_IADD, recompute)->destination = what->value;
    } else {
      add_local(to, s, what, spill);
    }
  }
}

static void rewrite(spiller *s, const ftl_spill_context *spill) {
  ftl_draft rewritten = {0};
  for (int32_t i = 0; i <= s->draft->num_insts; i++) {
    add_list(&rewritten, s, s->stores_at[i], spill);
    add_list(&rewritten, s, s->reloads_at[i], spill);
    if (i < s->draft->num_insts) *ftl_draft_add(&rewritten, FTL_OP_NOP, 1) = s->draft->insts[i];
  }
  free(s->draft->insts);
  s->draft->insts = rewritten.insts;
  s->draft->num_insts = rewritten.num_insts;
  s->draft->capacity_insts = rewritten.capacity_insts;
  s->draft->failed |= rewritten.failed;
}

static bool spiller_init(spiller *s, ftl_draft *draft, const ftl_arch *arch, int32_t limit, const ftl_flow *flow,
                         const ftl_liveness *liveness, ftl_arena *arena) {
  *s = (spiller){
      .draft = draft, .reload_distance = (int32_t)arch->l1_hit_latency_cycles, .num_words = liveness->num_words};
  if (!ftl_spill_state_init(&s->state, draft, flow, liveness, limit, arena)) return false;
  int32_t num_accesses = s->state.first_access[draft->num_values];
  s->live = FTL_ARENA_NEW(arena, uint64_t, s->num_words);
  s->spilled = FTL_ARENA_NEW(arena, bool, draft->num_values);
  s->slots = FTL_ARENA_NEW(arena, int32_t, draft->num_values);
  s->groups = FTL_ARENA_NEW(arena, placed_group, num_accesses);
  s->insertions = FTL_ARENA_NEW(arena, insertion, 2 * num_accesses);
  s->stores_at = FTL_ARENA_NEW(arena, int32_t, draft->num_insts + 1);
  s->reloads_at = FTL_ARENA_NEW(arena, int32_t, draft->num_insts + 1);
  return s->live && s->spilled && s->slots && s->groups && s->insertions && s->stores_at && s->reloads_at;
}

ftl_status ftl_spill(ftl_draft *draft, const ftl_arch *arch, int32_t limit, const ftl_flow *flow,
                     const ftl_liveness *liveness, ftl_spill_context *spill, ftl_arena *arena, ftl_error *error) {
  uint64_t *scratch = FTL_ARENA_NEW(arena, uint64_t, liveness->num_words);
  if (!scratch) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  if (ftl_liveness_max(draft, flow, liveness, scratch, NULL) <= limit) return FTL_OK;
  spiller s;
  if (!spiller_init(&s, draft, arch, limit, flow, liveness, arena))
    return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  evict_all(&s, spill);
  plan_insertions(&s);
  rewrite(&s, spill);
  return draft->failed ? ftl_error_set(error, FTL_NO_MEMORY, "out of memory") : FTL_OK;
}
