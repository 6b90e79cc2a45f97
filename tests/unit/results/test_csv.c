#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "results/csv.h"

static ftl_csv open_text(const char *text) {
  ftl_csv csv;
  ftl_error error;
  cr_assert_eq(ftl_csv_init(&csv, "t.csv", text, strlen(text), &error), FTL_OK);
  return csv;
}

// The fields of the next row, each in brackets.
static void next_is(ftl_csv *csv, int64_t line, const char *expected) {
  char joined[256] = "";
  bool more = false;
  ftl_error error = {0};
  cr_assert_eq(ftl_csv_next(csv, &more, &error), FTL_OK, "%s", error.message);
  cr_assert(more);
  for (int i = 0; i < csv->num_fields; i++) {
    size_t used = strlen(joined);
    snprintf(joined + used, sizeof joined - used, "[%s]", csv->fields[i]);
  }
  cr_assert_str_eq(joined, expected);
  cr_assert_eq(csv->line, line);
}

static void is_at_end(ftl_csv *csv) {
  bool more = true;
  ftl_error error;
  cr_assert_eq(ftl_csv_next(csv, &more, &error), FTL_OK);
  cr_assert_not(more);
  ftl_csv_fini(csv);
}

static void next_fails(const char *text, const char *message) {
  ftl_csv csv = open_text(text);
  bool more = true;
  ftl_error error = {0};
  ftl_status status = FTL_OK;
  while (status == FTL_OK && more) status = ftl_csv_next(&csv, &more, &error);
  cr_assert_eq(status, FTL_BAD_INPUT);
  cr_assert_str_eq(error.message, message);
  ftl_csv_fini(&csv);
}

Test(unit_results_csv, splits_lines_at_commas) {
  ftl_csv csv = open_text("a,bc,\n,,d\r\n7");
  next_is(&csv, 1, "[a][bc][]");
  next_is(&csv, 2, "[][][d]");
  next_is(&csv, 3, "[7]");
  is_at_end(&csv);
}

Test(unit_results_csv, byte_order_mark_is_no_part_of_the_first_field) {
  ftl_csv csv = open_text(
      "\xef\xbb\xbf"
      "a,b\n\xef\xbb\xbf"
      "c\n");
  next_is(&csv, 1, "[a][b]");
  next_is(&csv, 2,
          "[\xef\xbb\xbf"
          "c]");  // a mark only at the beginning of the text
  is_at_end(&csv);
  csv = open_text("\xef\xbb\xbf");
  is_at_end(&csv);
  csv = open_text("\xef\xbb");  // no whole mark
  next_is(&csv, 1, "[\xef\xbb]");
  is_at_end(&csv);
}

Test(unit_results_csv, quoted_fields_hold_commas_quotes_and_line_ends) {
  ftl_csv csv = open_text("\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\"\n\"\",x\n");
  next_is(&csv, 1, "[a,b][say \"hi\"][two\nlines]");
  next_is(&csv, 3, "[][x]");  // the row before took two lines
  is_at_end(&csv);
}

Test(unit_results_csv, a_quoted_field_may_end_the_file) {
  ftl_csv csv = open_text("1,\"2\"");
  next_is(&csv, 1, "[1][2]");
  is_at_end(&csv);
}

Test(unit_results_csv, an_empty_file_has_no_rows) {
  ftl_csv csv = open_text("");
  is_at_end(&csv);
}

Test(unit_results_csv, names_line_and_column_of_a_quote_that_does_not_end) {
  next_fails("a,b\n1,\"2\n3\n", "t.csv:2: column 2: a quoted field that does not end");
}

Test(unit_results_csv, names_line_and_column_of_a_stray_quote) {
  next_fails("a\nb,c,d\"e\n", "t.csv:2: column 3: a quote inside a field that is not quoted");
  next_fails("\"a\"b\n", "t.csv:1: column 1: text behind a closing quote");
}

Test(unit_results_csv, refuses_nul_bytes_with_their_line) {
  ftl_csv csv;
  ftl_error error;
  cr_assert_eq(ftl_csv_init(&csv, "t.csv", "a\nb\0c", 5, &error), FTL_BAD_INPUT);
  cr_assert_str_eq(error.message, "t.csv:2: a NUL byte, so no CSV text");
}

Test(unit_results_csv, a_folder_or_no_file_is_named) {
  ftl_csv csv;
  ftl_error error;
  cr_assert_eq(ftl_csv_open(&csv, "/tmp", &error), FTL_IO_FAILED);
  cr_assert_str_eq(error.message, "/tmp: Is a directory");
  cr_assert_eq(ftl_csv_open(&csv, "/tmp/no_such_file.csv", &error), FTL_IO_FAILED);
}
