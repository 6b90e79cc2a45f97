// Which warp of a sub-core issues when several could: the policies by name, within a CTA and over CTAs.
#include <criterion/criterion.h>
#include <string.h>

#include "rig.h"

// Warps 0 and 4 share sub-core 0. FFMA chains of latency 4: warp 0 at 0, 4, 8 and warp 4 in the gaps at 1, 5, 9; in
// cycle 0 warp 4 could issue and was not selected.
Test(timing_sm_scheduler, two_warps_of_a_subcore_interleave) {
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
Test(timing_sm_scheduler, warp_slots_are_dealt_over_subcores) {
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

Test(timing_sm_scheduler, gto_goes_on_with_a_warp_and_then_takes_the_oldest) {
  run_policy("gto", (const int32_t[]){0, 0, 0, 4, 4, 4, 8, 8, 8});
}

// The sub-core begins with position 0 as its last warp, as if that had just issued.
Test(timing_sm_scheduler, gty_goes_on_with_a_warp_and_then_takes_the_youngest) {
  run_policy("gty", (const int32_t[]){0, 0, 0, 8, 8, 8, 4, 4, 4});
}

// All are ready at 0: the youngest begins, and goes on from cycle to cycle.
Test(timing_sm_scheduler, gol_goes_on_with_a_warp_and_then_takes_the_youngest_of_those_that_waited_alike) {
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
Test(timing_sm_scheduler, gol_takes_the_warps_of_the_oldest_cta) {
  run_ctas("gol", (const int32_t[][2]){{0, 4}, {0, 4}, {0, 0}, {0, 0}, {1, 4}, {1, 4}, {1, 0}, {1, 0}});
}

// As if warp 0 of slot 0 had issued last: it goes on. Then the other warp of the CTA that came first, and of the CTA
// that came after it the youngest warp first.
Test(timing_sm_scheduler, goy_takes_the_youngest_warp_of_the_oldest_cta) {
  run_ctas("goy", (const int32_t[][2]){{0, 0}, {0, 0}, {0, 4}, {0, 4}, {1, 4}, {1, 4}, {1, 0}, {1, 0}});
}

Test(timing_sm_scheduler, gto_and_gty_go_by_the_order_of_ctas_and_warps_alike) {
  run_ctas("gto", (const int32_t[][2]){{0, 0}, {0, 0}, {0, 4}, {0, 4}, {1, 0}, {1, 0}, {1, 4}, {1, 4}});
  run_ctas("gty", (const int32_t[][2]){{0, 0}, {0, 0}, {1, 4}, {1, 4}, {1, 0}, {1, 0}, {0, 4}, {0, 4}});
}

// Two CTAs with a warp each on sub-core 0, two FFMAs on a pipe of interval 4. The first CTA's begins at 0; the second's
// waits from then on, the first CTA's next one from cycle 1. At 4 the pipe takes the latter, for its CTA came first.
Test(timing_sm_scheduler, gol_takes_the_oldest_cta_however_long_others_have_waited) {
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

Test(timing_sm_scheduler, lrr_takes_the_next_warp_in_turn) {
  run_policy("lrr", (const int32_t[]){4, 8, 0, 4, 8, 0, 4, 8, 0});
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

Test(timing_sm_scheduler, a_run_keeps_another_warp_from_its_pipe_as_its_instructions_would) {
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
Test(timing_sm_scheduler, gol_takes_warps_that_wait_for_a_pipe_in_turn) {
  run_in_turn(false, 3, 3, (const int64_t[][8]){{3, 9, 15}, {0, 6, 12}});
}

// Interval 2: warp 4 goes on until its sixth instruction, five of them two cycles after the one before. Then warp 0,
// which has waited longest, has its six from 12 on.
Test(timing_sm_scheduler, gol_goes_on_over_two_cycles_six_times) {
  run_in_turn(false, 2, 7, (const int64_t[][8]){{12, 14, 16, 18, 20, 22, 26}, {0, 2, 4, 6, 8, 10, 24}});
}

// The same as runs of five: warp 4 at 0 to 8 and gone at 9, warp 0 at 10 to 18. It is not selected at 0, 2, 4, 6 and 8
// and throttled in the cycles between; at 9 too, when warp 4 leaves.
Test(timing_sm_scheduler, gol_goes_on_with_a_run_as_with_its_instructions) {
  for (int bulk = 0; bulk < 2; bulk++) run_beside("gol", bulk, 5, 5);
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
Test(timing_sm_scheduler, gol_lets_no_warp_of_a_later_cta_have_its_turn) {
  rig *r = rig_create(4);
  r->arch.fp32_interval_cycles = 2;
  for (int32_t i = 0; i < 3; i++) rig_add(r, FTL_OP_FFMA, i, -1);
  run_two_ctas(r, (const int64_t[][8]){{0, 2, 4, 5}, {6, 8, 10, 11}}, 4);
}

// Four FFMAs and one that needs the third of them, 4 cycles later. The first CTA's is ready at 2 + 4, when the second
// CTA has issued in each cycle from 4 on: it goes on until it has to wait for its own, 6 + 4.
Test(timing_sm_scheduler, gol_goes_on_with_a_warp_of_a_later_cta_from_cycle_to_cycle) {
  rig *r = rig_create(4);
  for (int32_t i = 0; i < 4; i++) rig_add(r, FTL_OP_FFMA, i, -1);
  rig_add(r, FTL_OP_FFMA, 4, 2);
  run_two_ctas(r, (const int64_t[][8]){{0, 1, 2, 3, 8, 9}, {4, 5, 6, 7, 10, 11}}, 6);
}

// mma interval 8, three products each: the first CTA's is ready whenever the pipe is free.
Test(timing_sm_scheduler, gol_goes_on_from_product_to_product) {
  rig *r = rig_create(4);
  for (int32_t i = 0; i < 3; i++) rig_add(r, FTL_OP_MMA, i, -1);
  run_two_ctas(r, (const int64_t[][8]){{0, 8, 16, 17}, {24, 32, 40, 41}}, 4);
}

// A loop that the second CTA alone runs, once.
static int32_t begin_second(rig *r) {
  int32_t cta = r->tile.num_exprs++, loop = rig_loop(r, 0, 0, 0);
  r->exprs[cta] = (ftl_expr_node){.kind = FTL_EXPR_CTA};
  r->loops[loop].hi = cta;
  return loop;
}

// The second CTA has an FFMA first, at 1: although it issued that after the first CTA's product, and waits since then,
// the pipe goes on with who had it last.
Test(timing_sm_scheduler, gol_goes_on_with_products_whoever_issues_between) {
  rig *r = rig_create(4);
  strcpy(r->arch.sm_scheduler, "gol");
  r->num_slots = 2;
  int32_t loop = begin_second(r);   // 0
  rig_add(r, FTL_OP_FFMA, 10, -1);  // 1
  rig_end_loop(r, loop);
  for (int32_t i = 0; i < 3; i++) rig_add(r, FTL_OP_MMA, i, -1);  // 3 to 5
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 2);
  const int64_t expected[2][3] = {{0, 8, 16}, {24, 32, 40}};
  for (int32_t i = 0; i < r->num_issues; i++) {
    const rig_issue *issue = &r->log[i];
    if (issue->warp != 0 || issue->inst > 5) continue;
    int64_t cycle = issue->inst == 1 ? 1 : expected[issue->slot][issue->inst - 3];
    cr_expect_eq(issue->cycle, cycle, "slot %d, %d: %lld", issue->slot, issue->inst, (long long)issue->cycle);
  }
  rig_destroy(r);
}

// Two CTAs, of which the first runs a MUFU (1) and an FFMA that hangs on it (2).
static rig *create_first_with_mufu(int64_t mufu_latency_cycles) {
  rig *r = rig_create(4);
  strcpy(r->arch.sm_scheduler, "gol");
  r->arch.sfu_latency_cycles = mufu_latency_cycles;
  r->num_slots = 2;
  int32_t cta = r->tile.num_exprs++, one = rig_const(r, 1), is_first = r->tile.num_exprs++;
  r->exprs[cta] = (ftl_expr_node){.kind = FTL_EXPR_CTA};
  r->exprs[is_first] = (ftl_expr_node){.kind = FTL_EXPR_SUB, .a = one, .b = cta};
  int32_t loop = rig_loop(r, 0, 0, 0);  // 0
  r->loops[loop].hi = is_first;
  rig_add(r, FTL_OP_MUFU, 1, -1);  // 1
  rig_add(r, FTL_OP_FFMA, 2, 1);   // 2
  rig_end_loop(r, loop);
  return r;
}

enum { NUM_INSTS = 9 };

// Of each CTA's first warp the cycle of each instruction that it issues before EXIT; 0: a loop's, or never issued.
static void finish_as_expected(rig *r, const int64_t expected[2][NUM_INSTS]) {
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 2);
  for (int32_t i = 0; i < r->num_issues; i++) {
    const rig_issue *issue = &r->log[i];
    if (issue->warp != 0 || r->insts[issue->inst].opcode == FTL_OP_EXIT) continue;
    cr_assert_lt(issue->inst, NUM_INSTS);
    cr_expect_eq(issue->cycle, expected[issue->slot][issue->inst], "slot %d, %d: %lld", issue->slot, issue->inst,
                 (long long)issue->cycle);
  }
  rig_destroy(r);
}

// Not only among products: the first CTA's FFMA hangs on a MUFU of cycle 0 and is ready at 24, when the second CTA,
// whose first product hangs on an FFMA of cycle 1, goes on with its third, and leaves.
Test(timing_sm_scheduler, gol_goes_on_from_product_to_product_before_an_older_cta) {
  rig *r = create_first_with_mufu(24);
  int32_t loop = begin_second(r);  // 4
  rig_add(r, FTL_OP_FFMA, 0, -1);  // 5
  rig_add(r, FTL_OP_MMA, 3, 0);    // 6
  rig_add(r, FTL_OP_MMA, 4, -1);   // 7
  rig_add(r, FTL_OP_MMA, 5, -1);   // 8
  rig_end_loop(r, loop);
  const int64_t expected[2][NUM_INSTS] = {{0, 0, 26}, {0, 0, 0, 0, 0, 1, 8, 16, 24}};
  finish_as_expected(r, expected);
}

// A mark between them issues nothing.
Test(timing_sm_scheduler, gol_goes_on_from_product_to_product_over_a_mark) {
  rig *r = rig_create(4);
  rig_add(r, FTL_OP_MMA, 0, -1);
  rig_add_tile(r);
  rig_add(r, FTL_OP_MMA, 1, -1);
  rig_add(r, FTL_OP_MMA, 2, -1)->repeat = 2;
  run_two_ctas(r, (const int64_t[][8]){{0, 8, 16, 24, 25}, {32, 40, 48, 56, 57}}, 5);
}

// The second CTA's second product hangs on its first, of cycle 1, and is ready at 31, with the pipe long free: the
// older CTA's FFMA, which hangs on a MUFU and is ready then too, goes first, and leaves.
Test(timing_sm_scheduler, gol_does_not_go_on_with_a_product_that_has_paused) {
  rig *r = create_first_with_mufu(31);
  int32_t loop = begin_second(r);  // 4
  rig_add(r, FTL_OP_MMA, 3, -1);   // 5
  rig_add(r, FTL_OP_MMA, 4, 3);    // 6
  rig_end_loop(r, loop);
  const int64_t expected[2][NUM_INSTS] = {{0, 0, 31}, {0, 0, 0, 0, 0, 1, 33}};
  finish_as_expected(r, expected);
}

// An FFMA between them: the second CTA's product, which waits since 0, goes before the first one's, ready at 8, and
// then they take turns.
Test(timing_sm_scheduler, gol_serves_products_with_others_between_in_the_order_of_their_wait) {
  rig *r = rig_create(4);
  for (int32_t i = 0; i < 3; i++) {
    rig_add(r, FTL_OP_MMA, i, -1);
    if (i < 2) rig_add(r, FTL_OP_FFMA, 10 + i, -1);
  }
  run_two_ctas(r, (const int64_t[][8]){{0, 1, 16, 17, 32, 33}, {8, 9, 24, 25, 40, 41}}, 6);
}
