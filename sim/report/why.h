// Why the best of several answers is the best, from their metrics alone.
#ifndef FTL_REPORT_WHY_H
#define FTL_REPORT_WHY_H

#include "report/ranking.h"

// One line a GPU, the last without newline: the fastest against the runner-up and against the slowest. Says so when
// there is nothing to compare. The ratio of two times is split exactly into clock, idle SMs, instructions and issue
// rate; the larger shares are named, each with the counter behind it. FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_rows_why(const ftl_row *rows, int64_t num_rows, ftl_text *out, ftl_error *error);

#endif
