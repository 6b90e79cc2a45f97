#include <criterion/criterion.h>
#include <string.h>

#include "rig.h"

// Independent instructions of a warp: one a cycle from the launch on; EXIT in cycle 3, so the warp has left at 4.
Test(timing_sm_issue, a_warp_issues_one_instruction_a_cycle) {
  rig *r = rig_create(1);
  for (int i = 0; i < 3; i++) rig_add(r, FTL_OP_FFMA, i, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  cr_assert_eq(rig_run(r, 1), 4);
  for (int i = 0; i < 4; i++) cr_assert_eq(rig_cycle(r, 0, i, 0), i);
  cr_assert_eq(rig_counters(r)->warp_insts, 4);
  cr_assert_eq(rig_counters(r)->resident_warp_cycles, 4);
  cr_assert_eq(rig_counters(r)->active_cycles, 4);
  rig_destroy(r);
}

// fp32 latency 4: the dependent FFMA issues in cycle 4 and has waited 3 cycles (1, 2, 3) for a fixed latency.
Test(timing_sm_issue, a_dependent_instruction_waits_for_the_latency) {
  rig *r = rig_create(1);
  rig_add(r, FTL_OP_FFMA, 0, -1);
  rig_add(r, FTL_OP_FFMA, 1, 0);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 1, 0), 4);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_WAIT], 3);
  rig_destroy(r);
}

// MUFU latency 20, counted as short scoreboard: 19 cycles of waiting.
Test(timing_sm_issue, a_result_of_the_sfu_is_a_short_scoreboard_wait) {
  rig *r = rig_create(1);
  rig_add(r, FTL_OP_MUFU, 0, -1);
  rig_add(r, FTL_OP_FFMA, 1, 0);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 1, 0), 20);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_SHORT_SCOREBOARD], 19);
  rig_destroy(r);
}

// sfu interval 8: MUFUs at 0, 8, 16; between them 7 cycles each in which the warp keeps its own pipe busy: a stall
// count.
Test(timing_sm_issue, a_pipe_takes_one_instruction_an_interval) {
  rig *r = rig_create(1);
  for (int i = 0; i < 3; i++) rig_add(r, FTL_OP_MUFU, i, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  for (int i = 0; i < 3; i++) cr_assert_eq(rig_cycle(r, 0, i, 0), 8 * i);
  cr_assert_eq(rig_cycle(r, 0, 3, 0), 17);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_WAIT], 14);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_MATH_PIPE_THROTTLE], 0);
  rig_destroy(r);
}

// Uniform latency 4: the second of two dependent ones at 4; R2UR reads it at 8, and its uniform register is there 13
// later.
Test(timing_sm_issue, uniform_registers_are_late) {
  rig *r = rig_create(1);
  rig_add(r, FTL_OP_UNIFORM, 0, -1);
  rig_add(r, FTL_OP_UNIFORM, 1, 0);
  rig_add(r, FTL_OP_R2UR, 2, 1);
  rig_add(r, FTL_OP_UNIFORM, 3, 2);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 1, 0), 4);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 8);
  cr_assert_eq(rig_cycle(r, 0, 3, 0), 21);
  rig_destroy(r);
}

// A warp issues to the MIO every 4 cycles, be it another instruction or the next of a run; what is between them is free
// to go.
Test(timing_sm_issue, a_warp_spaces_its_memory_instructions) {
  rig *r = rig_create(1);
  r->arch.mio_warp_interval_cycles = 4;
  rig_add(r, FTL_OP_LDS, 0, -1);
  rig_add(r, FTL_OP_FFMA, 1, -1);
  rig_add(r, FTL_OP_SHFL, 2, -1)->repeat = 2;
  rig_add(r, FTL_OP_STS, -1, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 1, 0), 1);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 4);
  cr_assert_eq(rig_cycle(r, 0, 2, 1), 8);
  cr_assert_eq(rig_cycle(r, 0, 3, 0), 12);
  rig_destroy(r);
}

// Warps 0 and 4 share a sub-core and its sfu, interval 8. Warp 0 issues at 0, when warp 4 is not selected; in cycles 1
// to 7 the pipe that another warp keeps busy throttles warp 4.
Test(timing_sm_issue, a_pipe_that_another_warp_keeps_busy_throttles) {
  rig *r = rig_create(5);
  rig_add(r, FTL_OP_MUFU, 0, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 0, 0), 0);
  cr_assert_eq(rig_cycle(r, 4, 0, 0), 8);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_NOT_SELECTED], 1);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_MIO_THROTTLE], 7);  // special math goes by that name
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_WAIT], 0);
  rig_destroy(r);
}

// imad shares the fp32 pipe and holds it for 2 cycles: FFMA at 2. On the alu pipe it would not wait.
Test(timing_sm_issue, imad_holds_the_pipe_that_the_arch_names) {
  for (int shares = 0; shares < 2; shares++) {
    rig *r = rig_create(1);
    strcpy(r->arch.imad_pipe, shares ? "fp32" : "alu");
    rig_add(r, FTL_OP_IMAD, 0, -1);
    rig_add(r, FTL_OP_FFMA, 1, -1);
    rig_add(r, FTL_OP_EXIT, -1, -1);
    rig_run(r, 1);
    cr_assert_eq(rig_cycle(r, 0, 1, 0), shares ? 2 : 1);
    rig_destroy(r);
  }
}

// Warps 0 and 4 share sub-core 0. FFMA chains of latency 4: warp 0 at 0, 4, 8 and warp 4 in the gaps at 1, 5, 9; in
// cycle 0 warp 4 could issue and was not selected.
Test(timing_sm_issue, two_warps_of_a_subcore_interleave) {
  rig *r = rig_create(5);
  for (int i = 0; i < 3; i++) rig_add(r, FTL_OP_FFMA, i, i - 1);
  rig_add(r, FTL_OP_EXIT, -1, 2);
  rig_run(r, 1);
  for (int i = 0; i < 4; i++) {
    cr_assert_eq(rig_cycle(r, 0, i, 0), 4 * i);
    cr_assert_eq(rig_cycle(r, 4, i, 0), 4 * i + 1);
    cr_assert_eq(rig_cycle(r, 1, i, 0), 4 * i, "another sub-core is not disturbed");
  }
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_NOT_SELECTED], 1);
  rig_destroy(r);
}

// With CTAs of one warp the second CTA's warp is on sub-core 1, so both issue in cycle 0.
Test(timing_sm_issue, warp_slots_are_dealt_over_subcores) {
  rig *r = rig_create(1);
  r->num_slots = 2;
  rig_add(r, FTL_OP_FFMA, 0, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 2);
  cr_assert_eq(r->log[0].cycle, 0);
  cr_assert_eq(r->log[1].cycle, 0);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_NOT_SELECTED], 0);
  rig_destroy(r);
}

// Three warps on sub-core 0 (0, 4, 8), two independent FFMAs and EXIT each, all ready at 0.
static void run_policy(const char *policy, const int32_t *order) {
  rig *r = rig_create(9);
  strcpy(r->arch.sm_scheduler, policy);
  for (int i = 0; i < 2; i++) rig_add(r, FTL_OP_FFMA, i, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  int32_t at = 0;
  for (int32_t i = 0; i < r->num_issues; i++) {
    if (r->log[i].warp % 4 != 0) continue;
    cr_assert_eq(r->log[i].cycle, at);
    cr_assert_eq(r->log[i].warp, order[at], "%s: warp %d in cycle %d", policy, r->log[i].warp, at);
    at++;
  }
  cr_assert_eq(at, 9);
  rig_destroy(r);
}

Test(timing_sm_issue, gto_goes_on_with_a_warp_and_then_takes_the_oldest) {
  run_policy("gto", (const int32_t[]){0, 0, 0, 4, 4, 4, 8, 8, 8});
}

// The sub-core begins with position 0 as its last warp, as if that had just issued.
Test(timing_sm_issue, gty_goes_on_with_a_warp_and_then_takes_the_youngest) {
  run_policy("gty", (const int32_t[]){0, 0, 0, 8, 8, 8, 4, 4, 4});
}

// All are ready at 0: the youngest begins, and goes on from cycle to cycle.
Test(timing_sm_issue, gol_goes_on_with_a_warp_and_then_takes_the_youngest_of_those_that_waited_alike) {
  run_policy("gol", (const int32_t[]){8, 8, 8, 4, 4, 4, 0, 0, 0});
}

// Two CTAs of 8 warps, an FFMA and EXIT each: sub-core 0 has warps 0 and 4 of both. Slot and warp by cycle.
static void run_ctas(const char *policy, const int32_t (*order)[2]) {
  rig *r = rig_create(8);
  r->num_slots = 2;
  strcpy(r->arch.sm_scheduler, policy);
  rig_add(r, FTL_OP_FFMA, 0, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 2);
  int32_t at = 0;
  for (int32_t i = 0; i < r->num_issues; i++) {
    if (r->log[i].warp % 4 != 0) continue;
    cr_assert_eq(r->log[i].cycle, at);
    cr_assert(r->log[i].slot == order[at][0] && r->log[i].warp == order[at][1], "%s: slot %d, warp %d in cycle %d",
              policy, r->log[i].slot, r->log[i].warp, at);
    at++;
  }
  cr_assert_eq(at, 8);
  rig_destroy(r);
}

// The youngest warp of the CTA that came first, its other warp, and then those of the CTA that came after it.
Test(timing_sm_issue, gol_takes_the_warps_of_the_oldest_cta) {
  run_ctas("gol", (const int32_t[][2]){{0, 4}, {0, 4}, {0, 0}, {0, 0}, {1, 4}, {1, 4}, {1, 0}, {1, 0}});
}

// As if warp 0 of slot 0 had issued last: it goes on. Then the other warp of the CTA that came first, and of the CTA
// that came after it the youngest warp first.
Test(timing_sm_issue, goy_takes_the_youngest_warp_of_the_oldest_cta) {
  run_ctas("goy", (const int32_t[][2]){{0, 0}, {0, 0}, {0, 4}, {0, 4}, {1, 4}, {1, 4}, {1, 0}, {1, 0}});
}

Test(timing_sm_issue, gto_and_gty_go_by_the_order_of_ctas_and_warps_alike) {
  run_ctas("gto", (const int32_t[][2]){{0, 0}, {0, 0}, {0, 4}, {0, 4}, {1, 0}, {1, 0}, {1, 4}, {1, 4}});
  run_ctas("gty", (const int32_t[][2]){{0, 0}, {0, 0}, {1, 4}, {1, 4}, {1, 0}, {1, 0}, {0, 4}, {0, 4}});
}

// Two CTAs with a warp each on sub-core 0, two FFMAs on a pipe of interval 4. The first CTA's begins at 0; the second's
// waits from then on, the first CTA's next one from cycle 1. At 4 the pipe takes the latter, for its CTA came first.
Test(timing_sm_issue, gol_takes_the_oldest_cta_however_long_others_have_waited) {
  rig *r = rig_create(4);
  r->num_slots = 2;
  strcpy(r->arch.sm_scheduler, "gol");
  r->arch.fp32_interval_cycles = 4;
  for (int i = 0; i < 2; i++) rig_add(r, FTL_OP_FFMA, i, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 2);
  static const int32_t slot[] = {0, 0, 0, 1, 1, 1}, cycle[] = {0, 4, 5, 8, 12, 13};
  int32_t at = 0;
  for (int32_t i = 0; i < r->num_issues; i++) {
    if (r->log[i].warp != 0) continue;
    cr_expect(r->log[i].slot == slot[at] && r->log[i].cycle == cycle[at], "slot %d in cycle %d", r->log[i].slot,
              (int)r->log[i].cycle);
    at++;
  }
  cr_assert_eq(at, 6);
  rig_destroy(r);
}

Test(timing_sm_issue, lrr_takes_the_next_warp_in_turn) {
  run_policy("lrr", (const int32_t[]){4, 8, 0, 4, 8, 0, 4, 8, 0});
}

// A run of 5 issues as 5 instructions would: sfu interval 8, the last at 32, its result at 52.
Test(timing_sm_issue, a_run_takes_as_long_as_its_instructions) {
  for (int bulk = 0; bulk < 2; bulk++) {
    rig *r = rig_create(1);
    r->bulk = bulk;
    r->observe = !bulk;
    rig_add(r, FTL_OP_MUFU, 0, -1)->repeat = 5;
    rig_add(r, FTL_OP_FFMA, 1, 0);
    rig_add(r, FTL_OP_EXIT, -1, -1);
    cr_assert_eq(rig_run(r, 1), 52 + 2);
    cr_assert_eq(rig_counters(r)->warp_insts, 7);
    cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_WAIT], 4 * 7);
    rig_destroy(r);
  }
}

static void count_events(bool bulk, uint8_t repeat, int64_t events) {
  rig *r = rig_create(1);
  r->bulk = bulk;
  r->observe = false;
  r->arch.sm_code_cache_bytes = 1 << 20;
  rig_add(r, FTL_OP_MUFU, 0, -1)->repeat = repeat;
  rig_add(r, FTL_OP_FFMA, 1, 0);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_expect_eq(ftl_sm_num_events(r->sm), events, "%d: %lld", repeat, (long long)ftl_sm_num_events(r->sm));
  rig_destroy(r);
}

// Events of 5: the run at 0, its end at 33, which finds when the FFMA may issue, the FFMA and EXIT. After 8 a line of
// code begins that is not there yet: the run ends at 49 with its seventh, and the eighth issues alone.
Test(timing_sm_issue, a_run_is_one_event_with_its_last_instruction) {
  count_events(false, 5, 7);
  count_events(true, 5, 4);
  count_events(true, 8, 5);
}

// Warps 0 and 4 share a sub-core and its fp32 pipe of interval 2. Greedy policies go on with warp 0, which issues its
// run at 0, 2, 4, 6, 8, where warp 4 is not selected, and keeps the pipe until 10, in the five cycles between.
static void run_beside(const char *policy, bool bulk, int64_t not_selected, int64_t throttled) {
  rig *r = rig_create(5);
  r->bulk = bulk;
  strcpy(r->arch.sm_scheduler, policy);
  r->arch.fp32_interval_cycles = 2;
  rig_add(r, FTL_OP_FFMA, 0, -1)->repeat = 5;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_expect_eq(rig_counters(r)->stall_cycles[FTL_STALL_NOT_SELECTED], not_selected, "%s: %lld", policy,
               (long long)rig_counters(r)->stall_cycles[FTL_STALL_NOT_SELECTED]);
  cr_expect_eq(rig_counters(r)->stall_cycles[FTL_STALL_MATH_PIPE_THROTTLE], throttled, "%s: %lld", policy,
               (long long)rig_counters(r)->stall_cycles[FTL_STALL_MATH_PIPE_THROTTLE]);
  rig_destroy(r);
}

Test(timing_sm_issue, a_run_keeps_another_warp_from_its_pipe_as_its_instructions_would) {
  for (int bulk = 0; bulk < 2; bulk++) {
    run_beside("gto", bulk, 5, 5);
    run_beside("gty", bulk, 5, 5);
  }
}

// When warps 0 and 4, of one sub-core, issue each of n FFMAs with gol.
static void run_in_turn(bool bulk, int64_t interval, int32_t n, const int64_t (*cycles)[8]) {
  rig *r = rig_create(5);
  r->bulk = bulk;
  strcpy(r->arch.sm_scheduler, "gol");
  r->arch.fp32_interval_cycles = interval;
  for (int32_t i = 0; i < n; i++) rig_add(r, FTL_OP_FFMA, i, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  for (int32_t w = 0; w < 2; w++)
    for (int32_t i = 0; i < n; i++)
      cr_expect_eq(rig_cycle(r, 4 * w, i, 0), cycles[w][i], "warp %d, %d: %lld", 4 * w, i,
                   (long long)rig_cycle(r, 4 * w, i, 0));
  rig_destroy(r);
}

// Interval 3: gol does not go on, and warp 0 has waited since 0 where warp 4, which began, is ready again at 3.
Test(timing_sm_issue, gol_takes_warps_that_wait_for_a_pipe_in_turn) {
  run_in_turn(false, 3, 3, (const int64_t[][8]){{3, 9, 15}, {0, 6, 12}});
}

// Interval 2: warp 4 goes on until its sixth instruction, five of them two cycles after the one before. Then warp 0,
// which has waited longest, has its six from 12 on.
Test(timing_sm_issue, gol_goes_on_over_two_cycles_six_times) {
  run_in_turn(false, 2, 7, (const int64_t[][8]){{12, 14, 16, 18, 20, 22, 26}, {0, 2, 4, 6, 8, 10, 24}});
}

// The same as runs of five: warp 4 at 0 to 8 and gone at 9, warp 0 at 10 to 18. It is not selected at 0, 2, 4, 6 and 8
// and throttled in the cycles between; at 9 too, when warp 4 leaves.
Test(timing_sm_issue, gol_goes_on_with_a_run_as_with_its_instructions) {
  for (int bulk = 0; bulk < 2; bulk++) run_beside("gol", bulk, 5, 5);
}

// fp32 interval 4: the compiler lets an IADD that needs no FFMA follow at once, and the second FFMA 3 after that. A
// load holds the IADD up: the FFMA keeps its distance although its pipe is free by then.
Test(timing_sm_issue, stall_counts_count_from_the_instruction_before) {
  for (int held = 0; held < 2; held++) {
    rig *r = rig_create(1);
    r->arch.fp32_interval_cycles = 4;
    rig_add(r, FTL_OP_LDS, 2, -1);
    rig_add(r, FTL_OP_FFMA, 0, -1);             // 1
    rig_add(r, FTL_OP_IADD, 3, held ? 2 : -1);  // 2; LDS: its result is there at 24
    rig_add(r, FTL_OP_FFMA, 1, -1);             // 1 + 4, three after the IADD
    rig_add(r, FTL_OP_EXIT, -1, -1);
    rig_run(r, 1);
    int64_t iadd = rig_cycle(r, 0, 2, 0);
    cr_expect_eq(rig_cycle(r, 0, 1, 0), 1);
    cr_expect(held ? iadd >= 24 : iadd == 2, "%lld", (long long)iadd);
    cr_expect_eq(rig_cycle(r, 0, 3, 0), iadd + 3, "%lld", (long long)rig_cycle(r, 0, 3, 0));
    rig_destroy(r);
  }
}

// When the first warp of each of two CTAs of four warps issued, in order; they share sub-core 0.
static void run_two_ctas(rig *r, const int64_t (*cycles)[8], int32_t count) {
  strcpy(r->arch.sm_scheduler, "gol");
  r->num_slots = 2;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 2);
  int32_t issued[2] = {0};
  for (int32_t i = 0; i < r->num_issues; i++) {
    const rig_issue *issue = &r->log[i];
    if (issue->warp != 0) continue;
    int32_t nth = issued[issue->slot]++;
    cr_assert_eq(issue->cycle, cycles[issue->slot][nth], "slot %d, %d: %lld", issue->slot, nth,
                 (long long)issue->cycle);
  }
  cr_assert(issued[0] == count && issued[1] == count);
  rig_destroy(r);
}

// fp32 interval 2, three FFMAs each: the second CTA gets the pipe when the first, whose warp is ready whenever the pipe
// is free, has none left, although it has waited since 0.
Test(timing_sm_issue, gol_lets_no_warp_of_a_later_cta_have_its_turn) {
  rig *r = rig_create(4);
  r->arch.fp32_interval_cycles = 2;
  for (int32_t i = 0; i < 3; i++) rig_add(r, FTL_OP_FFMA, i, -1);
  run_two_ctas(r, (const int64_t[][8]){{0, 2, 4, 5}, {6, 8, 10, 11}}, 4);
}

// Four FFMAs and one that needs the third of them, 4 cycles later. The first CTA's is ready at 2 + 4, when the second
// CTA has issued in each cycle from 4 on: it goes on until it has to wait for its own, 6 + 4.
Test(timing_sm_issue, gol_goes_on_with_a_warp_of_a_later_cta_from_cycle_to_cycle) {
  rig *r = rig_create(4);
  for (int32_t i = 0; i < 4; i++) rig_add(r, FTL_OP_FFMA, i, -1);
  rig_add(r, FTL_OP_FFMA, 4, 2);
  run_two_ctas(r, (const int64_t[][8]){{0, 1, 2, 3, 8, 9}, {4, 5, 6, 7, 10, 11}}, 6);
}

// mma interval 8, three products each: the second CTA's, which waits since 0, goes before the first one's, ready at 8,
// and then they take turns.
Test(timing_sm_issue, gol_serves_products_of_all_ctas_in_the_order_of_their_wait) {
  rig *r = rig_create(4);
  for (int32_t i = 0; i < 3; i++) rig_add(r, FTL_OP_MMA, i, -1);
  run_two_ctas(r, (const int64_t[][8]){{0, 16, 32, 33}, {8, 24, 40, 41}}, 4);
}

// LDS latency 24. The FFMA at 4, when the first result is there; LDS at 5, taken at once: the second time at 29. That
// the result came from an FFMA before the loop says nothing of the second iteration.
Test(timing_sm_issue, a_loop_waits_for_what_its_iteration_before_loads) {
  rig *r = rig_create(1);
  rig_add(r, FTL_OP_FFMA, 1, -1);
  int32_t loop = rig_loop(r, 0, 0, 2);
  rig_add(r, FTL_OP_FFMA, 2, -1);
  rig_add(r, FTL_OP_FFMA, 3, 1);
  rig_add(r, FTL_OP_LDS, 1, -1);
  rig_end_loop(r, loop);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 3, 0), 4);
  cr_assert_eq(rig_cycle(r, 0, 3, 1), 29);
  rig_destroy(r);
}

// fp32 latency 4. What warp 0 alone issues fills its wait: IADDs at 1 to 4, another at 5, the dependent FFMA at 6.
// Warp 1, on another sub-core, has that one IADD only, at 1, and waits until 4.
Test(timing_sm_issue, stall_counts_of_what_one_warp_issues_are_not_another_warps) {
  rig *r = rig_create(2);
  rig_add(r, FTL_OP_FFMA, 0, -1);
  for (int i = 0; i < 4; i++) rig_add(r, FTL_OP_IADD, 1 + i, -1)->flags = FTL_INST_WARP0;
  rig_add(r, FTL_OP_IADD, 5, -1);
  rig_add(r, FTL_OP_FFMA, 6, 0);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 6, 0), 6);
  cr_assert_eq(rig_cycle(r, 1, 6, 0), 4);
  rig_destroy(r);
}

// Latency 4 within FP32, or ALU; the compiler writes a cycle more to the other pipe and to an address, and three to an
// operand of HMMA.
Test(timing_sm_issue, stall_counts_are_longer_from_pipe_to_pipe) {
  static const struct {
    ftl_opcode from, to;
    int64_t cycles;
  } pairs[] = {{FTL_OP_FFMA, FTL_OP_FFMA, 4}, {FTL_OP_IADD, FTL_OP_IADD, 4}, {FTL_OP_FFMA, FTL_OP_IADD, 5},
               {FTL_OP_IADD, FTL_OP_FFMA, 5}, {FTL_OP_IADD, FTL_OP_LDS, 5},  {FTL_OP_IADD, FTL_OP_MUFU, 4},
               {FTL_OP_IADD, FTL_OP_MMA, 7}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    rig *r = rig_create(1);
    rig_add(r, pairs[i].from, 0, -1);
    rig_add(r, pairs[i].to, 1, 0);
    rig_add(r, FTL_OP_EXIT, -1, -1);
    rig_run(r, 1);
    cr_expect_eq(rig_cycle(r, 0, 1, 0), pairs[i].cycles, "%zu: %lld", i, (long long)rig_cycle(r, 0, 1, 0));
    rig_destroy(r);
  }
}

// mma latency 30: the branch behind a product waits for it, although it reads nothing, and the next iteration begins
// behind its redirect of 6; an IADD between takes its turn at once. Behind a load the branch follows at once.
Test(timing_sm_issue, no_product_is_pending_at_a_branch) {
  for (int loads = 0; loads < 2; loads++) {
    rig *r = rig_create(1);
    int32_t loop = rig_loop(r, 0, 0, 2);
    rig_add(r, loads ? FTL_OP_LDS : FTL_OP_MMA, 0, -1);
    rig_add(r, FTL_OP_IADD, 1, -1);
    rig_add(r, FTL_OP_BRA, -1, -1)->flags = FTL_INST_LOOP_BRANCH;
    rig_end_loop(r, loop);
    rig_add(r, FTL_OP_EXIT, -1, -1);
    rig_run(r, 1);
    int64_t branch = loads ? 2 : 30;
    cr_expect_eq(rig_cycle(r, 0, 2, 0), 1);
    cr_expect_eq(rig_cycle(r, 0, 3, 0), branch, "%lld", (long long)rig_cycle(r, 0, 3, 0));
    cr_expect_eq(rig_cycle(r, 0, 1, 1), branch + 1 + 6, "%lld", (long long)rig_cycle(r, 0, 1, 1));
    rig_destroy(r);
  }
}

// mma interval 8, latency 30: a chain through the accumulator at 0, 30, 60; the pipe works 8 cycles each.
Test(timing_sm_issue, chained_products_wait_for_the_accumulator) {
  rig *r = rig_create(1);
  for (int i = 0; i < 3; i++) rig_add(r, FTL_OP_MMA, 0, 0);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  for (int i = 0; i < 3; i++) cr_assert_eq(rig_cycle(r, 0, i, 0), 30 * i);
  cr_assert_eq(rig_counters(r)->tensor_insts, 3);
  cr_assert_eq(rig_counters(r)->tensor_busy_cycles, 24);
  rig_destroy(r);
}

// A sequence of 4 machine instructions shares the product's interval of 8: one every 2 cycles. Its latency of 30 counts
// from the first of them.
Test(timing_sm_issue, a_product_of_several_instructions_shares_its_interval) {
  rig *r = rig_create(1);
  r->program.product.mma_num_insts = 4;
  r->program.product.mma_interval_cycles = 2;
  rig_add(r, FTL_OP_MMA, 0, -1)->repeat = 4;
  rig_add(r, FTL_OP_MMA, 1, -1)->repeat = 4;
  rig_add(r, FTL_OP_FFMA, 2, 0);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  for (int i = 0; i < 4; i++) cr_assert_eq(rig_cycle(r, 0, 0, i), 2 * i);
  cr_assert_eq(rig_cycle(r, 0, 1, 0), 8);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 30);
  rig_destroy(r);
}
