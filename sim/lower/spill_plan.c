#include "lower/spill_plan.h"

enum { TRIPS_ASSUMED = 8 };  // of a loop whose count is unknown, as compilers weigh loop depth

static bool is_boundary(const ftl_draft_inst *inst) {
  return inst->inst.opcode == FTL_OP_LOOP || inst->inst.opcode == FTL_OP_END_LOOP;
}

static void find_regions(ftl_spill_state *state, const ftl_flow *flow, const ftl_liveness *liveness) {
  bool open = false;
  for (int32_t s = 0; s < flow->num_stretches; s++) {
    const ftl_stretch *stretch = &flow->stretches[s];
    bool boundary = is_boundary(&state->draft->insts[stretch->begin]);
    size_t row = (size_t)s * (size_t)liveness->num_words;
    if (boundary || !open) {
      ftl_spill_region *region = &state->regions[state->num_regions++];
      *region = (ftl_spill_region){.begin = stretch->begin, .weight = 1, .live_in = &liveness->live_in[row]};
      for (int32_t d = 0; d < stretch->num_repeating; d++) region->weight *= TRIPS_ASSUMED;
    }
    state->regions[state->num_regions - 1].end = stretch->end;
    state->regions[state->num_regions - 1].live_out = &liveness->live_out[row];
    open = !boundary;
  }
}

// Adds to value's list, which has `count` entries so far; gives the new count.
static int32_t note_access(ftl_spill_access *list, int32_t count, ftl_spill_access access) {
  if (count > 0 && list[count - 1].position == access.position) {
    list[count - 1].reads |= access.reads;
    list[count - 1].writes |= access.writes;
    return count;
  }
  list[count] = access;
  return count + 1;
}

static void list_accesses(ftl_spill_state *state, int32_t *counts) {
  const ftl_draft *draft = state->draft;
  for (int32_t i = 0; i < draft->num_insts; i++) {
    const ftl_draft_inst *inst = &draft->insts[i];
    bool takes_off = inst->inst.opcode == FTL_OP_WGMMA;
    int32_t num_reads = ftl_inst_num_reads(inst);
    for (int32_t k = 0; k < num_reads; k++) {
      int32_t value = ftl_inst_read(draft, inst, k);
      counts[value] = note_access(&state->accesses[state->first_access[value]], counts[value],
                                  (ftl_spill_access){i, true, false, takes_off});
    }
    for (int32_t k = 0; k < ftl_inst_num_writes(inst); k++) {
      int32_t value = inst->destination + k;
      counts[value] = note_access(&state->accesses[state->first_access[value]], counts[value],
                                  (ftl_spill_access){i, !ftl_inst_overwrites(inst), true, takes_off});
    }
  }
}

// Room for every access, one entry each; unused room at the end of a value's list is closed by `compact`.
static void reserve_accesses(ftl_spill_state *state) {
  const ftl_draft *draft = state->draft;
  for (int32_t i = 0; i < draft->num_insts; i++) {
    const ftl_draft_inst *inst = &draft->insts[i];
    int32_t num_reads = ftl_inst_num_reads(inst);
    for (int32_t k = 0; k < num_reads; k++) state->first_access[ftl_inst_read(draft, inst, k) + 1]++;
    for (int32_t k = 0; k < ftl_inst_num_writes(inst); k++) state->first_access[inst->destination + k + 1]++;
  }
  for (int32_t v = 0; v < draft->num_values; v++) state->first_access[v + 1] += state->first_access[v];
}

static void compact(ftl_spill_state *state, const int32_t *counts) {
  int32_t to = 0;
  for (int32_t v = 0; v < state->draft->num_values; v++) {
    int32_t from = state->first_access[v];
    state->first_access[v] = to;
    for (int32_t k = 0; k < counts[v]; k++) state->accesses[to++] = state->accesses[from + k];
  }
  state->first_access[state->draft->num_values] = to;
}

static int32_t count_accesses(const ftl_draft *draft) {
  int32_t count = 0;
  for (int32_t i = 0; i < draft->num_insts; i++)
    count += ftl_inst_num_reads(&draft->insts[i]) + ftl_inst_num_writes(&draft->insts[i]);
  return count;
}

bool ftl_spill_state_init(ftl_spill_state *state, const ftl_draft *draft, const ftl_flow *flow,
                          const ftl_liveness *liveness, int32_t limit, ftl_arena *arena) {
  *state = (ftl_spill_state){.draft = draft, .limit = limit};
  state->regions = FTL_ARENA_NEW(arena, ftl_spill_region, flow->num_stretches);
  state->accesses = FTL_ARENA_NEW(arena, ftl_spill_access, count_accesses(draft));
  state->first_access = FTL_ARENA_NEW(arena, int32_t, draft->num_values + 1);
  state->pressure = FTL_ARENA_NEW(arena, int32_t, draft->num_insts);
  state->num_over = FTL_ARENA_NEW(arena, int32_t, draft->num_insts + 1);
  int32_t *counts = FTL_ARENA_NEW(arena, int32_t, draft->num_values);
  uint64_t *scratch = FTL_ARENA_NEW(arena, uint64_t, liveness->num_words);
  if (!state->regions || !state->accesses || !state->first_access || !state->pressure || !state->num_over || !counts ||
      !scratch)
    return false;
  find_regions(state, flow, liveness);
  reserve_accesses(state);
  list_accesses(state, counts);
  compact(state, counts);
  ftl_liveness_max(draft, flow, liveness, scratch, state->pressure);
  ftl_spill_count_over(state);
  return true;
}

void ftl_spill_count_over(ftl_spill_state *state) {
  state->num_over[0] = 0;
  for (int32_t i = 0; i < state->draft->num_insts; i++)
    state->num_over[i + 1] = state->num_over[i] + (state->pressure[i] > state->limit);
}

static void visit_gap(const ftl_spill_visitor *visitor, int32_t from, int32_t to) {
  if (visitor->gap && from < to) visitor->gap(visitor->context, from, to);
}

// Whether a spilled value stays in its registers from one access of a region to the next. The accumulator of a wgmma
// does while wgmmas follow each other, but not from what scales it to the first of them: ptxas stores and loads it in
// between or, where two slabs take turns in the same registers, stores and loads either once (SASS of flash2_wgmma.h
// with TMA and of Triton's kernel, 128 x 128 tiles of 4 warps at head_dim 128: 128 words stored and loaded a step, a
// slab has 64).
static bool stays(const ftl_spill_state *state, const ftl_spill_access *access, const ftl_spill_access *next) {
  if (access->takes_off) return true;
  bool is_scaled = state->draft->insts[access->position].inst.opcode != FTL_OP_WGMMA_WAIT;
  if (is_scaled && next->takes_off) return false;
  return state->num_over[next->position] == state->num_over[access->position + 1];
}

// Whether registers are short behind a value's last use of the region alone, which does not change it: then it comes
// into the region in its registers, and ptxas stores it where it leaves them, each time. Of PyTorch's FlashAttention-2
// at head_dim 128 places of ldmatrix and limits of rows are stored so ahead of the second product in every step; where
// registers are short ahead of the first use too, as at head_dim 64, places are in memory all along (SASS, sm_90).
static bool leaves_behind_its_use(const ftl_spill_state *state, const ftl_spill_region *region, int32_t value,
                                  const ftl_spill_group *group) {
  if (!state->draft->buffers_fragments || !state->draft->values[value].is_kept) return false;
  if (!group->reload || group->last_write >= 0 || !ftl_set_has(region->live_out, value)) return false;
  return state->num_over[group->first] == state->num_over[region->begin] &&
         state->num_over[region->end] > state->num_over[group->last + 1];
}

// The accesses list[0 .. count) lie in one region.
static void plan_region(const ftl_spill_state *state, const ftl_spill_region *region, int32_t value,
                        const ftl_spill_access *list, int32_t count, const ftl_spill_visitor *visitor) {
  bool live_out = ftl_set_has(region->live_out, value);
  int32_t free_from = region->begin;
  for (int32_t k = 0; k < count;) {
    ftl_spill_group group = {.first = list[k].position,
                             .free_from = free_from,
                             .last_write = -1,
                             .reload = list[k].reads,
                             .weight = region->weight};
    bool again = true;
    for (; again; k++) {
      group.last = list[k].position;
      group.num_reads += list[k].reads && !list[k].writes;
      if (list[k].writes) group.last_write = list[k].position;
      again = k + 1 < count && list[k + 1].reads && stays(state, &list[k], &list[k + 1]);
    }
    group.store = group.last_write >= 0 && (k < count ? list[k].reads : live_out);
    bool is_only_one = k == count && free_from == region->begin;
    group.is_stored_anew = is_only_one && leaves_behind_its_use(state, region, value, &group);
    if (!group.reload) group.free_from = group.first;
    visit_gap(visitor, group.free_from, group.first);
    visitor->group(visitor->context, &group);
    free_from = group.last + 1;
  }
  if (live_out && (count > 0 || ftl_set_has(region->live_in, value))) visit_gap(visitor, free_from, region->end);
}

static bool flies_across(const ftl_spill_state *state, int32_t value) {
  int32_t at = state->first_access[value], end = state->first_access[value + 1];
  for (int32_t r = 0; r < state->num_regions && at < end; r++) {
    int32_t first = at;
    while (at < end && state->accesses[at].position < state->regions[r].end) at++;
    if (at > first && state->accesses[at - 1].takes_off) return true;
  }
  return false;
}

bool ftl_spill_plan(const ftl_spill_state *state, int32_t value, const ftl_spill_visitor *visitor) {
  if (state->draft->values[value].is_reserve || flies_across(state, value)) return false;
  int32_t at = state->first_access[value], end = state->first_access[value + 1];
  for (int32_t r = 0; r < state->num_regions; r++) {
    int32_t first = at;
    while (at < end && state->accesses[at].position < state->regions[r].end) at++;
    plan_region(state, &state->regions[r], value, &state->accesses[first], at - first, visitor);
  }
  return true;
}
