#include <criterion/criterion.h>

#include "lower/select/copy_plan.h"

static ftl_copy_plan plan_of(int32_t rows, int32_t columns, int32_t padded, int32_t warps, ftl_shared_order order) {
  ftl_tile_ref ref = {.rows = rows, .columns = columns};
  ftl_shared_layout layout = ftl_shared_layout_of(rows, padded, 2, order);
  return ftl_copy_plan_of(&ref, 2, &layout, warps, FTL_COPIED_BY_BLOCKS);
}

Test(unit_lower_copy_plan, a_warp_instruction_covers_512_bytes_of_power_of_two_rows) {
  for (int32_t columns = 16; columns <= 256; columns *= 2) {
    ftl_copy_plan plan = plan_of(64, columns, columns, 4, FTL_SHARED_SWIZZLED_ROWS);
    cr_expect_eq(plan.rows * plan.lanes_per_row, 32, "%d columns", columns);
    cr_expect_eq(plan.num_blocks, 1);
  }
}

Test(unit_lower_copy_plan, all_rows_are_covered_and_lanes_of_a_partial_row_stay_idle) {
  ftl_copy_plan plan = plan_of(64, 80, 80, 4, FTL_SHARED_SWIZZLED_ROWS);
  cr_expect_eq(plan.lanes_per_row, 10);
  cr_expect_eq(plan.rows, 3);
  cr_expect_eq(plan.num_groups, 6);  // 12 rows at once by four warps: 5.3 times
}

Test(unit_lower_copy_plan, padding_is_copied_by_lanes_but_not_read) {
  ftl_copy_plan plan = plan_of(64, 72, 80, 4, FTL_SHARED_SWIZZLED_ROWS);
  cr_expect_eq(plan.lanes_per_row, 10);
  cr_expect_eq(ftl_copy_plan_bytes(&plan, 0), 144);
}

Test(unit_lower_copy_plan, column_blocks_are_copied_apart_where_they_lie_apart) {
  ftl_copy_plan plan = plan_of(64, 128, 128, 4, FTL_SHARED_SWIZZLED_BLOCKS);
  cr_expect_eq(plan.num_blocks, 2);
  cr_expect_eq(plan.rows, 4);
  cr_expect_eq(ftl_copy_plan_bytes(&plan, 1), 128);
}

// 256 bytes are 16 lanes: two rows an instruction where the blocks make four halves, and each quarter of the warp
// writes the 128 bytes of a row of one block, all banks once.
Test(unit_lower_copy_plan, rows_across_column_blocks_are_copied_whole_if_the_source_does) {
  ftl_tile_ref ref = {.rows = 64, .columns = 128};
  ftl_shared_layout layout = ftl_shared_layout_of(64, 128, 2, FTL_SHARED_SWIZZLED_BLOCKS);
  ftl_copy_plan plan = ftl_copy_plan_of(&ref, 2, &layout, 4, FTL_COPIED_WHOLE);
  cr_expect_eq(plan.num_blocks, 1);
  cr_expect_eq(plan.rows, 2);
  cr_expect_eq(plan.num_groups, 64 / (2 * 4));
  ftl_wavefronts w = ftl_copy_plan_wavefronts(&plan, &layout, 0);
  cr_expect_eq(w.cycles, 4);
  cr_expect_eq(w.conflicts, 0);
}

// 64 columns of 2 bytes are as wide as all banks: a row of two such blocks is copied whole, two rows at once, without a
// conflict; blocks of 32 columns are copied apart.
Test(unit_lower_copy_plan, whole_rows_are_copied_where_a_block_is_as_wide_as_all_banks) {
  ftl_tile_ref ref = {.rows = 64, .columns = 128};
  ftl_shared_layout layout = ftl_shared_layout_of(64, 128, 2, FTL_SHARED_SWIZZLED_BLOCKS);
  ftl_copy_plan plan = ftl_copy_plan_of(&ref, 2, &layout, 4, FTL_COPIED_WHOLE_IF_WIDE);
  cr_expect_eq(plan.num_blocks, 1);
  cr_expect_eq(plan.rows, 2);
  cr_expect_eq(plan.num_groups, 8);
  cr_expect_eq(ftl_copy_plan_wavefronts(&plan, &layout, 0).conflicts, 0);
  ref.columns = 96;
  layout = ftl_shared_layout_of(64, 96, 2, FTL_SHARED_SWIZZLED_BLOCKS);
  plan = ftl_copy_plan_of(&ref, 2, &layout, 4, FTL_COPIED_WHOLE_IF_WIDE);
  cr_expect_eq(plan.num_blocks, 3);
}

Test(unit_lower_copy_plan, writing_a_tile_does_not_conflict) {
  for (int32_t columns = 16; columns <= 256; columns += 16) {
    ftl_shared_layout layout = ftl_shared_layout_of(64, columns, 2, FTL_SHARED_SWIZZLED_ROWS);
    ftl_tile_ref ref = {.rows = 64, .columns = columns};
    ftl_copy_plan plan = ftl_copy_plan_of(&ref, 2, &layout, 4, FTL_COPIED_BY_BLOCKS);
    int32_t lanes = plan.rows * plan.lanes_per_row, phases = (lanes + 7) / 8;
    ftl_wavefronts w = ftl_copy_plan_wavefronts(&plan, &layout, 0);
    cr_expect_leq(w.cycles, phases + 4, "%d columns: %d", columns, w.cycles);
    if (columns % 64 == 0 || columns == 32 || columns == 16) cr_expect_eq(w.conflicts, 0, "%d columns", columns);
  }
}
