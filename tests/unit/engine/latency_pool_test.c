// What of an iteration's time is due to latency, and what to the run it was measured in.
#include <criterion/criterion.h>

#include "engine/sampled/latency_pool.h"
#include "engine/sampled/step_measurement.h"

static ftl_latency_point point(int64_t cycles, int64_t latency_cycles) {
  return (ftl_latency_point){.time_sixteenths = cycles * FTL_SIXTEENTHS_PER_CYCLE, .latency_cycles = latency_cycles};
}

// An iteration ahead of 2600 cycles has time for 1300, two for 2600.
Test(unit_engine_latency_pool, loads_further_ahead_have_time_for_more) {
  cr_expect_not(ftl_latency_fits(point(2600, 250), point(2600, 650), 0));
  cr_expect(ftl_latency_fits(point(2600, 250), point(2700, 1300), 1));
  cr_expect_not(ftl_latency_fits(point(2599, 250), point(2700, 1300), 1));
  cr_expect(ftl_latency_fits(point(2600, 250), point(2600, 2600), 2));
  cr_expect_not(ftl_latency_fits(point(2600, 250), point(2600, 2601), 2));
}

// 400 cycles more of latency: 200 more of time may be how warps fall into step, 201 are not.
Test(unit_engine_latency_pool, a_latency_that_lengthens_by_half_is_seen) {
  cr_expect(ftl_latency_is_unseen(point(2600, 250), point(2800, 650)));
  cr_expect_not(ftl_latency_is_unseen(point(2600, 250), point(2801, 650)));
  cr_expect(ftl_latency_is_unseen(point(2600, 250), point(2500, 650)));
}

static void expect_pooled(int64_t time, int64_t longer, bool is_hidden, int64_t expected, int64_t expected_longer) {
  int64_t change = ftl_latency_pool(&time, &longer, is_hidden);
  cr_expect_eq(time, expected, "%lld, not %lld", (long long)time, (long long)expected);
  cr_expect_eq(longer, expected_longer, "%lld, not %lld", (long long)longer, (long long)expected_longer);
  cr_expect_eq(change, expected == expected_longer ? 50 : 0);
}

Test(unit_engine_latency_pool, a_hidden_latency_neither_slows_nor_speeds_up_an_iteration) {
  expect_pooled(2500, 2600, true, 2550, 2550);
  expect_pooled(2600, 2500, true, 2550, 2550);
}

Test(unit_engine_latency_pool, a_longer_latency_never_makes_an_iteration_shorter) {
  expect_pooled(2500, 2600, false, 2500, 2600);
  expect_pooled(2600, 2500, false, 2550, 2550);
}
