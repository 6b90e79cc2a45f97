#include <criterion/criterion.h>
#include <string.h>

#include "tile/builder.h"
#include "tile/cta_exprs.h"

static ftl_builder *builder;
static ftl_error error;

static void setup(void) {
  error = (ftl_error){0};
  cr_assert_eq(ftl_builder_create(&builder, "k", &error), FTL_OK);
  ftl_builder_role(builder, "main", 1, 0);
}

static void teardown(void) { ftl_builder_destroy(builder); }

TestSuite(unit_tile_expr, .init = setup, .fini = teardown);

// The value of `expr` as a loop's lower bound of the finished program, at CTA `cta`.
static int64_t value_at(ftl_expr expr, int64_t cta) {
  ftl_loop(builder, expr, ftl_const(builder, 0));
  ftl_end_loop(builder);
  ftl_tile_program *program;
  ftl_builder_grid(builder, 100, false, FTL_TILES_BY_STRIDE);
  cr_assert_eq(ftl_builder_finish(builder, &program, &error), FTL_OK, "%s", error.message);
  int64_t value = ftl_expr_eval(program, program->ops[0].lo, &(ftl_expr_point){.cta = cta});
  ftl_tile_program_destroy(program);
  return value;
}

static const char *finish_message(void) {
  ftl_tile_program *program;
  ftl_barrier(builder);
  cr_assert_eq(ftl_builder_finish(builder, &program, &error), FTL_BAD_INPUT);
  cr_assert_null(program);
  return error.message;
}

Test(unit_tile_expr, constants_fold_when_built) {
  ftl_expr seven = ftl_const(builder, 7), two = ftl_const(builder, 2);
  cr_assert_eq(ftl_add(builder, seven, two), ftl_const(builder, 9));
  cr_assert_eq(ftl_sub(builder, two, seven), ftl_const(builder, -5));
  cr_assert_eq(ftl_mul(builder, seven, two), ftl_const(builder, 14));
  cr_assert_eq(ftl_min(builder, seven, two), two);
  cr_assert_eq(ftl_max(builder, seven, two), seven);
}

Test(unit_tile_expr, division_and_modulus_round_to_minus_infinity) {
  ftl_expr two = ftl_const(builder, 2);
  cr_assert_eq(ftl_div(builder, ftl_const(builder, -7), two), ftl_const(builder, -4));
  cr_assert_eq(ftl_mod(builder, ftl_const(builder, -7), two), ftl_const(builder, 1));
  cr_assert_eq(ftl_div(builder, ftl_const(builder, -8), two), ftl_const(builder, -4));
}

Test(unit_tile_expr, equal_expressions_are_one_node_whatever_the_order_of_their_operands) {
  ftl_expr cta = ftl_cta(builder), eight = ftl_const(builder, 8);
  cr_assert_eq(ftl_mul(builder, cta, eight), ftl_mul(builder, eight, cta));
  cr_assert_eq(ftl_cta(builder), cta);
}

Test(unit_tile_expr, operations_that_change_nothing_give_their_operand) {
  ftl_expr cta = ftl_cta(builder), zero = ftl_const(builder, 0), one = ftl_const(builder, 1);
  cr_assert_eq(ftl_add(builder, zero, cta), cta);
  cr_assert_eq(ftl_sub(builder, cta, zero), cta);
  cr_assert_eq(ftl_mul(builder, one, cta), cta);
  cr_assert_eq(ftl_div(builder, cta, one), cta);
  cr_assert_eq(ftl_mod(builder, cta, one), zero);
  cr_assert_eq(ftl_min(builder, cta, cta), cta);
}

Test(unit_tile_expr, constants_added_one_after_the_other_are_one_constant) {
  ftl_expr cta = ftl_cta(builder), one = ftl_const(builder, 1);
  ftl_expr minus_two = ftl_sub(builder, ftl_sub(builder, cta, one), one);
  cr_assert_eq(minus_two, ftl_add(builder, cta, ftl_const(builder, -2)));
  ftl_expr from_ten = ftl_sub(builder, ftl_const(builder, 10), cta);
  cr_assert_eq(ftl_sub(builder, from_ten, one), ftl_sub(builder, ftl_const(builder, 9), cta));
}

Test(unit_tile_expr, an_expression_of_the_cta_is_evaluated_at_the_cta) {
  // (17 mod 5) * 3 - min(17, 4) = 2 * 3 - 4 = 2
  ftl_expr cta = ftl_cta(builder);
  ftl_expr left = ftl_mul(builder, ftl_mod(builder, cta, ftl_const(builder, 5)), ftl_const(builder, 3));
  ftl_expr expr = ftl_sub(builder, left, ftl_min(builder, cta, ftl_const(builder, 4)));
  cr_assert_eq(value_at(expr, 17), 2);
}

Test(unit_tile_expr, a_divisor_that_is_not_a_positive_constant_is_refused) {
  ftl_div(builder, ftl_const(builder, 4), ftl_const(builder, 0));
  cr_assert(strstr(finish_message(), "a divisor must be a constant above 0") != NULL, "%s", error.message);
}

Test(unit_tile_expr, a_constant_beyond_63_bits_is_refused) {
  ftl_mul(builder, ftl_const(builder, INT64_MAX), ftl_const(builder, 2));
  cr_assert(strstr(finish_message(), "63 bits") != NULL, "%s", error.message);
}

Test(unit_tile_expr, an_expression_that_doubles_at_each_step_is_refused_before_it_is_slow) {
  ftl_expr expr = ftl_cta(builder);
  for (int i = 0; i < 60; i++) expr = ftl_add(builder, expr, ftl_mul(builder, expr, ftl_const(builder, 2)));
  cr_assert(strstr(finish_message(), "too large") != NULL, "%s", error.message);
}

Test(unit_tile_expr, an_expression_of_another_builder_is_refused) {
  ftl_add(builder, 1000, ftl_cta(builder));
  cr_assert(strstr(finish_message(), "expression 1000 does not exist") != NULL, "%s", error.message);
}

// A sum of the CTA's own part, once as it is and once subtracted from a constant, and of a loop's variable.
Test(unit_tile_expr, values_worked_out_for_a_cta_are_those_of_the_expressions) {
  ftl_expr cta = ftl_cta(builder), head = ftl_div(builder, cta, ftl_const(builder, 7));
  ftl_expr in_head = ftl_mod(builder, cta, ftl_const(builder, 7)),
           from_end = ftl_sub(builder, ftl_const(builder, 6), cta);
  ftl_expr of_cta[] = {head,
                       in_head,
                       from_end,
                       ftl_min(builder, head, from_end),
                       ftl_max(builder, in_head, from_end),
                       ftl_mul(builder, in_head, head),
                       ftl_sub(builder, in_head, cta),
                       cta,
                       ftl_const(builder, 5)};
  enum { OF_CTA = sizeof of_cta / sizeof *of_cta };
  int32_t loop = ftl_loop(builder, ftl_const(builder, 0), of_cta[3]);
  ftl_expr value = ftl_loop_value(builder, loop), mixed = ftl_add(builder, ftl_mul(builder, value, head), from_end);
  ftl_loop(builder, mixed, ftl_const(builder, 9));
  ftl_end_loop(builder);
  ftl_end_loop(builder);
  ftl_tile_program *program;
  ftl_builder_grid(builder, 100, false, FTL_TILES_BY_STRIDE);
  cr_assert_eq(ftl_builder_finish(builder, &program, &error), FTL_OK, "%s", error.message);
  ftl_cta_exprs exprs;
  cr_assert_eq(ftl_cta_exprs_init(&exprs, program, &error), FTL_OK);
  for (int32_t i = 0; i < OF_CTA; i++) ftl_cta_exprs_add(&exprs, of_cta[i]);
  ftl_cta_exprs_add(&exprs, mixed);
  ftl_cta_exprs_add(&exprs, FTL_ALWAYS);
  cr_expect_eq(exprs.place[mixed], -1);
  int64_t values[32];
  cr_assert_leq(exprs.count, 32);
  for (int64_t at = 0; at < 100; at++) {
    ftl_cta_exprs_eval(&exprs, at, values);
    ftl_expr_point plain = {.cta = at, .loop = {3}};
    ftl_expr_point known = {.cta = at, .loop = {3}, .of_cta = {.place = exprs.place, .values = values}};
    for (int32_t i = 0; i < OF_CTA; i++)
      cr_expect_eq(ftl_expr_eval(program, of_cta[i], &known), ftl_expr_eval(program, of_cta[i], &plain));
    cr_expect_eq(ftl_expr_eval(program, mixed, &known), ftl_expr_eval(program, mixed, &plain));
  }
  ftl_cta_exprs_fini(&exprs);
  ftl_tile_program_destroy(program);
}

// 300 sums at two points: more than are kept at a time, so that some take the place of others.
Test(unit_tile_expr, values_known_at_a_point_are_those_of_the_expressions) {
  enum { SUMS = 300 };
  ftl_expr sums[SUMS], rest = ftl_mod(builder, ftl_cta(builder), ftl_const(builder, 6));
  for (int64_t i = 0; i < SUMS; i++) {
    ftl_expr next = ftl_mod(builder, ftl_cta(builder), ftl_const(builder, 7 + i));
    sums[i] = ftl_add(builder, rest, next);
    rest = next;
  }
  ftl_loop(builder, sums[SUMS - 1], ftl_const(builder, 0));
  ftl_end_loop(builder);
  ftl_tile_program *program;
  ftl_builder_grid(builder, 100, false, FTL_TILES_BY_STRIDE);
  cr_assert_eq(ftl_builder_finish(builder, &program, &error), FTL_OK, "%s", error.message);
  ftl_expr_known known = {0};
  for (int64_t cta = 40; cta < 100; cta += 50) {
    ftl_expr_known_forget(&known);
    ftl_expr_point plain = {.cta = cta}, keeping = {.cta = cta, .known = &known};
    for (int32_t round = 0; round < 2; round++)
      for (int32_t i = 0; i < SUMS; i++)
        cr_expect_eq(ftl_expr_eval(program, sums[i], &keeping), ftl_expr_eval(program, sums[i], &plain));
  }
  ftl_tile_program_destroy(program);
}
