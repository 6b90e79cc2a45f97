#include <criterion/criterion.h>

#include "rig.h"

static rig *rig_with_cache(int32_t num_warps, int64_t lines) {
  rig *r = rig_create(num_warps);
  r->arch.sm_code_cache_bytes = 128 * lines;
  r->arch.sm_code_miss_cycles = 9;
  return r;
}

// 8 instructions of 16 bytes a line. The first two are asked for at 0 and there at 9; the warp comes to the second at
// 17, asks for the third, EXIT alone, and comes to it at 25, a cycle before it is there.
Test(timing_sm_code_cache, the_next_line_is_asked_for_as_a_warp_comes_to_one) {
  rig *r = rig_with_cache(1, 4);
  for (int i = 0; i < 16; i++) rig_add(r, FTL_OP_FFMA, i, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  for (int i = 0; i < 16; i++) cr_assert_eq(rig_cycle(r, 0, i, 0), 9 + i);
  cr_assert_eq(rig_cycle(r, 0, 16, 0), 26);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_NO_INSTRUCTION], 10);
  rig_destroy(r);
}

// Each FFMA waits 4 cycles for the one before, 32 a line: what comes in 9 is there.
Test(timing_sm_code_cache, slow_code_waits_for_its_first_line_alone) {
  rig *r = rig_with_cache(1, 4);
  for (int i = 0; i < 30; i++) rig_add(r, FTL_OP_FFMA, 0, 0);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  for (int i = 0; i < 30; i++) cr_assert_eq(rig_cycle(r, 0, i, 0), 9 + 4 * i);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_NO_INSTRUCTION], 9);
  rig_destroy(r);
}

// A line in 20 cycles: the first role's two lines, 16 instructions, at 20 and 40, and the second's, which its warp asks
// for in the same cycle, at 60.
Test(timing_sm_code_cache, lines_come_one_after_the_other) {
  rig *r = rig_with_cache(1, 8);
  r->arch.sm_code_port_cycles = 20;
  for (int i = 0; i < 15; i++) rig_add(r, FTL_OP_FFMA, i, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_role(r, 1);
  for (int i = 0; i < 4; i++) rig_add(r, FTL_OP_FFMA, i, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_expect_eq(rig_cycle(r, 0, 0, 0), 20);
  cr_expect_eq(rig_cycle(r, 0, 8, 0), 40);
  cr_expect_eq(rig_cycle(r, 1, 3, 0), 63);
  rig_destroy(r);
}

// Roles of the same instructions but for barriers are one code: both warps wait for one line, 9 cycles.
Test(timing_sm_code_cache, roles_of_the_same_code_lie_at_the_same_place) {
  rig *r = rig_with_cache(1, 8);
  r->arch.sm_code_port_cycles = 9;
  for (int role = 0; role < 2; role++) {
    if (role == 1) rig_role(r, 1);
    for (int i = 0; i < 6; i++) rig_add(r, FTL_OP_FFMA, i, -1);
    rig_add(r, FTL_OP_EXIT, -1, -1);
  }
  rig_run(r, 1);
  cr_expect_eq(rig_cycle(r, 0, 0, 0), 9);
  cr_expect_eq(rig_cycle(r, 1, 0, 0), 9);
  rig_destroy(r);
}

// Warps on sub-cores 0 and 1 wait for the same line, once.
Test(timing_sm_code_cache, warps_share_what_comes) {
  rig *r = rig_with_cache(2, 4);
  rig_add(r, FTL_OP_FFMA, 0, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  cr_assert_eq(rig_run(r, 1), 11);
  cr_assert_eq(rig_cycle(r, 0, 0, 0), 9);
  cr_assert_eq(rig_cycle(r, 1, 0, 0), 9);
  rig_destroy(r);
}

// A run of 20 begins in its first line, at 9; the second is there by then, and the third, asked for at 8, at 17.
Test(timing_sm_code_cache, a_run_begins_before_its_last_line_is_there) {
  rig *r = rig_with_cache(1, 4);
  rig_add(r, FTL_OP_FFMA, 0, -1)->repeat = 20;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 0, 0), 9);
  cr_assert_eq(rig_cycle(r, 0, 1, 0), 29);
  rig_destroy(r);
}

// The first two lines come at 50, so that the barrier, 15 instructions on, opens at 65 + 2 + 16 = 83. The LDS behind it
// begins the third line, asked for as the warp comes to the second at 58: it comes at 108.
Test(timing_sm_code_cache, what_a_barrier_holds_waits_for_its_line_too) {
  rig *r = rig_with_cache(1, 4);
  r->arch.sm_code_miss_cycles = 50;
  r->arch.shared_barrier_defers = 1;
  for (int i = 0; i < 15; i++) rig_add(r, FTL_OP_FFMA, i, -1);
  rig_add(r, FTL_OP_BAR_SYNC, -1, -1);
  rig_add(r, FTL_OP_LDS, 0, -1)->wavefronts = 1;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_expect_eq(rig_cycle(r, 0, 15, 0), 65);
  cr_expect_eq(rig_cycle(r, 0, 16, 0), 108, "%lld", (long long)rig_cycle(r, 0, 16, 0));
  rig_check_stalls(r);
  rig_destroy(r);
}

static int64_t cycles_of_trips(int64_t lines, int64_t trips, int64_t convoy_cycles, bool ctas_alike) {
  rig *r = rig_with_cache(1, lines);
  r->ctas_alike = ctas_alike;
  r->arch.sm_code_share_cycles = 1000, r->arch.sm_code_convoy_cycles = convoy_cycles;
  int32_t loop = rig_loop(r, 0, 0, trips);
  for (int i = 0; i < 23; i++) rig_add(r, FTL_OP_FFMA, i, -1);
  rig_add(r, FTL_OP_BRA, -1, -1)->flags = FTL_INST_LOOP_BRANCH;
  rig_end_loop(r, loop);
  int64_t cycles = rig_run(r, 1);
  rig_destroy(r);
  return cycles;
}

static int64_t cycles_of_loop(int64_t lines) { return cycles_of_trips(lines, 10, 0, false); }

// Three lines, ten times. Where there is room for two, the least recently used is always the next one: each time the
// first two, asked for together, take 9 cycles, and the third, asked for 8 cycles before its turn, one more. Where they
// fit that is so the first time alone.
Test(timing_sm_code_cache, a_loop_longer_than_the_cache_misses_every_line) {
  cr_assert_eq(cycles_of_loop(2) - cycles_of_loop(3), 9 * (9 + 1));
}

// Of a line in 1000 cycles an SM may be ahead by 1024: 340 turns of three lines are fetched as if there were no share.
// Behind that a turn takes 100 cycles for each line of a convoy, the last of which the warp waits for, its 8
// instructions, and 6 cycles behind the branch.
Test(timing_sm_code_cache, an_sm_beyond_its_share_gets_its_lines_in_a_convoy) {
  cr_expect_eq(cycles_of_trips(2, 340, 100, false), cycles_of_trips(2, 340, 0, false));
  cr_expect_eq(cycles_of_trips(2, 440, 100, false) - cycles_of_trips(2, 420, 100, false), 20 * (3 * 100 + 8 + 6));
}

// The port's 8 cycles a line are less than what each takes to come.
Test(timing_sm_code_cache, sms_in_step_have_the_lines_that_one_asks_for) {
  cr_expect_eq(cycles_of_trips(2, 440, 100, true) - cycles_of_trips(2, 420, 100, true),
               20 * (cycles_of_trips(2, 10, 100, false) - cycles_of_trips(2, 9, 100, false)));
}

static int64_t cycles_far(int64_t num_lines, bool is_far) {
  rig *r = rig_with_cache(1, 8);
  r->arch.sm_code_launch_bytes = 256;
  r->arch.sm_code_cold_cycles = 50;
  r->is_code_far = is_far;
  for (int i = 0; i < 8 * num_lines - 1; i++) rig_add(r, FTL_OP_FFMA, i % 8, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  int64_t cycles = rig_run(r, 1);
  rig_destroy(r);
  return cycles;
}

// The launch brings two lines along. The third takes 50 cycles for 9, of which 8 pass while the second runs.
Test(timing_sm_code_cache, code_beyond_what_a_launch_brings_along_comes_from_memory) {
  cr_expect_eq(cycles_far(2, true), cycles_far(2, false));
  cr_expect_eq(cycles_far(3, true) - cycles_far(3, false), 50 - 9);
}
