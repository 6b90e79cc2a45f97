// Measured rows to cases: launches of a pipeline are combined, profiles of one case are averaged.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "report/validate.h"

typedef struct sample {
  ftl_measured_case measured_case;
  char repeat[16];
  const char *kernel;  // of its first launch
  double value[FTL_METRIC_COUNT];
  int64_t num_impossible, line;
  bool is_open;
} sample;

static bool is_same_case(const ftl_measured_case *a, const ftl_measured_case *b) {
  return a->spec.workload == b->spec.workload && strcmp(a->source, b->source) == 0 && strcmp(a->arch, b->arch) == 0 &&
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
  snprintf(s->repeat, sizeof s->repeat, "%s", repeat);
  memcpy(s->value, value, sizeof value);
  return status;
}

ftl_status ftl_validation_add(ftl_validation *v, const ftl_measurement_file *file, const char *workload,
                              ftl_error *error) {
  sample s = {0};
  ftl_status status = FTL_OK;
  for (int64_t i = 0; status == FTL_OK && i < file->num_rows; i++) {
    const ftl_measurement *row = &file->rows[i];
    ftl_measured_case c;
    ftl_error reason;
    ftl_status case_status = ftl_measured_case_make(&c, row, &reason);
    const char *ran = ftl_measurement_fact(row, "status");
    const char *named = ftl_measurement_fact(row, "workload");
    if (workload != NULL && case_status == FTL_OK && strcmp(c.spec.workload->name, workload) != 0) continue;
    if (workload != NULL && case_status != FTL_OK && (named == NULL || strcmp(named, workload) != 0)) continue;
    v->num_rows++;
    if (ran != NULL && strcmp(ran, "ok") != 0) {
      v->num_not_run++;
    } else if (case_status == FTL_OK) {
      status = add_row(v, &s, row, &c, file->path, error);
    } else if (case_status == FTL_INFEASIBLE) {
      status = count_uncovered(v, reason.message, error);
    } else {
      status = ftl_error_set(error, case_status, "%s:%lld: %.400s", file->path, (long long)row->line, reason.message);
    }
  }
  return status == FTL_OK ? close_sample(v, &s, file->path, error) : status;
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
