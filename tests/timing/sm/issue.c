// When an instruction of a warp may issue: latencies, intervals of pipes, stall counts, runs.
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
  r->arch.sm_code_miss_cycles = repeat > 8 ? 100 : 0;
  if (repeat > 8) rig_add(r, FTL_OP_MUFU, 2, -1)->repeat = 8;
  rig_add(r, FTL_OP_MUFU, 0, -1)->repeat = repeat > 8 ? repeat - 8 : repeat;
  rig_add(r, FTL_OP_FFMA, 1, 0);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_expect_eq(ftl_sm_num_events(r->sm), events, "%d: %lld", repeat, (long long)ftl_sm_num_events(r->sm));
  rig_destroy(r);
}

// Events of 5: the run at 0, its end at 33, which finds when the FFMA may issue, the FFMA and EXIT. So too with 8,
// after which a line of code begins that is there. Of two runs of 8 each ends with its seventh, and the eighth issues
// alone: after the first the third line of code is to be asked for, after the second it is not there. With that each
// run is three events; the first line and the third are waited for, one each; FFMA and EXIT.
Test(timing_sm_issue, a_run_is_one_event_with_its_last_instruction) {
  count_events(false, 5, 7);
  count_events(true, 5, 4);
  count_events(true, 8, 4);
  count_events(true, 16, 10);
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

// A predicate is there for a selection, another compare or what packs it after ALU's 4 cycles, for what it guards after
// 13 (6 here, so that it is this key). A test of a bit sets one as well; what an AND leaves in a register is none.
Test(timing_sm_issue, what_a_predicate_guards_waits_longer_than_what_reads_it) {
  static const struct {
    ftl_opcode from, to;
    uint16_t from_arg, to_arg;
    int64_t cycles;
  } pairs[] = {{FTL_OP_ISETP, FTL_OP_FFMA, 0, 0, 6},
               {FTL_OP_ISETP, FTL_OP_LDS, 0, 0, 6},
               {FTL_OP_ISETP, FTL_OP_LOP, 0, 0, 6},
               {FTL_OP_ISETP, FTL_OP_SEL, 0, 0, 4},
               {FTL_OP_ISETP, FTL_OP_ISETP, 0, 0, 4},
               {FTL_OP_ISETP, FTL_OP_LOP, 0, FTL_LOP_PACKS, 4},
               {FTL_OP_LOP, FTL_OP_FFMA, FTL_LOP_TESTS, 0, 6},
               {FTL_OP_LOP, FTL_OP_FFMA, 0, 0, 5}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    rig *r = rig_create(1);
    r->arch.branch_predicate_latency_cycles = 6;
    rig_add(r, pairs[i].from, 0, -1)->arg = pairs[i].from_arg;
    rig_add(r, pairs[i].to, 1, 0)->arg = pairs[i].to_arg;
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
