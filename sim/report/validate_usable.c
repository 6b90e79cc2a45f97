#include "report/validate_usable.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "arch/arch.h"

ftl_status ftl_row_status_check(const ftl_measurement *row, bool *did_run, ftl_error *error) {
  const char *ran = ftl_measurement_fact(row, "status");
  *did_run = ran == NULL || strcasecmp(ran, "ok") == 0;
  if (ran == NULL || !*did_run || strcmp(ran, "ok") == 0) return FTL_OK;
  return ftl_error_set(error, FTL_BAD_INPUT, "status=%.40s: allowed is ok, or what kept the kernel from running", ran);
}

void ftl_validation_note_not_ok(ftl_validation *v, const ftl_measurement_file *file, const ftl_measurement *row) {
  bool is_unchecked = strcmp(ftl_measurement_fact(row, "status"), "unchecked") == 0;
  ++*(is_unchecked ? &v->num_unchecked : &v->num_not_run);
  if (v->not_run[0] != '\0') return;
  snprintf(v->not_run, sizeof v->not_run, "%.100s:%lld: status=%.40s", file->path, (long long)row->line,
           ftl_measurement_fact(row, "status"));
}

static bool has_measured(const ftl_case *c) {
  double value = 0;
  for (int q = 0; q < FTL_QUANTITY_COUNT; q++) {
    if (ftl_case_measured(c, (ftl_quantity)q, &value)) return true;
  }
  return false;
}

// --- a column that may have been meant ---

typedef struct near_miss {
  const char *column, *metric;
  int distance;
} near_miss;

static const char *const stream_column = "time_median_us";  // as files call it

static void try_name(near_miss *nearest, const char *column, const char *metric) {
  int distance = ftl_edit_distance(column, metric);
  if (distance == 0 || distance >= nearest->distance || 2 * distance > (int)strlen(metric)) return;
  *nearest = (near_miss){column, metric, distance};
}

static void try_column(near_miss *nearest, const char *column) {
  if (ftl_param_find(column) >= 0 || ftl_metric_find(column) >= 0) return;
  try_name(nearest, column, stream_column);
  for (int i = 0; i < FTL_METRIC_COUNT; i++) try_name(nearest, column, ftl_metric_get((ftl_metric)i)->name);
}

static near_miss find_near_miss(const ftl_measurement *row) {
  near_miss nearest = {.distance = INT_MAX};
  for (int i = 0; i < row->num_values; i++) try_column(&nearest, row->values[i].metric);
  for (int i = 0; i < row->num_facts; i++) try_column(&nearest, row->facts[i].name);
  return nearest;
}

// A number that no measurement can give is kept and not compared; NULL: the row has none.
static const ftl_measured_value *find_impossible(const ftl_measurement *row) {
  for (int i = 0; i < row->num_values; i++)
    if (row->values[i].is_impossible && row->values[i].column != NULL) return &row->values[i];
  return NULL;
}

void ftl_validation_note_unmeasured(ftl_validation *v, const ftl_measurement_file *file, int64_t first_case) {
  if (v->unmeasured[0] != '\0' || v->num_cases == first_case) return;
  for (int64_t i = first_case; i < v->num_cases; i++) {
    if (has_measured(&v->cases[i])) return;
  }
  const ftl_measurement *row = &file->rows[0];
  near_miss nearest = find_near_miss(row);
  const ftl_measured_value *impossible = find_impossible(row);
  char meant[192] = "";
  if (impossible != NULL) {
    snprintf(meant, sizeof meant, "; %.80s is %.40s, which cannot be", impossible->column, impossible->text);
  } else if (nearest.column != NULL) {
    snprintf(meant, sizeof meant, "; the nearest to %.60s is %.80s", nearest.column, nearest.metric);
  }
  snprintf(
      v->unmeasured, sizeof v->unmeasured,
      "%.100s:%lld: no column with a value that is compared: %s of stream rows, Nsight Compute's names of ncu rows%s",
      file->path, (long long)row->line, stream_column, meant);
}

// --- the verdict ---

ftl_status ftl_validation_check(const ftl_validation *v, ftl_error *error) {
  for (int64_t i = 0; i < v->num_cases; i++) {
    if (has_measured(&v->cases[i])) return FTL_OK;
  }
  if (v->num_cases > 0) return ftl_error_set(error, FTL_BAD_INPUT, "%s", v->unmeasured);
  if (v->num_rows == 0) return ftl_error_set(error, FTL_BAD_INPUT, "no measured row is of what was asked for");
  if (v->num_not_run + v->num_unchecked == v->num_rows) {
    return ftl_error_set(error, FTL_BAD_INPUT, "%s: allowed is ok; none of the %lld measured rows has it", v->not_run,
                         (long long)v->num_rows);
  }
  return ftl_error_set(error, FTL_BAD_INPUT, "none of the %lld measured rows can be predicted: %s",
                       (long long)v->num_rows, v->uncovered[0].reason);
}
