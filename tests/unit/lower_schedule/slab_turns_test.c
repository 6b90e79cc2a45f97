// Slabs of an accumulator that take turns: what makes an operand of one goes ahead of the products of the next.
#include <criterion/criterion.h>

#include "base/arena.h"
#include "drafts.h"
#include "lower/slab_turns.h"

enum { NONE = FTL_NO_VALUE, SLABS = 2, MAX_LOOPS = 2 };
// Tags; those of products are their columns, all different.
enum { SCORES = 8, OUTPUT = 64, SCALE = 300, EXP = 400, PACK = 500, FACTOR = 600, BARRIER = 9 };
enum { O_REGISTERS = 8, S_REGISTERS = 8, P_REGISTERS = 4 };
// What wgmmas hold at most.
enum { IN_TURN = SLABS * O_REGISTERS + P_REGISTERS + S_REGISTERS, AS_WRITTEN = SLABS * (O_REGISTERS + S_REGISTERS) };

typedef struct options {
  int num_loops;
  bool late[MAX_LOOPS];  // by loop: exponentials read the accumulators themselves
  bool meets;            // all warps do, between the softmax and the second products
  bool needs_factor;     // which the program works out behind the first products
  int bystanders;        // registers of what is live all the while
} options;

static void put_fence(ftl_draft *draft, ftl_opcode opcode, int arg) {
  put(draft, opcode, arg, NONE, NONE, NONE)->effects = FTL_EFFECT_FENCE;
}

static void put_product(ftl_draft *draft, int columns, int32_t accumulator, int32_t a, bool from_zero) {
  put_fence(draft, FTL_OP_WGMMA_ARRIVE, 0);
  put(draft, FTL_OP_WGMMA, columns, accumulator, a, NONE)->effects =
      FTL_EFFECT_MEMORY | (from_zero ? 0 : FTL_EFFECT_READS_DESTINATION);
  put_fence(draft, FTL_OP_WGMMA_COMMIT, 0);
  put_fence(draft, FTL_OP_WGMMA_WAIT, 0);
}

static void put_step(ftl_draft *draft, const options *o, int loop, const int32_t *output) {
  int32_t scores[SLABS], packed[SLABS], factor = ftl_draft_value_add(draft, 1, false);
  int base = 10 * loop;
  for (int i = 0; i < SLABS; i++) {
    scores[i] = ftl_draft_value_add(draft, S_REGISTERS, false);
    packed[i] = ftl_draft_value_add(draft, P_REGISTERS, false);
    draft->values[scores[i]].is_read_late = o->late[loop];
  }
  for (int i = 0; i < SLABS; i++) put_product(draft, SCORES * (i + 1) + base, scores[i], NONE, true);
  if (o->needs_factor) put(draft, FTL_OP_MOV, FACTOR + base, factor, NONE, NONE);
  for (int i = 0; i < SLABS; i++)
    put(draft, FTL_OP_FFMA, SCALE + base + i, scores[i], scores[i], o->needs_factor ? factor : NONE);
  for (int i = 0; i < SLABS; i++) put(draft, FTL_OP_MUFU, EXP + base + i, scores[i], scores[i], NONE);
  for (int i = 0; i < SLABS; i++) put(draft, FTL_OP_CVT, PACK + base + i, packed[i], scores[i], NONE);
  if (o->meets) put_fence(draft, FTL_OP_BAR_SYNC, BARRIER);
  for (int i = 0; i < SLABS; i++) put_product(draft, OUTPUT * (i + 1) + base, output[i], packed[i], false);
}

// S = QK^T in two slabs, exponentials of all, O += PV in two slabs.
static ftl_draft attention(options o) {
  ftl_draft draft = {0};
  int32_t output[SLABS], bystander = ftl_draft_value_add(&draft, (int32_t)o.bystanders, false);
  if (o.bystanders > 0) put(&draft, FTL_OP_MOV, 0, bystander, NONE, NONE);
  for (int i = 0; i < SLABS; i++) {
    output[i] = ftl_draft_value_add(&draft, O_REGISTERS, false);
    put(&draft, FTL_OP_MOV, 0, output[i], NONE, NONE);
  }
  for (int loop = 0; loop < o.num_loops; loop++) {
    put_loop(&draft);
    put_step(&draft, &o, loop, output);
    put_end_loop(&draft);
  }
  for (int i = 0; i < SLABS; i++) put(&draft, FTL_OP_STS, 0, NONE, output[i], NONE);
  if (o.bystanders > 0) put(&draft, FTL_OP_STS, 0, NONE, bystander, NONE);
  return draft;
}

static void order(ftl_draft *draft, int32_t cap) {
  ftl_arch arch = round_arch();
  ftl_arena arena = {0};
  ftl_error error = {0};
  ftl_flow flow;
  ftl_liveness liveness;
  draft->product = round_product();
  cr_assert_eq(ftl_waits_find(draft, &arena, &error), FTL_OK);
  cr_assert_eq(ftl_flow_find(draft, &arena, &flow, &error), FTL_OK);
  cr_assert(ftl_liveness_find(draft, &flow, &arena, &liveness));
  cr_assert(ftl_slabs_take_turns(draft, &flow, &liveness, &arch, cap, &arena));
  ftl_arena_fini(&arena);
}

static bool takes_turns(const ftl_draft *draft, int loop) {
  int base = 10 * loop, second_product = position_of(draft, 2 * SCORES + base);
  return position_of(draft, PACK + base) < second_product && second_product < position_of(draft, SCALE + 1 + base);
}

// cap - 1 registers are held in turn: one less and wgmmas would hold all that there are.
Test(unit_lower_slab_turns, an_operand_is_made_of_a_slab_before_the_next_is_multiplied) {
  ftl_draft draft = attention((options){.num_loops = 1});
  order(&draft, IN_TURN + 1);
  cr_expect(takes_turns(&draft, 0));
  cr_expect_lt(position_of(&draft, SCORES), position_of(&draft, SCALE));
  cr_expect_lt(position_of(&draft, PACK + 1), position_of(&draft, OUTPUT), "behind its own product, not beside PV");
  ftl_draft_fini(&draft);
}

Test(unit_lower_slab_turns, slabs_stay_where_wgmmas_hold_all_registers_either_way) {
  ftl_draft draft = attention((options){.num_loops = 1});
  order(&draft, IN_TURN);
  cr_expect_not(takes_turns(&draft, 0));
  cr_expect_lt(position_of(&draft, 2 * SCORES), position_of(&draft, SCALE));
  ftl_draft_fini(&draft);
}

Test(unit_lower_slab_turns, slabs_stay_where_registers_suffice_as_it_is_written) {
  ftl_draft draft = attention((options){.num_loops = 1});
  order(&draft, AS_WRITTEN + 1);
  cr_expect_not(takes_turns(&draft, 0));
  ftl_draft_fini(&draft);
  draft = attention((options){.num_loops = 1});
  order(&draft, AS_WRITTEN);
  cr_expect(takes_turns(&draft, 0));
  ftl_draft_fini(&draft);
}

// In turn what wgmmas hold is all that is live but for bystanders: of 29 registers 28 + 25 are 24 too many, the most.
enum { MOST_BYSTANDERS = 25 };

Test(unit_lower_slab_turns, accumulators_that_exponentials_read_stay_where_many_registers_are_wanting) {
  ftl_draft draft = attention((options){.num_loops = 1, .late = {true}, .bystanders = MOST_BYSTANDERS + 1});
  order(&draft, IN_TURN + 1);
  cr_expect_not(takes_turns(&draft, 0));
  ftl_draft_fini(&draft);
  draft = attention((options){.num_loops = 1, .late = {true}, .bystanders = MOST_BYSTANDERS});
  order(&draft, IN_TURN + 1);
  cr_expect(takes_turns(&draft, 0));
  ftl_draft_fini(&draft);
  draft = attention((options){.num_loops = 1, .bystanders = MOST_BYSTANDERS + 1});
  order(&draft, IN_TURN + 1);
  cr_expect(takes_turns(&draft, 0), "what nothing reads late takes turns all the same");
  ftl_draft_fini(&draft);
}

Test(unit_lower_slab_turns, slabs_stay_where_warps_meet_between_the_products) {
  ftl_draft draft = attention((options){.num_loops = 1, .meets = true});
  order(&draft, IN_TURN + 1);
  cr_expect_not(takes_turns(&draft, 0));
  ftl_draft_fini(&draft);
}

Test(unit_lower_slab_turns, slabs_of_one_loop_stay_where_those_of_another_do) {
  ftl_draft draft = attention((options){.num_loops = 2, .late = {false, true}, .bystanders = MOST_BYSTANDERS + 1});
  order(&draft, IN_TURN + 1);
  cr_expect_not(takes_turns(&draft, 0));
  ftl_draft_fini(&draft);
  draft = attention((options){.num_loops = 2});
  order(&draft, IN_TURN + 1);
  cr_expect(takes_turns(&draft, 0));
  cr_expect(takes_turns(&draft, 1));
  ftl_draft_fini(&draft);
}

Test(unit_lower_slab_turns, what_a_slab_needs_besides_comes_with_it) {
  ftl_draft draft = attention((options){.num_loops = 1, .needs_factor = true});
  order(&draft, IN_TURN + 2);
  cr_expect(takes_turns(&draft, 0));
  cr_expect_lt(position_of(&draft, FACTOR), position_of(&draft, SCALE));
  cr_expect_lt(position_of(&draft, SCORES), position_of(&draft, FACTOR), "no earlier than it is needed");
  ftl_draft_fini(&draft);
}
