// Measured rows to cases: launches of a pipeline are combined, profiles of one case are averaged.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "report/validate.h"
#include "report/validate_usable.h"
#include "results/measured_columns.h"

typedef struct sample {
  ftl_measured_case measured_case;
  char repeat[16];
  const char *kernel;  // of its first launch
  ftl_provenance provenance;
  double value[FTL_METRIC_COUNT];
  int64_t num_impossible, line;
  bool is_open;
} sample;

static bool is_same_case(const ftl_measured_case *a, const ftl_measured_case *b) {
  return a->spec.workload == b->spec.workload && strcmp(a->source, b->source) == 0 &&
         strcmp(a->author, b->author) == 0 && strcmp(a->arch, b->arch) == 0 &&
         (a->part == FTL_PART_YOURS) == (b->part == FTL_PART_YOURS) &&
         memcmp(a->spec.value, b->spec.value, sizeof a->spec.value) == 0;
}

static ftl_status count_uncovered(ftl_validation *v, const char *reason, ftl_error *error) {
  for (int i = 0; i < v->num_uncovered; i++) {
    if (strncmp(v->uncovered[i].reason, reason, sizeof v->uncovered[i].reason - 1) != 0) continue;
    v->uncovered[i].num_rows++;
    return FTL_OK;
  }
  ftl_uncovered *grown = realloc(v->uncovered, ((size_t)v->num_uncovered + 1) * sizeof *grown);
  if (grown == NULL) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the cases");
  v->uncovered = grown;
  grown[v->num_uncovered] = (ftl_uncovered){.num_rows = 1};
  snprintf(grown[v->num_uncovered].reason, sizeof grown->reason, "%.95s", reason);
  v->num_uncovered++;
  return FTL_OK;
}

static ftl_status find_case(ftl_validation *v, const sample *s, const char *path, ftl_case **out, ftl_error *error) {
  for (int64_t i = 0; i < v->num_cases; i++) {
    *out = &v->cases[i];
    if (is_same_case(&(*out)->measured_case, &s->measured_case)) return FTL_OK;
  }
  if (v->num_cases == v->capacity) {
    int64_t capacity = v->capacity == 0 ? 64 : 2 * v->capacity;
    ftl_case *grown = realloc(v->cases, (size_t)capacity * sizeof *grown);
    if (grown == NULL) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the cases");
    v->cases = grown;
    v->capacity = capacity;
  }
  ftl_case *c = &v->cases[v->num_cases++];
  memset(c, 0, sizeof *c);
  c->measured_case = s->measured_case;
  c->status = FTL_INTERRUPTED;  // until it is predicted
  c->provenance = s->provenance;
  snprintf(c->place, sizeof c->place, "%.70s:%lld", ftl_path_file_name(path), (long long)s->line);
  for (int i = 0; i < FTL_METRIC_COUNT; i++) c->measured[i] = (double)NAN;
  *out = c;
  return FTL_OK;
}

static ftl_status close_sample(ftl_validation *v, sample *s, const char *path, ftl_error *error) {
  if (!s->is_open) return FTL_OK;
  s->is_open = false;
  ftl_case *c = NULL;
  ftl_status status = find_case(v, s, path, &c, error);
  if (status != FTL_OK) return status;
  c->num_impossible += s->num_impossible;
  for (int i = 0; i < FTL_METRIC_COUNT; i++) {
    double value = s->value[i];
    if (isnan(value)) continue;
    int64_t n = c->counts[i]++;
    c->measured[i] = n == 0 ? value : c->measured[i] + (value - c->measured[i]) / (double)(n + 1);
    c->least[i] = n == 0 || value < c->least[i] ? value : c->least[i];
    c->most[i] = n == 0 || value > c->most[i] ? value : c->most[i];
  }
  return FTL_OK;
}

// A further launch of the same pipeline, as predictions combine theirs.
static void add_launch(sample *s, const double *value) {
  double before_ns = s->value[FTL_METRIC_time_ns], ns = value[FTL_METRIC_time_ns];
  for (int i = 0; i < FTL_METRIC_COUNT; i++) {
    switch (ftl_metric_get((ftl_metric)i)->combine) {
      case FTL_COMBINE_SUM:
        s->value[i] += value[i];
        break;
      case FTL_COMBINE_MAX:
        s->value[i] = fmax(s->value[i], value[i]);
        break;
      case FTL_COMBINE_MEAN:
        s->value[i] = (s->value[i] * before_ns + value[i] * ns) / (before_ns + ns);
        break;
    }
  }
}

static void read_values(const ftl_measurement *row, double *out, int64_t *num_impossible) {
  for (int i = 0; i < FTL_METRIC_COUNT; i++) {
    const ftl_measured_value *value = ftl_measurement_value(row, ftl_metric_get((ftl_metric)i)->name);
    bool is_usable = value != NULL && !value->is_impossible;
    *num_impossible += value != NULL && value->is_impossible;
    out[i] = is_usable ? value->value : (double)NAN;
  }
}

static bool is_next_launch(const sample *s, const ftl_measured_case *c, const char *repeat, const char *kernel) {
  return s->is_open && is_same_case(&s->measured_case, c) && strcmp(s->repeat, repeat) == 0 && kernel != NULL &&
         s->kernel != NULL && strcmp(kernel, s->kernel) != 0;
}

static ftl_provenance provenance_of(const ftl_measurement *row) {
  ftl_provenance p;
  snprintf(p.gpu, sizeof p.gpu, "%s", ftl_column_or(row, "gpu", ""));
  snprintf(p.driver, sizeof p.driver, "%s", ftl_column_or(row, "driver", ""));
  snprintf(p.cuda, sizeof p.cuda, "%s", ftl_column_or(row, "cuda", ""));
  snprintf(p.ncu, sizeof p.ncu, "%s", ftl_column_or(row, "ncu", ""));
  snprintf(p.date, sizeof p.date, "%s", ftl_column_or(row, "date", ""));
  return p;
}

static ftl_status add_row(ftl_validation *v, sample *s, const ftl_measurement *row, const ftl_measured_case *c,
                          const char *path, ftl_error *error) {
  const char *repeat = ftl_measurement_fact(row, "repeat"), *kernel = ftl_measurement_fact(row, "kernel");
  if (repeat == NULL) repeat = "";
  double value[FTL_METRIC_COUNT];
  int64_t num_impossible = 0;
  read_values(row, value, &num_impossible);
  if (is_next_launch(s, c, repeat, kernel)) {
    add_launch(s, value);
    s->num_impossible += num_impossible;
    return FTL_OK;
  }
  ftl_status status = close_sample(v, s, path, error);
  *s = (sample){.measured_case = *c, .kernel = kernel, .line = row->line, .is_open = true};
  s->num_impossible = num_impossible;
  s->provenance = provenance_of(row);
  snprintf(s->repeat, sizeof s->repeat, "%s", repeat);
  memcpy(s->value, value, sizeof value);
  return status;
}

// Whether a row is left out: by its workload also where no configuration expresses it.
static bool is_filtered(const ftl_case_filter *filter, const ftl_measurement *row, ftl_status status,
                        const ftl_measured_case *c) {
  if (filter == NULL) return false;
  const char *workload = status == FTL_OK ? c->spec.workload->name : ftl_column_or(row, "workload", "");
  if (filter->workload != NULL && strcmp(workload, filter->workload) != 0) return true;
  return status == FTL_OK && filter->wants != NULL && !filter->wants(filter->user, c);
}

static ftl_status take_row(ftl_validation *v, sample *s, const ftl_measurement_file *file, const ftl_measurement *row,
                           const ftl_case_filter *filter, ftl_error *error) {
  ftl_measured_case c;
  ftl_error reason;
  ftl_status status = ftl_measured_case_of(&c, file, row, &reason);
  if (is_filtered(filter, row, status, &c)) {
    v->num_left_out++;
    return FTL_OK;
  }
  v->num_rows++;
  bool did_run = true;
  if (ftl_row_status_check(row, &did_run, &reason) != FTL_OK) status = FTL_BAD_INPUT;
  if (!did_run) {
    ftl_validation_note_not_ok(v, file, row);
    return FTL_OK;
  }
  if (status == FTL_OK) return add_row(v, s, row, &c, file->path, error);
  if (status == FTL_INFEASIBLE) return count_uncovered(v, reason.message, error);
  return ftl_error_set(error, status, "%s:%lld: %.400s", file->path, (long long)row->line, reason.message);
}

ftl_status ftl_validation_add(ftl_validation *v, const ftl_measurement_file *file, const ftl_case_filter *filter,
                              ftl_error *error) {
  sample s = {0};
  ftl_status status = FTL_OK;
  int64_t num_before = v->num_cases;
  for (int64_t i = 0; status == FTL_OK && i < file->num_rows; i++) {
    status = take_row(v, &s, file, &file->rows[i], filter, error);
  }
  if (status == FTL_OK) status = close_sample(v, &s, file->path, error);
  if (status == FTL_OK) ftl_validation_note_unmeasured(v, file, num_before);
  return status;
}

void ftl_validation_fini(ftl_validation *v) {
  free(v->cases);
  free(v->uncovered);
  *v = (ftl_validation){0};
}

void ftl_validation_thin(ftl_validation *v, int64_t step) {
  int64_t kept = 0;
  for (int64_t i = 0; i < v->num_cases; i += step) v->cases[kept++] = v->cases[i];
  v->num_cases = kept;
}
