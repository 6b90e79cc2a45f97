// When periods of a walk stand for those to come.
#include <criterion/criterion.h>

#include "engine/sampled/steady.h"

static ftl_steady steady;
static ftl_steady_mark now;

static void reset(void) {
  steady = (ftl_steady){0};
  now = (ftl_steady_mark){0};
  ftl_steady_add(&steady, &now);
}

TestSuite(unit_engine_steady, .init = reset);

static ftl_steady_window add(int64_t time, int64_t read_sectors, int64_t dirtied) {
  now.time += time;
  now.counts.dram_read_sectors += read_sectors;
  now.dirty_sectors += dirtied;
  ftl_steady_add(&steady, &now);
  return ftl_steady_find(&steady);
}

Test(unit_engine_steady, two_periods_that_agree_are_enough) {
  cr_expect_eq(add(1000, 5000, 0).num_periods, 0);
  ftl_steady_window window = add(1005, 5000, 0);
  cr_expect_eq(window.num_periods, 1);
  cr_expect_eq(window.spread_permille, 4);  // 5 of 1005, rounded down
  cr_expect_eq(window.since.time, 1000);
}

Test(unit_engine_steady, time_and_traffic_both_count) {
  add(1000, 5000, 0);
  cr_expect_eq(add(1007, 5000, 0).num_periods, 0);  // 7 of 1007
  cr_expect_eq(add(1007, 5040, 0).num_periods, 0);  // 40 of 5040
  cr_expect_eq(add(1007, 5040, 0).num_periods, 1);
}

// Periods of 1000 and 1020 in turn never agree with each other. Four do with the four before them: after eight.
Test(unit_engine_steady, what_wavers_agrees_in_the_mean) {
  for (int i = 0; i < 7; i++) cr_expect_eq(add(i % 2 ? 1020 : 1000, 5000, 0).num_periods, 0, "period %d", i);
  ftl_steady_window window = add(1020, 5000, 0);
  cr_expect_eq(window.num_periods, 4);
  cr_expect_eq(window.spread_permille, 0);
  cr_expect_eq(window.since.time, 4040);
}

// L2 fills, from nothing: 30 sectors more are over 2 % of what is dirty for 50 periods. Of the 20000 that four periods
// read, the 120 that they leave are 6 permille, and 100 are 5.
Test(unit_engine_steady, what_becomes_dirty_is_traffic_to_come) {
  for (int i = 0; i < 8; i++) cr_expect_eq(add(1000, 5000, 30).num_periods, 0, "period %d", i);
  reset();
  for (int i = 0; i < 7; i++) cr_expect_eq(add(1000, 5000, 25).num_periods, 0, "period %d", i);
  cr_expect_eq(add(1000, 5000, 25).num_periods, 4);
}

// The ring of marks goes round: after 100 periods that grow by 0.1 % each, the last still agrees with the one before.
Test(unit_engine_steady, old_marks_are_forgotten) {
  int64_t time = 1000000;
  ftl_steady_window window = {0};
  for (int i = 0; i < 100; i++) window = add(time += 1000, 5000, 0);
  cr_expect_eq(window.num_periods, 1);
  cr_expect_eq(window.since.time, now.time - time);
}
