#include "machine/sm/sm.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/integer.h"
#include "machine/sm/policy.h"
#include "machine/sm/accounting.h"

// Token words hold 30 bits of cycles; times are counted from a base that follows.
enum { REBASE_CYCLES = 1 << 28 };

// ---- code ----
struct ftl_sm_code {
  sm_code code;
  ftl_arena arena;
};

ftl_status ftl_sm_code_create(ftl_sm_code **out, const ftl_warp_program *program, const ftl_arch *arch,
                              ftl_error *error) {
  *out = NULL;
  ftl_sm_code *code = calloc(1, sizeof *code);
  if (!code) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for an SM's code");
  ftl_status status = ftl_sm_code_build(&code->code, program, arch, &code->arena, error);
  if (status == FTL_OK)
    *out = code;
  else
    ftl_sm_code_destroy(code);
  return status;
}

void ftl_sm_code_destroy(ftl_sm_code *code) {
  if (!code) return;
  ftl_arena_fini(&code->arena);
  free(code);
}

// ---- create ----
static void place_warps(ftl_sm *sm) {
  const ftl_warp_program *program = sm->program;
  int32_t stride = sm->code.num_tokens, warpgroups = sm->warpgroups_per_cta;
  for (int32_t slot = 0; slot < sm->config.num_slots; slot++)
    for (int32_t r = 0; r < program->num_roles; r++)
      for (int32_t i = 0; i < program->roles[r].num_warps; i++) {
        int32_t warp = program->roles[r].first_warp + i, index = slot * program->num_warps + warp;
        sm_warp *w = &sm->warps[index];
        sm_subcore *sc = &sm->subcores[index % sm->num_subcores];
        w->tokens += (int64_t)index * stride;
        w->places += (int64_t)index * program->num_refs;
        w->first_op = &sm->code.ops[sm->code.first_op[r]];
        w->op = w->first_op;
        w->blocked = SM_GONE;
        w->subcore = (uint8_t)(index % sm->num_subcores);
        w->position = (uint8_t)sc->num_positions;
        w->role = (uint8_t)r;
        w->warp = (int16_t)warp;
        w->warp_in_role = (int16_t)i;
        w->slot = slot;
        w->warpgroup = slot * warpgroups + warp / SM_WARPGROUP;
        w->local_address_bytes = (int64_t)ftl_local_address_bytes(sm->config.sm_idx, index);
        sc->warps[sc->num_positions++] = w;
      }
}

static bool allocate(ftl_sm *sm) {
  const ftl_warp_program *program = sm->program;
  int64_t slots = sm->config.num_slots, warps = slots * program->num_warps;
  sm->warps = FTL_ARENA_NEW(&sm->arena, sm_warp, warps);
  uint32_t *tokens = FTL_ARENA_NEW(&sm->arena, uint32_t, warps * sm->code.num_tokens);
  ftl_tile_place *places = FTL_ARENA_NEW(&sm->arena, ftl_tile_place, warps * program->num_refs);
  for (int32_t r = 0; r < program->num_rings; r++) {
    sm->first_stage[r] = sm->stages_per_cta;
    sm->stages_per_cta += program->rings[r].num_stages;
  }
  sm->stages = FTL_ARENA_NEW(&sm->arena, sm_stage, slots * sm->stages_per_cta);
  sm->barrier_counts = FTL_ARENA_NEW(&sm->arena, uint16_t, slots * sm->code.num_barriers);
  sm->warpgroups_per_cta = ftl_divide_up32(program->num_warps, SM_WARPGROUP);
  sm->warpgroups = FTL_ARENA_NEW(&sm->arena, sm_warpgroup, slots * sm->warpgroups_per_cta);
  sm->slots = FTL_ARENA_NEW(&sm->arena, sm_slot, slots);
  sm->finished = FTL_ARENA_NEW(&sm->arena, ftl_sm_finished, 2 * slots);
  if (!sm->warps || !tokens || !places || !sm->stages || !sm->barrier_counts || !sm->warpgroups || !sm->slots ||
      !sm->finished)
    return false;
  for (int64_t i = 0; i < warps; i++) {
    sm->warps[i].tokens = tokens;
    sm->warps[i].places = places;
  }
  for (int32_t s = 0; s < sm->num_subcores; s++) {
    sm_subcore *sc = &sm->subcores[s];
    if (!ftl_sm_mio_queue_create(sm, &sc->queues[SM_QUEUE_MIO], sm->arch->mio_queue_entries, false) ||
        !ftl_sm_mio_queue_create(sm, &sc->queues[SM_QUEUE_LG], sm->arch->mio_lg_queue_entries, true))
      return false;
    sc->run.position = -1;
    sc->last_issue = SM_LONG_AGO;
  }
  sm->lsu_end = sm->lsu_starts + sm->arch->mio_lsu_queue_entries;
  sm->lsu_room = sm->lsu_end > sm->lsu_starts ? sm->lsu_starts : &sm->data_free;
  return true;
}

// What shared memory leaves of the unified array, with as many CTAs as there are slots.
static int64_t l1_bytes(const ftl_sm *sm) {
  const ftl_arch *arch = sm->arch;
  int64_t shared = sm->program->shared_bytes + arch->shared_reserved_bytes_per_cta;
  shared = ftl_round_up(shared, arch->shared_unit_bytes);
  return arch->l1_unified_bytes - shared * sm->config.num_slots;
}

static ftl_status check_config(const ftl_sm_config *config, ftl_error *error) {
  const ftl_arch *arch = config->arch;
  int64_t warps = (int64_t)config->num_slots * config->program->num_warps, role_warps = 0;
  for (int32_t r = 0; r < config->program->num_roles; r++) role_warps += config->program->roles[r].num_warps;
  FTL_CHECK(role_warps == config->program->num_warps, "a CTA of %d warps with %lld in its roles",
            config->program->num_warps, (long long)role_warps);
  if (config->num_slots < 1 || warps > arch->sm_max_warps || warps > SM_MAX_POSITIONS * arch->sm_num_subcores)
    return ftl_error_set(error, FTL_INFEASIBLE, "%d CTAs of %d warps on an SM: %s allows %lld warps", config->num_slots,
                         config->program->num_warps, arch->name, (long long)arch->sm_max_warps);
  return FTL_OK;
}

static ftl_status build(ftl_sm *sm, ftl_error *error) {
  ftl_status status = check_config(&sm->config, error);
  if (status == FTL_OK && sm->config.code)
    sm->code = sm->config.code->code;
  else if (status == FTL_OK)
    status = ftl_sm_code_build(&sm->code, sm->program, sm->arch, &sm->arena, error);
  if (status != FTL_OK) return status;
  const sm_policy *policy = ftl_sm_policy_find(sm->arch->sm_scheduler);
  if (!policy) return ftl_error_set(error, FTL_BAD_INPUT, "sm.scheduler: no policy %s", sm->arch->sm_scheduler);
  sm->policy = *policy;
  if (!allocate(sm) || !ftl_sm_cluster_create(sm) || !ftl_sm_code_cache_create(sm) || !ftl_sm_parameters_create(sm) ||
      !ftl_sm_transactions_create(sm) || !ftl_sm_l1_create(&sm->l1, sm->arch, l1_bytes(sm), &sm->arena))
    return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for an SM");
  place_warps(sm);
  return FTL_OK;
}

ftl_status ftl_sm_create(ftl_sm **out, const ftl_sm_config *config, ftl_error *error) {
  *out = NULL;
  ftl_sm *sm = calloc(1, sizeof *sm);
  if (!sm) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for an SM");
  sm->config = *config;
  sm->arch = config->arch;
  sm->program = config->program;
  sm->num_subcores = (int32_t)config->arch->sm_num_subcores;
  sm->bulk = config->bulk;
  ftl_sm_store_merge_init(&sm->store_merge);
  sm->mio_next = sm->reply_next = sm->tma.next = SM_NEVER;
  for (int32_t s = 0; s < SM_SUBCORES; s++) {
    sm->next[s] = sm->mio_first_ready[s] = SM_NEVER;
    sm->subcores[s].index = s;
    sm->subcores[s].next = &sm->next[s];
    sm_subcore_changed(&sm->subcores[s]);
    for (int32_t i = 0; i < SM_MAX_POSITIONS; i++) sm->subcores[s].ready[i] = SM_NEVER;
  }
  ftl_status status = build(sm, error);
  if (status != FTL_OK) {
    ftl_sm_destroy(sm);
    return status;
  }
  *out = sm;
  return FTL_OK;
}

void ftl_sm_destroy(ftl_sm *sm) {
  if (!sm) return;
  ftl_arena_fini(&sm->arena);
  free(sm);
}

// ---- run ----
static void rebase(ftl_sm *sm) {
  int64_t shift = sm->now - sm->base;
  if (shift < REBASE_CYCLES) return;
  int64_t count = (int64_t)sm->config.num_slots * sm->program->num_warps * sm->code.num_tokens;
  uint32_t *tokens = sm->warps[0].tokens;
  for (int64_t i = 0; i < count; i++) {
    if (tokens[i] >= SM_TOKEN_PENDING) continue;
    int64_t cycle = (int64_t)(tokens[i] >> SM_TOKEN_SHIFT) - shift;
    tokens[i] = cycle > 0 ? (uint32_t)cycle << SM_TOKEN_SHIFT | (tokens[i] & 3) : 0;
  }
  sm->base = sm->now;
}

void ftl_sm_launch(ftl_sm *sm, int32_t slot_idx, int64_t cta, int64_t cycle) {
  sm_slot *slot = &sm->slots[slot_idx];
  FTL_CHECK(slot_idx >= 0 && slot_idx < sm->config.num_slots && !slot->busy && cycle >= sm->now,
            "SM %d: CTA %lld in slot %d at cycle %lld, now %lld", sm->config.sm_idx, (long long)cta, slot_idx,
            (long long)cycle, (long long)sm->now);
  // No token is in use on an empty SM, which may not have been advanced for long.
  if (sm->num_resident == 0) sm->base = cycle - sm->now > REBASE_CYCLES ? cycle - REBASE_CYCLES : sm->now;
  *slot = (sm_slot){.busy = true, .cta = cta, .start = cycle, .warps_left = sm->program->num_warps};
  sm->num_resident++;
  ftl_sm_parameters_forget(sm, slot_idx);
  for (int32_t i = 0; i < sm->stages_per_cta; i++) sm->stages[slot_idx * sm->stages_per_cta + i] = (sm_stage){0};
  for (int32_t i = 0; i < sm->code.num_barriers; i++) sm->barrier_counts[slot_idx * sm->code.num_barriers + i] = 0;
  for (int32_t i = 0; i < sm->warpgroups_per_cta; i++)
    sm->warpgroups[slot_idx * sm->warpgroups_per_cta + i] = (sm_warpgroup){0};
  for (int32_t i = 0; i < sm->program->num_warps; i++)
    ftl_sm_warp_start(sm, &sm->warps[slot_idx * sm->program->num_warps + i], cta, cycle);
  sm->num_launched++;
}

// Brings every counter to `until`.
static void settle(ftl_sm *sm, int64_t until) {
  ftl_sm_counters *counters = &sm->counters;
  int64_t first = until, insts = 0;
  counters->resident_warp_cycles = sm->gone_warp_cycles;
  for (int32_t i = 0; i < sm->config.num_slots * sm->program->num_warps; i++) {
    sm_warp *w = &sm->warps[i];
    if (w->blocked == SM_GONE) continue;
    sm_settle(sm, &sm->subcores[w->subcore], w, until);
    counters->resident_warp_cycles += w->settled - w->start;
  }
  for (int32_t i = 0; i < sm->config.num_slots; i++)
    if (sm->slots[i].busy && sm->slots[i].start < first) first = sm->slots[i].start;
  if (first < sm->active_until) first = sm->active_until;
  if (until > first) {
    counters->active_cycles += until - first;
    sm->active_until = until;
  }
  for (int i = 0; i < FTL_SM_PIPE_COUNT; i++) insts += counters->pipe_insts[i];
  counters->warp_insts = counters->issue_active_cycles = insts;
  counters->stall_cycles[FTL_STALL_SELECTED] = insts;
  counters->tensor_insts = counters->pipe_insts[FTL_SM_PIPE_TENSOR] + counters->pipe_insts[FTL_SM_PIPE_GMMA];
  counters->tensor_busy_cycles =
      sm->gmma_busy_cycles + counters->pipe_insts[FTL_SM_PIPE_TENSOR] * sm->code.mma_interval_cycles;
}

void ftl_sm_advance(ftl_sm *sm, int64_t until) {
  sm->num_requests = sm->num_finished = sm->num_messages = 0;
  if (until <= sm->now) return;
  rebase(sm);
  ftl_sm_run(sm, until);
  settle(sm, until);
  sm->now = until;
}

const ftl_mem_request *ftl_sm_requests(const ftl_sm *sm, int32_t *count) {
  *count = sm->num_requests;
  return sm->requests;
}

const ftl_sm_finished *ftl_sm_finished_ctas(const ftl_sm *sm, int32_t *count) {
  *count = sm->num_finished;
  return sm->finished;
}

bool ftl_sm_is_busy(const ftl_sm *sm) { return sm->num_resident > 0 || sm->store_merge.num_open > 0; }

const ftl_sm_counters *ftl_sm_counters_get(const ftl_sm *sm) { return &sm->counters; }

int64_t ftl_sm_num_events(const ftl_sm *sm) { return sm->num_events; }

void ftl_sm_observe(ftl_sm *sm, ftl_sm_on_issue on_issue, void *context) {
  sm->on_issue = on_issue;
  sm->observer_context = context;
  sm->bulk = sm->config.bulk && !on_issue;  // an observer wants each instruction, in order of time
}

void ftl_sm_observe_jumps(ftl_sm *sm, ftl_sm_on_issue on_jump, void *context) {
  sm->on_jump = on_jump;
  sm->observer_context = context;
}

// ---- describe ----
static const char *block_text(const sm_warp *w) {
  static const char *const texts[] = {"the issue slot",
                                      "a token",
                                      "cp.async groups",
                                      "wgmmas",
                                      "TMA stores",
                                      "a barrier",
                                      "a barrier that it has come to",
                                      "a ring's stage full",
                                      "a ring's stage empty",
                                      "its next tile",
                                      "all loads of a scoreboard",
                                      "a place for another load",
                                      "its stores to drain"};
  return texts[w->blocked];
}

void ftl_sm_describe(const ftl_sm *sm, char *buffer, int64_t buffer_bytes) {
  int64_t used = 0;
  if (buffer_bytes > 0) buffer[0] = 0;
  for (int32_t i = 0; i < sm->config.num_slots * sm->program->num_warps; i++) {
    const sm_warp *w = &sm->warps[i];
    if (w->blocked == SM_GONE || used >= buffer_bytes) continue;
    const ftl_warp_inst *inst = &sm->program->insts[w->op->inst];
    int written = snprintf(
        buffer + used, (size_t)(buffer_bytes - used),
        "SM %d slot %d warp %d (%s %d) cta %lld: at %d %s, waits for %s; barrier or stage %d, groups %u of %u, "
        "%d in flight\n",
        sm->config.sm_idx, w->slot, w->warp, sm->program->roles[w->role].name, w->warp_in_role, (long long)w->point.cta,
        (int)(w->op - w->first_op), ftl_opcode_name((ftl_opcode)inst->opcode), block_text(w), w->wait_id, w->cp_done,
        w->cp_closed, w->outstanding);
    if (written < 0) return;
    used += written;
  }
}
