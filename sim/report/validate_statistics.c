#include "report/validate_statistics.h"

#include <math.h>
#include <stdlib.h>

static int compare_sizes(const void *a, const void *b) {
  double x = fabs(*(const double *)a), y = fabs(*(const double *)b);
  return (x > y) - (x < y);
}

ftl_error_statistics ftl_error_statistics_make(double *errors, int64_t count) {
  ftl_error_statistics s = {.count = count};
  if (count == 0) return s;
  qsort(errors, (size_t)count, sizeof *errors, compare_sizes);
  for (int64_t i = 0; i < count; i++) {
    s.mean += fabs(errors[i]) / (double)count;
    s.bias += errors[i] / (double)count;
  }
  s.median = (fabs(errors[(count - 1) / 2]) + fabs(errors[count / 2])) / 2;
  s.p90 = fabs(errors[(9 * count + 9) / 10 - 1]);
  s.max = fabs(errors[count - 1]);
  return s;
}

typedef struct ranked {
  double value;
  int64_t idx;
} ranked;

static int compare_ranked(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  if (x->value != y->value) return (x->value > y->value) - (x->value < y->value);
  return (x->idx > y->idx) - (x->idx < y->idx);
}

static void make_ranks(const double *values, int64_t count, ranked *sorted, double *ranks) {
  for (int64_t i = 0; i < count; i++) sorted[i] = (ranked){values[i], i};
  qsort(sorted, (size_t)count, sizeof *sorted, compare_ranked);
  for (int64_t first = 0, end = 0; first < count; first = end) {
    while (end < count && sorted[end].value == sorted[first].value) end++;
    for (int64_t i = first; i < end; i++) ranks[sorted[i].idx] = (double)(first + end - 1) / 2;
  }
}

static double pearson(const double *x, const double *y, int64_t count) {
  double mean = (double)(count - 1) / 2;  // of ranks from 0, ties or not
  double xy = 0, xx = 0, yy = 0;
  for (int64_t i = 0; i < count; i++) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : (double)NAN;
}

ftl_status ftl_spearman(const double *x, const double *y, int64_t count, double *rho, ftl_error *error) {
  *rho = (double)NAN;
  if (count < 2) return FTL_OK;
  ranked *sorted = calloc((size_t)count, sizeof *sorted);
  double *ranks = calloc((size_t)count, 2 * sizeof *ranks);
  ftl_status status = FTL_OK;
  if (sorted == NULL || ranks == NULL) {
    status = ftl_error_set(error, FTL_NO_MEMORY, "out of memory for %lld ranks", (long long)count);
  } else {
    make_ranks(x, count, sorted, ranks);
    make_ranks(y, count, sorted, ranks + count);
    *rho = pearson(ranks, ranks + count, count);
  }
  free(sorted);
  free(ranks);
  return status;
}

// How many come before `i` by prediction.
static int64_t num_before(const double *predicted, int64_t count, int64_t i) {
  int64_t before = 0;
  for (int64_t j = 0; j < count; j++) {
    before += predicted[j] < predicted[i] || (predicted[j] == predicted[i] && j < i);
  }
  return before;
}

double ftl_best_share(const double *predicted, const double *measured, int64_t count, int64_t num_tried) {
  double best = INFINITY, best_tried = INFINITY;
  for (int64_t i = 0; i < count; i++) {
    if (measured[i] < best) best = measured[i];
    if (measured[i] < best_tried && num_before(predicted, count, i) < num_tried) best_tried = measured[i];
  }
  return best / best_tried;
}
