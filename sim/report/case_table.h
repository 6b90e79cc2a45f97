// Measured cases, with their predictions beside them where there are any, as text in columns.
#ifndef FTL_REPORT_CASE_TABLE_H
#define FTL_REPORT_CASE_TABLE_H

#include "base/text.h"
#include "report/validate.h"

typedef enum ftl_case_column_kind {
  FTL_CASE_ARCH,
  FTL_CASE_WORKLOAD,
  FTL_CASE_PART,
  FTL_CASE_SOURCE,
  FTL_CASE_PLACE,
  FTL_CASE_SHAPE,
  FTL_CASE_TILE,
  FTL_CASE_QUANTITY,
  FTL_CASE_PARAM,
} ftl_case_column_kind;

typedef struct ftl_case_column {
  ftl_case_column_kind kind;
  int idx;  // of the quantity or the parameter
} ftl_case_column;

// "shape", "block_m", "hbm", "dram__bytes_read.sum", ... FTL_BAD_INPUT: none; the line names the nearest.
FTL_MUST_USE ftl_status ftl_case_column_find(const char *name, ftl_case_column *out, ftl_error *error);
enum { FTL_CASE_MOST_COLUMNS = 64 };
// Whose kernel, condition, shape, tile, and of time and HBM bytes what any of the cases has; how many.
int ftl_case_columns_default(const ftl_case *const *cases, int64_t num_cases, ftl_case_column *out);

// A quantity is one column with the measured value, and where any case is predicted two more: predicted, and the error
// in its unit. Bytes in MB (10^6), times in us; "-" where there is nothing. FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_cases_table(const ftl_case *const *cases, int64_t num_cases, const ftl_case_column *columns,
                                        int num_columns, ftl_text *out, ftl_error *error);

#endif
