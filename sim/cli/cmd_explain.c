// foretile explain: one answer, and why.
#include <stdio.h>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/points.h"
#include "cli/use.h"
#include "explain/explain.h"

static ftl_status print_explanation(const ftl_explanation *explanation, bool json, ftl_error *error) {
  ftl_text text = {0};
  ftl_status status = FTL_OK;
  if (json) {
    ftl_explanation_json(explanation, &text);
    ftl_text_add(&text, "\n");
    if (text.failed) status = ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the answer");
  } else {
    status = ftl_explanation_text(explanation, &text, error);
  }
  if (status == FTL_OK) fputs(ftl_text_get(&text), stdout);
  ftl_text_fini(&text);
  return status;
}

static ftl_status explain(ftl_use *use, const ftl_arguments *arguments, ftl_error *error) {
  ftl_points points;
  ftl_explanation *explanation = NULL;
  ftl_status status = ftl_points_make(&use->session, arguments, "explain", false, &points, error);
  if (status == FTL_OK) status = ftl_explain(points.points, &use->session.evaluate, &explanation, error);
  if (status == FTL_OK) status = print_explanation(explanation, arguments->json, error);
  ftl_explanation_destroy(explanation);
  ftl_points_fini(&points);
  return status;
}

int ftl_cmd_explain(int argc, char **argv) {
  ftl_arguments arguments;
  ftl_error error;
  ftl_status status = ftl_arguments_parse(&arguments, argc, argv, "explain", "KEY=VALUE...", "awsDjJq", &error);
  if (status != FTL_OK) return ftl_command_end(status, error.message);
  if (!arguments.help) {
    ftl_use use;
    status = ftl_use_begin(&use, &arguments, "explain", NULL, NULL, NULL, &error);
    if (status == FTL_OK) status = ftl_use_end(&use, explain(&use, &arguments, &error), &error);
  }
  ftl_arguments_fini(&arguments);
  return ftl_command_end(status, error.message);
}
