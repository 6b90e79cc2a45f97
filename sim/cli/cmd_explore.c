// foretile explore: every combination, ranked.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/points.h"
#include "cli/use.h"
#include "report/prediction_report.h"
#include "report/svg.h"
#include "report/why.h"

static ftl_status write_file(const char *path, const ftl_text *text, ftl_error *error) {
  FILE *file = fopen(path, "w");
  if (file == NULL) return ftl_error_set(error, FTL_IO_FAILED, "%s: %s", path, strerror(errno));
  bool failed = fwrite(ftl_text_get(text), 1, text->size, file) != text->size;
  failed = fclose(file) != 0 || failed;
  if (!failed) return FTL_OK;
  ftl_error_set(error, FTL_IO_FAILED, "%s: %s", path, strerror(errno));
  remove(path);
  return FTL_IO_FAILED;
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// The best `top` and every infeasible one.
static void add_json(const ftl_row *rows, int64_t num_rows, int64_t num_feasible, int64_t top, ftl_text *out) {
  for (int64_t i = 0; i < num_rows; i++) {
    if (i >= top && i < num_feasible) continue;
    ftl_prediction_json(&rows[i], out);
    ftl_text_add(out, "\n");
  }
}

static void add_infeasible(const ftl_row *rows, int64_t num_rows, ftl_varying varying, ftl_text *out) {
  if (num_rows > 0) ftl_text_add(out, "\ninfeasible:\n");
  for (int64_t i = 0; i < num_rows; i++) {
    ftl_text_add(out, "  ");
    ftl_row_label(&rows[i], varying, out);
    ftl_text_add(out, ": %s\n", rows[i].prediction->reason);
  }
}

static ftl_status add_text(const ftl_row *rows, int64_t num_rows, int64_t num_feasible, int64_t top, ftl_text *out,
                           ftl_error *error) {
  ftl_text_add(out, "%lld configurations, %lld feasible\n", (long long)num_rows, (long long)num_feasible);
  ftl_status status = FTL_OK;
  if (num_feasible > 0) {
    ftl_text_add(out, "\n");
    status = ftl_rows_ranking(rows, smaller(top, num_feasible), out, error);
  }
  if (status == FTL_OK && num_feasible > 1) {
    ftl_text_add(out, "\n");
    status = ftl_rows_why(rows, num_feasible, out, error);
    ftl_text_add(out, "\n");
  }
  add_infeasible(rows + num_feasible, num_rows - num_feasible, ftl_rows_varying(rows, num_rows), out);
  return status;
}

static ftl_status draw(const ftl_row *rows, int64_t num_feasible, int64_t top, const char *path, ftl_error *error) {
  const int64_t max_bars = 100;
  ftl_text text = {0};
  ftl_status status = ftl_rows_svg(rows, num_feasible, (int)smaller(top, max_bars), &text, error);
  if (status == FTL_OK) status = write_file(path, &text, error);
  ftl_text_fini(&text);
  return status;
}

static ftl_status print_rows(ftl_row *rows, int64_t num_rows, const ftl_arguments *arguments, ftl_column by,
                             ftl_error *error) {
  ftl_status status = ftl_rows_rank(rows, num_rows, by, error);
  if (status != FTL_OK) return status;
  int64_t num_feasible = ftl_rows_num_feasible(rows, num_rows);
  int64_t top = arguments->top > 0 ? arguments->top : num_rows;
  ftl_text text = {0};
  if (arguments->json) {
    add_json(rows, num_rows, num_feasible, top, &text);
  } else {
    status = add_text(rows, num_rows, num_feasible, top, &text, error);
  }
  if (status == FTL_OK && text.failed) status = ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the answers");
  if (status == FTL_OK && arguments->svg != NULL) status = draw(rows, num_feasible, top, arguments->svg, error);
  if (status == FTL_OK) fputs(ftl_text_get(&text), stdout);
  ftl_text_fini(&text);
  return status;
}

static ftl_status evaluate_and_print(ftl_use *use, const ftl_points *points, const ftl_arguments *arguments,
                                     ftl_column by, ftl_error *error) {
  size_t num_points = (size_t)points->num_points;
  ftl_answer *answers = calloc(num_points, sizeof *answers);
  ftl_row *rows = calloc(num_points, sizeof *rows);
  ftl_status status = FTL_OK;
  if (answers == NULL || rows == NULL) {
    status = ftl_error_set(error, FTL_NO_MEMORY, "out of memory for %zu configurations", num_points);
  } else {
    status = ftl_session_evaluate(&use->session, points->points, points->num_points, answers, error);
  }
  if (status == FTL_OK) {
    for (size_t i = 0; i < num_points; i++) rows[i] = (ftl_row){points->points[i].arch, &answers[i].prediction};
    status = print_rows(rows, points->num_points, arguments, by, error);
  }
  free(rows);
  free(answers);
  return status;
}

static ftl_status explore(ftl_use *use, const ftl_arguments *arguments, ftl_error *error) {
  ftl_column by;
  ftl_points points = {0};
  ftl_status status = ftl_rank_column_find(arguments->by != NULL ? arguments->by : "time", &by, error);
  if (status == FTL_OK) status = ftl_points_make(&use->session, arguments, "explore", true, &points, error);
  if (status == FTL_OK) status = evaluate_and_print(use, &points, arguments, by, error);
  ftl_points_fini(&points);
  return status;
}

int ftl_cmd_explore(int argc, char **argv) {
  ftl_arguments arguments;
  ftl_error error;
  ftl_status status = ftl_arguments_parse(&arguments, argc, argv, "explore", "KEY=V1,V2,...", "awsDjdJtyvq", &error);
  if (status != FTL_OK) return ftl_command_end(status, error.message);
  if (!arguments.help) {
    ftl_use use;
    status = ftl_use_begin(&use, &arguments, "explore", arguments.database, NULL, NULL, &error);
    if (status == FTL_OK) status = ftl_use_end(&use, explore(&use, &arguments, &error), &error);
  }
  ftl_arguments_fini(&arguments);
  return ftl_command_end(status, error.message);
}
