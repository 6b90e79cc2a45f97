// The random numbers of dropout: known answers of the generator, and what they decide.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "base/philox.h"
#include "sketch.h"
#include "tile/dropout.h"
#include "tile/interpreter.h"

static void assert_words(ftl_philox_words counter, uint64_t key, int rounds, const uint32_t expected[4]) {
  ftl_philox_words found = ftl_philox_4x32(counter, key, rounds);
  for (int i = 0; i < 4; i++) cr_assert_eq(found.word[i], expected[i], "word %d is %08x", i, found.word[i]);
}

// The known answers of Random123 (kat_vectors, philox4x32).
Test(unit_tile_dropout, philox_gives_the_known_answers) {
  assert_words((ftl_philox_words){{0, 0, 0, 0}}, 0, 10, (uint32_t[]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  assert_words((ftl_philox_words){{~0U, ~0U, ~0U, ~0U}}, UINT64_MAX, 10,
               (uint32_t[]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  assert_words((ftl_philox_words){{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, UINT64_C(0x299f31d0a4093822), 10,
               (uint32_t[]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
  assert_words((ftl_philox_words){{0, 0, 0, 0}}, 0, 7, (uint32_t[]){0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48});
}

Test(unit_tile_dropout, the_threshold_is_the_kept_share_of_255) {
  cr_assert_eq(ftl_dropout_threshold(0), 255);
  cr_assert_eq(ftl_dropout_threshold(0.1), 229);
  cr_assert_eq(ftl_dropout_threshold(0.5), 127);
  cr_assert_eq(ftl_dropout_threshold(0.999), 0);
}

// Of N = 2^18 elements each is kept with probability (threshold + 1) / 256: five standard deviations around it.
Test(unit_tile_dropout, the_share_that_is_kept_is_that_of_the_bytes_up_to_the_threshold) {
  static const int32_t thresholds[] = {0, 25, 127, 229, 255};
  for (size_t t = 0; t < sizeof thresholds / sizeof *thresholds; t++) {
    int64_t num_kept = 0, rows = 512, columns = 512;
    for (int64_t r = 0; r < rows; r++)
      for (int64_t c = 0; c < columns; c++) num_kept += ftl_dropout_keeps(3, r, c, thresholds[t]);
    double share = (thresholds[t] + 1) / 256.0, n = (double)(rows * columns);
    cr_assert_leq(fabs((double)num_kept - n * share), 5 * sqrt(n * share * (1 - share)), "threshold %d: %d",
                  thresholds[t], (int)num_kept);
  }
}

Test(unit_tile_dropout, kernels_that_stream_rows_keep_the_share_that_is_asked_for) {
  static const double probabilities[] = {0.1, 0.5, 0.999};
  for (size_t p = 0; p < sizeof probabilities / sizeof *probabilities; p++) {
    int64_t num_kept = 0;
    for (int64_t r = 0; r < 512; r++)
      for (int64_t c = 0; c < 512; c++)
        num_kept += ftl_dropout_row_keeps(1, r, c, ftl_dropout_row_threshold(probabilities[p]));
    double share = 1 - probabilities[p], n = 512.0 * 512.0;
    cr_assert_leq(fabs((double)num_kept - n * share), 5 * sqrt(n * share * (1 - share)), "%d", (int)num_kept);
  }
}

// Two places that took the same byte would agree always; unrelated ones agree half of the time: 4096 elements, five
// standard deviations of 32.
Test(unit_tile_dropout, other_heads_rows_and_columns_have_other_numbers) {
  static const int64_t steps[][3] = {{1, 0, 0}, {0, 1, 0}, {0, 8, 0},  {0, 16, 0},
                                     {0, 0, 1}, {0, 0, 8}, {0, 0, 16}, {0, 0, 32}};
  for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
    int num_equal = 0;
    for (int64_t r = 0; r < 64; r++)
      for (int64_t c = 0; c < 64; c++)
        num_equal +=
            ftl_dropout_keeps(0, r, c, 127) == ftl_dropout_keeps(steps[s][0], r + steps[s][1], c + steps[s][2], 127);
    cr_assert_leq(abs(num_equal - 2048), 160, "step %zu: %d", s, num_equal);
  }
}

// A tile of ones, dropped by sign with its first row and column at (row0, column0), and the next two uses of it: what
// was kept, in 16 bits, and what the sign chooses.
static ftl_tile_program *drop_by_sign(int64_t row0, int64_t column0, bool transposed) {
  enum { THRESHOLD = 127 };
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t tile = ftl_builder_tile(s.b, "t", FTL_FP32, 16, transposed ? 16 : 32);
  int32_t kept = ftl_builder_tile(s.b, "kept", FTL_FP16, 16, transposed ? 16 : 32);
  int32_t chosen = ftl_builder_tile(s.b, "chosen", FTL_FP32, 16, transposed ? 16 : 32);
  ftl_fill(s.b, tile, 1);
  ftl_dropout_by_sign(s.b, tile, ftl_const(s.b, 3), ftl_const(s.b, row0), ftl_const(s.b, column0), THRESHOLD,
                      transposed);
  ftl_convert_positive(s.b, kept, tile);
  ftl_elem(s.b, FTL_ELEM_SELECT, chosen, ftl_value_operand(tile), ftl_immediate(5), ftl_immediate(7));
  ftl_tile_ref first = sketch_ref(&s, s.y, ftl_const(s.b, 0), ftl_const(s.b, 0)), second = first;
  second.head = ftl_const(s.b, 1);
  ftl_store(s.b, first, kept, -1);
  ftl_store(s.b, second, chosen, -1);
  return sketch_finish(&s);
}

Test(unit_tile_dropout, a_sign_says_what_is_dropped_of_rows_that_are_queries_or_keys) {
  static float x[2 * SKETCH_LENGTH * SKETCH_COLUMNS], y[2 * SKETCH_LENGTH * SKETCH_COLUMNS];
  for (int transposed = 0; transposed < 2; transposed++) {
    ftl_tile_program *program = drop_by_sign(48, 64, transposed);
    ftl_error error = {0};
    cr_assert_eq(ftl_interpret(program, (float *[]){x, y}, NULL, &error), FTL_OK, "%s", error.message);
    for (int r = 0; r < 16; r++)
      for (int c = 0; c < SKETCH_COLUMNS; c++) {
        bool keeps = transposed ? ftl_dropout_keeps(3, 64 + c, 48 + r, 127) : ftl_dropout_keeps(3, 48 + r, 64 + c, 127);
        cr_assert_eq(y[r * SKETCH_COLUMNS + c], keeps ? 1 : 0, "row %d column %d", r, c);
        cr_assert_eq(y[(SKETCH_LENGTH + r) * SKETCH_COLUMNS + c], keeps ? 5 : 7, "row %d column %d", r, c);
      }
    ftl_tile_program_destroy(program);
  }
}

static void assert_refused(ftl_dtype dtype, int32_t columns, int64_t row0, int64_t column0, bool transposed,
                           const char *reason) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t tile = ftl_builder_tile(s.b, "t", dtype, 16, columns);
  ftl_fill(s.b, tile, 1);
  ftl_dropout_by_sign(s.b, tile, ftl_const(s.b, 0), ftl_const(s.b, row0), ftl_const(s.b, column0), 127, transposed);
  sketch_assert_refused(&s, reason);
}

Test(unit_tile_dropout, tiles_that_no_call_of_the_generator_serves_are_refused) {
  assert_refused(FTL_FP16, 32, 0, 0, false, "only an fp32 tile of fragments is dropped by its sign");
  assert_refused(FTL_FP32, 16, 0, 0, false, "a tile that is not made of blocks of 16 x 32");
  assert_refused(FTL_FP32, 32, 8, 0, false, "a tile that is not made of blocks of 16 x 32");
  assert_refused(FTL_FP32, 16, 0, 8, true, "a tile that is not made of blocks of 16 x 16");
}
