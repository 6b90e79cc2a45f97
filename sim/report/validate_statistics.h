// Statistics of errors, and quality of a ranking.
#ifndef FTL_REPORT_VALIDATE_STATISTICS_H
#define FTL_REPORT_VALIDATE_STATISTICS_H

#include <stdint.h>

#include "base/status.h"

typedef struct ftl_error_statistics {
  int64_t count;
  double mean, median, p90, max;  // of the absolute errors; the mean is the MAPE where errors are in percent
  double bias;                    // mean of the signed errors
} ftl_error_statistics;

// Sorts `errors` by their size. p90 is the nearest rank (the ceil(0.9 n)-th). All 0 when count is 0.
ftl_error_statistics ftl_error_statistics_make(double *errors, int64_t count);

// Spearman's rank correlation: Pearson's of the ranks, ties at the mean of their ranks. NaN where one side has no order
// (fewer than two values, or all the same). FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_spearman(const double *x, const double *y, int64_t count, double *rho, ftl_error *error);

// The smallest of `measured` over the smallest among the first `num_tried` by `predicted` (equal ones as they come): 1
// when the best is among them.
double ftl_best_share(const double *predicted, const double *measured, int64_t count, int64_t num_tried);

#endif
