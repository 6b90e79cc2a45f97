// Text in aligned columns.
#ifndef FTL_REPORT_TABLE_H
#define FTL_REPORT_TABLE_H

#include <stdbool.h>

#include "base/status.h"
#include "base/text.h"

typedef struct ftl_table {
  int num_columns;
  bool *align_right;  // a column
  char **cells;       // row by row
  int num_cells;
  bool failed;
} ftl_table;

// On failure (memory) `failed` is set, and the other functions do nothing.
void ftl_table_init(ftl_table *table, int num_columns);
void ftl_table_fini(ftl_table *table);
void ftl_table_align_right(ftl_table *table, int column);
// The next cell, left to right, row after row.
void ftl_table_add(ftl_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Two spaces between columns, no space at a line's end, `indent` spaces before it.
FTL_MUST_USE ftl_status ftl_table_write(const ftl_table *table, int indent, ftl_text *out, ftl_error *error);

#endif
