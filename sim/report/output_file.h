// A file that is written whole or not at all.
#ifndef FTL_REPORT_OUTPUT_FILE_H
#define FTL_REPORT_OUTPUT_FILE_H

#include "base/status.h"
#include "base/text.h"

// Through a file beside it (PATH.new) that is then renamed: a failure leaves what was at `path` as it was, and nothing
// beside it. What is no regular file (a device, a pipe) is written as it stands. FTL_BAD_INPUT where a
// database is at `path`: a slip of the hand would lose its answers. FTL_IO_FAILED; FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_output_file_write(const char *path, const ftl_text *text, ftl_error *error);

#endif
