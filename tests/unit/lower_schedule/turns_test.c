// Instructions that leave the order in which they are written, and what registers that takes.
#include <criterion/criterion.h>

#include "drafts.h"
#include "lower/turns.h"

enum { NONE = FTL_NO_VALUE };

typedef struct stretch {
  ftl_draft draft;
  ftl_arena arena;
  ftl_turns turns;
  uint64_t live;  // fewer than 64 values
} stretch;

// 0: a (2 registers) = LDS; 1: b = LDS; 2: c = FFMA b; 3: STS c; 4: STS a. Nothing is live after it.
// Needed, in this order: 4: a, 2. 3: a and c, 3. 2: a and b before it, 3. 1: a and b after it, 3. 0: a, 2.
static void stretch_init(stretch *s) {
  *s = (stretch){0};
  int32_t a = ftl_draft_value_add(&s->draft, 2, 0), b = ftl_draft_value_add(&s->draft, 1, 0);
  int32_t c = ftl_draft_value_add(&s->draft, 1, 0);
  put(&s->draft, FTL_OP_LDS, 1, a, NONE, NONE);
  put(&s->draft, FTL_OP_LDS, 2, b, NONE, NONE);
  put(&s->draft, FTL_OP_FFMA, 3, c, b, NONE);
  put(&s->draft, FTL_OP_STS, 4, NONE, c, NONE);
  put(&s->draft, FTL_OP_STS, 5, NONE, a, NONE);
  cr_assert(ftl_turns_init(&s->turns, &s->draft, s->draft.num_insts, &s->arena));
  uint64_t live_out = 0;
  cr_assert_eq(ftl_turns_start(&s->turns, s->draft.insts, s->draft.num_insts, &live_out, 1), 3);
}

static void stretch_fini(stretch *s) {
  ftl_draft_fini(&s->draft);
  ftl_arena_fini(&s->arena);
}

static void take(stretch *s, int32_t node) {
  ftl_turns_take(&s->turns, &s->live, node);
  ftl_live_step_back(&s->draft, &s->draft.insts[node], &s->live);
}

Test(unit_lower_schedule_turns, the_written_order_needs_what_is_live_in_it) {
  stretch s;
  stretch_init(&s);
  static const int expected[] = {2, 3, 3, 3, 2};
  for (int i = 0; i < 5; i++) cr_expect_eq(s.turns.pressure[i], expected[i], "instruction %d", i);
  stretch_fini(&s);
}

Test(unit_lower_schedule_turns, one_that_goes_late_keeps_what_it_reads_alive_past_the_others) {
  stretch s;
  stretch_init(&s);
  // STS c behind STS a: c is live over STS a, which then needs 2 + 1.
  cr_expect(ftl_turns_allow(&s.turns, &s.live, 3, 3));
  cr_expect_not(ftl_turns_allow(&s.turns, &s.live, 3, 2));
  take(&s, 3);
  cr_expect_eq(s.turns.pressure[4], 3);
  cr_expect_eq(s.turns.last, 4);
  // FFMA behind STS a: b is live there in the place of c.
  cr_expect(ftl_turns_allow(&s.turns, &s.live, 2, 3));
  take(&s, 2);
  cr_expect_eq(s.turns.pressure[4], 3);
  // The load of b too: nothing but a is left at STS a.
  take(&s, 1);
  cr_expect_eq(s.turns.pressure[4], 2);
  take(&s, 4);
  cr_expect_eq(s.turns.last, 0);
  stretch_fini(&s);
}

Test(unit_lower_schedule_turns, the_last_that_is_left_may_always_go) {
  stretch s;
  stretch_init(&s);
  cr_expect(ftl_turns_allow(&s.turns, &s.live, 4, 0));
  stretch_fini(&s);
}

Test(unit_lower_schedule_turns, what_the_passed_read_themselves_costs_nothing) {
  // x is read by both: whichever goes last, x lives over the other; what is updated in place stays live.
  ftl_draft draft = {0};
  ftl_arena arena = {0};
  ftl_turns turns;
  int32_t x = ftl_draft_value_add(&draft, 4, 0), y = ftl_draft_value_add(&draft, 1, 0);
  int32_t z = ftl_draft_value_add(&draft, 1, 0);
  put_update(&draft, FTL_OP_FFMA, 1, y, x, NONE);
  put_update(&draft, FTL_OP_FFMA, 2, z, x, NONE);
  cr_assert(ftl_turns_init(&turns, &draft, 2, &arena));
  uint64_t live_out = (UINT64_C(1) << y) | (UINT64_C(1) << z), live = live_out;
  // Before either: x, y and z, 6.
  cr_expect_eq(ftl_turns_start(&turns, draft.insts, 2, &live_out, 1), 6);
  cr_expect(ftl_turns_allow(&turns, &live, 0, 10));
  // x is not live after the second in the written order, but counted at it: 6 + 4 are asked for, no more.
  cr_expect_not(ftl_turns_allow(&turns, &live, 0, 9));
  ftl_draft_fini(&draft);
  ftl_arena_fini(&arena);
}

Test(unit_lower_schedule_turns, what_is_spilled_makes_room_for_exponentials_beside_arithmetic) {
  // 10 values of 4 registers live through a loop that updates 28 sums and then 4 exponentials (one in 8 cycles). 40 +
  // 32 are live in it, 53 may be: some values are stored before the loop and loaded behind it. Ordered with these out
  // of the way, an exponential goes whenever the pipe is free: 7 FFMAs between.
  ftl_draft draft = {0};
  int32_t through[10], e[4], sum[28];
  for (int i = 0; i < 10; i++) put(&draft, FTL_OP_MOV, 1, through[i] = ftl_draft_value_add(&draft, 4, 0), NONE, NONE);
  for (int i = 0; i < 28; i++) put(&draft, FTL_OP_MOV, 2, sum[i] = ftl_draft_value_add(&draft, 1, 0), NONE, NONE);
  for (int i = 0; i < 4; i++) put(&draft, FTL_OP_MOV, 3, e[i] = ftl_draft_value_add(&draft, 1, 0), NONE, NONE);
  put_loop(&draft);
  for (int i = 0; i < 28; i++) put_update(&draft, FTL_OP_FFMA, 100 + i, sum[i], NONE, NONE);
  for (int i = 0; i < 4; i++) put_update(&draft, FTL_OP_MUFU, 200 + i, e[i], NONE, NONE);
  put_end_loop(&draft);
  for (int i = 0; i < 10; i++) put(&draft, FTL_OP_STS, 4, NONE, through[i], NONE);
  for (int i = 0; i < 28; i++) put(&draft, FTL_OP_STS, 5, NONE, sum[i], NONE);
  for (int i = 0; i < 4; i++) put(&draft, FTL_OP_STS, 6, NONE, e[i], NONE);
  ftl_arch arch = round_arch();
  arch.sfu_interval_cycles = 8;
  finished done = finish_on(&arch, &draft, 54);
  cr_expect_geq(done.result.spilled_registers, 40 + 32 - 53);
  for (int i = 1; i < 4; i++) cr_expect_eq(position_of(&draft, 200 + i) - position_of(&draft, 199 + i), 8);
  ftl_draft_fini(&draft);
}
