// foretile trace: the flat warp trace of one CTA, the tile program it comes from, or a timeline of one SM.
#include <stdio.h>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/points.h"
#include "report/output_file.h"

static ftl_status write_trace(FILE *out, const ftl_point *point, const ftl_arguments *arguments, ftl_error *error) {
  ftl_tile_program *tile = NULL;
  ftl_warp_program *warps = NULL;
  ftl_status status = ftl_predict_programs(&point->spec, point->arch, (int)arguments->launch, &tile, &warps, error);
  if (status == FTL_OK && arguments->program)
    ftl_tile_program_write(out, tile);
  else if (status == FTL_OK)
    status = ftl_trace_write(out, warps, arguments->cta, arguments->max_lines, error);
  ftl_warp_program_destroy(warps);
  ftl_tile_program_destroy(tile);
  return status;
}

// A trace, a program and a timeline have options of their own.
static ftl_status check_options(const ftl_arguments *arguments, ftl_error *error) {
  const char *others = arguments->program ? "Tcxfu" : arguments->timeline ? "cxo" : "fu";
  const char *other = ftl_arguments_given(arguments, others);
  if (other == NULL) return FTL_OK;
  if (!arguments->program && !arguments->timeline)
    return ftl_error_set(error, FTL_BAD_INPUT, "--%s: only with --timeline", other);
  return ftl_error_set(error, FTL_BAD_INPUT, "--%s: not with --%s", other, arguments->program ? "program" : "timeline");
}

static ftl_status write_timeline(FILE *out, const ftl_point *point, const ftl_arguments *arguments, ftl_error *error) {
  if (arguments->from_cycle >= arguments->until_cycle) {
    return ftl_error_set(error, FTL_BAD_INPUT, "--from=%lld must be before --until=%lld",
                         (long long)arguments->from_cycle, (long long)arguments->until_cycle);
  }
  return ftl_timeline_write(out, &point->spec, point->arch, (int)arguments->launch, arguments->from_cycle,
                            arguments->until_cycle, error);
}

// What cannot run has no trace, so unlike a prediction's this is a failure.
static ftl_status write_either(FILE *out, const ftl_point *point, const ftl_arguments *arguments, ftl_error *error) {
  ftl_error local = {0};
  ftl_status status = arguments->timeline != NULL ? write_timeline(out, point, arguments, &local)
                                                  : write_trace(out, point, arguments, &local);
  if (status == FTL_OK) return FTL_OK;
  return ftl_error_set(error, status, "%s%s", status == FTL_INFEASIBLE ? "infeasible, nothing to trace: " : "",
                       local.message);
}

// Writes to `path`, whole or not at all, or to standard output when it is NULL.
static ftl_status write_to(const char *path, const ftl_point *point, const ftl_arguments *arguments, ftl_error *error) {
  if (path == NULL) return write_either(stdout, point, arguments, error);
  ftl_output_stream stream;
  ftl_status status = ftl_output_stream_open(&stream, path, error);
  if (status != FTL_OK) return status;
  status = write_either(stream.file, point, arguments, error);
  if (status == FTL_OK && atomic_load(ftl_interrupt_flag()))
    status = ftl_error_set(error, FTL_INTERRUPTED, "interrupted");
  return ftl_output_stream_close(&stream, status, error);
}

static ftl_status trace(const ftl_arguments *arguments, ftl_error *error) {
  ftl_session session;
  ftl_points points;
  ftl_session_init(&session);
  session.detail = arguments->detail;
  const char *path = arguments->timeline != NULL ? arguments->timeline : arguments->output;
  if (path != NULL) ftl_interrupt_install();  // half a file is none: it is given up when it has been written
  ftl_status status = ftl_points_make(&session, arguments, "trace", false, &points, error);
  if (status == FTL_OK) status = write_to(path, &points.points[0], arguments, error);
  ftl_points_fini(&points);
  ftl_session_fini(&session);
  return status;
}

int ftl_cmd_trace(int argc, char **argv) {
  ftl_arguments arguments;
  ftl_error error;
  ftl_status status = ftl_arguments_parse(&arguments, argc, argv, "trace", "KEY=VALUE...", "awsDclxPTfuo", &error);
  if (status != FTL_OK) return ftl_command_end(status, error.message);
  if (!arguments.help) status = check_options(&arguments, &error);
  if (!arguments.help && status == FTL_OK) status = trace(&arguments, &error);
  ftl_arguments_fini(&arguments);
  return ftl_command_end(status, error.message);
}
