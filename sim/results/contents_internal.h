// Shared by the files that read a database as a whole.
#ifndef FTL_RESULTS_CONTENTS_INTERNAL_H
#define FTL_RESULTS_CONTENTS_INTERNAL_H

#include "results/contents.h"
#include "results/database_internal.h"

typedef struct ftl_contents_reader {
  ftl_database *database;
  ftl_contents *out;
  char *pool;  // what is left of the last block of text
  size_t pool_bytes;
  ftl_error *error;
} ftl_contents_reader;

// A column of the row that `statement` stands at, kept.
const char *ftl_contents_text(ftl_contents_reader *reader, sqlite3_stmt *statement, int column);
FTL_MUST_USE ftl_status ftl_contents_no_memory(const ftl_contents_reader *reader);
// Rows of `table`, as an array of elements of this size from the arena, zeroed.
FTL_MUST_USE ftl_status ftl_contents_array(ftl_contents_reader *reader, const char *table, size_t element_bytes,
                                           void **out, int64_t *count);
// FTL_IO_FAILED unless the array of `count` elements has place `idx`: a file from elsewhere may have a view, or a table
// without its key, from which more rows come than it counts.
FTL_MUST_USE ftl_status ftl_contents_has_place(const ftl_contents_reader *reader, int64_t idx, int64_t count);
// Calls `take` with each row that `sql` gives.
FTL_MUST_USE ftl_status ftl_contents_each(ftl_contents_reader *reader, const char *sql,
                                          ftl_status (*take)(ftl_contents_reader *reader, sqlite3_stmt *statement,
                                                             void *user),
                                          void *user);

FTL_MUST_USE ftl_status ftl_contents_read_predictions(ftl_contents_reader *reader);   // stored_predictions.c
FTL_MUST_USE ftl_status ftl_contents_read_measurements(ftl_contents_reader *reader);  // stored_measurements.c

#endif
