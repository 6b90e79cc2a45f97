// foretile import: measured rows into the database.
#include <stdio.h>
#include <stdlib.h>

#include "cli/arguments.h"
#include "cli/command.h"
#include "report/validate_usable.h"
#include "results/measured_case.h"
#include "results/measurement_store.h"

static void print_summary(const ftl_measurement_file *file, const ftl_import_summary *s) {
  if (s->was_there) {
    printf("%s: imported before, nothing to do\n", file->path);
    return;
  }
  printf("%s: %s, %lld rows, %lld values; %lld rows are configurations of a workload", file->path,
         ftl_measurement_format_name(file->format), (long long)s->num_rows, (long long)s->num_values,
         (long long)s->num_comparable);
  if (s->num_impossible > 0) printf("; %lld impossible values kept and flagged", (long long)s->num_impossible);
  printf("\n");
}

static ftl_status store(const ftl_measurement_file *files, int num_files, const char *path, ftl_error *error) {
  ftl_database *database = NULL;
  ftl_status status = ftl_database_open(&database, path, error);
  for (int i = 0; status == FTL_OK && i < num_files; i++) {
    ftl_import_summary summary;
    status = ftl_database_put_measurements(database, &files[i], &summary, error);
    if (status == FTL_OK) print_summary(&files[i], &summary);
  }
  ftl_database_close(database);
  return status;
}

// A row that no configuration can express, or that did not run, is stored; one with a parameter out of range, or of
// which it cannot be told whether it ran, is bad input.
static ftl_status check_rows(const ftl_measurement_file *file, ftl_error *error) {
  for (int64_t i = 0; i < file->num_rows; i++) {
    ftl_measured_case c;
    ftl_error reason;
    bool did_run = false;
    ftl_status status = ftl_row_status_check(&file->rows[i], &did_run, &reason);
    if (status == FTL_OK) status = ftl_measured_case_of(&c, file, &file->rows[i], &reason);
    if (status != FTL_OK && status != FTL_INFEASIBLE)
      return ftl_error_set(error, status, "%s:%lld: %.400s", file->path, (long long)file->rows[i].line, reason.message);
  }
  return FTL_OK;
}

// All files are read and checked before the first is stored: a bad one among them leaves the database as it was.
static ftl_status import(const ftl_arguments *arguments, ftl_error *error) {
  if (arguments->num_positional == 0) {
    return ftl_error_set(error, FTL_BAD_INPUT, "import takes CSV files: foretile import FILE.csv...");
  }
  ftl_measurement_file *files = calloc((size_t)arguments->num_positional, sizeof *files);
  if (files == NULL) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  ftl_status status = FTL_OK;
  int num_files = 0;
  while (status == FTL_OK && num_files < arguments->num_positional) {
    status = ftl_measurement_file_read(&files[num_files], arguments->positional[num_files], error);
    num_files += status == FTL_OK;
    if (status == FTL_OK) status = check_rows(&files[num_files - 1], error);
  }
  if (status == FTL_OK) {
    status = store(files, num_files, arguments->database != NULL ? arguments->database : "foretile.db", error);
  }
  for (int i = 0; i < num_files; i++) ftl_measurement_file_fini(&files[i]);
  free(files);
  return status;
}

int ftl_cmd_import(int argc, char **argv) {
  ftl_arguments arguments;
  ftl_error error;
  ftl_status status = ftl_arguments_parse(&arguments, argc, argv, "import", "FILE.csv...", "d", &error);
  if (status != FTL_OK) return ftl_command_end(status, error.message);
  if (!arguments.help) status = import(&arguments, &error);
  ftl_arguments_fini(&arguments);
  return ftl_command_end(status, error.message);
}
