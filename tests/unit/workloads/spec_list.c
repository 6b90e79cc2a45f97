// Parameters that are lists of numbers.
#include <criterion/criterion.h>
#include <string.h>

#include "workloads/spec.h"

static const ftl_workload lister = {.name = "lister", .accepts = FTL_TAKES(lengths) | FTL_TAKES(heads)};

static ftl_spec spec;
static ftl_error error;

static void setup(void) {
  spec = (ftl_spec){.workload = &lister};
  error = (ftl_error){0};
}

TestSuite(unit_workloads_spec_list, .init = setup);

static void set(const char *text) {
  cr_assert_eq(ftl_spec_set_text(&spec, "lengths", text, &error), FTL_OK, "%s", error.message);
}

static const char *text_of(const ftl_spec *of) {
  static char buffer[32];
  return ftl_spec_text(of, FTL_PARAM_lengths, buffer);
}

Test(unit_workloads_spec_list, numbers_come_back_in_order_with_their_repetitions) {
  int32_t numbers[8] = {0};
  set("512:7x3:1");
  cr_assert_eq(ftl_spec_list(&spec, FTL_PARAM_lengths, numbers, 8), 5);
  const int32_t expected[8] = {512, 7, 7, 7, 1};
  cr_expect_eq(memcmp(numbers, expected, sizeof numbers), 0);
  cr_expect_eq(ftl_spec_list(&spec, FTL_PARAM_lengths, numbers, 2), 5, "counts what does not fit");
}

Test(unit_workloads_spec_list, equal_lists_have_one_text_and_one_value) {
  set("7:7:7x2:5");
  ftl_spec first = spec;
  cr_expect_str_eq(text_of(&spec), "7x4:5");
  set("7x4:5");
  cr_expect_eq(first.value[FTL_PARAM_lengths], spec.value[FTL_PARAM_lengths]);
  cr_expect_eq(memcmp(&first, &spec, sizeof spec), 0);
  set("7x4:6");
  cr_expect_neq(first.value[FTL_PARAM_lengths], spec.value[FTL_PARAM_lengths]);
}

Test(unit_workloads_spec_list, a_later_list_replaces_an_earlier_one_and_none_empties_it) {
  ftl_spec before = spec;
  set("1:2:3:4:5:6:7:8:9");
  set("12");
  cr_expect_str_eq(text_of(&spec), "12");
  set("none");
  cr_expect_str_eq(text_of(&spec), "none");
  cr_expect_eq(memcmp(before.lists, spec.lists, sizeof spec.lists), 0);
  cr_expect_eq(ftl_spec_list(&spec, FTL_PARAM_lengths, NULL, 0), 0);
}

Test(unit_workloads_spec_list, commas_part_numbers_as_colons_do) {
  ftl_spec with_colons;
  set("512:4096x8:77");
  with_colons = spec;
  set("512,4096x8,77");
  cr_expect_eq(memcmp(&with_colons, &spec, sizeof spec), 0);
}

Test(unit_workloads_spec_list, what_is_no_list_is_refused_and_changes_nothing) {
  static const char *const texts[] = {"",   ":",  "1:",  ":1",   "1::2", "1,",       ",1",    "1,,2", "1:,2",
                                      "x3", "3x", "3x0", "3x-1", "0",    "16777217", "3x2x2", "a",    "1 "};
  set("5:6");
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    ftl_spec before = spec;
    cr_expect_eq(ftl_spec_set_text(&spec, "lengths", texts[i], &error), FTL_BAD_INPUT, "\"%s\"", texts[i]);
    cr_expect_eq(memcmp(&before, &spec, sizeof spec), 0, "\"%s\"", texts[i]);
  }
  cr_expect_eq(ftl_spec_set_text(&spec, "lengths", "4:0", &error), FTL_BAD_INPUT);
  cr_expect_str_eq(error.message,
                   "lengths=4:0: allowed are whole numbers from 1 to 16777216, as 512:4096x8:77, or none");
}

Test(unit_workloads_spec_list, lists_that_are_too_long_are_refused) {
  char text[4096] = "";
  for (int i = 0; i < 700; i++) strcat(text, i % 2 ? ":17" : i ? ":18" : "18");
  cr_expect_eq(ftl_spec_set_text(&spec, "lengths", text, &error), FTL_BAD_INPUT);
  cr_expect(strstr(error.message, "allowed are 65536 numbers in 2045 characters"), "%s", error.message);
  set("9x65536");
  cr_expect_eq(ftl_spec_set_text(&spec, "lengths", "9x65536:8", &error), FTL_BAD_INPUT);
  cr_expect_eq(ftl_spec_set_text(&spec, "lengths", "9x9223372036854775807:8x9", &error), FTL_BAD_INPUT);
  cr_expect_str_eq(text_of(&spec), "9x65536");
}

Test(unit_workloads_spec_list, the_canonical_text_has_the_list) {
  ftl_text text = {0};
  set("64:64");
  spec.value[FTL_PARAM_heads] = 2;
  ftl_spec_canonical(&spec, &text);
  cr_assert_str_eq(ftl_text_get(&text), "lister heads=2 lengths=64x2");
  ftl_text_fini(&text);
}
