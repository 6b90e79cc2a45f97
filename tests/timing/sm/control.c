#include <criterion/criterion.h>

#include "rig.h"

// FFMA at 0, branch at 1: taken, so nothing for 6 cycles; FFMA again at 8. The last iteration's branch is not taken.
Test(timing_sm_control, a_taken_branch_costs_the_redirect) {
  rig *r = rig_create(1);
  int32_t loop = rig_loop(r, 0, 0, 2);                           // 0
  rig_add(r, FTL_OP_FFMA, 0, -1);                                // 1
  rig_add(r, FTL_OP_BRA, -1, -1)->flags = FTL_INST_LOOP_BRANCH;  // 2
  rig_end_loop(r, loop);                                         // 3
  rig_add(r, FTL_OP_EXIT, -1, -1);                               // 4
  cr_assert_eq(rig_run(r, 1), 11);
  cr_assert_eq(rig_cycle(r, 0, 1, 0), 0);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 1);
  cr_assert_eq(rig_cycle(r, 0, 1, 1), 8);
  cr_assert_eq(rig_cycle(r, 0, 2, 1), 9);
  cr_assert_eq(rig_cycle(r, 0, 4, 0), 10);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_BRANCH_RESOLVING], 6);
  rig_destroy(r);
}

// The compare at 0 decides the branch, 13 cycles later, not 4; it is not taken, and 4 cycles go by: FFMA at 18.
Test(timing_sm_control, a_branch_waits_for_its_predicate_and_stops_its_warp_when_not_taken) {
  rig *r = rig_create(1);
  r->arch.branch_not_taken_cycles = 4, r->arch.branch_predicate_latency_cycles = 13;
  rig_add(r, FTL_OP_ISETP, 0, -1);                        // 0
  rig_add(r, FTL_OP_BRA, -1, 0)->flags = FTL_INST_GUARD;  // 1
  rig_add(r, FTL_OP_FFMA, 1, -1);                         // 2
  rig_add(r, FTL_OP_EXIT, -1, -1);                        // 3
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 1, 0), 13);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 18);
  rig_destroy(r);
}

// A guard over code that is not there is taken: after the compare's 13 cycles the branch and 6 more, FFMA at 20. Where
// the paths join a warp stands for 11 cycles behind the BSYNC at 21: FFMA at 33.
Test(timing_sm_control, a_guard_that_skips_is_taken_and_a_join_stops_its_warp) {
  rig *r = rig_create(1);
  r->arch.branch_not_taken_cycles = 4, r->arch.branch_predicate_latency_cycles = 13;
  r->arch.branch_join_cycles = 11;
  rig_add(r, FTL_OP_ISETP, 0, -1);                                         // 0
  rig_add(r, FTL_OP_BRA, -1, 0)->flags = FTL_INST_GUARD | FTL_INST_SKIPS;  // 1
  rig_add(r, FTL_OP_FFMA, 1, -1);                                          // 2
  rig_add(r, FTL_OP_BSYNC, -1, -1);                                        // 3
  rig_add(r, FTL_OP_FFMA, 2, -1);                                          // 4
  rig_add(r, FTL_OP_EXIT, -1, -1);                                         // 5
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 20);
  cr_assert_eq(rig_cycle(r, 0, 3, 0), 21);
  cr_assert_eq(rig_cycle(r, 0, 4, 0), 33);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_BRANCH_RESOLVING], 6 + 11);
  rig_destroy(r);
}

// A loop's compare is as far ahead as it has to be in compiled code: here it counts as an instruction of 4 cycles, and
// the branch goes back at 4.
Test(timing_sm_control, the_compare_of_a_loops_end_is_not_waited_for) {
  rig *r = rig_create(1);
  r->arch.branch_predicate_latency_cycles = 13;
  int32_t loop = rig_loop(r, 0, 0, 2);
  rig_add(r, FTL_OP_ISETP, 0, -1);
  rig_add(r, FTL_OP_BRA, -1, 0)->flags = FTL_INST_LOOP_BRANCH;
  rig_end_loop(r, loop);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 4);
  rig_destroy(r);
}

static int64_t insts_of_loop(int64_t trips) {
  rig *r = rig_create(1);
  int32_t outer = rig_loop(r, 0, 0, 2);
  int32_t loop = rig_loop(r, 1, 5, 5 + trips);
  rig_add(r, FTL_OP_FFMA, 0, -1);
  rig_end_loop(r, loop);
  rig_add(r, FTL_OP_IADD, 1, -1);
  rig_end_loop(r, outer);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  int64_t insts = rig_counters(r)->warp_insts;
  rig_destroy(r);
  return insts;
}

Test(timing_sm_control, loops_run_as_often_as_their_bounds_say) {
  cr_assert_eq(insts_of_loop(0), 2 * 1 + 1);
  cr_assert_eq(insts_of_loop(-3), 2 * 1 + 1);
  cr_assert_eq(insts_of_loop(1), 2 * 2 + 1);
  cr_assert_eq(insts_of_loop(7), 2 * 8 + 1);
}

// Warp 0 alone issues the elected instruction.
Test(timing_sm_control, an_elected_instruction_is_only_warp_0s) {
  rig *r = rig_create(2);
  rig_add(r, FTL_OP_FFMA, 0, -1)->flags = FTL_INST_WARP0;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 0, 0), 0);
  cr_assert_eq(rig_cycle(r, 0, 1, 0), 1);
  cr_assert_eq(rig_cycle(r, 1, 0, 0), -1);
  cr_assert_eq(rig_cycle(r, 1, 1, 0), 0);
  rig_destroy(r);
}

// STS at 0; the fence of the warp that stored issues at 1 and keeps it for 30 cycles, as what waits for memory does:
// FFMA at 32. The second fence, at 33, has nothing to wait for: FFMA at 34.
Test(timing_sm_control, a_proxy_fence_waits_for_what_was_stored) {
  rig *r = rig_create(1);
  r->arch.shared_proxy_fence_cycles = 30;
  rig_add(r, FTL_OP_STS, -1, -1);          // 0
  rig_add(r, FTL_OP_FENCE_PROXY, -1, -1);  // 1
  rig_add(r, FTL_OP_FFMA, 0, -1);          // 2
  rig_add(r, FTL_OP_FENCE_PROXY, -1, -1);  // 3
  rig_add(r, FTL_OP_FFMA, 1, -1);          // 4
  rig_add(r, FTL_OP_EXIT, -1, -1);         // 5
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 1, 0), 1);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 32);
  cr_assert_eq(rig_cycle(r, 0, 3, 0), 33);
  cr_assert_eq(rig_cycle(r, 0, 4, 0), 34);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_LONG_SCOREBOARD], 30);
  rig_destroy(r);
}

// Tiles 0, 20, 40 of 50: at the end of a tile (EXIT at 1) the warp goes back as by a taken branch: 8, and 16; leaves
// at 18.
Test(timing_sm_control, a_persistent_cta_walks_its_tiles) {
  rig *r = rig_create(1);
  r->tile.num_ctas = 50;
  r->persistent_stride = 20;
  rig_add(r, FTL_OP_FFMA, 0, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  cr_assert_eq(rig_run(r, 1), 18);
  for (int i = 0; i < 3; i++) {
    cr_assert_eq(rig_cycle(r, 0, 0, i), 8 * i);
    cr_assert_eq(r->log[2 * i].cta, 20 * i);
  }
  rig_destroy(r);
}

// An arrival is taken in 2 cycles, the barrier opens 16 after the last: one warp that arrives at 2 goes on at 20.
Test(timing_sm_control, a_barrier_opens_a_latency_after_the_last_arrival) {
  rig *r = rig_create(1);
  rig_add(r, FTL_OP_FFMA, 0, -1);
  rig_add(r, FTL_OP_FFMA, 1, -1);
  rig_add(r, FTL_OP_BAR_SYNC, -1, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 3, 0), 2 + 2 + 16);
  rig_destroy(r);
}

// Warps 0 and 4 are on sub-core 0: warp 0 issues at 0 and 1, warp 4 at 2 and 3. The arrivals of warps 0..3 at 1 are
// taken until 9, that of warp 4 (at 3) until 11: all go on at 27.
Test(timing_sm_control, a_barrier_takes_one_arrival_an_interval) {
  rig *r = rig_create(5);
  rig_add(r, FTL_OP_FFMA, 0, -1);
  rig_add(r, FTL_OP_BAR_SYNC, -1, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 4, 1, 0), 3);
  cr_assert_eq(rig_cycle(r, 1, 2, 0), 27);
  cr_assert_eq(rig_cycle(r, 4, 2, 0), 27, "gto goes on with warp 4, which issued last");
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 28);
  // warps 0..3 wait in 2..26, warp 4 in 4..26
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_BARRIER], 4 * 25 + 23);
  rig_destroy(r);
}

// Role 0 (warps 0..3) syncs at 0; role 1 (warps 4..7 on the same sub-cores) has 3 FFMA first and arrives. Barrier 1
// takes eight arrivals, 2 cycles each: role 0's until 8. Role 1's FFMAs issue in 1..3 (role 0's warp has the slot at
// 0), its arrivals at 4, taken until 16; the barrier opens at 16 + 16. Who arrives goes on in the next cycle.
Test(timing_sm_control, an_arrival_counts_and_does_not_wait) {
  rig *r = rig_create(4);
  rig_add(r, FTL_OP_BAR_SYNC, -1, -1)->arg = 1;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_role(r, 4);
  rig_add(r, FTL_OP_FFMA, 0, -1);
  rig_add(r, FTL_OP_FFMA, 1, -1);
  rig_add(r, FTL_OP_FFMA, 2, -1);
  rig_add(r, FTL_OP_BAR_ARRIVE, -1, -1)->arg = 1;
  rig_add(r, FTL_OP_FFMA, 3, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  r->program.barrier_warps[1] = 8;
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 0, 0), 0);
  cr_assert_eq(rig_cycle(r, 4, 3, 0), 4);
  cr_assert_eq(rig_cycle(r, 4, 4, 0), 5);
  for (int w = 0; w < 4; w++) cr_assert_eq(rig_cycle(r, w, 1, 0), 32);
  rig_check_stalls(r);
  rig_destroy(r);
}

// The same barrier again: a second phase counts from 0.
Test(timing_sm_control, a_named_barrier_begins_a_new_phase_when_it_opens) {
  rig *r = rig_create(1);
  int32_t loop = rig_loop(r, 0, 0, 2);           // 0
  rig_add(r, FTL_OP_BAR_SYNC, -1, -1)->arg = 1;  // 1
  rig_end_loop(r, loop);
  rig_add(r, FTL_OP_EXIT, -1, -1);  // 3
  rig_role(r, 1);
  rig_add(r, FTL_OP_BAR_ARRIVE, -1, -1)->arg = 1;
  rig_add(r, FTL_OP_MUFU, 0, -1);
  rig_add(r, FTL_OP_FFMA, 1, 0);
  rig_add(r, FTL_OP_BAR_ARRIVE, -1, -1)->arg = 1;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  r->program.barrier_warps[1] = 2;
  rig_run(r, 1);
  // Both come at 0 on their own sub-cores: taken until 4, open at 20; warp 0 comes again at 20, taken until 22. Warp 1
  // has its MUFU at 1, its result and FFMA at 21, comes at 22: taken until 24, open at 40.
  cr_assert_eq(rig_cycle(r, 0, 1, 1), 20);
  cr_assert_eq(rig_cycle(r, 1, 3, 0), 22);
  cr_assert_eq(rig_cycle(r, 0, 3, 0), 40);
  rig_destroy(r);
}

// Warpgroup 1 (warps 4..7) issues after warpgroup 0 on the same sub-cores: its barrier is its own, and as one of a part
// of the CTA opens 26 cycles after the last arrival.
Test(timing_sm_control, warpgroups_meet_apart) {
  rig *r = rig_create(8);
  r->arch.shared_named_barrier_latency_cycles = 26;
  rig_add(r, FTL_OP_MUFU, 0, -1);
  rig_add(r, FTL_OP_BAR_SYNC, -1, 0)->flags = FTL_INST_WARPGROUP;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  // MUFU at 0 and 8 (interval 8), results at 20 and 28: arrivals at 20 and 28, taken until 28 and 36, open at 54 and 62
  for (int w = 0; w < 4; w++) cr_assert_eq(rig_cycle(r, w, 2, 0), 54);
  for (int w = 4; w < 8; w++) cr_assert_eq(rig_cycle(r, w, 2, 0), 62);
  rig_destroy(r);
}

// ---- behind a barrier ----
// One warp comes at 0, the other when its MUFU of 0 has its result, at 20: taken until 22, open at 38.
enum { COMES_LATE = 20, OPENS = 38 };

static rig *create_late(void) {
  rig *r = rig_create(1);
  r->arch.shared_barrier_defers = 1;
  rig_add(r, FTL_OP_BAR_SYNC, -1, -1)->arg = 1;
  r->program.barrier_warps[1] = 2;
  return r;
}

static void run_late(rig *r) {
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_role(r, 1);
  rig_add(r, FTL_OP_MUFU, 0, -1);
  rig_add(r, FTL_OP_BAR_SYNC, -1, 0)->arg = 1;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 1, 1, 0), COMES_LATE);
  cr_assert_eq(rig_cycle(r, 1, 2, 0), OPENS);
  rig_check_stalls(r);
}

// FFMAs that depend on each other 4 cycles apart, a product 7 behind, and then what shared memory has.
Test(timing_sm_control, behind_a_barrier_a_warp_goes_on_with_what_has_a_fixed_latency) {
  rig *r = create_late();
  rig_add(r, FTL_OP_FFMA, 0, -1);
  rig_add(r, FTL_OP_FFMA, 1, 0);
  rig_add(r, FTL_OP_MMA, 2, 1);
  rig_add(r, FTL_OP_LDS, 3, -1)->wavefronts = 1;
  run_late(r);
  const int64_t expected[] = {0, 1, 5, 12, OPENS};
  for (int i = 0; i < 5; i++)
    cr_expect_eq(rig_cycle(r, 0, i, 0), expected[i], "%d: %lld", i, (long long)rig_cycle(r, 0, i, 0));
  // From 13 on; the other warp, which came last, for its exit.
  cr_expect_eq(rig_counters(r)->stall_cycles[FTL_STALL_BARRIER], OPENS - 13 + OPENS - COMES_LATE - 1);
  rig_destroy(r);
}

static void expect_held(ftl_opcode opcode) {
  rig *r = create_late();
  rig_add(r, FTL_OP_FFMA, 1, -1);
  rig_add(r, opcode, 0, -1);
  run_late(r);
  cr_expect_eq(rig_cycle(r, 0, 1, 0), 1);
  cr_expect_eq(rig_cycle(r, 0, 2, 0), OPENS, "%s: %lld", ftl_opcode_name(opcode), (long long)rig_cycle(r, 0, 2, 0));
  rig_destroy(r);
}

Test(timing_sm_control, behind_a_barrier_special_math_and_special_registers_are_held) {
  expect_held(FTL_OP_MUFU);
  expect_held(FTL_OP_S2R);
  expect_held(FTL_OP_SHFL);
}

// What is held waits for its operands too: the last of eleven FFMAs begins at 41 and has its result at 45; to memory a
// cycle more.
Test(timing_sm_control, what_is_held_waits_for_the_later_of_barrier_and_operands) {
  rig *r = create_late();
  for (int i = 0; i < 11; i++) rig_add(r, FTL_OP_FFMA, 0, i ? 0 : -1);
  rig_add(r, FTL_OP_LDS, 3, 0)->wavefronts = 1;
  run_late(r);
  cr_expect_eq(rig_cycle(r, 0, 11, 0), 41);
  cr_expect_eq(rig_cycle(r, 0, 12, 0), 46);
  rig_destroy(r);
}

// Where a loop begins before anything is held the warp waits at its barrier.
Test(timing_sm_control, a_barrier_before_a_loop_holds_all) {
  rig *r = create_late();
  rig_add(r, FTL_OP_FFMA, 0, -1);
  int32_t loop = rig_loop(r, 0, 0, 1);
  rig_add(r, FTL_OP_FFMA, 1, -1);
  rig_end_loop(r, loop);
  run_late(r);
  cr_expect_eq(rig_cycle(r, 0, 1, 0), OPENS);
  rig_destroy(r);
}

// So it does where only one of its warps has what would be held.
Test(timing_sm_control, a_barrier_before_what_one_warp_does_holds_all) {
  rig *r = create_late();
  rig_add(r, FTL_OP_FFMA, 0, -1);
  rig_add(r, FTL_OP_LDS, 1, -1)->flags = FTL_INST_WARP0;
  run_late(r);
  cr_expect_eq(rig_cycle(r, 0, 1, 0), OPENS);
  rig_destroy(r);
}

// Two warps come at 0, taken until 2 and 4, open at 20; the second barrier is held by the first: they come to it at 20,
// taken until 22 and 24, open at 40.
Test(timing_sm_control, a_barrier_is_held_by_the_one_before_it) {
  rig *r = rig_create(2);
  r->arch.shared_barrier_defers = 1;
  rig_add(r, FTL_OP_BAR_SYNC, -1, -1);
  rig_add(r, FTL_OP_BAR_SYNC, -1, -1);
  rig_add(r, FTL_OP_FFMA, 0, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  for (int w = 0; w < 2; w++) {
    cr_expect_eq(rig_cycle(r, w, 1, 0), 20);
    cr_expect_eq(rig_cycle(r, w, 2, 0), 21);
    cr_expect_eq(rig_cycle(r, w, 3, 0), 40);
  }
  rig_destroy(r);
}
