#include "lower/spill.h"

#include <stdlib.h>
#include <string.h>

#include "lower/spill_plan.h"

// In choosing, what a local access costs more than an ALU instruction: it goes through the LSU queue and L1. A guess;
// it decides which values leave registers, not what their accesses take.
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
  uint64_t *live;  // scratch: values live at a position
  int32_t num_words;
  bool *spilled;        // by value
  int32_t *slots;       // by value
  int32_t *block_size;  // by value: of the registers that leave together, at the first of them; else 0
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
  int32_t num_relieved;  // instructions short of registers at which it would be out of registers
  int32_t gap_end;       // end of the gap that holds `position`; -1: none does
} appraisal;

static void appraise_group(void *context, const ftl_spill_group *group) {
  appraisal *a = context;
  const ftl_draft_value *value = &a->spiller->draft->values[a->value];
  if (value->recompute_insts > 0) {
    if (group->reload) a->cost += group->weight * value->recompute_insts;
  } else {
    // ptxas weighs what is worked out once by all that reads it: of PyTorch's FlashAttention-2 at head_dim 128 row sums
    // leave rather than places, of which each serves several ldmatrix
    bool is_loaded_once = !value->is_kept || group->is_stored_anew || group->num_reads < 1;
    int32_t num_loads = group->reload * (is_loaded_once ? 1 : group->num_reads);
    a->cost += group->weight * LOCAL_COST * value->num_registers * (num_loads + group->store + group->is_stored_anew);
  }
}

static void appraise_gap(void *context, int32_t from, int32_t to) {
  appraisal *a = context;
  a->num_relieved += a->spiller->state.num_over[to] - a->spiller->state.num_over[from];
  if (from <= a->position && a->position < to) a->gap_end = to;
}

static void find_live_after(spiller *s, int32_t position) {
  const ftl_spill_region *region = s->state.regions;
  while (region->end <= position) region++;
  memcpy(s->live, region->live_out, sizeof(uint64_t) * (size_t)s->num_words);
  for (int32_t i = region->end - 1; i > position; i--) ftl_live_step_back(s->draft, &s->draft->insts[i], s->live);
}

typedef struct victim {
  int32_t first, size;
  int64_t cost;     // of all
  int64_t relief;   // registers that it frees where it is wanted, times the instructions that it relieves
  int32_t gap_end;  // how far the next use is: a gap holds no access of its value
} victim;

// The block of values that begins at `first`; false: none of them can leave.
static bool appraise_block(const spiller *s, int32_t first, int32_t position, victim *out) {
  int32_t freed = 0, num_relieved = 0, excess = s->state.pressure[position] - s->state.limit;
  *out = (victim){.first = first, .size = s->block_size[first], .gap_end = INT32_MAX};
  for (int32_t v = first; v < first + out->size; v++) {
    if (s->spilled[v] || !ftl_set_has(s->live, v) || s->draft->values[v].num_registers == 0) continue;
    appraisal a = {.spiller = s, .value = v, .position = position, .gap_end = -1};
    ftl_spill_visitor visitor = {appraise_group, appraise_gap, &a};
    if (!ftl_spill_plan(&s->state, v, &visitor)) return false;
    out->cost += a.cost;
    if (a.gap_end < 0) continue;
    freed += s->draft->values[v].num_registers;
    if (a.num_relieved > num_relieved) num_relieved = a.num_relieved;
    if (a.gap_end < out->gap_end) out->gap_end = a.gap_end;
  }
  out->relief = (int64_t)(freed < excess ? freed : excess) * num_relieved;
  return freed > 0;
}

// The least cost for what it relieves; of equals the farthest next use.
static bool choose_victim(spiller *s, int32_t position, victim *out) {
  bool found = false;
  find_live_after(s, position);
  for (int32_t v = 0; v < s->draft->num_values; v++) {
    victim candidate;
    if (s->block_size[v] == 0 || !appraise_block(s, v, position, &candidate)) continue;
    int64_t more = found ? candidate.cost * out->relief - out->cost * candidate.relief : -1;
    if (more > 0 || (more == 0 && candidate.gap_end <= out->gap_end)) continue;
    *out = candidate;
    found = true;
  }
  return found;
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
  int32_t first_group = s->num_groups;
  s->spilled[value] = ftl_spill_plan(&s->state, value, &visitor);
  bool is_only_loaded = s->draft->values[value].is_kept;
  for (int32_t g = first_group; g < s->num_groups; g++) is_only_loaded &= !s->groups[g].group.is_stored_anew;
  if (s->draft->values[value].recompute_insts > 0) return;
  s->slots[value] = spill->num_slots;
  spill->num_slots += s->draft->values[value].num_registers;
  spill->spilled_registers += s->draft->values[value].num_registers;
  if (is_only_loaded) spill->kept_registers += s->draft->values[value].num_registers;
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
    victim chosen = {0};
    if (choose_victim(s, at, &chosen)) {
      for (int32_t v = chosen.first; v < chosen.first + chosen.size; v++)
        if (!s->spilled[v] && ftl_set_has(s->live, v)) evict(s, v, spill);
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

static void plan_insertions(spiller *s) {
  for (int32_t i = 0; i <= s->draft->num_insts; i++) s->stores_at[i] = s->reloads_at[i] = -1;
  for (int32_t g = 0; g < s->num_groups; g++) {
    const ftl_spill_group *group = &s->groups[g].group;
    int32_t value = s->groups[g].value;
    bool recompute = s->draft->values[value].recompute_insts > 0;
    if (group->reload) insert_before(s, s->reloads_at, group->first, value, true);
    if (group->store && !recompute) insert_before(s, s->stores_at, group->last_write + 1, value, false);
    if (group->is_stored_anew && !recompute) insert_before(s, s->stores_at, group->last + 1, value, false);
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

// The accumulator of a wgmma is one run of registers: ptxas stores and loads all of it, or none.
static void find_blocks(spiller *s) {
  for (int32_t v = 0; v < s->draft->num_values; v++) s->block_size[v] = 1;
  for (int32_t i = 0; i < s->draft->num_insts; i++) {
    const ftl_draft_inst *inst = &s->draft->insts[i];
    if (inst->inst.opcode != FTL_OP_WGMMA) continue;
    int32_t num_writes = ftl_inst_num_writes(inst);
    for (int32_t k = 0; k < num_writes; k++) s->block_size[inst->destination + k] = k == 0 ? num_writes : 0;
  }
}

static bool spiller_init(spiller *s, ftl_draft *draft, int32_t limit, const ftl_flow *flow,
                         const ftl_liveness *liveness, ftl_arena *arena) {
  *s = (spiller){.draft = draft, .num_words = liveness->num_words};
  if (!ftl_spill_state_init(&s->state, draft, flow, liveness, limit, arena)) return false;
  int32_t num_accesses = s->state.first_access[draft->num_values];
  s->live = FTL_ARENA_NEW(arena, uint64_t, s->num_words);
  s->spilled = FTL_ARENA_NEW(arena, bool, draft->num_values);
  s->slots = FTL_ARENA_NEW(arena, int32_t, draft->num_values);
  s->block_size = FTL_ARENA_NEW(arena, int32_t, draft->num_values);
  s->groups = FTL_ARENA_NEW(arena, placed_group, num_accesses);
  s->insertions = FTL_ARENA_NEW(arena, insertion, 2 * num_accesses);
  s->stores_at = FTL_ARENA_NEW(arena, int32_t, draft->num_insts + 1);
  s->reloads_at = FTL_ARENA_NEW(arena, int32_t, draft->num_insts + 1);
  if (s->block_size) find_blocks(s);
  return s->live && s->spilled && s->slots && s->block_size && s->groups && s->insertions && s->stores_at &&
         s->reloads_at;
}

ftl_status ftl_spill(ftl_draft *draft, int32_t limit, const ftl_flow *flow, const ftl_liveness *liveness,
                     ftl_spill_context *spill, ftl_arena *arena, ftl_error *error) {
  uint64_t *scratch = FTL_ARENA_NEW(arena, uint64_t, liveness->num_words);
  if (!scratch) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  if (ftl_liveness_max(draft, flow, liveness, scratch, NULL) <= limit) return FTL_OK;
  spiller s;
  if (!spiller_init(&s, draft, limit, flow, liveness, arena))
    return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  evict_all(&s, spill);
  plan_insertions(&s);
  rewrite(&s, spill);
  return draft->failed ? ftl_error_set(error, FTL_NO_MEMORY, "out of memory") : FTL_OK;
}
