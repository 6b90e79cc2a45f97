#include <criterion/criterion.h>
#include <math.h>

#include "report/json.h"
#include "report/table.h"

static void number_is(double value, const char *expected) {
  ftl_text text = {0};
  ftl_json_add_number(&text, value);
  cr_assert_str_eq(ftl_text_get(&text), expected);
  ftl_text_fini(&text);
}

static void string_is(const char *value, const char *expected) {
  ftl_text text = {0};
  ftl_json_add_string(&text, value);
  cr_assert_str_eq(ftl_text_get(&text), expected);
  ftl_text_fini(&text);
}

Test(unit_report_json, whole_numbers_have_no_point) {
  number_is(0, "0");
  number_is(-3, "-3");
  number_is(524288, "524288");
  number_is(9007199254740992.0, "9007199254740992");
}

Test(unit_report_json, other_numbers_have_as_few_digits_as_give_them_back) {
  number_is(0.1, "0.1");
  number_is(1.0 / 3, "0.3333333333333333");
  number_is(1e300, "1e+300");
}

Test(unit_report_json, what_is_not_finite_is_null) {
  number_is((double)NAN, "null");
  number_is((double)INFINITY, "null");
}

Test(unit_report_json, strings_are_valid_whatever_is_in_them) {
  string_is("a\"b\\c", "\"a\\\"b\\\\c\"");
  string_is("line\nend\x01", "\"line\\u000aend\\u0001\"");
  string_is("gr\xc3\xbc\xc3\x9f", "\"gr\xc3\xbc\xc3\x9f\"");
  string_is("\xff\xc3", "\"\\ufffd\\ufffd\"");
  string_is("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"");  // a surrogate
  string_is("\xc0\xaf", "\"\\ufffd\\ufffd\"");             // overlong
}

Test(unit_report_table, columns_are_aligned_and_lines_end_without_spaces) {
  ftl_table table;
  ftl_text text = {0};
  ftl_error error = {0};
  ftl_table_init(&table, 3);
  ftl_table_align_right(&table, 1);
  const char *const cells[] = {"name", "us", "note", "a", "10.5", "", "longer", "7", "x"};
  for (int i = 0; i < 9; i++) ftl_table_add(&table, "%s", cells[i]);
  cr_assert_eq(ftl_table_write(&table, 1, &text, &error), FTL_OK);
  cr_assert_str_eq(ftl_text_get(&text), " name      us  note\n a       10.5\n longer     7  x\n");
  ftl_table_fini(&table);
  ftl_text_fini(&text);
}
