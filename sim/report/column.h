// What can be asked of an answer by name: parameters, metrics (Nsight Compute's name, or the short name that the
// database uses for its column), the aliases of aliases.def, and arch, workload, bottleneck, reason.
#ifndef FTL_REPORT_COLUMN_H
#define FTL_REPORT_COLUMN_H

#include <stdbool.h>

#include "arch/arch.h"
#include "base/status.h"
#include "base/text.h"
#include "engine/predict.h"
#include "workloads/user_kernel.h"

// One answer and the GPU it is for.
typedef struct ftl_row {
  const ftl_arch *arch;
  const ftl_prediction *prediction;
} ftl_row;

typedef enum ftl_column_kind {
  FTL_COLUMN_OWN,  // a parameter of a user's kernel
  FTL_COLUMN_PARAM,
  FTL_COLUMN_METRIC,
  FTL_COLUMN_ALIAS,
  FTL_COLUMN_ARCH,
  FTL_COLUMN_WORKLOAD,
  FTL_COLUMN_BOTTLENECK,
  FTL_COLUMN_REASON,
} ftl_column_kind;

typedef struct ftl_column {
  ftl_column_kind kind;
  int idx;                   // of the parameter, metric or alias
  const ftl_own_param *own;  // of FTL_COLUMN_OWN, for its name and kind; borrowed from a row's kernel
} ftl_column;

// FTL_BAD_INPUT names the nearest column.
FTL_MUST_USE ftl_status ftl_column_find(const char *name, ftl_column *out, ftl_error *error);
// The same among rows of one workload, whose own parameters, if it is a user's kernel, go before everything else.
FTL_MUST_USE ftl_status ftl_column_find_among(const ftl_row *rows, int64_t num_rows, const char *name, ftl_column *out,
                                              ftl_error *error);
const char *ftl_column_name(ftl_column column);
const char *ftl_column_shown_unit(ftl_column column);  // as tables show it; "" where there is none
// Nsight Compute's name of the metric behind a column; "" for a sum, or what is no metric.
const char *ftl_column_metric_name(ftl_column column);
bool ftl_column_is_number(ftl_column column);
// Rates and percentages: the largest is the best.
bool ftl_column_prefers_large(ftl_column column);

// In the column's own unit. False: not a number, not a parameter of this workload, or the answer is infeasible.
bool ftl_column_number(ftl_column column, const ftl_row *row, double *out);
// As tables show it; "-" when there is nothing.
void ftl_column_text(ftl_column column, const ftl_row *row, ftl_text *out);

// Time by the answer's own conditions, in ns: what an answer is ranked by.
double ftl_prediction_time_ns(const ftl_prediction *prediction);

#endif
