#define _GNU_SOURCE  // vasprintf
#include "report/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ftl_table_init(ftl_table *table, int num_columns) {
  *table = (ftl_table){.num_columns = num_columns};
  table->align_right = calloc((size_t)num_columns, sizeof *table->align_right);
  table->failed = table->align_right == NULL;
}

void ftl_table_fini(ftl_table *table) {
  for (int i = 0; i < table->num_cells; i++) free(table->cells[i]);
  free(table->cells);
  free(table->align_right);
  *table = (ftl_table){0};
}

void ftl_table_align_right(ftl_table *table, int column) {
  if (!table->failed) table->align_right[column] = true;
}

static bool reserve(ftl_table *table) {
  bool is_full = (table->num_cells & (table->num_cells - 1)) == 0;  // capacity is the next power of two
  if (!is_full) return true;
  size_t capacity = table->num_cells == 0 ? 1 : 2 * (size_t)table->num_cells;
  char **cells = realloc(table->cells, capacity * sizeof *cells);
  if (cells == NULL) return false;
  table->cells = cells;
  return true;
}

void ftl_table_add(ftl_table *table, const char *format, ...) {
  if (table->failed) return;
  char *cell = NULL;
  va_list args;
  va_start(args, format);
  int size = vasprintf(&cell, format, args);
  va_end(args);
  if (size < 0 || !reserve(table)) {
    if (size >= 0) free(cell);
    table->failed = true;
    return;
  }
  table->cells[table->num_cells++] = cell;
}

static int column_width(const ftl_table *table, int column) {
  size_t width = 0;
  for (int i = column; i < table->num_cells; i += table->num_columns) {
    size_t size = strlen(table->cells[i]);
    if (size > width) width = size;
  }
  return (int)width;
}

static void add_row(const ftl_table *table, int first_cell, const int *widths, int indent, ftl_text *out) {
  ftl_text_add(out, "%*s", indent, "");
  int pending = 0;  // spaces owed before the next character
  for (int c = 0; c < table->num_columns && first_cell + c < table->num_cells; c++) {
    const char *cell = table->cells[first_cell + c];
    int blank = widths[c] - (int)strlen(cell);
    if (table->align_right[c]) pending += blank;
    if (cell[0] != '\0') {
      ftl_text_add(out, "%*s%s", pending, "", cell);
      pending = 0;
    }
    if (!table->align_right[c]) pending += blank;
    pending += 2;
  }
  ftl_text_add(out, "\n");
}

ftl_status ftl_table_write(const ftl_table *table, int indent, ftl_text *out, ftl_error *error) {
  int *widths = table->failed ? NULL : calloc((size_t)table->num_columns, sizeof *widths);
  if (widths == NULL) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for a table");
  for (int c = 0; c < table->num_columns; c++) widths[c] = column_width(table, c);
  for (int i = 0; i < table->num_cells; i += table->num_columns) add_row(table, i, widths, indent, out);
  free(widths);
  return out->failed ? ftl_error_set(error, FTL_NO_MEMORY, "out of memory for a table") : FTL_OK;
}
