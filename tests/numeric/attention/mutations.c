// Programs with one op wrong are caught: what shows that the numeric tests can fail.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention_case.h"

static const char params[] =
    "heads=2 kv_heads=1 head_dim=24 seqlen_q=70 seqlen_kv=90 causal=true block_m=32 block_n=16 num_warps=2";

static ftl_tile_op *find_op(const attention_case *c, ftl_tile_op_kind kind, ftl_elem_fn fn, const char *dst) {
  for (int32_t i = c->program->num_ops - 1; i >= 0; i--) {
    ftl_tile_op *op = &c->program->ops[i];
    if (op->kind != kind) continue;
    if (dst == NULL || (op->fn == fn && strcmp(c->program->values[op->dst].name, dst) == 0)) return op;
  }
  cr_assert_fail("no such op");
  abort();
}

// The mutant must fail both comparisons (or not run at all).
static void assert_numbers_catch(attention_case *c) {
  attention_case_run(c);
  cr_assert(c->failure[0] == '\0', "the mutant runs: %s", c->failure);
  attention_case_check_numbers(c);
  cr_assert(c->failure[0] != '\0', "the numbers are wrong");
}

static void assert_visits_catch(attention_case *c) {
  c->failure[0] = '\0';
  attention_case_check_visits(c);
  cr_assert(c->failure[0] != '\0', "some pair is visited wrongly");
}

Test(numeric_attention_mutations, a_diagonal_that_is_one_off_is_caught) {
  attention_case c;
  attention_case_init(&c, params);
  ftl_tile_op *mask = find_op(&c, FTL_TILE_MASK, 0, NULL);
  // The diagonal is 90 - 70 = 20, a constant of its own.
  cr_assert_eq(c.program->exprs[mask->diagonal].value, 20);
  c.program->exprs[mask->diagonal].value = 21;
  assert_numbers_catch(&c);
  assert_visits_catch(&c);
  attention_case_fini(&c);
}

Test(numeric_attention_mutations, a_window_that_is_one_off_is_caught) {
  attention_case c;
  attention_case_init(&c,
                      "heads=1 head_dim=24 seqlen_q=70 seqlen_kv=90 causal=true window=30 block_m=32 block_n=16 "
                      "num_warps=2");
  int num_masks = 0;
  for (int32_t i = 0; i < c.program->num_ops; i++) num_masks += c.program->ops[i].kind == FTL_TILE_MASK;
  cr_assert_eq(num_masks, 2, "one loop at the window's left edge, one at the diagonal");
  ftl_tile_op *mask = find_op(&c, FTL_TILE_MASK, 0, NULL);
  // Of 30 keys up to the diagonal of 20 the first lies 29 before it.
  cr_assert_eq(c.program->exprs[mask->left].value, -9);
  c.program->exprs[mask->left].value = -10;
  assert_numbers_catch(&c);
  assert_visits_catch(&c);
  attention_case_fini(&c);
}

Test(numeric_attention_mutations, a_missing_limit_at_the_last_key_is_caught) {
  attention_case c;
  attention_case_init(&c, "heads=1 head_dim=16 seqlen_q=20 seqlen_kv=20 block_m=16 block_n=16 num_warps=1");
  ftl_tile_op *mask = find_op(&c, FTL_TILE_MASK, 0, NULL);
  c.program->exprs[mask->limit].value = 32;
  assert_numbers_catch(&c);
  cr_assert_gt(c.visits.num_outside, 0);
  attention_case_fini(&c);
}

Test(numeric_attention_mutations, a_row_maximum_that_is_not_reduced_over_lanes_is_caught) {
  attention_case c;
  attention_case_init(&c, params);
  find_op(&c, FTL_TILE_REDUCE_LANES, FTL_ELEM_MAX, "max")->kind = FTL_TILE_BARRIER;
  attention_case_run(&c);
  cr_assert(strstr(c.failure, "not reduced over its lanes") != NULL, "%s", c.failure);
  attention_case_fini(&c);
}

// Twice: in the loop without a mask and in the one with it.
static void assert_exchange_catches(ftl_elem_fn fn, const char *rows) {
  attention_case c;
  attention_case_init(&c,
                      "heads=1 head_dim=32 seqlen_q=70 seqlen_kv=90 causal=true block_m=32 block_n=32 num_warps=2 "
                      "warps_n=2 row_sums=step mma=mma");
  for (int i = 0; i < 2; i++) find_op(&c, FTL_TILE_REDUCE_WARPS, fn, rows)->kind = FTL_TILE_BARRIER;
  attention_case_run(&c);
  cr_assert(strstr(c.failure, "not reduced over its lanes") != NULL, "%s", c.failure);
  attention_case_fini(&c);
}

Test(numeric_attention_mutations, maxima_and_sums_that_warps_side_by_side_do_not_exchange_are_caught) {
  assert_exchange_catches(FTL_ELEM_MAX, "max");
  assert_exchange_catches(FTL_ELEM_ADD, "step_sum");
}

Test(numeric_attention_mutations, an_output_that_is_not_corrected_is_caught) {
  attention_case c;
  attention_case_init(&c, params);
  // The last such op normalises; the one before it, in the masked loop, corrects.
  find_op(&c, FTL_TILE_ELEM, FTL_ELEM_MUL, "o")->kind = FTL_TILE_BARRIER;
  find_op(&c, FTL_TILE_ELEM, FTL_ELEM_MUL, "o")->kind = FTL_TILE_BARRIER;
  assert_numbers_catch(&c);
  attention_case_fini(&c);
}

Test(numeric_attention_mutations, reading_a_stage_that_was_not_waited_for_is_an_error) {
  attention_case c;
  attention_case_init(&c, params);
  find_op(&c, FTL_TILE_WAIT, 0, NULL)->kind = FTL_TILE_BARRIER;
  attention_case_run(&c);
  cr_assert(strstr(c.failure, "not waited for") != NULL, "%s", c.failure);
  attention_case_fini(&c);
}

Test(numeric_attention_mutations, a_stage_that_is_never_released_is_a_deadlock) {
  attention_case c;
  attention_case_init(&c, params);
  find_op(&c, FTL_TILE_RELEASE, 0, NULL)->kind = FTL_TILE_BARRIER;
  attention_case_run(&c);
  cr_assert(strstr(c.failure, "waits for ever") != NULL, "%s", c.failure);
  attention_case_fini(&c);
}

Test(numeric_attention_mutations, a_value_that_is_read_before_it_is_written_is_an_error) {
  attention_case c;
  attention_case_init(&c, params);
  find_op(&c, FTL_TILE_CONVERT, 0, NULL)->kind = FTL_TILE_BARRIER;
  for (int32_t i = 0; i < c.program->num_ops; i++)
    if (c.program->ops[i].kind == FTL_TILE_CONVERT) c.program->ops[i].kind = FTL_TILE_BARRIER;
  attention_case_run(&c);
  cr_assert(strstr(c.failure, "p was never written") != NULL, "%s", c.failure);
  attention_case_fini(&c);
}

Test(numeric_attention_mutations, a_prefetch_that_skips_a_tile_is_caught) {
  attention_case c;
  attention_case_init(&c, params);
  ftl_tile_op *load = NULL;
  for (int32_t i = 0; i < c.program->num_ops && !load; i++)
    if (c.program->ops[i].kind == FTL_TILE_LOAD &&
        strcmp(c.program->tensors[c.program->ops[i].ref.tensor].name, "v") == 0)
      load = &c.program->ops[i];
  cr_assert_not_null(load);
  load->ref.present = 0;  // the constant 0: the first tile of V is not loaded
  assert_numbers_catch(&c);
  attention_case_fini(&c);
}

static const char decode_params[] =
    "flash_decode heads=4 kv_heads=1 head_dim=24 seqlen_q=2 seqlen_kv=200 causal=true splits=2 block_m=16 block_n=64 "
    "num_warps=4";

Test(numeric_attention_mutations, heads_that_are_packed_without_a_period_in_the_mask_are_caught) {
  attention_case c;
  attention_case_init(&c, decode_params);
  find_op(&c, FTL_TILE_MASK, 0, NULL)->period = 0;
  assert_numbers_catch(&c);
  assert_visits_catch(&c);
  attention_case_fini(&c);
}

Test(numeric_attention_mutations, groups_that_merge_row_sums_of_lanes_are_caught) {
  attention_case c;
  attention_case_init(&c, decode_params);
  find_op(&c, FTL_TILE_REDUCE_LANES, FTL_ELEM_ADD, "sum")->kind = FTL_TILE_BARRIER;
  attention_case_run(&c);
  cr_assert(strstr(c.failure, "not reduced over its lanes") != NULL, "%s", c.failure);
  attention_case_fini(&c);
}

Test(numeric_attention_mutations, groups_whose_maxima_are_not_merged_are_caught) {
  attention_case c;
  attention_case_init(&c, decode_params);
  find_op(&c, FTL_TILE_REDUCE_GROUPS, FTL_ELEM_MAX, "max")->kind = FTL_TILE_BARRIER;
  assert_numbers_catch(&c);
  attention_case_fini(&c);
}

// ---- several roles ----

static const char flash3_params[] =
    "flash3_fwd mma=wgmma copy=tma heads=2 head_dim=16 seqlen_q=200 seqlen_kv=150 causal=true block_n=32";

Test(numeric_attention_mutations, a_consumer_that_multiplies_another_ones_queries_is_caught) {
  attention_case c;
  attention_case_init(&c, flash3_params);
  ftl_tile_op *scores = find_op(&c, FTL_TILE_MMA, 0, "s");
  cr_assert_eq(scores->ring_row, 64, "the second consumer's rows");
  scores->ring_row = 0;
  assert_numbers_catch(&c);
  assert_visits_catch(&c);
  attention_case_fini(&c);
}

Test(numeric_attention_mutations, a_turn_that_is_not_passed_on_is_a_deadlock_that_names_who_is_missing) {
  attention_case c;
  attention_case_init(&c, flash3_params);
  find_op(&c, FTL_TILE_ARRIVE, 0, NULL)->kind = FTL_TILE_BARRIER;  // of consumer 1, in the masked loop
  attention_case_run(&c);
  cr_assert(strstr(c.failure, "(sync turn 0): role consumer 0 waits for ever") != NULL, "%s", c.failure);
  cr_assert(strstr(c.failure, "for consumer 1") != NULL, "%s", c.failure);
  attention_case_fini(&c);
}

static void forget_to_rescale(attention_case *c) {
  for (int32_t i = 0; i < c->program->num_ops; i++) {
    ftl_tile_op *op = &c->program->ops[i];
    bool rescales = op->kind == FTL_TILE_ELEM && op->fn == FTL_ELEM_MUL && op->a.value == op->dst && op->b.value >= 0;
    if (rescales && strcmp(c->program->values[op->dst].name, "o") == 0 &&
        strcmp(c->program->values[op->b.value].name, "correction") == 0)
      op->b = ftl_immediate(1.0f);
  }
}

Test(numeric_attention_mutations, an_output_that_is_not_rescaled_before_the_next_product_is_caught) {
  static const char *const ablations[] = {"", "overlap=0", "schedule=stages", "schedule=stages overlap=0",
                                          "turns=softmax"};
  for (size_t i = 0; i < sizeof ablations / sizeof *ablations; i++) {
    attention_case c;
    char with_ablation[256];
    snprintf(with_ablation, sizeof with_ablation, "%s %s", flash3_params, ablations[i]);
    attention_case_init(&c, with_ablation);
    forget_to_rescale(&c);
    assert_numbers_catch(&c);
    attention_case_fini(&c);
  }
}

// Values come a tile behind keys: here the last copy in the loop fetches the tile of the keys beside it.
Test(numeric_attention_mutations, values_that_are_a_tile_ahead_of_their_probabilities_are_caught) {
  attention_case c;
  char stages[256];
  snprintf(stages, sizeof stages, "%s schedule=stages producer=0", flash3_params);
  attention_case_init(&c, stages);
  ftl_tile_op *values = find_op(&c, FTL_TILE_LOAD, 0, NULL), *keys = values - 1;
  while (keys->kind != FTL_TILE_LOAD) keys--;
  values->ref.row = keys->ref.row;
  assert_numbers_catch(&c);
  attention_case_fini(&c);
}

Test(numeric_attention_mutations, scales_of_another_tensor_are_caught) {
  attention_case c;
  attention_case_init(&c,
                      "flash_decode heads=2 head_dim=32 seqlen_q=1 seqlen_kv=50 splits=2 kv_dtype=int8 block_m=16 "
                      "block_n=16 num_warps=1");
  ftl_tile_op *of_v = find_op(&c, FTL_TILE_DEQUANTIZE, 0, NULL), *of_k = of_v;
  while (of_k->kind != FTL_TILE_DEQUANTIZE || of_k == of_v) of_k--;
  int32_t scales = of_v->ring_scales;
  of_v->ring_scales = of_k->ring_scales;
  of_k->ring_scales = scales;
  attention_case_run(&c);
  // V's scales have gone when V is dequantised with K's.
  cr_assert(strstr(c.failure, "reads a stage that was not waited for, or was released") != NULL, "%s", c.failure);
  attention_case_fini(&c);
}

Test(numeric_attention_mutations, groups_of_another_size_are_caught) {
  attention_case c;
  attention_case_init(&c,
                      "flash_decode heads=2 head_dim=64 seqlen_q=1 seqlen_kv=50 splits=2 kv_dtype=int4 "
                      "kv_group_size=32 block_m=16 block_n=16 num_warps=1");
  ftl_tile_op *of_v = find_op(&c, FTL_TILE_DEQUANTIZE, 0, NULL);
  ftl_ring *scales = &c.program->rings[of_v->ring_scales];
  cr_assert_eq(scales->rows, 2);
  scales->rows = 1;
  assert_numbers_catch(&c);
  attention_case_fini(&c);
}

Test(numeric_attention_mutations, a_shift_of_exponentials_that_is_not_taken_back_is_caught) {
  attention_case c;
  attention_case_init(&c,
                      "flash3_fwd mma=wgmma copy=tma heads=1 head_dim=32 seqlen_q=70 seqlen_kv=90 block_n=32 "
                      "dtype=fp8_e4m3");
  for (int32_t i = 0; i < c.program->num_ops; i++) {
    ftl_tile_op *op = &c.program->ops[i];
    if (op->kind == FTL_TILE_ELEM && op->fn == FTL_ELEM_ADD && op->b.value < 0) op->b.immediate = 7.0f;
  }
  assert_numbers_catch(&c);
  attention_case_fini(&c);
}
