// Measured rows of a database as the files that they came in. A file is stored in one transaction, so its rows follow
// each other by id, and so do the facts and values of a row: one pass of each.
#include <stdlib.h>
#include <string.h>

#include "results/contents_internal.h"
#include "results/measurements_dir.h"

typedef struct position {
  int64_t row, num_rows;  // rows in all files
  int64_t num_files, num_facts, num_values;
  ftl_measurement *rows;
  int64_t *ids;
  ftl_fact *facts;
  ftl_measured_value *values;
  int64_t fact, value;
  ftl_metric metrics[FTL_METRIC_COUNT];  // by name
} position;

static int compare_metrics(const void *a, const void *b) {
  return strcmp(ftl_metric_get(*(const ftl_metric *)a)->name, ftl_metric_get(*(const ftl_metric *)b)->name);
}

static int compare_name(const void *name, const void *metric) {
  return strcmp(name, ftl_metric_get(*(const ftl_metric *)metric)->name);
}

// NULL: not a metric of a prediction. There are half a million values in a large file.
static const ftl_metric_info *find_metric(const position *at, const char *name) {
  const ftl_metric *metric = bsearch(name, at->metrics, FTL_METRIC_COUNT, sizeof *at->metrics, compare_name);
  return metric != NULL ? ftl_metric_get(*metric) : NULL;
}

static ftl_status take_file(ftl_contents_reader *reader, sqlite3_stmt *statement, void *user) {
  const position *at = user;
  ftl_status status = ftl_contents_has_place(reader, reader->out->num_files, at->num_files);
  if (status != FTL_OK) return status;
  ftl_stored_file *f = &reader->out->files[reader->out->num_files++];
  const char *path = ftl_contents_text(reader, statement, 1);
  f->id = sqlite3_column_int64(statement, 0);
  f->hash = ftl_contents_text(reader, statement, 2);
  f->format = ftl_contents_text(reader, statement, 3);
  f->imported_utc = ftl_contents_text(reader, statement, 4);
  f->file.path = (char *)path;
  f->file.is_of_project = path != NULL && f->hash != NULL && ftl_measurements_have(path, strtoull(f->hash, NULL, 16));
  bool complete = path != NULL && f->hash != NULL && f->format != NULL && f->imported_utc != NULL;
  return complete ? FTL_OK : ftl_contents_no_memory(reader);
}

static ftl_status take_row(ftl_contents_reader *reader, sqlite3_stmt *statement, void *user) {
  position *at = user;
  int64_t file_id = sqlite3_column_int64(statement, 1);
  ftl_status status = ftl_contents_has_place(reader, at->row, at->num_rows);
  if (status != FTL_OK) return status;
  at->ids[at->row] = sqlite3_column_int64(statement, 0);
  at->rows[at->row].line = sqlite3_column_int64(statement, 2);
  for (int i = 0; i < reader->out->num_files; i++) {
    ftl_measurement_file *file = &reader->out->files[i].file;
    if (reader->out->files[i].id != file_id) continue;
    if (file->num_rows++ == 0) file->rows = &at->rows[at->row];
  }
  at->row++;
  return FTL_OK;
}

// The row with this id, at or behind the one that was found last; NULL: none.
static ftl_measurement *find_row(position *at, int64_t id) {
  while (at->row < at->num_rows && at->ids[at->row] < id) at->row++;
  return at->row < at->num_rows && at->ids[at->row] == id ? &at->rows[at->row] : NULL;
}

static ftl_status take_fact(ftl_contents_reader *reader, sqlite3_stmt *statement, void *user) {
  position *at = user;
  ftl_measurement *row = find_row(at, sqlite3_column_int64(statement, 0));
  if (row == NULL) return FTL_OK;
  ftl_status status = ftl_contents_has_place(reader, at->fact, at->num_facts);
  if (status != FTL_OK) return status;
  ftl_fact *fact = &at->facts[at->fact++];
  if (row->num_facts++ == 0) row->facts = fact;
  fact->name = ftl_contents_text(reader, statement, 1);
  fact->text = ftl_contents_text(reader, statement, 2);
  return fact->name != NULL && fact->text != NULL ? FTL_OK : ftl_contents_no_memory(reader);
}

// Values of other counters than a prediction has are left out.
static ftl_status take_value(ftl_contents_reader *reader, sqlite3_stmt *statement, void *user) {
  position *at = user;
  const char *name = (const char *)sqlite3_column_text(statement, 1);
  const ftl_metric_info *info = name != NULL ? find_metric(at, name) : NULL;
  ftl_measurement *row = info != NULL ? find_row(at, sqlite3_column_int64(statement, 0)) : NULL;
  if (row == NULL) return FTL_OK;
  ftl_status status = ftl_contents_has_place(reader, at->value, at->num_values);
  if (status != FTL_OK) return status;
  ftl_measured_value *value = &at->values[at->value++];
  if (row->num_values++ == 0) row->values = value;
  *value = (ftl_measured_value){.metric = info->name,
                                .unit = info->unit,
                                .value = sqlite3_column_double(statement, 2),
                                .is_impossible = sqlite3_column_int(statement, 3) != 0};
  return FTL_OK;
}

static ftl_status make_arrays(ftl_contents_reader *reader, position *at) {
  void *files = NULL, *rows = NULL, *facts = NULL, *values = NULL;
  ftl_status status = ftl_contents_array(reader, "measurement_files", sizeof(ftl_stored_file), &files, &at->num_files);
  if (status == FTL_OK) {
    status = ftl_contents_array(reader, "measurements", sizeof(ftl_measurement), &rows, &at->num_rows);
  }
  if (status == FTL_OK) status = ftl_contents_array(reader, "measured_facts", sizeof(ftl_fact), &facts, &at->num_facts);
  if (status == FTL_OK) {
    status = ftl_contents_array(reader, "measured_values", sizeof(ftl_measured_value), &values, &at->num_values);
  }
  reader->out->files = files;
  reader->out->num_measurements = at->num_rows;
  at->rows = rows;
  at->facts = facts;
  at->values = values;
  if (status == FTL_OK) at->ids = FTL_ARENA_NEW(&reader->out->arena, int64_t, at->num_rows);
  return status == FTL_OK && at->ids == NULL ? ftl_contents_no_memory(reader) : status;
}

ftl_status ftl_contents_read_measurements(ftl_contents_reader *reader) {
  position at = {0};
  for (int i = 0; i < FTL_METRIC_COUNT; i++) at.metrics[i] = (ftl_metric)i;
  qsort(at.metrics, FTL_METRIC_COUNT, sizeof *at.metrics, compare_metrics);
  ftl_status status = make_arrays(reader, &at);
  if (status == FTL_OK) {
    status = ftl_contents_each(reader, "SELECT id, path, hash, format, imported_utc FROM measurement_files ORDER BY id",
                               take_file, &at);
  }
  if (status == FTL_OK) {
    status =
        ftl_contents_each(reader, "SELECT id, file_id, line FROM measurements ORDER BY file_id, id", take_row, &at);
  }
  at.row = 0;
  if (status == FTL_OK) {
    status = ftl_contents_each(
        reader, "SELECT measurement_id, name, text FROM measured_facts ORDER BY measurement_id, name", take_fact, &at);
  }
  at.row = 0;
  if (status != FTL_OK) return status;
  return ftl_contents_each(reader,
                           "SELECT measurement_id, metric, value, impossible FROM measured_values"
                           " ORDER BY measurement_id, metric",
                           take_value, &at);
}
