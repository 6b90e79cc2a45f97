#include <criterion/criterion.h>

#include "drafts.h"
#include "lower/waiting.h"

enum { NONE = FTL_NO_VALUE };

// Eight loop-carried accumulators of 4 registers, each updated once an iteration; then `width` registers are needed at
// once by a value that lives across all of the updates' gaps.
static ftl_draft accumulators_and_a_wide_value(int num_accumulators, int width) {
  ftl_draft draft = {0};
  int32_t first = draft.num_values;
  for (int i = 0; i < num_accumulators; i++)
    put(&draft, FTL_OP_MOV, 10 + i, ftl_draft_value_add(&draft, 4, false), NONE, NONE);
  put_loop(&draft);
  int32_t wide = ftl_draft_value_add(&draft, width, false);
  put(&draft, FTL_OP_LDS, 100, wide, NONE, NONE);
  put(&draft, FTL_OP_STS, 101, NONE, wide, NONE);
  for (int i = 0; i < num_accumulators; i++) put_update(&draft, FTL_OP_FFMA, 200 + i, first + i, NONE, NONE);
  put_end_loop(&draft);
  for (int i = 0; i < num_accumulators; i++) put(&draft, FTL_OP_STS, 300 + i, NONE, first + i, NONE);
  return draft;
}

static int32_t loop_position(const ftl_draft *draft, ftl_opcode opcode) {
  for (int32_t i = 0; i < draft->num_insts; i++) {
    if (draft->insts[i].inst.opcode == opcode) return i;
  }
  return -1;
}

Test(unit_lower_spill, nothing_is_spilled_where_registers_suffice) {
  // 8 x 4 + 16 and three reserved = 51.
  ftl_draft draft = accumulators_and_a_wide_value(8, 16);
  finished done = finish(&draft, 51);
  cr_expect_eq(done.result.spilled_registers, 0);
  cr_expect_eq(done.num_local_accesses, 0);
  cr_expect_eq(done.result.registers_per_thread, 51);
  ftl_draft_fini(&draft);
}

Test(unit_lower_spill, one_register_too_few_spills_one_accumulator_with_a_load_and_a_store_an_iteration) {
  ftl_draft draft = accumulators_and_a_wide_value(8, 16);
  finished done = finish(&draft, 50);
  cr_expect_eq(done.result.spilled_registers, 4);
  cr_expect_leq(done.result.registers_per_thread, 50);
  int32_t begin = loop_position(&draft, FTL_OP_LOOP), end = loop_position(&draft, FTL_OP_END_LOOP);
  cr_expect_eq(count_of(&draft, FTL_OP_LDL, begin, end), 1, "reloaded once an iteration");
  cr_expect_eq(count_of(&draft, FTL_OP_STL, begin, end), 1, "stored once an iteration");
  cr_expect_eq(count_of(&draft, FTL_OP_STL, 0, begin), 1, "stored where it is defined");
  cr_expect_eq(count_of(&draft, FTL_OP_LDL, end, draft.num_insts), 1, "reloaded where it is read after the loop");
  cr_expect_eq(done.num_local_registers, 16);
  ftl_draft_fini(&draft);
}

Test(unit_lower_spill, what_is_not_used_in_the_loop_is_spilled_before_what_is) {
  ftl_draft draft = {0};
  int32_t outside = ftl_draft_value_add(&draft, 4, false), inside = ftl_draft_value_add(&draft, 4, false);
  int32_t wide = ftl_draft_value_add(&draft, 8, false);
  put(&draft, FTL_OP_MOV, 1, outside, NONE, NONE);
  put(&draft, FTL_OP_MOV, 2, inside, NONE, NONE);
  put_loop(&draft);
  put(&draft, FTL_OP_LDS, 3, wide, NONE, NONE);
  put(&draft, FTL_OP_STS, 4, NONE, wide, NONE);
  put_update(&draft, FTL_OP_FFMA, 5, inside, NONE, NONE);
  put_end_loop(&draft);
  put(&draft, FTL_OP_STS, 6, NONE, outside, inside);
  finished done = finish(&draft, 16);  // 16 and three reserved are wanted
  cr_expect_eq(done.result.spilled_registers, 4);
  int32_t begin = loop_position(&draft, FTL_OP_LOOP), end = loop_position(&draft, FTL_OP_END_LOOP);
  cr_expect_eq(count_of(&draft, FTL_OP_LDL, begin, end) + count_of(&draft, FTL_OP_STL, begin, end), 0);
  cr_expect_eq(count_of(&draft, FTL_OP_STL, 0, begin), 1);
  cr_expect_eq(count_of(&draft, FTL_OP_LDL, end, draft.num_insts), 1);
  ftl_draft_fini(&draft);
}

Test(unit_lower_spill, an_address_is_computed_again_rather_than_stored) {
  ftl_draft draft = {0};
  int32_t address = ftl_draft_value_add(&draft, 2, true), wide = ftl_draft_value_add(&draft, 8, false);
  int32_t kept = ftl_draft_value_add(&draft, 2, false);
  put(&draft, FTL_OP_IMAD, 1, address, NONE, NONE);
  put(&draft, FTL_OP_IMAD, 2, kept, NONE, NONE);
  put_loop(&draft);
  put(&draft, FTL_OP_LDS, 3, wide, NONE, NONE);
  put(&draft, FTL_OP_STS, 4, NONE, wide, NONE);
  put(&draft, FTL_OP_STS, 5, NONE, address, kept);
  put_end_loop(&draft);
  finished done = finish(&draft, 14);  // 12 and three reserved are wanted
  cr_expect_eq(done.result.spilled_registers, 0);
  cr_expect_eq(done.num_local_accesses, 0);
  cr_expect_eq(count_of(&draft, FTL_OP_IADD, 0, draft.num_insts), 1);
  ftl_draft_fini(&draft);
}

Test(unit_lower_spill, a_reload_stands_ahead_of_its_use_where_registers_allow) {
  // `early` is needed before and after a wide value, with 40 FFMAs of small need before its second use: the reload goes
  // up to the L1 latency ahead: the reader at cycle 0 from the end, 29 FFMAs, the reload at 30.
  ftl_draft draft = {0};
  int32_t early = ftl_draft_value_add(&draft, 4, false), wide = ftl_draft_value_add(&draft, 8, false);
  int32_t c = ftl_draft_value_add(&draft, 1, false);
  put(&draft, FTL_OP_MOV, 1, early, NONE, NONE);
  put(&draft, FTL_OP_STS, 4, NONE, early, NONE)->effects = FTL_EFFECT_FENCE;
  put(&draft, FTL_OP_LDS, 2, wide, NONE, NONE);
  put(&draft, FTL_OP_MOV, 3, c, wide, NONE);
  for (int i = 0; i < 40; i++) put_update(&draft, FTL_OP_FFMA, 10 + i, c, NONE, NONE);
  put(&draft, FTL_OP_STS, 60, NONE, early, c);
  finished done = finish(&draft, 11);
  cr_expect_eq(done.result.spilled_registers, 4);
  int32_t reload = -1;
  for (int32_t i = 0; i < draft.num_insts; i++) {
    if (draft.insts[i].inst.opcode == FTL_OP_LDL) reload = i;
  }
  cr_expect_eq(position_of(&draft, 60) - reload, 30);
  ftl_draft_fini(&draft);
}

Test(unit_lower_spill, registers_of_a_wgmma_in_flight_are_never_moved) {
  ftl_draft draft = {0};
  int32_t accumulator = ftl_draft_value_add(&draft, 8, false), other = ftl_draft_value_add(&draft, 4, false);
  int32_t wide = ftl_draft_value_add(&draft, 8, false);
  put(&draft, FTL_OP_MOV, 1, accumulator, NONE, NONE);
  put(&draft, FTL_OP_MOV, 2, other, NONE, NONE);
  put(&draft, FTL_OP_STS, 7, NONE, other, NONE)->effects = FTL_EFFECT_FENCE;
  put_update(&draft, FTL_OP_WGMMA, 64, accumulator, NONE, NONE)->effects |= FTL_EFFECT_FENCE;
  put(&draft, FTL_OP_WGMMA_COMMIT, 3, NONE, NONE, NONE)->effects = FTL_EFFECT_FENCE;
  put(&draft, FTL_OP_LDS, 4, wide, NONE, NONE)->effects = FTL_EFFECT_FENCE;
  put(&draft, FTL_OP_STS, 5, NONE, wide, NONE)->effects = FTL_EFFECT_FENCE;
  ftl_draft_inst *wait = put(&draft, FTL_OP_WGMMA_WAIT, 0, NONE, NONE, NONE);
  wait->effects = FTL_EFFECT_PINNED;
  put(&draft, FTL_OP_STS, 6, NONE, accumulator, other);
  finished done = finish(&draft, 20);  // 20 and three reserved are wanted
  cr_expect_eq(done.result.spilled_registers, 4, "the other value goes");
  int32_t wgmma = position_of(&draft, 64), wait_position = -1;
  for (int32_t i = 0; i < draft.num_insts; i++) {
    if (draft.insts[i].inst.opcode == FTL_OP_WGMMA_WAIT) wait_position = i;
  }
  for (int32_t i = wgmma; i < wait_position; i++) {
    if (draft.insts[i].inst.opcode == FTL_OP_STL) cr_expect_neq(draft.insts[i].sources[0], accumulator);
  }
  ftl_draft_fini(&draft);
}

Test(unit_lower_spill, what_was_worked_out_before_the_loop_is_stored_once_and_loaded_at_its_use) {
  // As above, but the address is kept (two instructions made it): a store before the loop, a load in it.
  ftl_draft draft = {0};
  int32_t kept = ftl_draft_value_add(&draft, 2, 0), wide = ftl_draft_value_add(&draft, 8, 0);
  int32_t sum = ftl_draft_value_add(&draft, 2, 0);
  draft.values[kept].is_kept = true;
  put(&draft, FTL_OP_LOP, 1, kept, NONE, NONE);
  put(&draft, FTL_OP_MOV, 2, sum, NONE, NONE);
  put_loop(&draft);
  put(&draft, FTL_OP_LDS, 3, wide, NONE, NONE);
  put(&draft, FTL_OP_STS, 4, NONE, wide, NONE);
  put_update(&draft, FTL_OP_FFMA, 5, sum, kept, NONE);
  put_end_loop(&draft);
  put(&draft, FTL_OP_STS, 6, NONE, sum, NONE);
  finished done = finish(&draft, 14);  // 12 and three reserved are wanted
  int32_t begin = loop_position(&draft, FTL_OP_LOOP), end = loop_position(&draft, FTL_OP_END_LOOP);
  cr_expect_eq(count_of(&draft, FTL_OP_STL, 0, begin), 1);
  cr_expect_eq(count_of(&draft, FTL_OP_LDL, begin, end), 1);
  cr_expect_eq(count_of(&draft, FTL_OP_STL, begin, end), 0);
  cr_expect_eq(done.result.spilled_registers, 2);
  cr_expect_eq(done.result.reloaded_registers, 2);
  ftl_draft_fini(&draft);
}

// A place that each step reads, with 8 registers that are wanted at once before it, behind it, or both. 12 and three
// reserved are wanted, 14 may be.
static ftl_draft place_and_wide_values(bool is_short_before, bool is_short_behind, bool buffers_fragments) {
  ftl_draft draft = {.buffers_fragments = buffers_fragments};
  int32_t place = ftl_draft_value_add(&draft, 2, 0), sum = ftl_draft_value_add(&draft, 2, 0);
  draft.values[place].is_kept = true;
  put(&draft, FTL_OP_LOP, 1, place, NONE, NONE);
  put(&draft, FTL_OP_MOV, 2, sum, NONE, NONE);
  put_loop(&draft);
  for (int is_behind = 0; is_behind <= 1; is_behind++) {
    int32_t wide = ftl_draft_value_add(&draft, 8, 0);
    bool is_short = is_behind ? is_short_behind : is_short_before;
    if (is_short) put(&draft, FTL_OP_LDS, 4, wide, NONE, NONE)->effects = FTL_EFFECT_FENCE;
    if (is_short) put(&draft, FTL_OP_STS, 5, NONE, wide, sum)->effects = FTL_EFFECT_FENCE;
    if (!is_behind) put_update(&draft, FTL_OP_LDS, 3, sum, place, NONE)->effects |= FTL_EFFECT_FENCE;
  }
  put_end_loop(&draft);
  put(&draft, FTL_OP_STS, 7, NONE, sum, NONE);
  return draft;
}

Test(unit_lower_spill, in_buffered_code_what_leaves_behind_its_last_use_alone_is_stored_there_each_time) {
  for (int where = 1; where <= 3; where++)
    for (int is_buffered = 0; is_buffered <= 1; is_buffered++) {
      bool is_before = where & 1, is_behind = where & 2, is_anew = is_behind && !is_before && is_buffered;
      ftl_draft draft = place_and_wide_values(is_before, is_behind, is_buffered);
      finished done = finish(&draft, 14);
      int32_t begin = loop_position(&draft, FTL_OP_LOOP), end = loop_position(&draft, FTL_OP_END_LOOP);
      cr_expect_eq(count_of(&draft, FTL_OP_LDL, begin, end), 1);
      cr_expect_eq(count_of(&draft, FTL_OP_STL, begin, end), is_anew ? 1 : 0);
      cr_expect_eq(done.result.spilled_registers, 2);
      cr_expect_eq(done.result.reloaded_registers, is_anew ? 0 : 2);
      ftl_draft_fini(&draft);
    }
}

Test(unit_lower_spill, what_changes_in_a_step_that_runs_once_leaves_before_what_changes_in_a_loop) {
  // Two numbers over a value of 8 registers: 12 and three reserved are wanted. Either costs a load and a store in its
  // loop, of which one runs once; were they alike, the other would leave, which comes first.
  ftl_draft draft = {0};
  int32_t often = ftl_draft_value_add(&draft, 2, 0), once = ftl_draft_value_add(&draft, 2, 0);
  int32_t wide = ftl_draft_value_add(&draft, 8, 0);
  put(&draft, FTL_OP_LDS, 1, often, NONE, NONE)->effects = FTL_EFFECT_FENCE;
  put(&draft, FTL_OP_LDS, 2, once, NONE, NONE)->effects = FTL_EFFECT_FENCE;
  put(&draft, FTL_OP_LDS, 3, wide, NONE, NONE)->effects = FTL_EFFECT_FENCE;
  put(&draft, FTL_OP_STS, 4, NONE, wide, NONE)->effects = FTL_EFFECT_FENCE;
  put_loop(&draft);
  draft.insts[draft.num_insts - 1].effects = FTL_EFFECT_ONCE;
  int32_t tag_once = 5, tag_often = 6;
  put_update(&draft, FTL_OP_FFMA, tag_once, once, NONE, NONE);
  put_end_loop(&draft);
  put_loop(&draft);
  put_update(&draft, FTL_OP_FFMA, tag_often, often, NONE, NONE);
  put_end_loop(&draft);
  put(&draft, FTL_OP_STS, 7, NONE, once, NONE);
  put(&draft, FTL_OP_STS, 8, NONE, often, NONE);
  finished done = finish(&draft, 14);
  cr_expect_eq(done.result.spilled_registers, 2);
  int32_t first = loop_position(&draft, FTL_OP_LOOP), first_end = loop_position(&draft, FTL_OP_END_LOOP);
  cr_expect_eq(count_of(&draft, FTL_OP_LDL, first, first_end), 1);
  int32_t behind = position_of(&draft, 7);
  cr_expect_eq(count_of(&draft, FTL_OP_LDL, first_end, behind), 1, "where it is read behind the loops");
  cr_expect_lt(position_of(&draft, tag_often), behind);
  ftl_draft_fini(&draft);
}

static ftl_draft_inst *put_in_order(ftl_draft *draft, ftl_opcode opcode, int tag, int32_t d, int32_t a) {
  ftl_draft_inst *inst = put(draft, opcode, tag, d, a, NONE);
  inst->effects = FTL_EFFECT_FENCE;
  return inst;
}

Test(unit_lower_spill, what_relieves_many_places_leaves_before_what_relieves_one) {
  // Three times a value of 4 registers lives over one of 8; another of 4, `through`, lives over all and is read between
  // the first and the second. 16 are wanted, 12 may be. Of the three each would cost a store and a load for the two
  // instructions at which it makes room, `through` a store and two loads for six.
  ftl_draft draft = {0};
  int32_t through = ftl_draft_value_add(&draft, 4, 0);
  put_in_order(&draft, FTL_OP_MOV, 1, through, NONE);
  for (int i = 0; i < 3; i++) {
    int32_t narrow = ftl_draft_value_add(&draft, 4, 0), wide = ftl_draft_value_add(&draft, 8, 0);
    put_in_order(&draft, FTL_OP_LDS, 10, narrow, NONE);
    put_in_order(&draft, FTL_OP_LDS, 11, wide, NONE);
    put_in_order(&draft, FTL_OP_STS, 12, NONE, wide);
    put_in_order(&draft, FTL_OP_STS, 13, NONE, narrow);
    if (i == 0) put_in_order(&draft, FTL_OP_STS, 14, NONE, through);
  }
  put_in_order(&draft, FTL_OP_STS, 15, NONE, through);
  finished done = finish(&draft, 15);
  cr_expect_eq(done.result.spilled_registers, 4);
  cr_expect_eq(count_of(&draft, FTL_OP_STL, 0, draft.num_insts), 1);
  cr_expect_eq(count_of(&draft, FTL_OP_LDL, 0, draft.num_insts), 2);
  ftl_draft_fini(&draft);
}

Test(unit_lower_spill, the_accumulator_of_a_wgmma_leaves_as_a_whole) {
  // Four fragments of 2 registers, then 8 registers at once, then a wgmma of all four. 16 are wanted, 14 may be: one
  // fragment would do.
  ftl_draft draft = {0};
  int32_t accumulator = draft.num_values;
  for (int i = 0; i < 4; i++) put_in_order(&draft, FTL_OP_MOV, 1, ftl_draft_value_add(&draft, 2, 0), NONE);
  int32_t wide = ftl_draft_value_add(&draft, 8, 0);
  put_in_order(&draft, FTL_OP_LDS, 2, wide, NONE);
  put_in_order(&draft, FTL_OP_STS, 3, NONE, wide);
  ftl_draft_inst *wgmma = put_in_order(&draft, FTL_OP_WGMMA, 64, accumulator, NONE);
  wgmma->effects |= FTL_EFFECT_READS_DESTINATION;
  wgmma->num_destinations = 4;
  put_in_order(&draft, FTL_OP_WGMMA_COMMIT, 4, NONE, NONE);
  put_in_order(&draft, FTL_OP_WGMMA_WAIT, 0, NONE, NONE);
  for (int i = 0; i < 4; i++) put_in_order(&draft, FTL_OP_STS, 5, NONE, accumulator + i);
  finished done = finish(&draft, 17);
  cr_expect_eq(done.result.spilled_registers, 8);
  cr_expect_eq(count_of(&draft, FTL_OP_STL, 0, draft.num_insts), 4);
  cr_expect_eq(count_of(&draft, FTL_OP_LDL, 0, draft.num_insts), 4);
  ftl_draft_fini(&draft);
}

Test(unit_lower_spill, an_accumulator_is_in_memory_between_its_scaling_and_its_wgmma) {
  // Four fragments of 2 registers, in each step 8 registers at once, then each fragment scaled, then a wgmma of all.
  // Once 8 registers are spilled nothing is short between the last two; the fragments leave there all the same.
  ftl_draft draft = {0};
  int32_t accumulator = draft.num_values;
  for (int i = 0; i < 4; i++) put_in_order(&draft, FTL_OP_MOV, 1, ftl_draft_value_add(&draft, 2, 0), NONE);
  int32_t wide = ftl_draft_value_add(&draft, 8, 0);
  put_loop(&draft);
  put_in_order(&draft, FTL_OP_LDS, 2, wide, NONE);
  put_in_order(&draft, FTL_OP_STS, 3, NONE, wide);
  for (int i = 0; i < 4; i++) put_update(&draft, FTL_OP_FFMA, 6, accumulator + i, NONE, NONE);
  for (int k = 0; k < 2; k++) {
    ftl_draft_inst *wgmma = put_in_order(&draft, FTL_OP_WGMMA, 64, accumulator, NONE);
    wgmma->effects |= FTL_EFFECT_READS_DESTINATION;
    wgmma->num_destinations = 4;
    put_in_order(&draft, FTL_OP_WGMMA_COMMIT, 4, NONE, NONE);
    put_in_order(&draft, FTL_OP_WGMMA_WAIT, 0, NONE, NONE);
  }
  put_end_loop(&draft);
  for (int i = 0; i < 4; i++) put_in_order(&draft, FTL_OP_STS, 5, NONE, accumulator + i);
  finished done = finish(&draft, 17);
  int32_t begin = loop_position(&draft, FTL_OP_LOOP), end = loop_position(&draft, FTL_OP_END_LOOP);
  cr_expect_eq(done.result.spilled_registers, 8);
  cr_expect_eq(count_of(&draft, FTL_OP_LDL, begin, end), 8, "before the scaling, and before the first wgmma");
  cr_expect_eq(count_of(&draft, FTL_OP_STL, begin, end), 8, "after the scaling, and after the last wgmma");
  ftl_draft_fini(&draft);
}

Test(unit_lower_spill, at_the_most_registers_of_a_thread_seven_stay_empty) {
  // 8 registers live over a value of 8: 16 and three reserved. Seven more are wanted where 25 are the most there are,
  // so that four have to leave, and all 25 are taken; under a lower cap of 25 the 19 are enough.
  for (int is_most = 0; is_most <= 1; is_most++) {
    ftl_draft draft = {0};
    int32_t narrow[2], wide = ftl_draft_value_add(&draft, 8, 0);
    for (int i = 0; i < 2; i++) narrow[i] = ftl_draft_value_add(&draft, 4, 0);
    for (int i = 0; i < 2; i++) put_in_order(&draft, FTL_OP_LDS, 1, narrow[i], NONE);
    put_in_order(&draft, FTL_OP_LDS, 2, wide, NONE);
    put_in_order(&draft, FTL_OP_STS, 3, NONE, wide);
    for (int i = 0; i < 2; i++) put_in_order(&draft, FTL_OP_STS, 4, NONE, narrow[i]);
    ftl_arch arch = round_arch();
    arch.sm_max_registers_per_thread = is_most ? 25 : 255;
    finished done = finish_on(&arch, &draft, 25);
    cr_expect_eq(done.result.spilled_registers, is_most ? 4 : 0);
    cr_expect_eq(done.result.registers_per_thread, is_most ? 25 : 19);
    cr_expect_leq(done.result.ordered_registers, is_most ? 18 : 19);
    ftl_draft_fini(&draft);
  }
}

// What a loop changes in one register or two, and what it carries for the code behind it; not what it only reads, nor
// what is wider, nor what begins or ends in it.
Test(unit_lower_spill, numbers_that_change_and_what_no_loop_reads_wait_over_the_loops) {
  ftl_draft draft = {0};
  int32_t address = ftl_draft_value_add(&draft, 2, 0), pointer = ftl_draft_value_add(&draft, 2, 0);
  int32_t counter = ftl_draft_value_add(&draft, 1, 0), early = ftl_draft_value_add(&draft, 1, 0);
  int32_t sums = ftl_draft_value_add(&draft, 4, 0), inside = ftl_draft_value_add(&draft, 2, 0);
  for (int32_t v = address; v <= sums; v++) put(&draft, FTL_OP_MOV, 1 + v, v, NONE, NONE);
  put(&draft, FTL_OP_STS, 10, NONE, early, NONE);
  put_loop(&draft);
  put(&draft, FTL_OP_MOV, 11, inside, address, counter);
  put_update(&draft, FTL_OP_IADD, 12, counter, inside, NONE);
  put_update(&draft, FTL_OP_MMA, 13, sums, inside, NONE);
  put_end_loop(&draft);
  put(&draft, FTL_OP_STS, 14, NONE, pointer, sums);

  ftl_arena arena = {0};
  ftl_flow flow;
  ftl_liveness liveness;
  ftl_error error = {0};
  cr_assert_eq(ftl_flow_find(&draft, &arena, &flow, &error), FTL_OK, "%s", error.message);
  cr_assert(ftl_liveness_find(&draft, &flow, &arena, &liveness));
  const int32_t *waiting = ftl_waiting_registers(&draft, &flow, &liveness, &arena);
  cr_assert_not_null(waiting);
  for (int32_t s = 0; s < flow.num_stretches; s++) {
    int opcode = draft.insts[flow.stretches[s].begin].inst.opcode;
    if (opcode != FTL_OP_LOOP && opcode != FTL_OP_END_LOOP) cr_expect_eq(waiting[s], 2 + 1);
  }
  ftl_arena_fini(&arena);
  ftl_draft_fini(&draft);
}

// What the first of three steps works out for the second waits in both and not in the third, nor ahead of them.
Test(unit_lower_spill, what_a_step_works_out_for_others_waits_where_it_is_live) {
  ftl_draft draft = {0};
  int32_t limits = ftl_draft_value_add(&draft, 2, 0), scores = ftl_draft_value_add(&draft, 4, 0);
  draft.values[limits].is_kept = true;
  put(&draft, FTL_OP_MOV, 1, scores, NONE, NONE);
  for (int step = 0; step < 3; step++) {
    put_loop(&draft);
    if (step == 0) put(&draft, FTL_OP_MOV, 2, limits, NONE, NONE);
    put_update(&draft, FTL_OP_MMA, 10 + step, scores, step < 2 ? limits : NONE, NONE);
    put_end_loop(&draft);
  }
  put(&draft, FTL_OP_STS, 14, NONE, scores, NONE);

  ftl_arena arena = {0};
  ftl_flow flow;
  ftl_liveness liveness;
  ftl_error error = {0};
  draft.insts[1].effects = FTL_EFFECT_ONCE;
  cr_assert_eq(ftl_flow_find(&draft, &arena, &flow, &error), FTL_OK, "%s", error.message);
  cr_assert(ftl_liveness_find(&draft, &flow, &arena, &liveness));
  const int32_t *waiting = ftl_waiting_registers(&draft, &flow, &liveness, &arena);
  cr_assert_not_null(waiting);
  for (int32_t s = 0; s < flow.num_stretches; s++) {
    int32_t first = flow.stretches[s].begin;
    if (position_of(&draft, 12) >= first && position_of(&draft, 12) < flow.stretches[s].end)
      cr_expect_eq(waiting[s], 0, "in the third");
    if (position_of(&draft, 11) >= first && position_of(&draft, 11) < flow.stretches[s].end)
      cr_expect_eq(waiting[s], 2, "in the second");
    if (position_of(&draft, 10) >= first && position_of(&draft, 10) < flow.stretches[s].end)
      cr_expect_eq(waiting[s], 2, "in the first");
  }
  ftl_arena_fini(&arena);
  ftl_draft_fini(&draft);
}
