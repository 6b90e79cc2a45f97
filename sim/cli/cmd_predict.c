// foretile predict: one answer, or --batch.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/batch.h"
#include "cli/command.h"
#include "cli/points.h"
#include "cli/use.h"
#include "report/prediction_report.h"

static ftl_status print_answer(const ftl_point *point, const ftl_answer *answer, bool json, ftl_error *error) {
  ftl_row row = {.arch = point->arch, .prediction = &answer->prediction};
  ftl_text text = {0};
  ftl_status status = FTL_OK;
  if (json) {
    ftl_prediction_json(&row, &text);
    ftl_text_add(&text, "\n");
    if (text.failed) status = ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the answer");
  } else {
    status = ftl_prediction_text(&row, &text, error);
  }
  if (status == FTL_OK) fputs(ftl_text_get(&text), stdout);
  ftl_text_fini(&text);
  return status;
}

static ftl_status predict_one(ftl_use *use, const ftl_arguments *arguments, ftl_error *error) {
  static ftl_answer answer;
  ftl_points points;
  ftl_status status = ftl_points_make(&use->session, arguments, "predict", false, &points, error);
  if (status == FTL_OK) status = ftl_session_evaluate(&use->session, points.points, 1, &answer, error);
  if (status == FTL_OK) status = print_answer(&points.points[0], &answer, arguments->json, error);
  ftl_points_fini(&points);
  return status;
}

static ftl_status predict_batch(ftl_use *use, const ftl_arguments *arguments, ftl_error *error) {
  if (arguments->num_positional > 0) {
    return ftl_error_set(error, FTL_BAD_INPUT, "%.64s: with --batch the parameters are in the lines",
                         arguments->positional[0]);
  }
  bool from_stdin = strcmp(arguments->batch, "-") == 0;
  int fd = from_stdin ? STDIN_FILENO : open(arguments->batch, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ftl_error_set(error, FTL_IO_FAILED, "%s: %s", arguments->batch, strerror(errno));
  int64_t num_failed = 0;
  ftl_status status = ftl_batch_run(&use->session, arguments, fd, from_stdin ? "standard input" : arguments->batch,
                                    stdout, &num_failed, error);
  if (!from_stdin) close(fd);
  if (status == FTL_OK && num_failed > 0)
    status = ftl_error_set(error, FTL_RUN_FAILED, "%lld %s answered by an error", (long long)num_failed,
                           num_failed == 1 ? "line was" : "lines were");
  return status;
}

int ftl_cmd_predict(int argc, char **argv) {
  ftl_arguments arguments;
  ftl_error error;
  ftl_status status = ftl_arguments_parse(&arguments, argc, argv, "predict", "KEY=VALUE...", "awsDjdJbq", &error);
  if (status != FTL_OK) return ftl_command_end(status, error.message);
  if (!arguments.help) {
    ftl_use use;
    status = ftl_use_begin(&use, &arguments, "predict", arguments.database, NULL, NULL, &error);
    if (status == FTL_OK) {
      bool is_batch = arguments.batch != NULL;
      if (is_batch) use.progress.enabled = false;
      status = is_batch ? predict_batch(&use, &arguments, &error) : predict_one(&use, &arguments, &error);
      status = ftl_use_end(&use, status, &error);
    }
  }
  ftl_arguments_fini(&arguments);
  return ftl_command_end(status, error.message);
}
