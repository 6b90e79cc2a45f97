// What makes CTAs that do the same take different times.
#include <criterion/criterion.h>
#include <math.h>

#include "engine/sampled/pace.h"

enum { DRIFT_NS = 78, KHZ = 2000000 };

Test(unit_engine_pace, the_end_of_a_cta_spreads_with_the_square_root_of_its_time) {
  // 1000 CTAs of 64 steps of 4000 cycles, 2 us each: 128 us, so 78 ns * sqrt(128) = 0.88 us, whatever the step's
  // length.
  for (int32_t steps = 64; steps <= 256; steps *= 4) {
    double sum = 0, squares = 0, cycles = 4000.0 * 64 / steps;
    for (int64_t cta = 0; cta < 1000; cta++) {
      double late = 0;
      for (int64_t step = 0; step < steps; step++)
        late += ftl_pace_deviation(ftl_pace_drift(DRIFT_NS, KHZ, cycles), cta, step, cycles);
      sum += late / 2000;
      squares += late / 2000 * late / 2000;
    }
    // The mean of 1000 has a deviation of 0.03 us, their deviation one of 2.2 %: four of these.
    cr_expect_float_eq(sum / 1000, 0, 0.12, "mean %.3f us", sum / 1000);
    cr_expect_float_eq(sqrt(squares / 1000), 0.88, 0.08, "%d steps: %.3f us", (int)steps, sqrt(squares / 1000));
  }
}

Test(unit_engine_pace, no_step_ends_before_it_begins_and_none_deviates_without_drift) {
  for (int64_t step = 0; step < 1000; step++) {
    cr_expect_geq(ftl_pace_deviation(1000, 3, step, 5), -5);
    cr_expect_eq(ftl_pace_deviation(ftl_pace_drift(0, KHZ, 4000), 3, step, 4000), 0);
  }
}

Test(unit_engine_pace, iterations_beside_others_spread_with_the_square_root_of_both_numbers) {
  // 2 % of 5000 cycles beside one other CTA; beside four twice that; of 16 iterations together four times one's.
  cr_expect_float_eq(ftl_pace_shared_drift(20, 1, 1, 5000), 100, 1e-9);
  cr_expect_float_eq(ftl_pace_shared_drift(20, 4, 1, 5000), 200, 1e-9);
  cr_expect_float_eq(ftl_pace_shared_drift(20, 1, 16, 16 * 5000.0), 400, 1e-9);
  cr_expect_eq(ftl_pace_shared_drift(20, 0, 1, 5000), 0);
}

// Any phase of 6000 cycles: a deviation of 6000 / sqrt(12) = 1732.05 after 8 iterations, half of its square after 4; of
// a group of 6 behind 5, three count.
Test(unit_engine_pace, ctas_settle_in_the_first_iterations_of_a_loop) {
  cr_expect_float_eq(ftl_pace_settling(8, 0, 8, 8 * 6000.0), 1732.05, 0.01);
  cr_expect_float_eq(ftl_pace_settling(8, 4, 4, 4 * 6000.0), 1732.05 / sqrt(2), 0.01);
  cr_expect_float_eq(ftl_pace_settling(8, 5, 6, 6 * 6000.0), 1732.05 * sqrt(3.0 / 8), 0.01);
  cr_expect_eq(ftl_pace_settling(8, 8, 1, 6000), 0);
}

Test(unit_engine_pace, the_last_to_come_to_an_sm_is_the_slowest) {
  // 70 cycles from the first to the last of three, around the mean; two of them in the segment are half as far apart.
  cr_expect_float_eq(ftl_pace_of_age(70, -1, 3), -35, 1e-12);
  cr_expect_float_eq(ftl_pace_of_age(70, 0, 3), 0, 1e-12);
  cr_expect_float_eq(ftl_pace_of_age(70, 1, 3), 35, 1e-12);
  cr_expect_float_eq(ftl_pace_of_age(70, 0.5, 3) - ftl_pace_of_age(70, -0.5, 3), 35, 1e-12);
  cr_expect_eq(ftl_pace_of_age(70, 0, 1), 0);
}

// In words (32 bytes for each 4), in halves of sectors, a tenth of the sectors in halves, in whole ones.
Test(unit_engine_pace, stores_spread_by_the_share_of_sectors_that_go_again) {
  cr_expect_eq(ftl_pace_store_spread(140, 8 * 32000, 32000), 140);
  cr_expect_eq(ftl_pace_store_spread(140, 2 * 32000, 32000), 140);
  cr_expect_eq(ftl_pace_store_spread(140, 35200, 32000), 14);
  cr_expect_eq(ftl_pace_store_spread(140, 32000, 32000), 0);
  cr_expect_eq(ftl_pace_store_spread(140, 0, 0), 0);
}

Test(unit_engine_pace, few_sms_that_store_at_a_time_spread_less) {
  cr_expect_float_eq(ftl_pace_stores_at_once(132, 132), 1, 1e-12);
  cr_expect_float_eq(ftl_pace_stores_at_once(66, 132), 0.25, 1e-12);
}
