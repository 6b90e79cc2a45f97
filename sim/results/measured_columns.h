// What the columns of a measured row say of a configuration.
#ifndef FTL_RESULTS_MEASURED_COLUMNS_H
#define FTL_RESULTS_MEASURED_COLUMNS_H

#include "results/measurement.h"
#include "workloads/spec.h"

// The text of a column, or `otherwise` where the row has none.
const char *ftl_column_or(const ftl_measurement *row, const char *name, const char *otherwise);
// Starts a specification of a workload and sets every column that is named as a parameter which the workload takes;
// `seqlen` sets both lengths.
// FTL_INFEASIBLE: no such workload; FTL_BAD_INPUT: a value out of range.
FTL_MUST_USE ftl_status ftl_columns_begin(ftl_spec *spec, const char *workload, const ftl_measurement *row,
                                          ftl_error *error);

FTL_MUST_USE ftl_status ftl_columns_set(ftl_spec *spec, ftl_param param, const char *text, ftl_error *error);
typedef struct ftl_param_number {
  ftl_param param;
  long long value;
} ftl_param_number;
FTL_MUST_USE ftl_status ftl_columns_set_numbers(ftl_spec *spec, const ftl_param_number *numbers, int count,
                                                ftl_error *error);

#endif
