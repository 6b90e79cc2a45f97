// Waits for wgmmas move up to where a latency is over; registers that wgmmas hold at once.
#include <criterion/criterion.h>

#include "base/arena.h"
#include "drafts.h"
#include "lower/early_waits.h"

enum { NONE = FTL_NO_VALUE };

static void put_fence(ftl_draft *draft, ftl_opcode opcode, int arg) {
  put(draft, opcode, arg, NONE, NONE, NONE)->effects = FTL_EFFECT_FENCE;
}

static int32_t find(const ftl_draft *draft, ftl_opcode opcode) {
  for (int32_t i = 0; i < draft->num_insts; i++)
    if (draft->insts[i].inst.opcode == opcode) return i;
  return -1;
}

// An m64n64k16 product, `before` and then `after` FFMAs of one cycle around a fence, the wait and a release.
static ftl_draft product_and_work(int before, int after, bool fence) {
  ftl_draft draft = {0};
  int32_t accumulator = ftl_draft_value_add(&draft, 4, false), x = ftl_draft_value_add(&draft, 1, false);
  put_update(&draft, FTL_OP_WGMMA, 64, accumulator, NONE, NONE)->effects |= FTL_EFFECT_MEMORY;
  put_fence(&draft, FTL_OP_WGMMA_COMMIT, 0);
  for (int i = 0; i < before; i++) put_update(&draft, FTL_OP_FFMA, 100 + i, x, x, NONE);
  if (fence) put_fence(&draft, FTL_OP_BAR_ARRIVE, 1);
  for (int i = 0; i < after; i++) put_update(&draft, FTL_OP_FFMA, 200 + i, x, x, NONE);
  put_fence(&draft, FTL_OP_WGMMA_WAIT, 0);
  put_fence(&draft, FTL_OP_MBAR_RELEASE, 3);
  put_update(&draft, FTL_OP_FFMA, 300, accumulator, accumulator, NONE);
  return draft;
}

static void move(ftl_draft *draft) {
  ftl_arch arch = round_arch();
  ftl_arena arena = {0};
  draft->product = round_product();
  cr_assert(ftl_waits_move_up(draft, &arch, &arena));
  ftl_arena_fini(&arena);
}

// N = 64 takes 64 cycles at 1024 FMA a cycle (no tail here). The product is issued at 0, so 63 cycles of FFMAs after
// its own cycle of issue go before the wait; with the product and the commit, it is instruction 65.
Test(unit_lower_schedule_wgmma, a_wait_moves_up_to_where_a_latency_is_over_and_a_release_follows_it) {
  ftl_draft draft = product_and_work(200, 0, false);
  move(&draft);
  cr_assert_eq(find(&draft, FTL_OP_WGMMA_WAIT), 65);
  cr_assert_eq(find(&draft, FTL_OP_MBAR_RELEASE), 66);
  cr_assert_eq(position_of(&draft, 300), draft.num_insts - 1);
  cr_assert_eq(position_of(&draft, 100 + 62), 64);
  cr_assert_eq(position_of(&draft, 100 + 63), 67);
  ftl_draft_fini(&draft);
}

Test(unit_lower_schedule_wgmma, a_wait_that_comes_before_the_latency_is_over_stays) {
  ftl_draft draft = product_and_work(40, 0, false);
  move(&draft);
  cr_assert_eq(find(&draft, FTL_OP_WGMMA_WAIT), 2 + 40);
  ftl_draft_fini(&draft);
}

Test(unit_lower_schedule_wgmma, a_wait_moves_past_no_fence) {
  ftl_draft draft = product_and_work(200, 30, true);
  move(&draft);
  cr_assert_eq(find(&draft, FTL_OP_BAR_ARRIVE), 2 + 200);
  cr_assert_eq(find(&draft, FTL_OP_WGMMA_WAIT), 2 + 200 + 1);
  ftl_draft_fini(&draft);
}

// Two products in flight: the accumulators of both (4 + 6) and the A operand of the second (3); the address does not
// count, nor the third accumulator, whose product comes after the wait.
Test(unit_lower_schedule_wgmma, accumulators_and_operands_in_flight_are_counted_together) {
  ftl_draft draft = {0};
  int32_t first = ftl_draft_value_add(&draft, 4, false), second = ftl_draft_value_add(&draft, 6, false),
          a = ftl_draft_value_add(&draft, 3, false), address = ftl_draft_value_add(&draft, 2, false),
          third = ftl_draft_value_add(&draft, 5, false);
  const int32_t inputs[] = {first, second, a, address};
  for (int i = 0; i < 4; i++) put(&draft, FTL_OP_MOV, 0, inputs[i], NONE, NONE);
  put_update(&draft, FTL_OP_WGMMA, 64, first, NONE, NONE)->effects |= FTL_EFFECT_FENCE;
  put_fence(&draft, FTL_OP_WGMMA_COMMIT, 0);
  put_update(&draft, FTL_OP_WGMMA, 64, second, a, NONE)->effects |= FTL_EFFECT_FENCE;
  put_fence(&draft, FTL_OP_WGMMA_COMMIT, 0);
  put_fence(&draft, FTL_OP_WGMMA_WAIT, 0);
  put(&draft, FTL_OP_STS, 0, NONE, first, second);
  put(&draft, FTL_OP_WGMMA, 64, third, NONE, NONE)->effects |= FTL_EFFECT_FENCE;
  put_fence(&draft, FTL_OP_WGMMA_COMMIT, 0);
  put_fence(&draft, FTL_OP_WGMMA_WAIT, 0);
  put(&draft, FTL_OP_STS, 0, NONE, third, address);
  finished done = finish(&draft, 64);
  cr_assert_eq(done.result.wgmma_registers, 4 + 6 + 3);
  ftl_draft_fini(&draft);
}
