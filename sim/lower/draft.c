#include "lower/draft.h"

#include <stdlib.h>
#include <string.h>

#include "lower/early_waits.h"
#include "lower/flow.h"
#include "lower/gaps.h"
#include "lower/registers.h"
#include "lower/schedule.h"
#include "lower/scoreboards.h"
#include "lower/slab_turns.h"
#include "lower/spill.h"
#include "lower/tokens.h"
#include "lower/waiting.h"
#include "lower/wgmma_pressure.h"

// Room for one more element of a growing array; false when memory is out.
static bool grow(void **array, int32_t count, int32_t *capacity, size_t element_bytes) {
  if (count < *capacity) return true;
  int32_t wanted = *capacity ? *capacity * 2 : 256;
  void *larger = realloc(*array, (size_t)wanted * element_bytes);
  if (!larger) return false;
  *array = larger;
  *capacity = wanted;
  return true;
}

int32_t ftl_draft_value_add(ftl_draft *draft, int32_t num_registers, int32_t recompute_insts) {
  void *values = draft->values;
  if (!grow(&values, draft->num_values, &draft->capacity_values, sizeof *draft->values)) {
    draft->failed = true;
    return 0;
  }
  draft->values = values;
  draft->values[draft->num_values] =
      (ftl_draft_value){.num_registers = (int16_t)num_registers, .recompute_insts = (int16_t)recompute_insts};
  return draft->num_values++;
}

ftl_draft_inst *ftl_draft_add(ftl_draft *draft, ftl_opcode opcode, int32_t repeat) {
  void *insts = draft->insts;
  ftl_draft_inst *inst = &draft->sink;
  if (grow(&insts, draft->num_insts, &draft->capacity_insts, sizeof *draft->insts)) {
    draft->insts = insts;
    inst = &draft->insts[draft->num_insts++];
  } else {
    draft->failed = true;
  }
  memset(inst, 0, sizeof *inst);
  inst->inst = (ftl_warp_inst){.opcode = (uint8_t)opcode,
                               .repeat = (uint8_t)repeat,
                               .destination = FTL_NO_TOKEN,
                               .access = FTL_NO_ACCESS,
                               .ring_a = FTL_NO_RING,
                               .ring_b = FTL_NO_RING};
  inst->destination = inst->also_awaits = FTL_NO_VALUE;
  return inst;
}

bool ftl_draft_add_wait(ftl_draft *draft, int32_t value) {
  void *waits = draft->waits;
  if (!grow(&waits, draft->num_waits, &draft->capacity_waits, sizeof *draft->waits)) {
    draft->failed = true;
    return false;
  }
  draft->waits = waits;
  draft->waits[draft->num_waits++] = value;
  return true;
}

void ftl_draft_fini(ftl_draft *draft) {
  free(draft->insts);
  free(draft->values);
  free(draft->waits);
  memset(draft, 0, sizeof *draft);
}

// R1 is the stack pointer in the CUDA ABI, and ptxas reports two registers more than it names: where it reports 255,
// the last is R252 (SASS of kernels/attention for compute capability 9.0, and of kernels with 64 to 246 for 7.5
// to 8.9). Rounding to the allocation unit is the occupancy's matter.
// ptxas orders instructions before it finds out what alignment leaves empty, and what is missing at the most registers
// that a thread can have leaves them afterwards.
enum { ABI_REGISTERS = 3 };

static int32_t reported_registers(int32_t max_live, int32_t cap) {
  return max_live + ABI_REGISTERS < cap ? max_live + ABI_REGISTERS : cap;
}

// Of those that may be live. With wgmma what stands beside its operands is set aside (select/operand_blocks.c).
static int32_t registers_to_fill(const ftl_arch *arch, int32_t cap, const ftl_draft_result *result) {
  bool is_most = cap == arch->sm_max_registers_per_thread;
  return cap - ABI_REGISTERS - (is_most && result->wgmma_registers == 0 ? FTL_DRAFT_ALIGNMENT_REGISTERS : 0);
}

static ftl_status analyse(const ftl_draft *draft, ftl_arena *arena, ftl_flow *flow, ftl_liveness *liveness,
                          ftl_error *error) {
  ftl_status status = ftl_flow_find(draft, arena, flow, error);
  if (status != FTL_OK) return status;
  return ftl_liveness_find(draft, flow, arena, liveness) ? FTL_OK
                                                         : ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
}

// What only set registers aside has been counted, and is no instruction.
static void drop_reserves(ftl_draft *draft) {
  int32_t kept = 0;
  for (int32_t i = 0; i < draft->num_insts; i++) {
    ftl_draft_inst *inst = &draft->insts[i];
    if (inst->inst.opcode == FTL_OP_RESERVE) continue;
    int32_t num_sources = 0;
    for (int32_t k = 0; k < inst->num_sources; k++)
      if (!draft->values[inst->sources[k]].is_reserve) inst->sources[num_sources++] = inst->sources[k];
    inst->num_sources = (uint8_t)num_sources;
    draft->insts[kept++] = *inst;
  }
  draft->num_insts = kept;
}

static ftl_status finish(ftl_draft *draft, const ftl_arch *arch, int32_t cap, ftl_spill_context spill, ftl_arena *arena,
                         ftl_draft_result *out, ftl_error *error) {
  ftl_flow flow;
  ftl_liveness liveness;
  if (!ftl_waits_move_up(draft, arch, arena)) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  ftl_status status = ftl_waits_find(draft, arena, error);
  if (status == FTL_OK) status = analyse(draft, arena, &flow, &liveness, error);
  if (status != FTL_OK) return status;
  int32_t limit = cap - ABI_REGISTERS;
  uint64_t *sets = FTL_ARENA_NEW(arena, uint64_t, 2 * liveness.num_words);
  if (!sets) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  out->wgmma_registers = ftl_wgmma_pressure(draft, &flow, &liveness, sets);
  if (!ftl_slabs_take_turns(draft, &flow, &liveness, arch, cap, arena))
    return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  int32_t room = registers_to_fill(arch, cap, out), *waiting = NULL;
  bool counts_waiting = draft->buffers_fragments && room < limit, fits;
  if (counts_waiting) waiting = ftl_waiting_registers(draft, &flow, &liveness, arena);
  if ((counts_waiting && !waiting) || !ftl_schedule(draft, &flow, &liveness, arch, limit, waiting, false, &fits, arena))
    return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  int32_t num_insts = draft->num_insts;
  bool is_full = ftl_liveness_max(draft, &flow, &liveness, sets, NULL) > room;
  status = ftl_spill(draft, room, &flow, &liveness, &spill, arena, error);
  if (status == FTL_OK) status = analyse(draft, arena, &flow, &liveness, error);
  if (status != FTL_OK) return status;
  bool again = !fits || draft->num_insts != num_insts;
  if (again && !ftl_schedule(draft, &flow, &liveness, arch, room, NULL, true, &fits, arena))
    return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  uint64_t *scratch = FTL_ARENA_NEW(arena, uint64_t, liveness.num_words);
  if (!scratch) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  int32_t max_live = ftl_liveness_max(draft, &flow, &liveness, scratch, NULL);
  out->ordered_registers = reported_registers(max_live, cap);
  out->registers_per_thread = is_full ? cap : out->ordered_registers;
  // What one instruction alone needs beyond the limit is counted, though no instruction stands for it.
  out->spilled_registers = spill.spilled_registers + (max_live > limit ? max_live - limit : 0);
  out->reloaded_registers = spill.kept_registers;
  drop_reserves(draft);
  status = analyse(draft, arena, &flow, &liveness, error);
  if (status != FTL_OK) return status;
  if (!ftl_fill_gaps(draft, &flow, arch, arena)) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  status = analyse(draft, arena, &flow, &liveness, error);
  if (status != FTL_OK) return status;
  if (!ftl_scoreboards_share(draft, &flow, arch, arena)) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  return ftl_tokens_assign(draft, &flow, &liveness, arena, &out->num_tokens, error);
}

ftl_status ftl_draft_finish(ftl_draft *draft, const ftl_arch *arch, int32_t cap, ftl_add_local_access add_local_access,
                            void *context, ftl_draft_result *out, ftl_error *error) {
  *out = (ftl_draft_result){0};
  if (draft->failed) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  ftl_arena arena = {0};
  ftl_spill_context spill = {.add_local_access = add_local_access, .context = context};
  ftl_status status = finish(draft, arch, cap, spill, &arena, out, error);
  ftl_arena_fini(&arena);
  return status;
}
