#include <criterion/criterion.h>

#include "rig.h"

// An MMA takes 6 cycles of dispatch, interval 2; others 1.
static rig *create_with_products(int64_t place_cycles) {
  rig *r = rig_create(1);
  r->arch.tensor_mma_dispatch_cycles = 6;
  r->arch.tensor_mma_place_cycles = place_cycles;
  r->program.product.mma_interval_cycles = 2;
  return r;
}

static void expect_cycles(const rig *r, const int64_t *expected, int32_t count) {
  for (int32_t i = 0; i < count; i++)
    cr_expect_eq(rig_cycle(r, 0, i, 0), expected[i], "%d: %d", i, (int)rig_cycle(r, 0, i, 0));
}

// MMA at 0 and FFMAs at 1 to 8 have their operands by 14, the MMA of 9 by 20, the FFMA of 10 by 21: no more than one
// MMA's are left at 15, when the next one issues.
Test(timing_sm_dispatch, operands_of_one_product_may_wait) {
  rig *r = create_with_products(1);
  rig_add(r, FTL_OP_MMA, 0, -1);
  for (int i = 1; i <= 8; i++) rig_add(r, FTL_OP_FFMA, i, -1);
  rig_add(r, FTL_OP_MMA, 9, -1);
  rig_add(r, FTL_OP_FFMA, 10, -1);
  rig_add(r, FTL_OP_MMA, 11, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  expect_cycles(r, (const int64_t[]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15}, 12);
  rig_destroy(r);
}

// As above: the operands of the MMA at 9 are read from 14 on, and its latency of 30 until the FFMA that needs it counts
// from there.
Test(timing_sm_dispatch, the_latency_of_a_product_counts_from_its_operands) {
  rig *r = create_with_products(1);
  rig_add(r, FTL_OP_MMA, 0, -1);
  for (int i = 1; i <= 8; i++) rig_add(r, FTL_OP_FFMA, i, -1);
  rig_add(r, FTL_OP_MMA, 9, -1);
  rig_add(r, FTL_OP_FFMA, 10, 9);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 9, 0), 9);
  cr_assert_eq(rig_cycle(r, 0, 10, 0), 14 + 30);
  rig_destroy(r);
}

// Without end, an MMA and 8 FFMA take 6 + 8 cycles, whoever issues them: two warps of one sub-core, 20 of each.
Test(timing_sm_dispatch, the_rate_is_the_sum_of_what_they_take) {
  rig *r = rig_create(5);  // warps 0 and 4 share a sub-core
  r->arch.tensor_mma_dispatch_cycles = 6;
  int32_t loop = rig_loop(r, 0, 0, 20);
  rig_add(r, FTL_OP_MMA, 0, -1);  // after LOOP: 1
  for (int i = 1; i <= 8; i++) rig_add(r, FTL_OP_FFMA, i, -1);
  rig_end_loop(r, loop);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  double cycles = (double)rig_run(r, 1) / 40;
  cr_assert(cycles >= 13.5 && cycles <= 14.5, "%f", cycles);
  rig_destroy(r);
}

// The operands of the MMA are read until 6, and a cycle longer for each instruction in between. Those at 1, 5 and 8
// keep all pipes for 3 cycles, MUFU at 4 only its own (interval 1) for 2 more; LDS waits for none of them. By 10 all
// are read, and FFMAs follow each other.
Test(timing_sm_dispatch, beside_a_product_an_instruction_takes_a_place_of_three_cycles) {
  rig *r = create_with_products(3);
  r->arch.sfu_interval_cycles = 1;
  static const ftl_opcode code[] = {FTL_OP_MMA,  FTL_OP_FFMA, FTL_OP_LDS,  FTL_OP_MUFU,
                                    FTL_OP_FFMA, FTL_OP_FFMA, FTL_OP_FFMA, FTL_OP_FFMA};
  for (int i = 0; i < 8; i++) rig_add(r, code[i], i, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  expect_cycles(r, (const int64_t[]){0, 1, 2, 4, 5, 8, 11, 12}, 8);
  rig_destroy(r);
}

// MUFU at 1 beside the MMA's operands: 8 cycles of its pipe and 2 more until the next one.
Test(timing_sm_dispatch, beside_a_product_special_math_keeps_its_pipe_longer) {
  rig *r = create_with_products(3);
  rig_add(r, FTL_OP_MMA, 0, -1);
  for (int i = 1; i < 4; i++) rig_add(r, FTL_OP_MUFU, i, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  expect_cycles(r, (const int64_t[]){0, 1, 11, 19}, 4);
  rig_destroy(r);
}

// MUFU, SHFL and ldmatrix add a cycle each to what is to be read when the second MMA issues at 3, LDS none: the third
// one waits until 8, not 6.
Test(timing_sm_dispatch, special_math_shuffles_and_ldmatrix_are_dispatched) {
  const struct {
    ftl_opcode opcode;
    int64_t issues;
  } cases[] = {{FTL_OP_MUFU, 8}, {FTL_OP_SHFL, 8}, {FTL_OP_LDSM, 8}, {FTL_OP_LDS, 6}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    rig *r = create_with_products(1);
    r->arch.sfu_interval_cycles = 1;
    rig_add(r, FTL_OP_MMA, 0, -1);
    for (int i = 1; i <= 2; i++) rig_add(r, cases[k].opcode, i, -1);
    for (int i = 3; i <= 4; i++) rig_add(r, FTL_OP_MMA, i, -1);
    rig_add(r, FTL_OP_EXIT, -1, -1);
    rig_run(r, 1);
    expect_cycles(r, (const int64_t[]){0, 1, 2, 3, cases[k].issues}, 5);
    rig_destroy(r);
  }
}

// Warps 0 to 3 multiply m64n128k16 from 0 to 64. Beside it FFMA (interval 1) takes 3 cycles, CVT (2) takes 4, MUFU (8)
// takes 10, and after FFMA or CVT no pipe takes anything for 3 cycles; after MUFU they do at once. Warp 4 issues from 2
// on, after warp 0's EXIT. After 64 they are as fast as ever.
Test(timing_sm_dispatch, beside_a_wgmma_reading_operands_takes_longer) {
  rig *r = rig_create(4);
  r->arch.tensor_wgmma_dispatch_cycles = 3;
  ftl_warp_inst *product = rig_add(r, FTL_OP_WGMMA, -1, -1);
  product->arg = 128;
  product->ring_a = product->ring_b = 0;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_role(r, 4);
  for (int i = 0; i < 3; i++) rig_add(r, FTL_OP_FFMA, i, -1);  // 0 to 2
  for (int i = 3; i < 5; i++) rig_add(r, FTL_OP_CVT, i, -1);   // 3, 4
  for (int i = 5; i < 7; i++) rig_add(r, FTL_OP_MUFU, i, -1);  // 5, 6
  rig_add(r, FTL_OP_FFMA, 7, -1)->repeat = 40;                 // 7: from 29 on, every third cycle to 62
  rig_add(r, FTL_OP_EXIT, -1, -1);                             // 8: 28 more from 65 on
  rig_run(r, 1);
  const int64_t expected[] = {2, 5, 8, 11, 15, 18, 28, 29, 93};
  for (int i = 0; i < 9; i++) cr_expect_eq(rig_cycle(r, 4, i, 0), expected[i], "%d: %d", i, (int)rig_cycle(r, 4, i, 0));
  rig_destroy(r);
}

// MMA at 0, FFMA at 1, and the FFMA behind it at 4: it is ready at 2, and its pipe is free. No stall count of a
// compiler foresees that.
Test(timing_sm_dispatch, what_waits_for_dispatch_alone_is_a_dispatch_stall) {
  rig *r = create_with_products(3);
  rig_add(r, FTL_OP_MMA, 0, -1);
  for (int i = 1; i <= 2; i++) rig_add(r, FTL_OP_FFMA, i, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 4);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_DISPATCH_STALL], 2);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_MATH_PIPE_THROTTLE], 0);
  rig_check_stalls(r);
  rig_destroy(r);
}

// Warps 0 to 3 multiply from 0 to 64, and leave at 1. Beside that each of warps 4 to 8 issues 5 FFMAs of 2 cycles, one
// of them a cycle of dispatch: 4 cycles of the warp's own wait for the next. Warps 4 and 8 share a sub-core: while 4
// issues at 2, 4, 6, 8 and 10, warp 8 is not selected in these 5 cycles and not dispatched in the 5 after them.
static void five_beside_a_wgmma(bool bulk) {
  rig *r = rig_create(4);
  r->bulk = bulk;
  r->arch.tensor_wgmma_dispatch_cycles = 2;
  ftl_warp_inst *product = rig_add(r, FTL_OP_WGMMA, -1, -1);
  product->arg = 128;
  product->ring_a = product->ring_b = 0;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_role(r, 5);
  rig_add(r, FTL_OP_FFMA, 0, -1)->repeat = 5;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_expect_eq(rig_cycle(r, 8, 0, 0), 12);
  cr_expect_eq(rig_counters(r)->stall_cycles[FTL_STALL_DISPATCH_STALL], 5 * 4 + 5, "%d",
               (int)rig_counters(r)->stall_cycles[FTL_STALL_DISPATCH_STALL]);
  cr_expect_eq(rig_counters(r)->stall_cycles[FTL_STALL_MATH_PIPE_THROTTLE], 0);
  rig_check_stalls(r);
  rig_destroy(r);
}

Test(timing_sm_dispatch, beside_a_wgmma_the_second_cycle_is_a_dispatch_stall) {
  five_beside_a_wgmma(false);
  five_beside_a_wgmma(true);
}
