#include "results/measured_columns.h"

#include <stdio.h>

const char *ftl_column_or(const ftl_measurement *row, const char *name, const char *otherwise) {
  const char *text = ftl_measurement_fact(row, name);
  return text != NULL ? text : otherwise;
}

ftl_status ftl_columns_set(ftl_spec *spec, ftl_param param, const char *text, ftl_error *error) {
  return ftl_spec_set_text(spec, ftl_param_get(param)->name, text, error);
}

ftl_status ftl_columns_set_numbers(ftl_spec *spec, const ftl_param_number *numbers, int count, ftl_error *error) {
  ftl_status status = FTL_OK;
  for (int i = 0; status == FTL_OK && i < count; i++) {
    char text[24];
    snprintf(text, sizeof text, "%lld", numbers[i].value);
    status = ftl_columns_set(spec, numbers[i].param, text, error);
  }
  return status;
}

ftl_status ftl_columns_begin(ftl_spec *spec, const char *workload, const ftl_measurement *row, ftl_error *error) {
  if (ftl_workload_find(workload) == NULL) return ftl_error_set(error, FTL_INFEASIBLE, "workload %.64s", workload);
  ftl_status status = ftl_spec_init(spec, workload, error);
  for (int i = 0; status == FTL_OK && i < FTL_PARAM_COUNT; i++) {
    const char *name = ftl_param_get((ftl_param)i)->name, *text = ftl_measurement_fact(row, name);
    if (text != NULL && ftl_spec_takes_name(spec, name)) status = ftl_spec_set_text(spec, name, text, error);
  }
  const char *both_lengths = ftl_measurement_fact(row, "seqlen");
  if (status == FTL_OK && both_lengths != NULL) status = ftl_spec_set_text(spec, "seqlen", both_lengths, error);
  return status;
}
