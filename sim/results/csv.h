// Rows of a CSV file as RFC 4180 has them: quoted fields may hold commas, line ends and doubled quotes; lines end with
// LF or CRLF. What the RFC does not allow is an error, not a guess.
#ifndef FTL_RESULTS_CSV_H
#define FTL_RESULTS_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { FTL_CSV_MAX_BYTES = 1 << 28, FTL_CSV_MAX_FIELDS = 16384 };

typedef struct ftl_csv {
  char *path;  // for messages
  char *text;  // fields are unquoted in place
  size_t size, at;
  int64_t next_line;  // of `at`, from 1
  // The row read last; fields are valid until ftl_csv_fini.
  char **fields;
  int num_fields, capacity;
  int64_t line;  // where it starts
} ftl_csv;

// Reads the file. FTL_IO_FAILED; FTL_BAD_INPUT: too large, or a NUL byte. On failure there is nothing to free.
FTL_MUST_USE ftl_status ftl_csv_open(ftl_csv *csv, const char *path, ftl_error *error);
// Copies `bytes`; `path` is only its name.
FTL_MUST_USE ftl_status ftl_csv_init(ftl_csv *csv, const char *path, const char *bytes, size_t size, ftl_error *error);
void ftl_csv_fini(ftl_csv *csv);

// The line that comes next, as it is, without its end; NULL at the end of the file. Not NUL-terminated.
const char *ftl_csv_peek_line(const ftl_csv *csv, size_t *size);
void ftl_csv_skip_line(ftl_csv *csv);

// The next row. *more is false at the end. FTL_BAD_INPUT names file, line and column: a quote that is not closed, or
// one where none may be.
FTL_MUST_USE ftl_status ftl_csv_next(ftl_csv *csv, bool *more, ftl_error *error);

#endif
