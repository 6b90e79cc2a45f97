#include "lower/select/copy_plan.h"

#include "base/integer.h"

enum { LANE_BYTES = 16, MIN_BLOCK_BYTES = 64, ALL_BANKS_BYTES = 128 };

static bool has_blocks(const ftl_shared_layout *layout, int32_t block_bytes, int32_t row_bytes, ftl_copied_rows rows) {
  if (layout->order != FTL_SHARED_SWIZZLED_BLOCKS || rows == FTL_COPIED_WHOLE) return false;
  if (rows == FTL_COPIED_WHOLE_IF_WIDE && block_bytes % ALL_BANKS_BYTES == 0) return false;
  return block_bytes >= MIN_BLOCK_BYTES && row_bytes % block_bytes == 0;
}

ftl_copy_plan ftl_copy_plan_of(const ftl_tile_ref *ref, int32_t element_bytes, const ftl_shared_layout *layout,
                               int32_t num_warps, ftl_copied_rows rows) {
  int32_t shared_row_bytes = layout->columns * layout->element_bytes;
  int32_t block_bytes = layout->block_columns * layout->element_bytes;
  ftl_copy_plan plan = {.row_bytes = ref->columns * element_bytes};
  if (!has_blocks(layout, block_bytes, plan.row_bytes, rows)) block_bytes = shared_row_bytes;
  if (block_bytes > FTL_WARP_LANES * LANE_BYTES) block_bytes = FTL_WARP_LANES * LANE_BYTES;
  plan.block_bytes = block_bytes;
  plan.lanes_per_row = block_bytes / LANE_BYTES;
  plan.rows = FTL_WARP_LANES / plan.lanes_per_row;
  plan.num_blocks = ftl_divide_up32(shared_row_bytes, block_bytes);
  plan.num_groups = ftl_divide_up32(ref->rows, plan.rows * num_warps);
  return plan;
}

int32_t ftl_copy_plan_bytes(const ftl_copy_plan *plan, int32_t block) {
  int32_t left = plan->row_bytes - block * plan->block_bytes;
  if (left <= 0) return 0;
  return left < plan->block_bytes ? left : plan->block_bytes;
}

ftl_wavefronts ftl_copy_plan_wavefronts(const ftl_copy_plan *plan, const ftl_shared_layout *layout, int32_t block) {
  int32_t offset[FTL_WARP_LANES];
  for (int32_t lane = 0; lane < FTL_WARP_LANES; lane++) {
    int32_t row = lane / plan->lanes_per_row;
    int32_t byte = block * plan->block_bytes + lane % plan->lanes_per_row * LANE_BYTES;
    bool active = row < plan->rows && row < layout->rows && byte < layout->columns * layout->element_bytes;
    offset[lane] = active ? ftl_shared_layout_offset(layout, row, byte / layout->element_bytes) : FTL_LANE_IDLE;
  }
  return ftl_shared_wavefronts(offset, LANE_BYTES);
}
