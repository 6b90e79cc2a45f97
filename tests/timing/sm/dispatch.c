#include <criterion/criterion.h>

#include "rig.h"

// An MMA takes 6 cycles of dispatch, interval 2; others 1.
static rig *create_with_products(int32_t num_warps) {
  rig *r = rig_create(num_warps);
  r->program.product.mma_dispatch_cycles = 6;
  r->program.product.mma_interval_cycles = 2;
  return r;
}

static void expect_cycles(const rig *r, int32_t warp, const int64_t *expected, int32_t count) {
  for (int32_t i = 0; i < count; i++)
    cr_expect_eq(rig_cycle(r, warp, i, 0), expected[i], "%d: %d", i, (int)rig_cycle(r, warp, i, 0));
}

// Of the instructions of the warp's first run.
static void expect_run(const rig *r, int32_t warp, const int64_t *expected, int32_t count) {
  for (int32_t i = 0; i < count; i++)
    cr_expect_eq(rig_cycle(r, warp, 0, i), expected[i], "%d: %d", i, (int)rig_cycle(r, warp, 0, i));
}

static int64_t dispatch_stalls(const rig *r) { return rig_counters(r)->stall_cycles[FTL_STALL_DISPATCH_STALL]; }

// The first MMA's operands are read until 6. The second one issues at 2, its interval, and waits until they are: its
// own are read until 12, and no third may wait beside it before 6; the fourth issues when the third's are next, at 12.
Test(timing_sm_dispatch, operands_of_one_product_may_wait) {
  rig *r = create_with_products(1);
  for (int i = 0; i < 4; i++) rig_add(r, FTL_OP_MMA, i, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  expect_cycles(r, 0, (const int64_t[]){0, 2, 6, 12}, 4);
  rig_destroy(r);
}

// As above: the operands of the MMA at 2 are read from 6 on, and its latency of 30 until the FFMA that needs it counts
// from there.
Test(timing_sm_dispatch, the_latency_of_a_product_counts_from_its_operands) {
  rig *r = create_with_products(1);
  for (int i = 0; i < 2; i++) rig_add(r, FTL_OP_MMA, i, -1);
  rig_add(r, FTL_OP_FFMA, 2, 1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  expect_cycles(r, 0, (const int64_t[]){0, 2, 6 + 30}, 3);
  rig_destroy(r);
}

// Without end, an MMA and 8 FFMA take 6 + 8 cycles, whoever issues them: two warps of one sub-core, 20 of each.
Test(timing_sm_dispatch, the_rate_is_the_sum_of_what_they_take) {
  rig *r = rig_create(5);  // warps 0 and 4 share a sub-core
  r->program.product.mma_dispatch_cycles = 6;
  int32_t loop = rig_loop(r, 0, 0, 20);
  rig_add(r, FTL_OP_MMA, 0, -1);  // after LOOP: 1
  for (int i = 1; i <= 8; i++) rig_add(r, FTL_OP_FFMA, i, -1);
  rig_end_loop(r, loop);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  double cycles = (double)rig_run(r, 1) / 40;
  cr_assert(cycles >= 13.5 && cycles <= 14.5, "%f", cycles);
  rig_destroy(r);
}

// The operands of the MMA are read in the cycles 1 to 5. An FFMA that issues at 1 waits for one of these five pieces,
// and with it the sub-core: the next one issues at 3. By then four are left, and the FFMAs at 1, 3, 5, 7 and 9 have
// taken turns with them: from 11 on FFMAs follow each other. LDS waits for none of them.
Test(timing_sm_dispatch, beside_a_product_an_instruction_waits_for_a_piece_of_its_operands) {
  rig *r = create_with_products(1);
  rig_add(r, FTL_OP_MMA, 0, -1);
  for (int i = 1; i <= 7; i++) rig_add(r, FTL_OP_FFMA, i, -1);
  rig_add(r, FTL_OP_LDS, 8, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  expect_cycles(r, 0, (const int64_t[]){0, 1, 3, 5, 7, 9, 11, 12, 13}, 9);
  rig_destroy(r);
}

// Warp 4 shares warp 0's sub-core. The FFMAs at 1 of warp 0 and at 3 and 5 of warp 4 wait for a piece of the MMA's
// operands each. Warp 0's second FFMA needs the first one's result, which ptxas expects 4 cycles later: its stall count
// stands still in the three cycles, so that it issues at 1 + 4 + 3.
Test(timing_sm_dispatch, stall_counts_of_all_warps_of_the_sub_core_stand_still) {
  rig *r = create_with_products(4);
  rig_add(r, FTL_OP_MMA, 0, -1);
  rig_add(r, FTL_OP_FFMA, 1, -1);
  rig_add(r, FTL_OP_FFMA, 2, 1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_role(r, 1);
  for (int i = 0; i < 2; i++) rig_add(r, FTL_OP_FFMA, i, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  expect_cycles(r, 0, (const int64_t[]){0, 1, 1 + 4 + 3}, 3);
  expect_cycles(r, 4, (const int64_t[]){3, 5}, 2);
  rig_check_stalls(r);
  rig_destroy(r);
}

// MUFU at 1 waits for a piece of the MMA's operands: 8 cycles of its pipe and 2 more until the next one.
Test(timing_sm_dispatch, beside_a_product_special_math_keeps_its_pipe_longer) {
  rig *r = create_with_products(1);
  rig_add(r, FTL_OP_MMA, 0, -1);
  for (int i = 1; i < 4; i++) rig_add(r, FTL_OP_MUFU, i, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  expect_cycles(r, 0, (const int64_t[]){0, 1, 11, 19}, 4);
  rig_destroy(r);
}

// MUFU, SHFL, ldmatrix and cp.async add a cycle each to what is to be read when the second MMA issues, LDS none: the
// third one waits until 8, not 6. All but ldmatrix and LDS wait for a piece themselves and freeze the sub-core; MUFU
// (interval 1) keeps its pipe for one cycle more.
Test(timing_sm_dispatch, special_math_shuffles_and_copies_are_dispatched) {
  const struct {
    ftl_opcode opcode;
    int64_t issues[5];
  } cases[] = {{FTL_OP_MUFU, {0, 1, 4, 6, 8}},
               {FTL_OP_SHFL, {0, 1, 3, 5, 8}},
               {FTL_OP_LDSM, {0, 1, 2, 3, 8}},
               {FTL_OP_LDS, {0, 1, 2, 3, 6}}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    rig *r = create_with_products(1);
    r->arch.sfu_interval_cycles = 1;
    rig_add(r, FTL_OP_MMA, 0, -1);
    for (int i = 1; i <= 2; i++) rig_add(r, cases[k].opcode, i, -1);
    for (int i = 3; i <= 4; i++) rig_add(r, FTL_OP_MMA, i, -1);
    rig_add(r, FTL_OP_EXIT, -1, -1);
    rig_run(r, 1);
    expect_cycles(r, 0, cases[k].issues, 5);
    rig_destroy(r);
  }
}

// A cp.async at 1 waits for a piece of the MMA's operands: the FFMA behind it issues at 3, and waits for one too.
Test(timing_sm_dispatch, a_copy_past_registers_waits_for_its_addresses) {
  rig *r = create_with_products(1);
  rig_add(r, FTL_OP_MMA, 0, -1);
  rig_add_access(r, FTL_OP_CP_ASYNC, -1, rig_access(r, 0, 1));
  for (int i = 1; i <= 2; i++) rig_add(r, FTL_OP_FFMA, i, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  expect_cycles(r, 0, (const int64_t[]){0, 1, 3, 5}, 4);
  rig_destroy(r);
}

// Warps 0 to 3 multiply m64n128k16 from 0 to 64 in turns of 4 cycles, and leave at 1; what a role of `num_warps` does
// beside that follows.
static rig *create_beside_a_wgmma(int32_t num_warps) {
  rig *r = rig_create(4);
  r->arch.tensor_wgmma_dispatch_cycles = 4;
  ftl_warp_inst *product = rig_add(r, FTL_OP_WGMMA, -1, -1);
  product->arg = 128;
  product->ring_a = product->ring_b = 0;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_role(r, num_warps);
  return r;
}

// Warp 4 issues from 2 on, after warp 0's EXIT. Registers are read in cycles 0 and 1 of a turn, two by an instruction
// of fixed latency: FFMA at 2 waits until 4, FFMAs at 5, 9 and 13 until 8, 12 and 16, so that what follows issues a
// cycle later; CVT at 17 waits until 20, and MUFU at 21 and 31 for a cycle, its pipe for 2 more than 8. All has been
// read by 33: of 40 FFMAs the first reads then and at 36. The next one issues at 34 and waits until 37, and so do those
// behind it for 3 cycles each, until the one at 66, which finds no wgmma: 9 have issued before, the last at 66 + 30.
Test(timing_sm_dispatch, beside_a_wgmma_two_registers_are_read_in_a_turn_of_four_cycles) {
  rig *r = create_beside_a_wgmma(1);
  for (int i = 0; i < 4; i++) rig_add(r, FTL_OP_FFMA, i, -1);  // 0 to 3
  rig_add(r, FTL_OP_CVT, 4, -1);                               // 4
  for (int i = 5; i < 7; i++) rig_add(r, FTL_OP_MUFU, i, -1);  // 5, 6
  rig_add(r, FTL_OP_FFMA, 7, -1)->repeat = 40;                 // 7
  rig_add(r, FTL_OP_EXIT, -1, -1);                             // 8
  rig_run(r, 1);
  expect_cycles(r, 4, (const int64_t[]){2, 5, 9, 13, 17, 21, 31, 33, 66 + 31}, 9);
  rig_check_stalls(r);
  rig_destroy(r);
}

// The same for a run of products whose second factor is no register: they read in cycles 4, 5, 8, 9, 12 and 13. Every
// second one issues in the cycle in which it reads, the others wait for the next turn.
Test(timing_sm_dispatch, beside_a_wgmma_two_products_by_a_constant_go_in_a_turn) {
  rig *r = create_beside_a_wgmma(1);
  ftl_warp_inst *products = rig_add(r, FTL_OP_FFMA, 0, -1);
  products->arg = FTL_FP32_BY_CONSTANT;
  products->repeat = 6;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  expect_run(r, 4, (const int64_t[]){2, 5, 6, 9, 10, 13}, 6);
  expect_cycles(r, 4, (const int64_t[]){2, 14}, 2);
  rig_check_stalls(r);
  rig_destroy(r);
}

// A run of products by a row's factor: the first reads it too (4 and 5), the others (8, 9 and 12) have it.
Test(timing_sm_dispatch, beside_a_wgmma_products_of_a_row_read_its_factor_once) {
  rig *r = create_beside_a_wgmma(1);
  ftl_warp_inst *products = rig_add(r, FTL_OP_FFMA, 0, -1);
  products->arg = FTL_FP32_BY_ROW;
  products->repeat = 4;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  expect_run(r, 4, (const int64_t[]){2, 5, 9, 10}, 4);
  expect_cycles(r, 4, (const int64_t[]){2, 13}, 2);
  rig_check_stalls(r);
  rig_destroy(r);
}

// A 64-bit product at 2 takes 12 cycles of its sub-core. The stall count of 4 behind it stands still for 11 of them:
// the next one issues at 17, and the FFMA at 32, in which cycle it reads. Of two warps the other one's issues when the
// sub-core goes on, behind the EXIT of the first at 14.
Test(timing_sm_dispatch, beside_a_wgmma_a_64_bit_product_holds_its_sub_core) {
  rig *r = create_beside_a_wgmma(1);
  for (int i = 0; i < 2; i++) rig_add(r, FTL_OP_IMAD_WIDE, i, -1);
  rig_add(r, FTL_OP_FFMA, 2, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  expect_cycles(r, 4, (const int64_t[]){2, 17, 32, 33}, 4);
  rig_check_stalls(r);
  rig_destroy(r);
  r = create_beside_a_wgmma(5);
  rig_add(r, FTL_OP_IMAD_WIDE, 0, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  expect_cycles(r, 4, (const int64_t[]){2, 14}, 2);
  expect_cycles(r, 8, (const int64_t[]){15}, 1);
  rig_check_stalls(r);
  rig_destroy(r);
}

// Behind an MMA its operands take 4 cycles to read, as long as its pipe: MMAs and such products in turn are 10 cycles
// apart, 6 + 4. The second MMA issues at 4, 6 before the first product's operands have been read, at 10; its own have
// at 16, the next product's at 20, and so on. A stall count of 3 behind each MMA keeps the products' pipe.
Test(timing_sm_dispatch, behind_a_product_a_64_bit_product_is_dispatched_as_long_as_its_pipe) {
  rig *r = create_with_products(1);
  for (int i = 0; i < 4; i++) {
    rig_add(r, FTL_OP_MMA, 2 * i, -1);
    rig_add(r, FTL_OP_IMAD_WIDE, 2 * i + 1, -1);
  }
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  expect_cycles(r, 0, (const int64_t[]){0, 1, 4, 7, 14, 17, 24, 27}, 8);
  rig_check_stalls(r);
  rig_destroy(r);
}

// Alone it takes its pipe for two intervals of 2 cycles, and its result is there after the latency of 5.
Test(timing_sm_dispatch, a_64_bit_product_takes_its_pipe_twice) {
  rig *r = rig_create(1);
  for (int i = 0; i < 2; i++) rig_add(r, FTL_OP_IMAD_WIDE, i, -1);
  rig_add(r, FTL_OP_IMAD, 2, 1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  expect_cycles(r, 0, (const int64_t[]){0, 4, 9}, 3);
  rig_destroy(r);
}

// MMA at 0, FFMA at 1, and the FFMA behind it at 3: it is ready at 2, and its pipe is free. No stall count of a
// compiler foresees that.
Test(timing_sm_dispatch, what_waits_for_dispatch_alone_is_a_dispatch_stall) {
  rig *r = create_with_products(1);
  rig_add(r, FTL_OP_MMA, 0, -1);
  for (int i = 1; i <= 2; i++) rig_add(r, FTL_OP_FFMA, i, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 3);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_MATH_PIPE_THROTTLE], 0);
  rig_check_stalls(r);
  rig_destroy(r);
}

// Warps 0 to 3 issue an MMA (interval 8) at 0 and an FFMA at 1, which waits a cycle: EXIT is ready at 2 and issues at
// 3, one dispatch stall each. Warp 4 shares warp 0's sub-core and has an MMA ready at 0: not selected then, and from 1
// on it waits for the tensor cores, in the frozen cycle too.
Test(timing_sm_dispatch, a_product_that_waits_for_the_tensor_cores_is_throttled_in_frozen_cycles) {
  rig *r = create_with_products(4);
  r->program.product.mma_interval_cycles = 8;
  rig_add(r, FTL_OP_MMA, 0, -1);
  rig_add(r, FTL_OP_FFMA, 1, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_role(r, 1);
  rig_add(r, FTL_OP_MMA, 0, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  expect_cycles(r, 0, (const int64_t[]){0, 1, 3}, 3);
  expect_cycles(r, 4, (const int64_t[]){8}, 1);
  cr_assert_eq(dispatch_stalls(r), 4);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_MATH_PIPE_THROTTLE], 7);
  rig_check_stalls(r);
  rig_destroy(r);
}

// Each of warps 4 to 7 issues 5 FFMAs of two registers: at 2, 5, 9, 13 and 17, and EXIT at 21. Of these cycles 6 are
// issues, and in 2 and four times 3 the warp is ready and frozen.
static void five_beside_a_wgmma(bool bulk) {
  rig *r = create_beside_a_wgmma(4);
  r->bulk = bulk;
  rig_add(r, FTL_OP_FFMA, 0, -1)->repeat = 5;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_expect_eq(rig_cycle(r, 4, 1, 0), 21, "%d", (int)rig_cycle(r, 4, 1, 0));
  cr_expect_eq(dispatch_stalls(r), 4 * (2 + 4 * 3), "%d", (int)dispatch_stalls(r));
  cr_expect_eq(rig_counters(r)->stall_cycles[FTL_STALL_MATH_PIPE_THROTTLE], 0);
  rig_check_stalls(r);
  rig_destroy(r);
}

Test(timing_sm_dispatch, beside_a_wgmma_a_frozen_cycle_is_a_dispatch_stall) {
  five_beside_a_wgmma(false);
  five_beside_a_wgmma(true);
}
