// foretile validate: predicted against measured.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/generated_part.h"
#include "results/measurements_dir.h"
#include "cli/points.h"
#include "cli/use.h"
#include "report/validate_report.h"
#include "workloads/code_form.h"

enum { TOP_ON_A_TERMINAL = 15 };

// --- measured rows ---

static ftl_status add_file(ftl_validation *v, const char *path, const ftl_case_filter *filter, ftl_error *error) {
  ftl_measurement_file file;
  ftl_status status = ftl_measurement_file_read(&file, path, error);
  if (status != FTL_OK) return status;
  status = ftl_validation_add(v, &file, filter, error);
  ftl_measurement_file_fini(&file);
  return status;
}

static ftl_status add_default_files(ftl_validation *v, const ftl_case_filter *filter, ftl_error *error) {
  glob_t found;
  ftl_status status = ftl_measurements_find(&found, error);
  for (size_t i = 0; status == FTL_OK && i < found.gl_pathc; i++) {
    status = add_file(v, found.gl_pathv[i], filter, error);
  }
  globfree(&found);
  return status;
}

static ftl_status read_measurements(ftl_validation *v, const ftl_arguments *arguments, ftl_error *error) {
  const char *workload = arguments->workload;
  if (workload != NULL && ftl_workload_find(workload) == NULL) {
    ftl_spec spec;
    return ftl_spec_init(&spec, workload, error);  // says which there are
  }
  ftl_case_filter filter = {.workload = workload};
  bool has_files = arguments->measurements != NULL || arguments->num_positional > 0;
  ftl_status status = has_files ? FTL_OK : add_default_files(v, &filter, error);
  if (arguments->measurements != NULL) status = add_file(v, arguments->measurements, &filter, error);
  for (int i = 0; status == FTL_OK && i < arguments->num_positional; i++) {
    status = add_file(v, arguments->positional[i], &filter, error);
  }
  if (status == FTL_OK) status = ftl_validation_check(v, error);
  if (status == FTL_OK && arguments->every > 1) ftl_validation_thin(v, arguments->every);
  return status;
}

// --- predictions ---

static ftl_status make_points(ftl_use *use, const ftl_arguments *arguments, ftl_validation *v, ftl_point *points,
                              ftl_error *error) {
  ftl_status status = FTL_OK;
  for (int64_t i = 0; status == FTL_OK && i < v->num_cases; i++) {
    ftl_measured_case *c = &v->cases[i].measured_case;
    status = ftl_points_arch(&use->session, arguments, c->arch, &points[i].arch, error);
    if (status == FTL_OK && arguments->detail != NULL) {
      status = ftl_spec_set_text(&c->spec, "detail", arguments->detail, error);
    }
    if (arguments->open_code) ftl_spec_open_code(&c->spec);
    points[i].spec = c->spec;
  }
  return status;
}

static void take_answers(ftl_validation *v, ftl_answer *answers) {
  for (int64_t i = 0; i < v->num_cases; i++) {
    ftl_case *c = &v->cases[i];
    c->status = answers[i].status;
    c->prediction = &answers[i].prediction;
    if (c->status == FTL_OK) continue;
    snprintf(answers[i].prediction.reason, sizeof answers[i].prediction.reason, "%s", answers[i].message);
  }
}

// *out: the answers that the cases then borrow; freed by the caller, also after a failure.
static ftl_status predict(ftl_use *use, const ftl_arguments *arguments, ftl_validation *v, ftl_answer **out,
                          ftl_error *error) {
  ftl_point *points = calloc((size_t)v->num_cases, sizeof *points);
  ftl_answer *answers = *out = calloc((size_t)v->num_cases, sizeof *answers);
  ftl_status status = points != NULL && answers != NULL
                          ? make_points(use, arguments, v, points, error)
                          : ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the predictions");
  if (status == FTL_OK) status = ftl_evaluate(points, v->num_cases, &use->session.evaluate, answers, error);
  if (status == FTL_OK) take_answers(v, answers);
  free(points);
  return status;
}

// --- output ---

static ftl_status make_text(const ftl_validation *v, const ftl_arguments *arguments, ftl_text *out, ftl_error *error) {
  if (arguments->json) return ftl_validation_json(v, out, error);
  if (arguments->markdown) return ftl_validation_markdown(v, out, error);
  int64_t top = arguments->top > 0 ? arguments->top : isatty(STDOUT_FILENO) ? TOP_ON_A_TERMINAL : 0;
  return ftl_validation_text(v, arguments->all ? 0 : top, out, error);
}

static ftl_status print(const ftl_validation *v, const ftl_arguments *arguments, ftl_error *error) {
  ftl_text text = {0};
  ftl_status status = make_text(v, arguments, &text, error);
  if (status == FTL_OK && text.failed) status = ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the report");
  if (status == FTL_OK && arguments->output != NULL) {
    status = ftl_generated_part_replace(arguments->output, &text, error);
  } else if (status == FTL_OK) {
    fputs(ftl_text_get(&text), stdout);
  }
  ftl_text_fini(&text);
  return status;
}

// The first prediction that failed, after everything else was printed.
static ftl_status check_predictions(const ftl_validation *v, ftl_error *error) {
  for (int64_t i = 0; i < v->num_cases; i++) {
    const ftl_case *c = &v->cases[i];
    if (c->status == FTL_OK) continue;
    return ftl_error_set(error, FTL_RUN_FAILED, "%s: %.400s", c->place, c->prediction->reason);
  }
  return FTL_OK;
}

static ftl_status validate(ftl_use *use, const ftl_arguments *arguments, ftl_error *error) {
  if (arguments->output != NULL && !arguments->markdown) {
    return ftl_error_set(error, FTL_BAD_INPUT,
                         "--output is for --markdown: the document whose generated part is replaced");
  }
  if (arguments->json && arguments->markdown) {
    return ftl_error_set(error, FTL_BAD_INPUT, "--json: not with --markdown; one output or the other");
  }
  ftl_validation v = {0};
  ftl_status status = arguments->output != NULL ? ftl_generated_part_check(arguments->output, error) : FTL_OK;
  if (status == FTL_OK) status = read_measurements(&v, arguments, error);
  ftl_answer *answers = NULL;
  if (status == FTL_OK) status = predict(use, arguments, &v, &answers, error);
  if (status == FTL_OK) {
    ftl_validation_sort(&v);
    status = print(&v, arguments, error);
  }
  if (status == FTL_OK) status = check_predictions(&v, error);
  ftl_validation_fini(&v);
  free(answers);
  return status;
}

int ftl_cmd_validate(int argc, char **argv) {
  ftl_arguments arguments;
  ftl_error error;
  ftl_status status =
      ftl_arguments_parse(&arguments, argc, argv, "validate", "[FILE.csv...]", "MwsDdjJktAeOoq", &error);
  if (status != FTL_OK) return ftl_command_end(status, error.message);
  if (!arguments.help) {
    ftl_use use;
    status = ftl_use_begin(&use, &arguments, "validate", arguments.database, NULL, NULL, &error);
    if (status == FTL_OK) status = ftl_use_end(&use, validate(&use, &arguments, &error), &error);
  }
  ftl_arguments_fini(&arguments);
  return ftl_command_end(status, error.message);
}
