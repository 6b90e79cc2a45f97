// A file that is written whole or not at all.
#ifndef FTL_REPORT_OUTPUT_FILE_H
#define FTL_REPORT_OUTPUT_FILE_H

#include <stdio.h>

#include "base/status.h"
#include "base/text.h"

// Through a file beside it (PATH.new) that is then renamed, with the mode of what it replaces: a failure leaves what
// was at `path` as it was, and nothing beside it. What is no regular file (a device, a pipe) is written as it stands.
// FTL_BAD_INPUT where a database is at `path`: a slip of the hand would lose its answers. FTL_IO_FAILED; FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_output_file_write(const char *path, const ftl_text *text, ftl_error *error);

// The same, written piece by piece.
typedef struct ftl_output_stream {
  FILE *file;
  char *path, *beside;  // where it is to be; where it is written meanwhile, NULL: there
} ftl_output_stream;

// FTL_BAD_INPUT, FTL_IO_FAILED, FTL_NO_MEMORY: nothing is open.
FTL_MUST_USE ftl_status ftl_output_stream_open(ftl_output_stream *stream, const char *path, ftl_error *error);
// With `status` of what was written: where it failed, or what is written cannot be finished, `path` is as it was.
// Returns `status`, or FTL_IO_FAILED.
FTL_MUST_USE ftl_status ftl_output_stream_close(ftl_output_stream *stream, ftl_status status, ftl_error *error);

#endif
