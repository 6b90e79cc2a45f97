// Errors of cases, and their statistics a part.
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/validate.h"

static const struct {
  const char *id, *name;
  ftl_metric metric;
  int second;
  ftl_quantity_kind kind;
} quantities[] = {
#define FTL_QUANTITY(id, name, metric, second, kind) {#id, name, metric, second, FTL_QUANTITY_##kind},
#include "report/validate_quantities.def"
#undef FTL_QUANTITY
};

const char *ftl_quantity_name(ftl_quantity quantity) { return quantities[quantity].name; }
const char *ftl_quantity_id(ftl_quantity quantity) { return quantities[quantity].id; }

const char *ftl_quantity_value_unit(ftl_quantity quantity) { return ftl_metric_get(quantities[quantity].metric)->unit; }

const char *ftl_quantity_metric_name(ftl_quantity quantity) {
  return quantities[quantity].second >= 0 ? NULL : ftl_metric_get(quantities[quantity].metric)->name;
}

int ftl_quantity_find(const char *id) {
  for (int q = 0; q < FTL_QUANTITY_COUNT; q++) {
    const char *metric = ftl_quantity_metric_name((ftl_quantity)q);
    if (strcmp(id, quantities[q].id) == 0 || (metric != NULL && strcmp(id, metric) == 0)) return q;
  }
  return -1;
}

const char *ftl_quantity_nearest(const char *id) {
  int nearest = 0, least = INT_MAX;
  for (int q = 0; q < FTL_QUANTITY_COUNT; q++) {
    int distance = ftl_edit_distance(id, quantities[q].id);
    if (distance >= least) continue;
    least = distance;
    nearest = q;
  }
  return quantities[nearest].id;
}

const char *ftl_quantity_unit(ftl_quantity quantity) {
  static const char *const units[] = {"%", "points", "warps"};
  return units[quantities[quantity].kind];
}

bool ftl_case_is_predicted(const ftl_case *c) { return c->status == FTL_OK && c->prediction->feasible; }

static bool is_stream(const ftl_case *c) {
  char buffer[32];
  return strcmp(ftl_spec_text(&c->measured_case.spec, FTL_PARAM_conditions, buffer), "stream") == 0;
}

// A case is compared with a prediction of its own condition, whose time is this one.
static ftl_metric time_metric(const ftl_case *c) {
  return is_stream(c) ? FTL_METRIC_stream_time_ns : FTL_METRIC_time_ns;
}

double ftl_case_measured_time_ns(const ftl_case *c) { return c->measured[time_metric(c)]; }
double ftl_case_predicted_time_ns(const ftl_case *c) { return c->prediction->metrics.value[time_metric(c)]; }

static double sum_of(const double *value, ftl_quantity quantity) {
  int second = quantities[quantity].second;
  return value[quantities[quantity].metric] + (second >= 0 ? value[second] : 0);
}

// In the unit of the quantity's errors.
static bool scaled(ftl_quantity quantity, double difference, double measured, double *out) {
  if (quantities[quantity].kind != FTL_QUANTITY_RELATIVE) {
    *out = difference;
    return true;
  }
  *out = difference != 0 ? 100 * difference / measured : 0;
  return difference == 0 || measured != 0;
}

bool ftl_case_values(const ftl_case *c, ftl_quantity quantity, double *measured, double *predicted) {
  if (!ftl_case_is_predicted(c)) return false;
  *measured = sum_of(c->measured, quantity);
  *predicted = sum_of(c->prediction->metrics.value, quantity);
  return !isnan(*measured) && !isnan(*predicted);
}

bool ftl_case_measured(const ftl_case *c, ftl_quantity quantity, double *out) {
  if (quantity == FTL_QUANTITY_stream_time && !is_stream(c)) return false;
  *out = sum_of(c->measured, quantity);
  return !isnan(*out);
}

bool ftl_case_error(const ftl_case *c, ftl_quantity quantity, double *out) {
  double measured = 0, predicted = 0;
  if (!ftl_case_values(c, quantity, &measured, &predicted)) return false;
  return scaled(quantity, predicted - measured, measured, out);
}

bool ftl_case_error_above_spread(const ftl_case *c, ftl_quantity quantity, double *out) {
  double error = 0;
  if (c->counts[quantities[quantity].metric] < 2 || !ftl_case_error(c, quantity, &error)) return false;
  double spread = 0;
  if (!scaled(quantity, sum_of(c->most, quantity) - sum_of(c->least, quantity), sum_of(c->measured, quantity),
              &spread)) {
    return false;
  }
  double excess = fabs(error) - 2 * spread;
  *out = excess > 0 ? copysign(excess, error) : 0;
  return true;
}

double ftl_case_size(const ftl_case *c) {
  static const ftl_quantity sized[] = {FTL_QUANTITY_cycles, FTL_QUANTITY_time, FTL_QUANTITY_stream_time};
  double size = -1, error = 0;
  for (int i = 0; i < 3; i++) {
    if (ftl_case_error(c, sized[i], &error) && fabs(error) > size) size = fabs(error);
  }
  return size;
}

static int compare_cases(const void *a, const void *b) {
  const ftl_case *x = a, *y = b;
  bool x_is = ftl_case_is_predicted(x), y_is = ftl_case_is_predicted(y);
  if (x_is != y_is) return x_is ? 1 : -1;
  double x_size = ftl_case_size(x), y_size = ftl_case_size(y);
  if (x_size != y_size) return x_size < y_size ? 1 : -1;
  return strcmp(x->place, y->place);
}

void ftl_validation_sort(ftl_validation *v) {
  if (v->num_cases > 1) qsort(v->cases, (size_t)v->num_cases, sizeof *v->cases, compare_cases);
}

ftl_status ftl_validation_statistics(const ftl_validation *v, ftl_part part, ftl_quantity quantity, bool above_spread,
                                     ftl_error_statistics *out, ftl_error *error) {
  double *errors = calloc((size_t)v->num_cases + 1, sizeof *errors);
  if (errors == NULL) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the errors");
  int64_t count = 0;
  for (int64_t i = 0; i < v->num_cases; i++) {
    const ftl_case *c = &v->cases[i];
    if (c->measured_case.part != part) continue;
    count += above_spread ? ftl_case_error_above_spread(c, quantity, &errors[count])
                          : ftl_case_error(c, quantity, &errors[count]);
  }
  *out = ftl_error_statistics_make(errors, count);
  free(errors);
  return FTL_OK;
}

int64_t ftl_validation_count_part(const ftl_validation *v, ftl_part part) {
  int64_t count = 0;
  for (int64_t i = 0; i < v->num_cases; i++) count += v->cases[i].measured_case.part == part;
  return count;
}

void ftl_validation_registers(const ftl_validation *v, ftl_part part, int64_t *num_cases, int64_t *num_near) {
  *num_cases = *num_near = 0;
  for (int64_t i = 0; i < v->num_cases; i++) {
    const ftl_case *c = &v->cases[i];
    if (c->measured_case.part != part || !ftl_case_is_predicted(c)) continue;
    double difference = c->prediction->metrics.value[FTL_METRIC_registers] - c->measured[FTL_METRIC_registers];
    *num_cases += !isnan(difference);
    *num_near += fabs(difference) <= 8;
  }
}
