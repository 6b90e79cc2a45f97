#include <criterion/criterion.h>

#include "rig.h"

// MMA at 0, FFMAs at 1 to 8, MMA at 9; an MMA takes 6 cycles of dispatch.
static rig *products_apart(void) {
  rig *r = rig_create(1);
  r->arch.tensor_mma_dispatch_cycles = 6;
  rig_add(r, FTL_OP_MMA, 0, -1);
  for (int i = 1; i <= 8; i++) rig_add(r, FTL_OP_FFMA, i, -1);
  rig_add(r, FTL_OP_MMA, 9, -1);
  return r;
}

// mma.sync takes 6 cycles of dispatch, others 1; its pipe's interval is 8. One may wait to be dispatched while the
// sub-core goes on: MMA at 0 is dispatched until 6, so the FFMAs at 1 to 8 are until 7 to 14. The MMA at 9 is until 20:
// more than another MMA would wait before 14.
Test(timing_sm_dispatch, products_take_the_dispatch_of_others) {
  rig *r = products_apart();
  rig_add(r, FTL_OP_FFMA, 10, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  for (int i = 0; i <= 9; i++) cr_assert_eq(rig_cycle(r, 0, i, 0), i);
  cr_assert_eq(rig_cycle(r, 0, 10, 0), 14);
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

// Special math and shared memory issue whatever waits to be dispatched: at 10 and 11, where FFMA would at 14.
Test(timing_sm_dispatch, the_mio_is_not_held) {
  rig *r = products_apart();
  rig_add(r, FTL_OP_MUFU, 10, -1);
  rig_add(r, FTL_OP_LDS, 11, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 10, 0), 10);
  cr_assert_eq(rig_cycle(r, 0, 11, 0), 11);
  rig_destroy(r);
}

// After the MMA of 9 all is dispatched by 20. MUFU and SHFL of 10 and 11 add a cycle each, LDS none: an FFMA may issue
// at 16 and not at 14.
Test(timing_sm_dispatch, special_math_and_shuffles_are_dispatched) {
  const struct {
    ftl_opcode opcode;
    int64_t issues;
  } cases[] = {{FTL_OP_MUFU, 16}, {FTL_OP_SHFL, 16}, {FTL_OP_LDS, 14}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    rig *r = rig_create(1);
    r->arch.tensor_mma_dispatch_cycles = 6;
    r->arch.sfu_interval_cycles = 1;
    rig_add(r, FTL_OP_MMA, 0, -1);
    for (int i = 1; i <= 8; i++) rig_add(r, FTL_OP_FFMA, i, -1);
    rig_add(r, FTL_OP_MMA, 9, -1);
    for (int i = 10; i <= 11; i++) rig_add(r, cases[k].opcode, i, -1);
    rig_add(r, FTL_OP_FFMA, 12, -1);
    rig_add(r, FTL_OP_EXIT, -1, -1);
    rig_run(r, 1);
    cr_expect_eq(rig_cycle(r, 0, 12, 0), cases[k].issues, "%d: %d", (int)k, (int)rig_cycle(r, 0, 12, 0));
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

// As above: MMA at 0, FFMAs at 1 to 8, MMA at 9. The FFMA behind it is ready at 10, and its pipe is free; it waits for
// dispatch until 14, which no stall count of a compiler foresees.
Test(timing_sm_dispatch, what_waits_for_dispatch_alone_is_a_dispatch_stall) {
  rig *r = products_apart();
  rig_add(r, FTL_OP_FFMA, 10, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_DISPATCH_STALL], 4);
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
