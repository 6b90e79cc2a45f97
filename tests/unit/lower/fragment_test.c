#include <criterion/criterion.h>

#include "lower/fragment.h"

static ftl_arch arch_of(int64_t m, int64_t k) {
  return (ftl_arch){.tensor_mma_m = m, .tensor_mma_n = 8, .tensor_mma_k = k};
}

static void expect_exact_cover(const ftl_fragment_shape *shape) {
  int seen[16][16] = {{0}};
  for (int32_t lane = 0; lane < 32; lane++)
    for (int32_t i = 0; i < shape->accumulator_registers; i++) {
      ftl_fragment_place place = ftl_fragment_accumulator(shape, lane, i);
      cr_assert(place.row >= 0 && place.row < 16 && place.column >= 0 && place.column < shape->accumulator_columns);
      seen[place.row][place.column]++;
    }
  for (int row = 0; row < 16; row++)
    for (int column = 0; column < shape->accumulator_columns; column++) cr_assert_eq(seen[row][column], 1);
}

Test(unit_lower_fragment, lanes_hold_every_accumulator_once) {
  ftl_arch ampere = arch_of(16, 16), volta = arch_of(8, 4);
  ftl_fragment_shape shape = ftl_fragment_shape_of(&ampere, false);
  expect_exact_cover(&shape);
  shape = ftl_fragment_shape_of(&volta, false);
  cr_expect(shape.quad_pairs);
  expect_exact_cover(&shape);
}

Test(unit_lower_fragment, a_lane_holds_two_rows_of_a_slab_and_four_lanes_share_a_row) {
  const int64_t shapes[][2] = {{16, 16}, {8, 4}};
  for (int k = 0; k < 2; k++) {
    ftl_arch arch = arch_of(shapes[k][0], shapes[k][1]);
    ftl_fragment_shape shape = ftl_fragment_shape_of(&arch, false);
    int lanes_of_row[16] = {0};
    for (int32_t lane = 0; lane < 32; lane++) {
      unsigned rows = 0;
      for (int32_t i = 0; i < shape.accumulator_registers; i++)
        rows |= 1u << ftl_fragment_accumulator(&shape, lane, i).row;
      cr_assert_eq(__builtin_popcount(rows), 2);
      for (int row = 0; row < 16; row++) lanes_of_row[row] += (int)(rows >> row & 1);
    }
    for (int row = 0; row < 16; row++) cr_assert_eq(lanes_of_row[row], shape.row_lanes);
  }
}

Test(unit_lower_fragment, registers_of_a_value_are_its_elements_over_the_lanes) {
  ftl_arch arch = arch_of(16, 16);
  ftl_fragment_shape shape = ftl_fragment_shape_of(&arch, false);
  ftl_value scores = {.kind = FTL_VALUE_TILE, .dtype = FTL_FP32, .rows = 128, .columns = 64};
  ftl_fragment_map map = ftl_fragment_map_of(&shape, &scores, 4);
  // 32 rows a warp x 64 columns / 32 lanes
  cr_expect_eq(map.num_slabs, 2);
  cr_expect_eq(map.num_slabs * map.per_slab * map.num_registers, 64);
  ftl_value probs = {.kind = FTL_VALUE_TILE, .dtype = FTL_FP16, .rows = 128, .columns = 64};
  map = ftl_fragment_map_of(&shape, &probs, 4);
  cr_expect_eq(map.num_slabs * map.per_slab * map.num_registers, 32);
  ftl_value max = {.kind = FTL_VALUE_ROWS, .dtype = FTL_FP32, .rows = 128, .columns = 1};
  map = ftl_fragment_map_of(&shape, &max, 4);
  cr_expect_eq(map.num_slabs * map.per_slab * map.num_registers, 4);
}

Test(unit_lower_fragment, quad_pairs_hold_operands_twice) {
  ftl_arch arch = arch_of(8, 4);
  ftl_fragment_shape shape = ftl_fragment_shape_of(&arch, false);
  ftl_value q = {.kind = FTL_VALUE_TILE, .dtype = FTL_FP16, .rows = 64, .columns = 64};
  ftl_fragment_map map = ftl_fragment_map_of(&shape, &q, 4);
  // 16 rows x 64 columns x 2 bytes / 32 lanes / 4 bytes, twice
  cr_expect_eq(map.num_slabs * map.per_slab * map.num_registers, 32);
}
