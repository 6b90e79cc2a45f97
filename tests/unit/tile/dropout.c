// The random numbers of dropout: known answers of the generator, and what they decide.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "base/philox.h"
#include "tile/dropout.h"

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
