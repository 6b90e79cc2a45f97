#include <criterion/criterion.h>

#include "lower/operand.h"

static const ftl_fragment_shape turing_on = {
    .accumulator_columns = 8, .accumulator_registers = 4, .operand_registers = 4, .row_lanes = 4};
static const ftl_fragment_shape volta = {
    .quad_pairs = true, .accumulator_columns = 16, .accumulator_registers = 8, .operand_registers = 8, .row_lanes = 4};

Test(unit_lower_shared_layout, ldmatrix_of_plain_rows_of_256_bytes_conflicts_eightfold) {
  // rows are 256 bytes apart, a multiple of all 32 banks: the 8 rows of each of the 4 matrices hit the same 4 banks
  ftl_shared_layout layout = ftl_shared_layout_of(64, 128, 2, FTL_SHARED_PLAIN);
  for (ftl_operand_kind kind = FTL_OPERAND_A; kind <= FTL_OPERAND_B_KN; kind++) {
    ftl_wavefronts w = ftl_operand_wavefronts(&turing_on, &layout, kind, 16, 32);
    cr_expect_eq(w.cycles, 32);
    cr_expect_eq(w.conflicts, 28);
  }
}

Test(unit_lower_shared_layout, ldmatrix_of_swizzled_tiles_never_conflicts) {
  for (int32_t columns = 16; columns <= 256; columns += 16)
    for (ftl_shared_order order = FTL_SHARED_SWIZZLED_ROWS; order <= FTL_SHARED_SWIZZLED_BLOCKS; order++)
      for (ftl_operand_kind kind = FTL_OPERAND_A; kind <= FTL_OPERAND_B_KN; kind++) {
        ftl_shared_layout layout = ftl_shared_layout_of(64, columns, 2, order);
        for (int32_t row = 0; row < 64; row += 16)
          for (int32_t column = 0; column < columns; column += 16) {
            ftl_wavefronts w = ftl_operand_wavefronts(&turing_on, &layout, kind, row, column);
            cr_assert_eq(w.cycles, 4, "%d columns, order %d, at %d %d: %d", columns, order, row, column, w.cycles);
            cr_assert_eq(w.conflicts, 0);
          }
      }
}

Test(unit_lower_shared_layout, lds_of_quad_pair_operands_never_conflicts_in_128_byte_rows) {
  ftl_shared_layout layout = ftl_shared_layout_of(64, 64, 2, FTL_SHARED_SWIZZLED_ROWS);
  for (ftl_operand_kind kind = FTL_OPERAND_A; kind <= FTL_OPERAND_B_KN; kind++)
    cr_expect_eq(ftl_operand_wavefronts(&volta, &layout, kind, 16, 32).conflicts, 0, "kind %d", kind);
}

Test(unit_lower_shared_layout, accumulators_stored_in_pairs_to_swizzled_rows_take_one_wavefront) {
  ftl_shared_layout layout = ftl_shared_layout_of(64, 128, 2, FTL_SHARED_SWIZZLED_ROWS);
  cr_expect_eq(ftl_accumulator_wavefronts(&turing_on, &layout, 0, 16).cycles, 1);
  // plain: 8 rows of 256 bytes, 16 bytes each, in the same banks
  layout = ftl_shared_layout_of(64, 128, 2, FTL_SHARED_PLAIN);
  cr_expect_eq(ftl_accumulator_wavefronts(&turing_on, &layout, 0, 16).cycles, 8);
}

// Half warps store 8 bytes a lane: 4 rows of 32 bytes, which lie in 4 different quarters of the banks if pairs of
// chunks move with the row. Moving single chunks puts every second row where the row before is.
Test(unit_lower_shared_layout, fp32_accumulators_stored_in_pairs_of_chunks_take_two_wavefronts) {
  for (int32_t columns = 32; columns <= 128; columns *= 2)
    for (int32_t column = 0; column < columns; column += 8) {
      ftl_shared_layout layout = ftl_shared_layout_of(64, columns, 4, FTL_SHARED_SWIZZLED_PAIRS);
      ftl_wavefronts w = ftl_accumulator_wavefronts(&turing_on, &layout, 16, column);
      cr_expect_eq(w.cycles, 2, "%d columns, at %d: %d", columns, column, w.cycles);
      cr_expect_eq(w.conflicts, 0);
      layout = ftl_shared_layout_of(64, columns, 4, FTL_SHARED_SWIZZLED_ROWS);
      cr_expect_eq(ftl_accumulator_wavefronts(&turing_on, &layout, 16, column).conflicts, 2);
    }
}

Test(unit_lower_shared_layout, every_element_has_an_address_of_its_own) {
  for (int32_t columns = 8; columns <= 256; columns += 8)
    for (ftl_shared_order order = FTL_SHARED_PLAIN; order <= FTL_SHARED_SWIZZLED_PAIRS; order++) {
      ftl_shared_layout layout = ftl_shared_layout_of(32, columns, 2, order);
      char used[32 * 256] = {0};
      for (int32_t row = 0; row < 32; row++)
        for (int32_t column = 0; column < columns; column++) {
          int32_t at = ftl_shared_layout_offset(&layout, row, column);
          cr_assert(at >= 0 && at < layout.stage_bytes && at % 2 == 0);
          cr_assert_eq(used[at / 2]++, 0);
        }
    }
}

Test(unit_lower_shared_layout, lanes_that_read_one_word_share_it_and_idle_lanes_cost_nothing) {
  int32_t offset[32];
  for (int i = 0; i < 32; i++) offset[i] = 64;
  cr_expect_eq(ftl_shared_wavefronts(offset, 4).cycles, 1);
  for (int i = 0; i < 32; i++) offset[i] = i * 128;  // one bank
  cr_expect_eq(ftl_shared_wavefronts(offset, 4).cycles, 32);
  cr_expect_eq(ftl_shared_wavefronts(offset, 4).conflicts, 31);
  for (int i = 16; i < 32; i++) offset[i] = FTL_LANE_IDLE;
  for (int i = 0; i < 16; i++) offset[i] = i * 16;  // two quarter warps of 128 bytes
  cr_expect_eq(ftl_shared_wavefronts(offset, 16).cycles, 2);
  cr_expect_eq(ftl_shared_wavefronts(offset, 16).conflicts, 0);
}
