// foretile trace: the flat warp trace of one CTA, the tile program it comes from, or a timeline of one SM.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/points.h"
#include "cli/use.h"

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

static bool is_file(FILE *file) {
  struct stat info;
  return fstat(fileno(file), &info) == 0 && S_ISREG(info.st_mode);
}

// Writes to `path`, or to standard output when it is NULL; a file (not a device) that could not be finished is removed.
static ftl_status write_to(const char *path, const ftl_point *point, const ftl_arguments *arguments, ftl_error *error) {
  FILE *out = path != NULL ? fopen(path, "w") : stdout;
  if (out == NULL) return ftl_error_set(error, FTL_IO_FAILED, "%s: %s", path, strerror(errno));
  ftl_status status = arguments->timeline != NULL ? write_timeline(out, point, arguments, error)
                                                  : write_trace(out, point, arguments, error);
  if (path == NULL) return status;
  bool failed = ferror(out) != 0, is_ours = is_file(out);
  failed = fclose(out) != 0 || failed;
  if (status == FTL_OK && failed) status = ftl_error_set(error, FTL_IO_FAILED, "%s: %s", path, strerror(errno));
  if (status != FTL_OK && is_ours) remove(path);
  return status;
}

static ftl_status trace(const ftl_arguments *arguments, ftl_error *error) {
  ftl_session session;
  ftl_points points;
  ftl_session_init(&session);
  session.detail = arguments->detail;
  const char *path = arguments->timeline != NULL ? arguments->timeline : arguments->output;
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
