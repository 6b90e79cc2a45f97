#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "results/space.h"

static ftl_space make_space(void) {
  ftl_space space;
  ftl_error error = {0};
  cr_assert_eq(ftl_space_init(&space, "flash2_fwd", &error), FTL_OK, "%s", error.message);
  return space;
}

static void add(ftl_space *space, const char *name, const char *value) {
  ftl_error error = {0};
  cr_assert_eq(ftl_space_add(space, name, value, &error), FTL_OK, "%s", error.message);
}

static ftl_status add_fails(ftl_space *space, const char *name, const char *value, const char *text) {
  ftl_error error = {0};
  ftl_status status = ftl_space_add(space, name, value, &error);
  cr_assert_not_null(strstr(error.message, text), "%s", error.message);
  return status;
}

Test(unit_results_space, has_every_combination_and_the_last_parameter_advances_first) {
  const int64_t expected[6][2] = {{64, 16}, {64, 32}, {64, 64}, {128, 16}, {128, 32}, {128, 64}};
  ftl_space space = make_space();
  const char *const values[][2] = {{"heads", "4"},     {"seqlen", "256"}, {"head_dim", "64"}, {"block_m", "64"},
                                   {"block_m", "128"}, {"block_n", "16"}, {"block_n", "32"},  {"block_n", "64"}};
  for (int i = 0; i < 8; i++) add(&space, values[i][0], values[i][1]);
  cr_assert_eq(ftl_space_num_points(&space), 6);
  for (int64_t i = 0; i < 6; i++) {
    ftl_spec spec;
    ftl_error error = {0};
    cr_assert_eq(ftl_space_point(&space, i, &spec, &error), FTL_OK, "%s", error.message);
    cr_assert_eq(spec.value[FTL_PARAM_block_m], expected[i][0]);
    cr_assert_eq(spec.value[FTL_PARAM_block_n], expected[i][1]);
    cr_assert_eq(spec.value[FTL_PARAM_seqlen_kv], 256);
  }
  ftl_space_fini(&space);
}

Test(unit_results_space, a_bad_value_is_refused_when_it_is_added) {
  ftl_space space = make_space();
  cr_assert_eq(add_fails(&space, "block_m", "0", "from 1 to 1024"), FTL_BAD_INPUT);
  cr_assert_eq(add_fails(&space, "blok_m", "64", "the nearest is block_m"), FTL_BAD_INPUT);
  cr_assert_eq(add_fails(&space, "dtype", "fp8", "fp16|bf16"), FTL_BAD_INPUT);
  cr_assert_eq(ftl_space_num_points(&space), 1);
  ftl_space_fini(&space);
}

Test(unit_results_space, the_same_value_again_is_refused) {
  ftl_space space = make_space();
  add(&space, "block_m", "64");
  add(&space, "block_m", "128");
  cr_assert_eq(add_fails(&space, "block_m", "64", "block_m=64 is given twice"), FTL_BAD_INPUT);
  cr_assert_eq(ftl_space_num_points(&space), 2);
  ftl_space_fini(&space);
}

Test(unit_results_space, too_many_combinations_are_refused) {
  ftl_space space = make_space();
  ftl_error error = {0};
  char value[16];
  ftl_status status = FTL_OK;
  for (int i = 1; i <= 300 && status == FTL_OK; i++) {
    snprintf(value, sizeof value, "%d", i);
    status = ftl_space_add(&space, "heads", value, &error);
    if (status == FTL_OK) status = ftl_space_add(&space, "batch", value, &error);
  }
  cr_assert_eq(status, FTL_BAD_INPUT, "257 * 256 is above 65536");
  cr_assert_not_null(strstr(error.message, "more than 65536 combinations"), "%s", error.message);
  ftl_space_fini(&space);
}

Test(unit_results_space, values_that_would_be_too_many_are_refused_before_any_is_added) {
  ftl_space space = make_space();
  ftl_error error = {0};
  for (int i = 1; i <= 16; i++) {
    char value[16];
    snprintf(value, sizeof value, "%d", i);
    add(&space, "heads", value);
  }
  cr_expect_eq(ftl_space_check_room(&space, "batch", 4096, &error), FTL_OK);
  cr_expect_eq(ftl_space_check_room(&space, "batch", 4097, &error), FTL_BAD_INPUT);
  cr_expect_str_eq(error.message, "batch: more than 65536 combinations; split the exploration");
  cr_expect_eq(ftl_space_num_points(&space), 16);
  ftl_space_fini(&space);
}

// More than the table of a few has room for.
Test(unit_results_space, of_many_values_each_is_found_again) {
  ftl_space space = make_space();
  char value[16];
  for (int i = 1; i <= 1000; i++) {
    snprintf(value, sizeof value, "%d", i);
    add(&space, "heads", value);
  }
  for (int i = 1; i <= 1000; i += 37) {
    snprintf(value, sizeof value, "%d", i);
    cr_assert_eq(add_fails(&space, "heads", value, "is given twice"), FTL_BAD_INPUT);
  }
  cr_expect_eq(ftl_space_num_points(&space), 1000);
  ftl_space_fini(&space);
}

Test(unit_results_space, a_point_without_a_required_parameter_names_it) {
  ftl_space space = make_space();
  ftl_spec spec;
  ftl_error error = {0};
  add(&space, "heads", "4");
  cr_assert_eq(ftl_space_point(&space, 0, &spec, &error), FTL_BAD_INPUT);
  cr_assert_not_null(strstr(error.message, "seqlen_q"), "%s", error.message);
  ftl_space_fini(&space);
}

Test(unit_results_space, an_unknown_workload_lists_the_known_ones) {
  ftl_space space;
  ftl_error error = {0};
  cr_assert_eq(ftl_space_init(&space, "flash9", &error), FTL_BAD_INPUT);
  cr_assert_not_null(strstr(error.message, "flash2_fwd"), "%s", error.message);
}
