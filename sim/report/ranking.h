// Sets of answers: order, what tells them apart, tables and bars.
#ifndef FTL_REPORT_RANKING_H
#define FTL_REPORT_RANKING_H

#include <stdint.h>

#include "report/column.h"

// "time", "hbm", or any column that is a number. Among rows also what ftl_column_find_among finds.
FTL_MUST_USE ftl_status ftl_rank_column_find(const char *by, ftl_column *out, ftl_error *error);
FTL_MUST_USE ftl_status ftl_rank_column_find_among(const ftl_row *rows, int64_t num_rows, const char *by,
                                                   ftl_column *out, ftl_error *error);
// Sorts best first; infeasible answers and unknown values last; equal ones stay in their order. FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_rows_rank(ftl_row *rows, int64_t num_rows, ftl_column by, ftl_error *error);
int64_t ftl_rows_num_feasible(const ftl_row *rows, int64_t num_rows);

// Parameters that differ among the rows, a bit each (own: of a user's kernel), and whether GPUs differ.
typedef struct ftl_varying {
  ftl_param_set params;
  uint32_t own;
  bool arch;
} ftl_varying;
ftl_varying ftl_rows_varying(const ftl_row *rows, int64_t num_rows);
// "block_m=128 num_warps=4"; "h200" before it if GPUs vary; "this configuration" if nothing does.
void ftl_row_label(const ftl_row *row, ftl_varying varying, ftl_text *out);

// A header line, and a line a row.
FTL_MUST_USE ftl_status ftl_rows_table(const ftl_row *rows, int64_t num_rows, const ftl_column *columns,
                                       int num_columns, ftl_text *out, ftl_error *error);
// A table of what varies and what people choose by. `varying` may be that of more rows than are shown.
FTL_MUST_USE ftl_status ftl_rows_ranking(const ftl_row *rows, int64_t num_rows, ftl_varying varying, ftl_text *out,
                                         ftl_error *error);
// "infeasible:" and a line with the reason for each row that is, or for several in a row of one reason; nothing where
// none is.
void ftl_rows_infeasible(const ftl_row *rows, int64_t num_rows, ftl_varying varying, ftl_text *out);
// One bar a row, as long as the value of `column`; the longest takes width_chars.
FTL_MUST_USE ftl_status ftl_rows_bars(const ftl_row *rows, int64_t num_rows, ftl_column column, int width_chars,
                                      ftl_text *out, ftl_error *error);

#endif
