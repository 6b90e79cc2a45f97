// Arithmetic between special functions.
#include <criterion/criterion.h>

#include "drafts.h"
#include "lower/gaps.h"

enum { NONE = FTL_NO_VALUE, RUN = 1, STORE = 9 };

// A unit that takes one in 4 cycles: 3 cycles are left between two.
static ftl_arch slow_special_functions(void) {
  ftl_arch arch = round_arch();
  arch.sfu_interval_cycles = 4;
  return arch;
}

static int32_t put_run(ftl_draft *draft, int num_special) {
  int32_t value = ftl_draft_value_add(draft, num_special, 0);
  put(draft, FTL_OP_MUFU, RUN, value, value, NONE)->inst.repeat = (uint8_t)num_special;
  return value;
}

static void expect_order(ftl_draft *draft, const int *tags, int32_t num_tags) {
  ftl_arch arch = slow_special_functions();
  ftl_arena arena = {0};
  ftl_stretch stretch = {.begin = 0, .end = draft->num_insts};
  ftl_flow flow = {.num_stretches = 1, .stretches = &stretch};
  draft->product = round_product();
  cr_assert(ftl_fill_gaps(draft, &flow, &arch, &arena));
  cr_assert_eq(draft->num_insts, num_tags);
  for (int32_t i = 0; i < num_tags; i++) {
    cr_expect_eq(draft->insts[i].inst.arg, tags[i], "at %d stands %d, expected %d", i, draft->insts[i].inst.arg,
                 tags[i]);
    cr_expect_eq(draft->insts[i].inst.repeat, 1);
  }
  ftl_arena_fini(&arena);
  ftl_draft_fini(draft);
}

// Three of the four that work in place fill the 3 cycles behind the first special function, the fourth goes behind the
// second. What writes registers of its own stays.
Test(unit_lower_schedule_gaps, arithmetic_in_place_stands_between_special_functions) {
  ftl_draft draft = {0};
  int32_t run = put_run(&draft, 3), factor = ftl_draft_value_add(&draft, 1, 0);
  for (int i = 0; i < 4; i++) {
    int32_t output = ftl_draft_value_add(&draft, 1, 0);
    put(&draft, FTL_OP_FFMA, 2 + i, output, output, factor);
  }
  int32_t other = ftl_draft_value_add(&draft, 4, 0);
  put(&draft, FTL_OP_FFMA, 6, other, factor, NONE);
  put(&draft, FTL_OP_STS, STORE, NONE, run, NONE);
  expect_order(&draft, (int[]){RUN, 2, 3, 4, RUN, 5, RUN, 6, STORE}, 9);
}

// 2 reads what the run gives, 3 writes what the store before it reads: neither goes first. 4 has nothing to do with
// either.
Test(unit_lower_schedule_gaps, what_depends_on_an_instruction_stays_behind_it) {
  ftl_draft draft = {0};
  int32_t run = put_run(&draft, 2), a = ftl_draft_value_add(&draft, 1, 0), b = ftl_draft_value_add(&draft, 1, 0);
  int32_t c = ftl_draft_value_add(&draft, 1, 0);
  put(&draft, FTL_OP_FFMA, 2, a, a, run);
  put(&draft, FTL_OP_STS, STORE, NONE, b, NONE);
  put(&draft, FTL_OP_FFMA, 3, b, b, NONE);
  put(&draft, FTL_OP_FFMA, 4, c, c, NONE);
  expect_order(&draft, (int[]){RUN, 4, RUN, 2, STORE, 3}, 6);
}

// The beginning of a lane's sums has two registers, and goes first.
Test(unit_lower_schedule_gaps, sums_of_two_rows_begin_between_special_functions) {
  ftl_draft draft = {0};
  (void)put_run(&draft, 2);
  int32_t elements = ftl_draft_value_add(&draft, 4, 0), sums = ftl_draft_value_add(&draft, 2, 0);
  put(&draft, FTL_OP_FFMA, 3, sums, elements, NONE);
  expect_order(&draft, (int[]){RUN, 3, RUN}, 3);
}

// A conversion that is the last to read what it packs frees more registers than it takes; one whose operands are read
// later does not.
Test(unit_lower_schedule_gaps, conversions_that_end_their_operands_go_first) {
  ftl_draft draft = {0};
  (void)put_run(&draft, 3);
  int32_t a = ftl_draft_value_add(&draft, 4, 0), b = ftl_draft_value_add(&draft, 4, 0);
  int32_t packed = ftl_draft_value_add(&draft, 4, 0), other = ftl_draft_value_add(&draft, 4, 0);
  put(&draft, FTL_OP_CVT, 3, packed, a, NONE);
  put(&draft, FTL_OP_CVT, 4, other, b, NONE);
  put(&draft, FTL_OP_STS, STORE, NONE, b, NONE);
  expect_order(&draft, (int[]){RUN, 3, RUN, RUN, 4, STORE}, 6);
}

// Row sums that stand behind the fence of a product stay there.
Test(unit_lower_schedule_gaps, nothing_comes_up_over_the_fence_of_a_product) {
  ftl_draft draft = {0};
  (void)put_run(&draft, 2);
  int32_t sums = ftl_draft_value_add(&draft, 2, 0), elements = ftl_draft_value_add(&draft, 4, 0);
  put(&draft, FTL_OP_WGMMA_ARRIVE, STORE, NONE, NONE, NONE);
  put(&draft, FTL_OP_FFMA, 3, sums, sums, elements);
  expect_order(&draft, (int[]){RUN, RUN, STORE, 3}, 4);
}

// Of FMULs by a number of each row one more goes between two special functions than there are cycles: of four that take
// a cycle each all go into three.
Test(unit_lower_schedule_gaps, scaling_takes_a_cycle_more_than_a_gap_has) {
  for (int is_scaling = 0; is_scaling < 2; is_scaling++) {
    ftl_draft draft = {0};
    (void)put_run(&draft, 2);
    int32_t output = ftl_draft_value_add(&draft, 4, 0);
    int tag = is_scaling ? FTL_FP32_BY_ROW : 3;
    put(&draft, FTL_OP_FFMA, tag, output, output, NONE)->inst.repeat = 4;
    ftl_arch arch = slow_special_functions();
    ftl_arena arena = {0};
    ftl_stretch stretch = {.begin = 0, .end = draft.num_insts};
    ftl_flow flow = {.num_stretches = 1, .stretches = &stretch};
    draft.product = round_product();
    cr_assert(ftl_fill_gaps(&draft, &flow, &arch, &arena));
    cr_expect_eq(draft.insts[is_scaling ? 1 : 2].inst.arg, tag);
    ftl_arena_fini(&arena);
    ftl_draft_fini(&draft);
  }
}
