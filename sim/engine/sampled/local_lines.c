#include "engine/sampled/local_lines.h"

#include <stdlib.h>

#include "base/sectors.h"
#include "engine/sampled/segments.h"
#include "lower/walk.h"

enum { SLOT_BYTES_OF_THREAD = 4 };

// A value keeps its slot, so that a thread has as many as all that it spills, not as its registers.
static int32_t slots_of_thread(const ftl_warp_program *program) {
  return program->local_bytes_per_thread / SLOT_BYTES_OF_THREAD;
}

// segments[slot]: those that store it in a role's warps, one bit a segment. Zeroed by the caller.
static void find_stored(const ftl_warp_program *program, const ftl_warp_role *role, uint32_t *segments) {
  int32_t segment = 0;
  for (int32_t i = 0; i < role->num_insts; i++) {
    const ftl_warp_inst *inst = &program->insts[role->first_inst + i];
    // Before the code of an outer loop, and after it, stands a loop that never runs (segments.h).
    if (inst->opcode == FTL_OP_LOOP || inst->opcode == FTL_OP_END_LOOP)
      segment += ftl_warp_loop_is_outer(program, role, inst->arg) ? 2 : 1;
    if (inst->opcode != FTL_OP_STL) continue;
    const ftl_access *access = &program->accesses[inst->access];
    for (int32_t slot = access->row; slot < access->row + access->num_rows; slot++) segments[slot] |= 1u << segment;
  }
}

static uint64_t first_line_of_warp(int32_t sm, int32_t warp) {
  return ftl_local_address_bytes(sm, warp) / FTL_LINE_BYTES;
}

// The sampled lines of one CTA slot; counts them only where `lines` is NULL. stored: of each role and slot the
// segments.
static int64_t list_lines(const ftl_launch *launch, const uint32_t *stored, const ftl_l2_tags *tags, int32_t cta_slot,
                          ftl_local_line *lines) {
  const ftl_warp_program *program = launch->warps;
  int32_t sm = cta_slot / launch->occupancy.ctas_per_sm, index = cta_slot % launch->occupancy.ctas_per_sm;
  int32_t num_slots = slots_of_thread(program);
  int64_t count = 0;
  for (int32_t r = 0; r < program->num_roles; r++) {
    const uint32_t *segments = &stored[r * num_slots];
    const ftl_warp_role *role = &program->roles[r];
    for (int32_t w = 0; w < role->num_warps; w++) {
      uint64_t first = first_line_of_warp(sm, index * program->num_warps + role->first_warp + w);
      for (int32_t slot = 0; slot < num_slots; slot++) {
        uint64_t line = first + (uint64_t)slot;
        if (segments[slot] == 0 || !ftl_l2_tags_in_sample(tags, line)) continue;
        if (lines) {
          ftl_l2_tags_know(&lines[count].known, tags, ftl_l2_tags_address(tags, line), line, FTL_ALL_SECTORS);
          lines[count].segments = segments[slot];
        }
        count++;
      }
    }
  }
  return count;
}

ftl_status ftl_local_lines_init(ftl_local_lines *local, const ftl_launch *launch, const ftl_l2_tags *tags,
                                ftl_error *error) {
  *local = (ftl_local_lines){0};
  if (launch->warps->spill_registers == 0) return FTL_OK;
  int32_t num_ctas = (int32_t)launch->arch->chip_num_sms * launch->occupancy.ctas_per_sm;
  int32_t num_slots = slots_of_thread(launch->warps);
  uint32_t *stored = calloc((size_t)(launch->warps->num_roles * num_slots) + 1, sizeof *stored);
  local->first = calloc((size_t)num_ctas + 1, sizeof *local->first);
  ftl_status status = stored && local->first ? FTL_OK : FTL_NO_MEMORY;
  if (status == FTL_OK) {
    for (int32_t r = 0; r < launch->warps->num_roles; r++)
      find_stored(launch->warps, &launch->warps->roles[r], &stored[r * num_slots]);
    for (int32_t slot = 0; slot < num_ctas; slot++)
      local->first[slot + 1] = local->first[slot] + list_lines(launch, stored, tags, slot, NULL);
    local->lines = malloc((size_t)(local->first[num_ctas] + 1) * sizeof *local->lines);
    if (!local->lines) status = FTL_NO_MEMORY;
  }
  for (int32_t slot = 0; status == FTL_OK && slot < num_ctas; slot++)
    (void)list_lines(launch, stored, tags, slot, &local->lines[local->first[slot]]);
  free(stored);
  if (status != FTL_OK) {
    ftl_local_lines_fini(local);
    return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the lines of spilled registers");
  }
  return FTL_OK;
}

void ftl_local_lines_fini(ftl_local_lines *local) {
  free(local->first);
  free(local->lines);
  *local = (ftl_local_lines){0};
}

int64_t ftl_local_lines_store(const ftl_local_lines *local, int32_t slot, int32_t segment, int32_t side,
                              ftl_l2_tags *tags) {
  if (!local->lines) return 0;
  int64_t written = 0;
  for (ftl_local_line *l = &local->lines[local->first[slot]]; l < &local->lines[local->first[slot + 1]]; l++) {
    if (!(l->segments >> segment & 1)) continue;
    ftl_l2_outcome outcome;
    ftl_l2_tags_write_known(tags, &l->known, side, FTL_L2_EVICT_NORMAL, &outcome);
    written += outcome.dram_write_sectors;
  }
  return written;
}
