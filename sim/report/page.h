// One self-contained HTML page about a results database: docs/report.md.
#ifndef FTL_REPORT_PAGE_H
#define FTL_REPORT_PAGE_H

#include "base/text.h"
#include "results/contents.h"

// The same contents give the same bytes: no clock, no path but the file's own name. FTL_BAD_INPUT: neither predictions
// nor measurements; a measured row whose parameters are out of range. FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_page_make(const ftl_contents *contents, ftl_text *out, ftl_error *error);

// The database at `database_path` as a page. FTL_IO_FAILED as ftl_contents_read.
FTL_MUST_USE ftl_status ftl_page_of_file(const char *database_path, ftl_text *out, ftl_error *error);

#endif
