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

enum { ALL = 1000, HALF = 500, WORK = 100000 };  // permille of the launch that are left; work of a period

// A period of `work`; `left_permille` of the launch would be skipped.
static ftl_steady_window add_work(int64_t work, int64_t time, int64_t read_sectors, int64_t left_permille) {
  now.work += work;
  now.ticks += time;
  now.counts.dram_read_sectors += read_sectors;
  ftl_steady_add(&steady, &now);
  return ftl_steady_find(&steady, 1, left_permille);
}

static ftl_steady_window add(int64_t time, int64_t read_sectors, int64_t dirtied) {
  now.dirty_sectors += dirtied;
  return add_work(WORK, time, read_sectors, ALL);
}

Test(unit_engine_steady, two_periods_that_agree_are_enough) {
  cr_expect_eq(add(1000, 5000, 0).num_periods, 0);
  ftl_steady_window window = add(1005, 5000, 0);
  cr_expect_eq(window.num_periods, 1);
  cr_expect_eq(window.spread_permille, 5);  // 5 of 1005, rounded up
  cr_expect_eq(window.since.ticks, 1000);
}

Test(unit_engine_steady, time_and_traffic_both_count) {
  add(1000, 5000, 0);
  cr_expect_eq(add(1007, 5000, 0).num_periods, 0);  // 7 of 1007
  cr_expect_eq(add(1007, 5060, 0).num_periods, 0);  // 60 of 5060
  cr_expect_eq(add(1007, 5060, 0).num_periods, 1);
}

// Requests that are merged pass L2 once: 11 permille more of them are as many less of its traffic.
Test(unit_engine_steady, what_is_merged_counts) {
  now.counts.asked_sectors = 100000;
  add(1000, 5000, 0);
  now.counts.asked_sectors += 100000;
  add(1000, 5000, 0);
  now.counts.asked_sectors += 100000;
  now.counts.coalesced_sectors += 1100;
  cr_expect_eq(add(1000, 5000, 0).num_periods, 0);
  now.counts.asked_sectors += 100000;
  now.counts.coalesced_sectors += 1100;
  cr_expect_eq(add(1000, 5000, 0).num_periods, 1);
}

// A period that begins with a wave of CTAs sees four waves where the next sees three: it takes as much longer and moves
// as much more as it does more work.
Test(unit_engine_steady, periods_agree_by_the_work_that_is_done_in_them) {
  add_work(4 * WORK, 4000, 20000, ALL);
  ftl_steady_window window = add_work(3 * WORK, 3000, 15000, ALL);
  cr_expect_eq(window.num_periods, 1);
  cr_expect_eq(window.spread_permille, 0);
}

// 16 permille more traffic in half of the launch are 8 of all of it.
Test(unit_engine_steady, what_is_left_counts_by_its_share) {
  add_work(WORK, 1000, 5000, HALF);
  cr_expect_eq(add_work(WORK, 1000, 5080, ALL).num_periods, 0);
  ftl_steady_window window = ftl_steady_find(&steady, 1, HALF);
  cr_expect_eq(window.num_periods, 1);
  cr_expect_eq(window.spread_permille, 8);
}

// Periods of 1000 and 1020 in turn never agree with each other. Two do with the two before them: after four.
Test(unit_engine_steady, what_wavers_agrees_in_the_mean) {
  for (int i = 0; i < 3; i++) cr_expect_eq(add(i % 2 ? 1020 : 1000, 5000, 0).num_periods, 0, "period %d", i);
  ftl_steady_window window = add(1020, 5000, 0);
  cr_expect_eq(window.num_periods, 2);
  cr_expect_eq(window.spread_permille, 0);
  cr_expect_eq(window.since.ticks, 2020);
}

// L2 fills, from nothing: 30 sectors more are over 2 % of what is dirty for 50 periods, and 6 permille of the 5000 that
// a period reads; 25 are 5.
Test(unit_engine_steady, what_becomes_dirty_is_traffic_to_come) {
  for (int i = 0; i < 8; i++) cr_expect_eq(add(1000, 5000, 30).num_periods, 0, "period %d", i);
  reset();
  add(1000, 5000, 25);
  cr_expect_eq(add(1000, 5000, 25).num_periods, 1);
  reset();
  now.dirty_sectors = 2000;
  add(1000, 5000, 0);
  cr_expect_eq(add(1000, 5000, 30).num_periods, 1);  // 15 permille of what is dirty
}

// The ring of marks goes round: after 100 periods that grow by 0.1 % each, the last still agrees with the one before.
Test(unit_engine_steady, old_marks_are_forgotten) {
  int64_t time = 1000000;
  ftl_steady_window window = {0};
  for (int i = 0; i < 100; i++) window = add(time += 1000, 5000, 0);
  cr_expect_eq(window.num_periods, 1);
  cr_expect_eq(window.since.ticks, now.ticks - time);
}

Test(unit_engine_steady, a_window_may_have_to_be_longer) {
  for (int i = 0; i < 7; i++) add(1000, 5000, 0);
  cr_expect_eq(ftl_steady_find(&steady, 4, ALL).num_periods, 0);  // eight marks: no two windows of four periods
  add(1000, 5000, 0);
  cr_expect_eq(ftl_steady_find(&steady, 4, ALL).num_periods, 4);
}
