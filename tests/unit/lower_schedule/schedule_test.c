#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "drafts.h"

enum { NONE = FTL_NO_VALUE };

Test(unit_lower_schedule, a_load_stands_its_latency_ahead_of_its_use) {
  // A chain of 30 FFMAs on c, a shared load (10 cycles), and an FFMA that reads both. From the end: the reader at cycle
  // 0, the chain at 1, 2, ..., the load at 10. So 9 links of the chain stand between the load and the reader.
  ftl_draft draft = {0};
  int32_t address = ftl_draft_value_add(&draft, 1, false), loaded = ftl_draft_value_add(&draft, 1, false);
  int32_t c = ftl_draft_value_add(&draft, 1, false), sum = ftl_draft_value_add(&draft, 1, false);
  put(&draft, FTL_OP_MOV, 1, address, NONE, NONE);
  put(&draft, FTL_OP_MOV, 2, c, NONE, NONE);
  put_loop(&draft);
  put(&draft, FTL_OP_LDS, 3, loaded, address, NONE);
  for (int i = 0; i < 30; i++) put_update(&draft, FTL_OP_FFMA, 10 + i, c, NONE, NONE);
  put(&draft, FTL_OP_FFMA, 50, sum, loaded, c);
  put_end_loop(&draft);
  finish(&draft, 64);
  cr_assert_eq(position_of(&draft, 50) - position_of(&draft, 3), 10);
  for (int i = 1; i < 30; i++) cr_assert_lt(position_of(&draft, 9 + i), position_of(&draft, 10 + i));
  ftl_draft_fini(&draft);
}

// A chain of 3 FFMAs, a compare of its end (its predicate guards after 6 cycles, is read after 1), an instruction that
// it guards, or a selection or what packs it, and 8 FFMAs that hang on nothing. From the end: the reader at cycle 0,
// the compare at 6, or at 1, since it has the longer path before it; the others fill the cycles between.
Test(unit_lower_schedule, a_compare_stands_farther_ahead_of_what_it_guards_than_of_what_reads_it) {
  static const struct {
    ftl_opcode writer, reader;
    int of_writer, of_reader;  // their arguments
    int32_t distance;
  } cases[] = {{FTL_OP_ISETP, FTL_OP_FFMA, 3, 50, 6},
               {FTL_OP_ISETP, FTL_OP_SEL, 3, 50, 1},
               {FTL_OP_ISETP, FTL_OP_LOP, 3, 50, 6},
               {FTL_OP_ISETP, FTL_OP_LOP, 3, FTL_LOP_PACKS, 1},
               {FTL_OP_LOP, FTL_OP_FFMA, FTL_LOP_TESTS, 50, 6}};
  ftl_arch arch = round_arch();
  arch.branch_predicate_latency_cycles = 6;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ftl_draft draft = {0};
    int32_t predicate = ftl_draft_value_add(&draft, 0, false), c = ftl_draft_value_add(&draft, 1, false);
    int32_t sum = ftl_draft_value_add(&draft, 1, false);
    for (int k = 0; k < 3; k++) put_update(&draft, FTL_OP_FFMA, 10 + k, c, NONE, NONE);
    put(&draft, cases[i].writer, cases[i].of_writer, predicate, c, NONE);
    put(&draft, cases[i].reader, cases[i].of_reader, sum, predicate, NONE);
    for (int k = 0; k < 8; k++) put(&draft, FTL_OP_FFMA, 60 + k, ftl_draft_value_add(&draft, 1, false), NONE, NONE);
    finish_on(&arch, &draft, 64);
    int32_t distance = position_of(&draft, cases[i].of_reader) - position_of(&draft, cases[i].of_writer);
    cr_expect_eq(distance, cases[i].distance, "%zu: %d", i, distance);
    ftl_draft_fini(&draft);
  }
}

Test(unit_lower_schedule, a_diamond_is_ordered_by_its_longest_path) {
  // a -> slow (MUFU, 20 cycles) -> join, a -> quick (FFMA) -> join. From the end: join at 0, quick at 1, then slow when
  // its latency of 20 is over, then a. Two more FFMAs, independent and written last, fill cycles 2 and 3 by program
  // order.
  ftl_draft draft = {0};
  int32_t v[7];
  for (int i = 0; i < 7; i++) v[i] = ftl_draft_value_add(&draft, 1, false);
  put(&draft, FTL_OP_FFMA, 1, v[0], NONE, NONE);
  put(&draft, FTL_OP_FFMA, 2, v[1], v[0], NONE);
  put(&draft, FTL_OP_MUFU, 3, v[2], v[0], NONE);
  put(&draft, FTL_OP_FFMA, 4, v[3], v[1], v[2]);
  put(&draft, FTL_OP_FFMA, 5, v[4], NONE, NONE);
  put(&draft, FTL_OP_FFMA, 6, v[5], NONE, NONE);
  finish(&draft, 64);
  // At cycle 0: join (depth 20) before 6 and 5 (depth 0). At 1: quick (depth 1). At 2 and 3: 6, 5. At 20: slow. At 40:
  // a.
  static const int expected[] = {1, 3, 5, 6, 2, 4};
  for (int i = 0; i < 6; i++) cr_expect_eq(draft.insts[i].inst.arg, expected[i], "position %d", i);
  ftl_draft_fini(&draft);
}

// num_mmas mmas on one accumulator, each with its own ldmatrix, all loads written first.
static ftl_draft mma_chain(int num_mmas) {
  ftl_draft draft = {0};
  int32_t accumulator = ftl_draft_value_add(&draft, 4, false), address = ftl_draft_value_add(&draft, 1, false);
  put(&draft, FTL_OP_MOV, 1, accumulator, NONE, NONE);
  put(&draft, FTL_OP_MOV, 2, address, NONE, NONE);
  put_loop(&draft);
  int32_t first = draft.num_values;
  for (int i = 0; i < num_mmas; i++)
    put(&draft, FTL_OP_LDSM, 100 + i, ftl_draft_value_add(&draft, 4, false), address, NONE);
  for (int i = 0; i < num_mmas; i++) put_update(&draft, FTL_OP_MMA, 200 + i, accumulator, first + i, NONE);
  put_end_loop(&draft);
  return draft;
}

Test(unit_lower_schedule, fragments_are_loaded_a_few_mmas_ahead_and_not_all_at_the_top) {
  // mma every 8 cycles, ldmatrix 24: a fragment is loaded three mmas before its own.
  ftl_draft draft = mma_chain(12);
  finished done = finish(&draft, 255);
  for (int i = 4; i < 12; i++) {
    int32_t load = position_of(&draft, 100 + i);
    cr_expect_gt(load, position_of(&draft, 200 + i - 4), "fragment %d is early", i);
    cr_expect_lt(load, position_of(&draft, 200 + i - 2), "fragment %d is late", i);
  }
  // Loaded right behind the mma three before its own, so three fragments live: accumulator 4, address 1, fragments 12,
  // reserved 3.
  cr_expect_eq(done.result.registers_per_thread, 20);
  cr_expect_eq(done.result.spilled_registers, 0);
  ftl_draft_fini(&draft);
}

// Live at a product: accumulator 4, address 1, its own fragment 4. Beyond 8 each fragment is loaded right before its
// product; where as many as 20 may be live, as above without a limit.
Test(unit_lower_schedule, fragments_are_loaded_right_before_their_products_where_registers_are_crowded) {
  ftl_draft crowded = mma_chain(12), roomy = mma_chain(12);
  crowded.crowded_above = 8;
  roomy.crowded_above = 20;
  finished done = finish(&crowded, 255), as_before = finish(&roomy, 255);
  for (int i = 0; i < 12; i++) cr_expect_eq(position_of(&crowded, 200 + i) - position_of(&crowded, 100 + i), 1);
  cr_expect_eq(done.result.registers_per_thread, 20 - 2 * 4);
  cr_expect_eq(as_before.result.registers_per_thread, 20);
  ftl_draft_fini(&crowded);
  ftl_draft_fini(&roomy);
}

// Four k steps of four products, a fragment of A each, which is loaded before the products of the step before: loads
// have the tags 100 to 103, products 200 to 215.
static void put_buffered_steps(ftl_draft *draft, uint8_t effects) {
  int32_t address = ftl_draft_value_add(draft, 1, 0), sums[4], fragments[4];
  put(draft, FTL_OP_IADD, 1, address, NONE, NONE);
  for (int i = 0; i < 4; i++) put(draft, FTL_OP_MOV, 2 + i, sums[i] = ftl_draft_value_add(draft, 4, 0), NONE, NONE);
  put_loop(draft);
  for (int step = -1; step < 4; step++) {
    if (step < 3) {
      fragments[step + 1] = ftl_draft_value_add(draft, 4, 0);
      put(draft, FTL_OP_LDSM, 101 + step, fragments[step + 1], address, NONE)->effects |= effects;
    }
    for (int i = 0; i < 4 && step >= 0; i++)
      put_update(draft, FTL_OP_MMA, 200 + 4 * step + i, sums[i], fragments[step], NONE);
  }
  put_end_loop(draft);
  for (int i = 0; i < 4; i++) put(draft, FTL_OP_STS, 300 + i, NONE, address, sums[i]);
}

Test(unit_lower_schedule, a_fragment_that_is_to_stand_ahead_does_so_by_the_products_that_the_program_has_between) {
  ftl_draft late = {0}, ahead = {0};
  put_buffered_steps(&late, 0);
  put_buffered_steps(&ahead, FTL_EFFECT_AHEAD);
  finish(&late, 255);
  finished done = finish(&ahead, 255);
  for (int step = 0; step < 3; step++) {
    // a product in 8 cycles: the latency of 24 is over three products after the load, the step before has four
    cr_expect_gt(position_of(&late, 101 + step), position_of(&late, 200 + 4 * step));
    cr_expect_lt(position_of(&ahead, 101 + step), position_of(&ahead, 200 + 4 * step));
  }
  // sums 16, address 1, two fragments 8, and the ABI's 3
  cr_expect_eq(done.result.registers_per_thread, 16 + 1 + 8 + 3);
  ftl_draft_fini(&late);
  ftl_draft_fini(&ahead);
}

// Ten fragments of 4 cycles are loaded before the first of 20 products: 7 of them, 28 cycles, ahead of it, and the
// others, 8 and 12 cycles later, behind a product and two.
Test(unit_lower_schedule, fragments_that_take_longer_than_their_latency_stand_among_the_products) {
  enum { FRAGMENTS = 10, PRODUCTS = 20 };
  ftl_draft draft = {.buffers_fragments = true};
  int32_t address = ftl_draft_value_add(&draft, 1, 0), sums[4], fragments[FRAGMENTS];
  for (int i = 0; i < 4; i++) sums[i] = ftl_draft_value_add(&draft, 4, 0);
  for (int i = 0; i < FRAGMENTS; i++) fragments[i] = ftl_draft_value_add(&draft, 4, 0);
  put(&draft, FTL_OP_IADD, 1, address, NONE, NONE);
  for (int i = 0; i < 4; i++) put(&draft, FTL_OP_MOV, 10 + i, sums[i], NONE, NONE);
  for (int i = 0; i < FRAGMENTS; i++)
    put(&draft, FTL_OP_LDSM, 100 + i, fragments[i], address, NONE)->effects |= FTL_EFFECT_MEMORY | FTL_EFFECT_AHEAD;
  for (int i = 0; i < PRODUCTS; i++)
    put_update(&draft, FTL_OP_MMA, 200 + i, sums[i % 4], fragments[i < PRODUCTS / 2 ? 0 : i - PRODUCTS / 2], NONE);
  for (int i = 0; i < 4; i++) put(&draft, FTL_OP_STS, 300 + i, NONE, address, sums[i]);
  ftl_arch arch = round_arch();
  arch.mio_warp_interval_cycles = 4;
  finish_on(&arch, &draft, 255);
  int num_ahead = 0;
  for (int i = 0; i < FRAGMENTS; i++) num_ahead += position_of(&draft, 100 + i) < position_of(&draft, 200);
  cr_expect_eq(num_ahead, 7);
  cr_expect_gt(position_of(&draft, 109), position_of(&draft, 201));
  cr_expect_lt(position_of(&draft, 109), position_of(&draft, 204));
  ftl_draft_fini(&draft);
}

// Eight products, each of eight exponentials that are scaled: a product stands behind its own and those that have
// begun, not behind all.
Test(unit_lower_schedule, a_product_follows_the_exponentials_that_it_needs) {
  enum { PRODUCTS = 8, EXPONENTIALS = 8, SCALINGS = 6 };
  ftl_draft draft = {.buffers_fragments = true};
  int32_t sum = ftl_draft_value_add(&draft, 4, 0), operand[PRODUCTS], score[PRODUCTS * EXPONENTIALS];
  for (int i = 0; i < PRODUCTS; i++) operand[i] = ftl_draft_value_add(&draft, 4, 0);
  for (int i = 0; i < PRODUCTS * EXPONENTIALS; i++) score[i] = ftl_draft_value_add(&draft, 1, 0);
  put(&draft, FTL_OP_MOV, 1, sum, NONE, NONE);
  for (int i = 0; i < PRODUCTS * EXPONENTIALS; i++) put(&draft, FTL_OP_MOV, 1000 + i, score[i], NONE, NONE);
  for (int i = 0; i < PRODUCTS * EXPONENTIALS; i++) {
    int product = i / EXPONENTIALS;
    put(&draft, FTL_OP_MUFU, 100 + i, score[i], score[i], NONE);
    put(&draft, FTL_OP_FFMA, 200 + i, score[i], score[i], NONE)->inst.repeat = SCALINGS;
    put_update(&draft, FTL_OP_CVT, 300 + i, operand[product], score[i], NONE);
  }
  for (int i = 0; i < PRODUCTS; i++) put_update(&draft, FTL_OP_MMA, 400 + i, sum, operand[i], NONE);
  put(&draft, FTL_OP_STS, 500, NONE, sum, NONE);
  ftl_arch arch = round_arch();
  arch.sfu_interval_cycles = 8;
  finish_on(&arch, &draft, 255);
  // 64 cycles of exponentials and 48 of scaling for each product of 8
  for (int i = 0; i + 3 < PRODUCTS; i++)
    cr_expect_lt(position_of(&draft, 400 + i), position_of(&draft, 200 + EXPONENTIALS * (i + 3)), "product %d", i);
  ftl_draft_fini(&draft);
}

Test(unit_lower_schedule, a_fragment_stands_less_far_ahead_where_registers_are_short) {
  ftl_draft draft = {0};
  put_buffered_steps(&draft, FTL_EFFECT_AHEAD);
  finished done = finish(&draft, 16 + 1 + 4 + 3);  // for one fragment
  cr_expect_eq(done.result.spilled_registers, 0);
  for (int step = 0; step < 3; step++)
    cr_expect_gt(position_of(&draft, 101 + step), position_of(&draft, 202 + 4 * step));
  ftl_draft_fini(&draft);
}

Test(unit_lower_schedule, registers_near_the_cap_shorten_the_distance_of_loads_instead_of_spilling) {
  // Accumulator, address, two fragments and three reserved: 4 + 1 + 8 + 3 = 16.
  ftl_draft draft = mma_chain(12);
  finished done = finish(&draft, 16);
  cr_expect_eq(done.result.registers_per_thread, 16);
  cr_expect_eq(done.result.spilled_registers, 0);
  cr_expect_eq(done.num_local_accesses, 0);
  for (int i = 2; i < 12; i++) cr_expect_gt(position_of(&draft, 100 + i), position_of(&draft, 200 + i - 2));
  ftl_draft_fini(&draft);
}

Test(unit_lower_schedule, reads_and_writes_of_a_value_keep_their_order) {
  ftl_draft draft = {0};
  int32_t v = ftl_draft_value_add(&draft, 1, false), w = ftl_draft_value_add(&draft, 1, false);
  put(&draft, FTL_OP_MUFU, 1, v, NONE, NONE);
  put(&draft, FTL_OP_FFMA, 2, w, v, NONE);     // RAW
  put(&draft, FTL_OP_FFMA, 3, v, NONE, NONE);  // WAR with 2, WAW with 1
  put(&draft, FTL_OP_STS, 4, NONE, v, w);
  finish(&draft, 64);
  for (int i = 1; i <= 4; i++) cr_expect_eq(position_of(&draft, i), i - 1);
  ftl_draft_fini(&draft);
}

Test(unit_lower_schedule, memory_stays_on_its_side_of_a_fence_and_arithmetic_need_not) {
  ftl_draft draft = {0};
  int32_t address = ftl_draft_value_add(&draft, 1, false), x = ftl_draft_value_add(&draft, 1, false);
  int32_t y = ftl_draft_value_add(&draft, 1, false), z = ftl_draft_value_add(&draft, 1, false);
  put(&draft, FTL_OP_LDS, 1, x, address, NONE);
  put(&draft, FTL_OP_BAR_SYNC, 2, NONE, NONE, NONE)->effects = FTL_EFFECT_FENCE;
  put(&draft, FTL_OP_LDS, 3, y, address, NONE);
  put(&draft, FTL_OP_FFMA, 4, z, x, NONE);
  put(&draft, FTL_OP_FFMA, 5, z, y, z);
  finish(&draft, 64);
  cr_expect_lt(position_of(&draft, 1), position_of(&draft, 2));
  cr_expect_lt(position_of(&draft, 2), position_of(&draft, 3));
  ftl_draft_fini(&draft);
}

Test(unit_lower_schedule, async_copies_of_one_group_keep_program_order) {
  ftl_draft draft = {0};
  int32_t address = ftl_draft_value_add(&draft, 1, false);
  for (int i = 0; i < 8; i++)
    put(&draft, FTL_OP_CP_ASYNC, 1 + i, NONE, address, NONE)->effects = FTL_EFFECT_MEMORY | FTL_EFFECT_CHAIN;
  put(&draft, FTL_OP_CP_COMMIT, 20, NONE, NONE, NONE)->effects = FTL_EFFECT_FENCE;
  finish(&draft, 64);
  for (int i = 0; i < 8; i++) cr_expect_eq(position_of(&draft, 1 + i), i);
  cr_expect_eq(position_of(&draft, 20), 8);
  ftl_draft_fini(&draft);
}

Test(unit_lower_schedule, async_copies_stand_their_latency_ahead_of_the_end_and_not_just_before_it) {
  // A loop of 100 mmas (8 cycles each) with a copy for the next iteration, written between mma 50 and 51, whose latency
  // is 30 + 100 + 100 + 70 = 300 cycles to L2 and back: from the end, mma 99 at cycle 0, mma 99 - i at 8i; the commit
  // may stand at 300, between the mmas at 296 and 304, so 38 mmas follow it.
  ftl_draft draft = {0};
  int32_t accumulator = ftl_draft_value_add(&draft, 4, false);
  put_loop(&draft);
  for (int i = 0; i < 100; i++) {
    if (i == 50) {
      put(&draft, FTL_OP_CP_ASYNC, 1000, NONE, NONE, NONE)->effects = FTL_EFFECT_MEMORY | FTL_EFFECT_CHAIN;
      put(&draft, FTL_OP_CP_COMMIT, 1001, NONE, NONE, NONE)->effects = FTL_EFFECT_MEMORY | FTL_EFFECT_CHAIN;
    }
    put_update(&draft, FTL_OP_MMA, 200 + i, accumulator, NONE, NONE);
  }
  put_end_loop(&draft);
  finish(&draft, 64);
  int32_t end = position_of(&draft, 299);
  cr_expect_eq(count_of(&draft, FTL_OP_MMA, position_of(&draft, 1001), end + 1), 38);
  cr_expect_lt(position_of(&draft, 1000), position_of(&draft, 1001));
  ftl_draft_fini(&draft);
}

// A loop of 100 mmas (8 cycles each) of one fragment, which the program loads behind a copy. The fragment stands 792 +
// 24 cycles ahead of the end. The copy need stand only 300 ahead, behind 62 mmas, and stands ahead of the fragment.
Test(unit_lower_schedule, fragments_are_loaded_behind_the_async_copies_before_them) {
  ftl_draft draft = {0};
  int32_t accumulator = ftl_draft_value_add(&draft, 4, false), fragment = ftl_draft_value_add(&draft, 4, false);
  put_loop(&draft);
  put(&draft, FTL_OP_CP_ASYNC, 1000, NONE, NONE, NONE)->effects = FTL_EFFECT_MEMORY | FTL_EFFECT_CHAIN;
  put(&draft, FTL_OP_LDSM, 100, fragment, NONE, NONE);
  for (int i = 0; i < 100; i++) put_update(&draft, FTL_OP_MMA, 200 + i, accumulator, fragment, NONE);
  put_end_loop(&draft);
  finish(&draft, 64);
  cr_expect_eq(position_of(&draft, 1000) + 1, position_of(&draft, 100));
  cr_expect_eq(position_of(&draft, 100) + 1, position_of(&draft, 200));
  ftl_draft_fini(&draft);
}

// Four products of accumulators of their own, each put in shared memory: those of the first are there two products
// later (24 cycles, a product in 8), and wait for the last.
Test(unit_lower_schedule, stores_to_shared_memory_follow_the_products_before_them) {
  ftl_draft draft = {0};
  int32_t first = draft.num_values;
  for (int i = 0; i < 4; i++) put(&draft, FTL_OP_MMA, 200 + i, ftl_draft_value_add(&draft, 4, false), NONE, NONE);
  for (int i = 0; i < 4; i++) put(&draft, FTL_OP_STS, 100 + i, NONE, first + i, NONE)->effects = FTL_EFFECT_MEMORY;
  finish(&draft, 255);
  for (int i = 0; i < 4; i++)
    for (int k = 0; k < 4; k++) cr_expect_gt(position_of(&draft, 100 + i), position_of(&draft, 200 + k));
  ftl_draft_fini(&draft);
}

Test(unit_lower_schedule, a_ring_mark_orders_the_reads_of_its_ring_only) {
  ftl_draft draft = {0};
  int32_t address = ftl_draft_value_add(&draft, 1, false);
  int32_t v[3];
  for (int i = 0; i < 3; i++) v[i] = ftl_draft_value_add(&draft, 1, false);
  put(&draft, FTL_OP_LDS, 1, v[0], address, NONE)->inst.ring_a = 3;
  put(&draft, FTL_OP_LDS, 2, v[1], address, NONE)->inst.ring_a = 5;
  ftl_draft_inst *mark = ftl_draft_add(&draft, FTL_OP_RING_READ, 1);
  mark->inst.arg = 3;
  put(&draft, FTL_OP_LDS, 4, v[2], address, NONE)->inst.ring_a = 3;
  // The oldest ring's read is wanted last, so that it would go last if the mark did not hold it.
  put(&draft, FTL_OP_STS, 5, NONE, v[2], NONE);
  put(&draft, FTL_OP_STS, 6, NONE, v[0], v[1]);
  finish(&draft, 64);
  cr_expect_lt(position_of(&draft, 1), position_of(&draft, 3));
  cr_expect_lt(position_of(&draft, 3), position_of(&draft, 4));
  ftl_draft_fini(&draft);
}

// wgmma.fence settles registers: without that, the second operand would be made while the first product runs.
Test(unit_lower_schedule, register_operands_of_wgmmas_are_made_before_their_fence) {
  ftl_draft draft = {0};
  int32_t accumulator = ftl_draft_value_add(&draft, 4, false), scores = ftl_draft_value_add(&draft, 8, false);
  int32_t operands[2];
  for (int i = 0; i < 2; i++) operands[i] = ftl_draft_value_add(&draft, 4, false);
  put(&draft, FTL_OP_MOV, 1, accumulator, NONE, NONE);
  put(&draft, FTL_OP_MOV, 2, scores, NONE, NONE);
  for (int i = 0; i < 2; i++) put(&draft, FTL_OP_CVT, 3 + i, operands[i], scores, NONE);
  put(&draft, FTL_OP_WGMMA_ARRIVE, 5, NONE, NONE, NONE)->effects = FTL_EFFECT_FENCE;
  for (int i = 0; i < 2; i++)
    put_update(&draft, FTL_OP_WGMMA, 64 + i, accumulator, operands[i], NONE)->effects |= FTL_EFFECT_MEMORY;
  put(&draft, FTL_OP_WGMMA_COMMIT, 6, NONE, NONE, NONE)->effects = FTL_EFFECT_FENCE;
  put(&draft, FTL_OP_WGMMA_WAIT, 0, NONE, NONE, NONE)->effects = FTL_EFFECT_FENCE;
  put(&draft, FTL_OP_FFMA, 7, accumulator, accumulator, NONE);
  finish(&draft, 64);
  cr_expect_lt(position_of(&draft, 3), position_of(&draft, 5));
  cr_expect_lt(position_of(&draft, 4), position_of(&draft, 5));
  ftl_draft_fini(&draft);
}

// P of the second product lies where S was: a sum of S, wanted only after the products, is complete when they begin.
// P takes over the registers of S as it is packed, but for the half whose sum comes last (8): with O (4), the sum, P
// (16) and three reserved 32. Sums beside the products would keep all of S alive with P: 40.
Test(unit_lower_schedule, an_accumulator_is_read_before_the_product_whose_operand_it_becomes) {
  ftl_draft draft = {0};
  int32_t accumulator = ftl_draft_value_add(&draft, 4, false), sum = ftl_draft_value_add(&draft, 1, false);
  int32_t scores[2], operands[2];
  for (int i = 0; i < 2; i++) scores[i] = ftl_draft_value_add(&draft, 8, false);
  for (int i = 0; i < 2; i++) operands[i] = ftl_draft_value_add(&draft, 8, false);
  put(&draft, FTL_OP_MOV, 1, accumulator, NONE, NONE);
  for (int i = 0; i < 2; i++) put(&draft, FTL_OP_MOV, 2, scores[i], NONE, NONE);
  put(&draft, FTL_OP_MOV, 3, sum, NONE, NONE);
  for (int i = 0; i < 2; i++) put_update(&draft, FTL_OP_FFMA, 8 + i, sum, scores[i], NONE);
  for (int i = 0; i < 2; i++) put(&draft, FTL_OP_CVT, 4, operands[i], scores[i], NONE);
  put(&draft, FTL_OP_WGMMA_ARRIVE, 5, NONE, NONE, NONE)->effects = FTL_EFFECT_FENCE;
  for (int i = 0; i < 2; i++)
    put_update(&draft, FTL_OP_WGMMA, 64 + i, accumulator, operands[i], NONE)->effects |= FTL_EFFECT_MEMORY;
  put(&draft, FTL_OP_WGMMA_COMMIT, 6, NONE, NONE, NONE)->effects = FTL_EFFECT_FENCE;
  put(&draft, FTL_OP_WGMMA_WAIT, 0, NONE, NONE, NONE)->effects = FTL_EFFECT_FENCE;
  put(&draft, FTL_OP_FFMA, 7, accumulator, accumulator, sum);
  finished done = finish(&draft, 64);
  for (int i = 0; i < 2; i++) cr_expect_lt(position_of(&draft, 8 + i), position_of(&draft, 5), "sum %d", i);
  cr_expect_eq(done.result.registers_per_thread, 32);
  ftl_draft_fini(&draft);
}

// One wgmma at a time: the sum has the time of the product, and is wanted only after it.
Test(unit_lower_schedule, a_wgmma_alone_lets_what_else_reads_the_accumulator_stand_beside_it) {
  ftl_draft draft = {0};
  int32_t accumulator = ftl_draft_value_add(&draft, 4, false), sum = ftl_draft_value_add(&draft, 1, false);
  int32_t scores = ftl_draft_value_add(&draft, 8, false), operand = ftl_draft_value_add(&draft, 8, false);
  put(&draft, FTL_OP_MOV, 1, accumulator, NONE, NONE);
  put(&draft, FTL_OP_MOV, 2, scores, NONE, NONE);
  put(&draft, FTL_OP_MOV, 3, sum, NONE, NONE);
  put_update(&draft, FTL_OP_FFMA, 8, sum, scores, NONE);
  put(&draft, FTL_OP_CVT, 4, operand, scores, NONE);
  put(&draft, FTL_OP_WGMMA_ARRIVE, 5, NONE, NONE, NONE)->effects = FTL_EFFECT_FENCE;
  put_update(&draft, FTL_OP_WGMMA, 64, accumulator, operand, NONE)->effects |= FTL_EFFECT_MEMORY;
  put(&draft, FTL_OP_WGMMA_COMMIT, 6, NONE, NONE, NONE)->effects = FTL_EFFECT_FENCE;
  put(&draft, FTL_OP_WGMMA_WAIT, 0, NONE, NONE, NONE)->effects = FTL_EFFECT_FENCE;
  put(&draft, FTL_OP_FFMA, 7, accumulator, accumulator, sum);
  finish(&draft, 64);
  cr_expect_gt(position_of(&draft, 8), position_of(&draft, 5));
  ftl_draft_fini(&draft);
}

Test(unit_lower_schedule, accumulators_are_read_and_operands_overwritten_after_the_wgmma_wait_only) {
  ftl_draft draft = {0};
  int32_t accumulator = ftl_draft_value_add(&draft, 4, false), operand = ftl_draft_value_add(&draft, 4, false);
  int32_t result = ftl_draft_value_add(&draft, 4, false);
  put(&draft, FTL_OP_MOV, 1, accumulator, NONE, NONE);
  put(&draft, FTL_OP_MOV, 2, operand, NONE, NONE);
  ftl_draft_inst *wgmma = put_update(&draft, FTL_OP_WGMMA, 64, accumulator, operand, NONE);
  wgmma->effects |= FTL_EFFECT_FENCE;
  put(&draft, FTL_OP_WGMMA_COMMIT, 4, NONE, NONE, NONE)->effects = FTL_EFFECT_FENCE;
  put(&draft, FTL_OP_WGMMA_WAIT, 0, NONE, NONE, NONE)->effects = FTL_EFFECT_FENCE;
  put(&draft, FTL_OP_MOV, 6, operand, NONE, NONE);
  put(&draft, FTL_OP_FFMA, 7, result, accumulator, operand);
  finish(&draft, 64);
  int32_t wait = position_of(&draft, 0);
  cr_expect_lt(position_of(&draft, 4), wait);
  cr_expect_gt(position_of(&draft, 6), wait, "the operand is overwritten in flight");
  cr_expect_gt(position_of(&draft, 7), wait);
  ftl_draft_fini(&draft);
}

Test(unit_lower_schedule, a_wgmma_left_in_flight_around_a_loop_is_settled_by_the_wait_at_its_start) {
  ftl_draft draft = {0};
  int32_t accumulator = ftl_draft_value_add(&draft, 4, false), seen = ftl_draft_value_add(&draft, 4, false);
  put(&draft, FTL_OP_MOV, 1, accumulator, NONE, NONE);
  put_loop(&draft);
  put(&draft, FTL_OP_WGMMA_WAIT, 0, NONE, NONE, NONE)->effects = FTL_EFFECT_FENCE;
  put(&draft, FTL_OP_FFMA, 3, seen, accumulator, NONE);
  put(&draft, FTL_OP_FFMA, 4, seen, accumulator, seen);
  put_update(&draft, FTL_OP_WGMMA, 64, accumulator, NONE, NONE)->effects |= FTL_EFFECT_FENCE;
  put(&draft, FTL_OP_WGMMA_COMMIT, 5, NONE, NONE, NONE)->effects = FTL_EFFECT_FENCE;
  put_end_loop(&draft);
  finish(&draft, 64);
  int32_t wait = -1;
  for (int32_t i = 0; i < draft.num_insts; i++) {
    if (draft.insts[i].inst.opcode == FTL_OP_WGMMA_WAIT) wait = i;
  }
  cr_expect_lt(wait, position_of(&draft, 3));
  cr_expect_eq(draft.insts[wait].num_waits, 1);
  cr_expect_eq(draft.waits[draft.insts[wait].first_wait], accumulator);
  ftl_draft_fini(&draft);
}

Test(unit_lower_schedule, a_loop_carried_value_keeps_one_token_that_nothing_else_in_the_loop_takes) {
  ftl_draft draft = mma_chain(6);
  finished done = finish(&draft, 255);
  uint16_t token = draft.insts[position_of(&draft, 1)].inst.destination;
  for (int i = 0; i < 6; i++) {
    cr_expect_eq(draft.insts[position_of(&draft, 200 + i)].inst.destination, token);
    cr_expect_neq(draft.insts[position_of(&draft, 100 + i)].inst.destination, token);
  }
  cr_expect_leq(done.result.num_tokens, 8, "tokens of dead fragments are used again");
  ftl_draft_fini(&draft);
}

Test(unit_lower_schedule, every_source_token_was_last_written_by_the_producer_of_its_value) {
  ftl_draft draft = mma_chain(12);
  finish(&draft, 16);
  int32_t writer[FTL_MAX_TOKENS];
  memset(writer, -1, sizeof writer);
  for (int32_t i = 0; i < draft.num_insts; i++) {
    const ftl_draft_inst *inst = &draft.insts[i];
    if (inst->inst.opcode == FTL_OP_MMA) {
      int32_t fragment = inst->inst.sources[1];
      cr_expect_eq(draft.insts[writer[fragment]].inst.arg, inst->inst.arg - 100);
    }
    if (inst->inst.destination != FTL_NO_TOKEN) writer[inst->inst.destination] = i;
  }
  ftl_draft_fini(&draft);
}

Test(unit_lower_schedule, the_same_draft_gives_the_same_program) {
  ftl_draft one = mma_chain(40), other = mma_chain(40);
  finish(&one, 24);
  finish(&other, 24);
  cr_assert_eq(one.num_insts, other.num_insts);
  for (int32_t i = 0; i < one.num_insts; i++)
    cr_assert_arr_eq(&one.insts[i].inst, &other.insts[i].inst, sizeof one.insts[i].inst);
  ftl_draft_fini(&one);
  ftl_draft_fini(&other);
}

Test(unit_lower_schedule, loops_that_do_not_nest_are_refused) {
  ftl_draft draft = {0};
  put_end_loop(&draft);
  ftl_arch arch = round_arch();
  ftl_draft_result result;
  ftl_error error = {0};
  cr_assert_eq(ftl_draft_finish(&draft, &arch, 64, NULL, NULL, &result, &error), FTL_RUN_FAILED);
  ftl_draft_fini(&draft);
}
