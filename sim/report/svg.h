// A picture of ranked answers: a panel a GPU, a bar a configuration.
#ifndef FTL_REPORT_SVG_H
#define FTL_REPORT_SVG_H

#include "report/ranking.h"

// `rows` best first; of each GPU the first max_bars feasible ones are drawn. FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_rows_svg(const ftl_row *rows, int64_t num_rows, int max_bars, ftl_text *out,
                                     ftl_error *error);

#endif
