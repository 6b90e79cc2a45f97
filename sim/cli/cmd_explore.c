// foretile explore: every combination, ranked.
#include <stdio.h>
#include <stdlib.h>

#include "base/integer.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/points.h"
#include "cli/use.h"
#include "report/output_file.h"
#include "report/prediction_report.h"
#include "report/svg.h"
#include "report/why.h"

// The answers of one GPU, ranked.
typedef struct ranking {
  const ftl_row *rows;
  int64_t num_rows, num_feasible, top;
} ranking;

// The best `top` and every infeasible one.
static void add_json(const ranking *r, ftl_text *out) {
  for (int64_t i = 0; i < r->num_rows; i++) {
    if (i >= r->top && i < r->num_feasible) continue;
    ftl_prediction_json(&r->rows[i], out);
    ftl_text_add(out, "\n");
  }
}

static ftl_status add_text(const ranking *r, ftl_text *out, ftl_error *error) {
  if (out->size > 0) ftl_text_add(out, "\n");
  ftl_text_add(out, "%s: %lld configurations, %lld feasible\n", r->rows[0].arch->name, (long long)r->num_rows,
               (long long)r->num_feasible);
  ftl_status status = FTL_OK;
  if (r->num_feasible > 0) {
    ftl_text_add(out, "\n");
    ftl_varying varying = ftl_rows_varying(r->rows, r->num_feasible);
    status = ftl_rows_ranking(r->rows, ftl_smaller(r->top, r->num_feasible), varying, out, error);
  }
  if (status == FTL_OK && r->num_feasible > 1) {
    ftl_text_add(out, "\n");
    status = ftl_rows_why(r->rows, r->num_feasible, out, error);
    ftl_text_add(out, "\n");
  }
  ftl_rows_infeasible(r->rows, r->num_rows, ftl_rows_varying(r->rows, r->num_rows), out);
  return status;
}

static ftl_status draw(const ftl_row *rows, int64_t num_rows, int max_bars, const char *path, ftl_error *error) {
  ftl_text text = {0};
  ftl_status status = ftl_rows_svg(rows, num_rows, max_bars, &text, error);
  if (status == FTL_OK) status = ftl_output_file_write(path, &text, error);
  ftl_text_fini(&text);
  return status;
}

// Rows come GPU after GPU; each GPU's are ranked in place.
static ftl_status add_rankings(ftl_row *rows, int64_t num_rows, const ftl_arguments *arguments, ftl_column by,
                               ftl_text *out, ftl_error *error) {
  ftl_status status = FTL_OK;
  for (int64_t first = 0, end = 0; status == FTL_OK && first < num_rows; first = end) {
    while (end < num_rows && rows[end].arch == rows[first].arch) end++;
    status = ftl_rows_rank(rows + first, end - first, by, error);
    if (status != FTL_OK) return status;
    ranking r = {.rows = rows + first, .num_rows = end - first};
    r.num_feasible = ftl_rows_num_feasible(r.rows, r.num_rows);
    r.top = arguments->top > 0 ? arguments->top : r.num_rows;
    if (arguments->json) {
      add_json(&r, out);
    } else {
      status = add_text(&r, out, error);
    }
  }
  return status;
}

static ftl_status print_rows(ftl_row *rows, int64_t num_rows, const ftl_arguments *arguments, ftl_column by,
                             ftl_error *error) {
  const int64_t max_bars = 100;
  ftl_text text = {0};
  ftl_status status = add_rankings(rows, num_rows, arguments, by, &text, error);
  if (status == FTL_OK && text.failed) status = ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the answers");
  if (status == FTL_OK && arguments->svg != NULL) {
    int64_t top = arguments->top > 0 ? arguments->top : num_rows;
    status = draw(rows, num_rows, (int)ftl_smaller(top, max_bars), arguments->svg, error);
  }
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
