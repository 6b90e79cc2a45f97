#include <criterion/criterion.h>

#include "rig.h"

static void add_product(rig *r, int n, bool a_in_shared) {
  ftl_warp_inst *product = rig_add(r, FTL_OP_WGMMA, -1, -1);
  product->arg = (uint16_t)n;
  product->ring_a = a_in_shared ? 0 : FTL_NO_RING;
  product->ring_b = 0;
}

static rig *products(int32_t count, int n, bool a_in_shared, int32_t num_warps) {
  rig *r = rig_create(num_warps);
  for (int32_t i = 0; i < count; i++) add_product(r, n, a_in_shared);  // 0 .. count-1
  rig_add(r, FTL_OP_WGMMA_COMMIT, -1, -1);                             // count
  rig_add(r, FTL_OP_WGMMA_WAIT, -1, -1)->arg = 0;                      // count + 1
  rig_add(r, FTL_OP_EXIT, -1, -1);
  return r;
}

// m64n128k16 at 2048 FMA a cycle: 64 cycles; operands 4096 + 2048 bytes in 48. The warps issue at 0: done at 64,
// readable at 64 + 12. The wait for results counts as a barrier.
Test(timing_sm_gmma, a_product_takes_its_math_and_a_tail) {
  rig *r = products(1, 128, true, 4);
  rig_run(r, 1);
  for (int w = 0; w < 4; w++) cr_assert_eq(rig_cycle(r, w, 2, 0), 76);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_BARRIER], 4 * 75);
  cr_assert_eq(rig_counters(r)->tensor_busy_cycles, 4 * 64);
  cr_assert_eq(rig_counters(r)->tensor_insts, 4);
  rig_destroy(r);
}

// N = 32: 16 cycles of math, but A (2048 bytes) and B (1024) take 24 from shared memory; B alone 8.
Test(timing_sm_gmma, a_narrow_product_is_bound_by_its_operands) {
  rig *r = products(2, 32, true, 4);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 3, 0), 2 * 24 + 12);
  rig_destroy(r);
  r = products(2, 32, false, 4);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 3, 0), 2 * 16 + 12);
  rig_destroy(r);
}

// Issue cost 2 with A in shared memory, 6 with A in registers; queue of 4: the fifth issues when the first has ended.
Test(timing_sm_gmma, a_full_queue_holds_the_next_product) {
  rig *r = products(6, 128, true, 4);
  rig_run(r, 1);
  for (int i = 0; i < 4; i++) cr_assert_eq(rig_cycle(r, 0, i, 0), 2 * i);
  cr_assert_eq(rig_cycle(r, 0, 4, 0), 64);
  cr_assert_eq(rig_cycle(r, 0, 5, 0), 128);
  cr_assert_eq(rig_cycle(r, 0, 7, 0), 6 * 64 + 12);
  rig_destroy(r);
  r = products(2, 128, false, 4);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 1, 0), 6);
  rig_destroy(r);
}

// Two warpgroups share the tensor cores: issued at 0 (warps 0..3) and 2 (warps 4..7, after the issue cost), 64 cycles
// each.
Test(timing_sm_gmma, warpgroups_take_turns) {
  rig *r = products(1, 128, true, 8);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 64 + 12);
  cr_assert_eq(rig_cycle(r, 4, 0, 0), 2);
  cr_assert_eq(rig_cycle(r, 4, 2, 0), 128 + 12);
  rig_destroy(r);
}

// WAIT 1 leaves the second group in flight.
Test(timing_sm_gmma, a_wait_may_leave_groups_in_flight) {
  rig *r = rig_create(4);
  for (int i = 0; i < 2; i++) {
    add_product(r, 128, true);                // 0, 2
    rig_add(r, FTL_OP_WGMMA_COMMIT, -1, -1);  // 1, 3
  }
  rig_add(r, FTL_OP_WGMMA_WAIT, -1, -1)->arg = 1;  // 4
  rig_add(r, FTL_OP_WGMMA_WAIT, -1, -1)->arg = 0;  // 5
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 4, 0), 76);
  cr_assert_eq(rig_cycle(r, 0, 5, 0), 140);
  rig_destroy(r);
}

// Warp 0 alone waits for a MUFU and issues at 20: the product of all four begins then.
Test(timing_sm_gmma, a_product_begins_with_its_last_warp) {
  rig *r = rig_create(4);
  int32_t loop = rig_loop(r, 0, 0, 1);
  rig_add(r, FTL_OP_MUFU, 0, -1)->flags = FTL_INST_WARP0;    // 1
  ftl_warp_inst *product = rig_add(r, FTL_OP_WGMMA, -1, 0);  // 2: token 0 is never pending but in warp 0
  product->arg = 128;
  product->ring_a = product->ring_b = 0;
  rig_add(r, FTL_OP_WGMMA_COMMIT, -1, -1);
  rig_add(r, FTL_OP_WGMMA_WAIT, -1, -1);  // 4
  rig_end_loop(r, loop);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 20);
  cr_assert_eq(rig_cycle(r, 1, 2, 0), 0);
  cr_assert_eq(rig_cycle(r, 1, 4, 0), 20 + 64 + 12);
  rig_destroy(r);
}

// When four warps have the results of 16 products whose operands fill the data pipe, 24 cycles each as above, of which
// four are queued, beside a producer's copy of so many lines, which are written some 250 cycles after it was issued.
static int64_t end_beside_lines(int32_t num_lines) {
  const ftl_opcode asks[] = {FTL_OP_TILE, FTL_OP_MBAR_ACQUIRE, FTL_OP_MBAR_EXPECT, FTL_OP_TMA_LOAD,
                             FTL_OP_MBAR_ADVANCE};
  rig *r = rig_create(4);
  uint16_t access = rig_access(r, 0, num_lines);
  rig_ring(r, 1, 4);
  for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
    ftl_warp_inst *inst = rig_add(r, asks[i], -1, -1);
    inst->flags = FTL_INST_WARP0;
    if (asks[i] == FTL_OP_TILE) inst->access = 0;
    if (asks[i] == FTL_OP_TMA_LOAD) inst->access = access;
  }
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_role(r, 4);
  for (int i = 0; i < 16; i++) add_product(r, 32, true);
  rig_add(r, FTL_OP_WGMMA_COMMIT, -1, -1);
  rig_add(r, FTL_OP_WGMMA_WAIT, -1, -1)->arg = 0;
  rig_add(r, FTL_OP_EXIT, -1, -1);  // 18
  rig_run(r, 1);
  cr_assert_eq(r->num_requests, num_lines);
  int64_t end = rig_cycle(r, 4, 18, 0);
  cr_assert_gt(end, 16 * 24);
  rig_destroy(r);
  return end;
}

Test(timing_sm_gmma, lines_that_tma_writes_take_nothing_from_operand_reads) {
  cr_assert_eq(end_beside_lines(8), end_beside_lines(1));
}

// Warp 4 copies so many lines past L1 at once, beside `num_products` products of N columns of the other four.
static rig *copy_beside(int32_t num_lines, int32_t num_products, int n, int32_t bytes_per_cycle) {
  rig *r = rig_create(4);
  r->arch.tensor_wgmma_copy_bytes_per_cycle = bytes_per_cycle;
  uint16_t access = rig_access(r, 0, num_lines);
  rig_ring(r, 1, 4);
  for (int32_t i = 0; i < num_products; i++) add_product(r, n, true);
  rig_add(r, FTL_OP_WGMMA_COMMIT, -1, -1);
  rig_add(r, FTL_OP_WGMMA_WAIT, -1, -1)->arg = 0;
  rig_add(r, FTL_OP_EXIT, -1, -1);  // num_products + 2
  rig_role(r, 1);
  rig_add_tile(r);
  ftl_warp_inst *copy = rig_add(r, FTL_OP_CP_ASYNC, -1, -1);
  copy->access = access;
  copy->flags = FTL_INST_BYPASS_L1;
  copy->wavefronts = (uint8_t)num_lines;
  rig_add(r, FTL_OP_CP_COMMIT, -1, -1);
  rig_add(r, FTL_OP_CP_WAIT, -1, -1)->arg = 0;  // 3
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  return r;
}

// The copy is taken at 0 and its four lines are back at 200: written a cycle each where no product runs (one of 64
// cycles has ended), two each at 64 B a cycle beside products that run until 16 * 64.
Test(timing_sm_gmma, copies_are_written_slower_beside_products) {
  rig *r = copy_beside(4, 1, 128, 64);
  int64_t alone = rig_cycle(r, 4, 3, 0);
  rig_destroy(r);
  r = copy_beside(4, 16, 128, 64);
  cr_assert_eq(rig_cycle(r, 4, 3, 0), alone + 4);
  rig_destroy(r);
  r = copy_beside(4, 16, 128, 128);
  cr_assert_eq(rig_cycle(r, 4, 3, 0), alone);
  rig_destroy(r);
  r = copy_beside(4, 16, 128, 256);  // no faster than the data pipe
  cr_assert_eq(rig_cycle(r, 4, 3, 0), alone);
  rig_destroy(r);
}

// Three lines of 128 bytes at 48 B a cycle end after 8 cycles, 384 / 48, not after three times two.
Test(timing_sm_gmma, a_rate_that_does_not_divide_a_line_is_kept_over_several) {
  rig *r = copy_beside(3, 1, 128, 48);
  int64_t alone = rig_cycle(r, 4, 3, 0);
  rig_destroy(r);
  r = copy_beside(3, 16, 128, 48);
  cr_assert_eq(rig_cycle(r, 4, 3, 0), alone + 8 - 3);
  rig_destroy(r);
}

// Four lines come in a row while four products run, until 256, and the first is written at 1 B a cycle, in 128 cycles.
// The other three wait, and no product runs when it is written: a cycle each.
Test(timing_sm_gmma, copies_that_wait_for_products_are_written_faster_when_these_end) {
  rig *r = copy_beside(4, 1, 128, 1);
  int64_t alone = rig_cycle(r, 4, 3, 0);
  rig_destroy(r);
  r = copy_beside(4, 4, 128, 1);
  cr_assert_eq(rig_cycle(r, 4, 3, 0), alone + 128 - 1);
  rig_destroy(r);
}

// Products that fill the data pipe end as with one line.
Test(timing_sm_gmma, copies_past_l1_take_nothing_from_operand_reads) {
  rig *r = copy_beside(1, 16, 32, 64);
  int64_t end = rig_cycle(r, 0, 18, 0);
  cr_assert_gt(end, 16 * 24);
  rig_destroy(r);
  r = copy_beside(4, 16, 32, 64);
  cr_assert_eq(rig_cycle(r, 0, 18, 0), end);
  rig_destroy(r);
}

// Warp 4 shuffles three times, 2 cycles of the data pipe each, beside 16 products of the other four; when an FFMA has
// the last result.
static int64_t third_shuffle(int64_t wavefront_cycles) {
  rig *r = rig_create(4);
  r->arch.tensor_wgmma_wavefront_cycles = wavefront_cycles;
  rig_ring(r, 1, 4);
  for (int i = 0; i < 16; i++) add_product(r, 128, true);
  rig_add(r, FTL_OP_WGMMA_COMMIT, -1, -1);
  rig_add(r, FTL_OP_WGMMA_WAIT, -1, -1)->arg = 0;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_role(r, 1);
  for (int32_t token = 0; token < 3; token++) rig_add(r, FTL_OP_SHFL, token, -1);
  rig_add(r, FTL_OP_FFMA, -1, 2);  // 3
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  int64_t cycle = rig_cycle(r, 4, 3, 0);
  rig_destroy(r);
  return cycle;
}

// At three cycles a wavefront each of the first two keeps the pipe for 6 cycles, not 2.
Test(timing_sm_gmma, shuffles_keep_the_data_pipe_longer_beside_products) {
  cr_assert_eq(third_shuffle(3), third_shuffle(1) + 2 * (6 - 2));
}

// Warp 4 shuffles in cycle 6 (an FFMA in cycle 1, its latency of 4, and a cycle more from FP32 to memory) beside
// `count` products of the other four, which begin in cycle 0; when an FFMA has what it gave.
static int64_t shuffled(int count, int n, bool a_in_shared, int64_t window_cycles) {
  rig *r = rig_create(4);
  r->arch.tensor_wgmma_window_cycles = window_cycles;
  rig_ring(r, 1, 4);
  for (int i = 0; i < count; i++) add_product(r, n, a_in_shared);
  rig_add(r, FTL_OP_WGMMA_COMMIT, -1, -1);
  rig_add(r, FTL_OP_WGMMA_WAIT, -1, -1)->arg = 0;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_role(r, 1);
  rig_add(r, FTL_OP_FFMA, 0, -1);
  rig_add(r, FTL_OP_SHFL, 1, 0);   // 1
  rig_add(r, FTL_OP_FFMA, -1, 1);  // 2
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 4, 1, 0), 6);
  int64_t cycle = rig_cycle(r, 4, 2, 0);
  rig_destroy(r);
  return cycle;
}

// The result comes 22 cycles after the data pipe has begun: in cycle 6 where a window is every cycle; when A has been
// read, whose 16 wavefronts take 32 cycles, since every other one is B's (32 of 64); or in the first window of those
// every 20 cycles from the begin on. With A in registers it does not wait.
Test(timing_sm_gmma, a_shuffle_waits_for_reads_of_a) {
  cr_assert_eq(shuffled(1, 128, true, 1), 6 + 22);
  cr_assert_eq(shuffled(1, 128, true, 1000), 32 + 22);
  cr_assert_eq(shuffled(1, 128, true, 20), 20 + 22);
  cr_assert_eq(shuffled(1, 128, false, 1000), 6 + 22);
}

// N = 32 reads 24 cycles of 24: two products leave no cycle between their reads. N = 128 reads A in 32 of 64.
Test(timing_sm_gmma, reads_that_follow_each_other_are_one_wait) {
  cr_assert_eq(shuffled(2, 32, true, 1000), 48 + 22);
  cr_assert_eq(shuffled(2, 32, true, 30), 30 + 22);
  cr_assert_eq(shuffled(2, 128, true, 1000), 32 + 22);
}

// Two 64-bit products, at 1 and 16, on one sub-core or on all four: each takes 5 cycles of the wgmma, which ends at
// 64 + 10. Its warps wait since 2, when it was to end at 64.
Test(timing_sm_gmma, a_64_bit_product_beside_takes_cycles_of_it) {
  for (int32_t others = 1; others <= 4; others += 3) {
    rig *r = products(1, 128, true, 4);
    rig_role(r, others);
    for (int i = 0; i < 2; i++) rig_add(r, FTL_OP_IMAD_WIDE, i, -1);
    rig_add(r, FTL_OP_EXIT, -1, -1);
    rig_run(r, 1);
    cr_expect_eq(rig_cycle(r, 4, 1, 0), 16);
    cr_expect_eq(rig_cycle(r, 0, 2, 0), 64 + 10 + 12, "%d others: %d", (int)others, (int)rig_cycle(r, 0, 2, 0));
    rig_check_stalls(r);
    rig_destroy(r);
  }
}

// The queue of 4 is full until the first has ended, at 64 + 5, and the others end 64 cycles after each other.
Test(timing_sm_gmma, what_is_taken_puts_off_the_products_that_queue) {
  rig *r = products(6, 128, true, 4);
  rig_role(r, 1);
  rig_add(r, FTL_OP_IMAD_WIDE, 0, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_expect_eq(rig_cycle(r, 0, 4, 0), 64 + 5, "%d", (int)rig_cycle(r, 0, 4, 0));
  cr_expect_eq(rig_cycle(r, 0, 5, 0), 128 + 5);
  cr_expect_eq(rig_cycle(r, 0, 7, 0), 6 * 64 + 5 + 12);
  rig_check_stalls(r);
  rig_destroy(r);
}

// Warp 4 takes 5 cycles of the first product, warp 5, on another sub-core, as many of the second: nothing was under way
// between them.
Test(timing_sm_gmma, what_is_taken_of_a_product_is_forgotten_with_it) {
  rig *r = rig_create(4);
  for (int i = 0; i < 2; i++) {
    add_product(r, 128, true);                                       // 0, 4
    rig_add(r, FTL_OP_WGMMA_COMMIT, -1, -1);                         // 1, 5
    rig_add(r, FTL_OP_WGMMA_WAIT, -1, -1);                           // 2, 6
    rig_add(r, FTL_OP_BAR_ARRIVE, -1, -1)->arg = (uint16_t)(1 + i);  // 3, 7
  }
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_role(r, 1);
  rig_add(r, FTL_OP_IMAD_WIDE, 0, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_role(r, 1);
  rig_add(r, FTL_OP_BAR_SYNC, -1, -1)->arg = 1;
  rig_add(r, FTL_OP_IMAD_WIDE, 0, -1);
  rig_add(r, FTL_OP_BAR_SYNC, -1, -1)->arg = 2;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  r->program.barrier_warps[1] = r->program.barrier_warps[2] = 5;
  rig_run(r, 1);
  int64_t second = rig_cycle(r, 0, 4, 0);
  cr_expect_eq(rig_cycle(r, 0, 2, 0), 64 + 5 + 12);
  cr_expect(rig_cycle(r, 5, 1, 0) > second && rig_cycle(r, 5, 1, 0) < second + 64);
  cr_expect_eq(rig_cycle(r, 0, 6, 0), second + 64 + 5 + 12, "%d: %d", (int)second, (int)rig_cycle(r, 0, 6, 0));
  rig_destroy(r);
}
