#include "results/measurement_store.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "results/database_internal.h"
#include "results/measured_case.h"

enum { FIRST_PARAM = 9 };

typedef struct importer {
  ftl_database *database;
  const ftl_measurement_file *file;
  ftl_import_summary *summary;
  sqlite3_stmt *put_row, *put_fact, *put_value;
  int64_t file_id;
  ftl_error *error;
} importer;

static ftl_status prepare(importer *im) {
  ftl_text sql = {0};
  ftl_text_add(&sql, "INSERT INTO measurements (file_id, line, gpu, condition, kernel, status, source, arch, workload");
  for (int i = 0; i < FTL_PARAM_COUNT; i++) ftl_text_add(&sql, ", \"%s\"", ftl_param_get((ftl_param)i)->name);
  ftl_text_add(&sql, ", held_out) VALUES (?");
  for (int i = 1; i < FIRST_PARAM + FTL_PARAM_COUNT + 1; i++) ftl_text_add(&sql, ", ?");
  ftl_text_add(&sql, ")");
  ftl_status status = sql.failed ? ftl_error_set(im->error, FTL_NO_MEMORY, "%s: out of memory", im->database->path)
                                 : ftl_database_prepare(im->database, &im->put_row, ftl_text_get(&sql), im->error);
  ftl_text_fini(&sql);
  if (status == FTL_OK) {
    status = ftl_database_prepare(im->database, &im->put_fact,
                                  "INSERT INTO measured_facts (measurement_id, name, text) VALUES (?, ?, ?)"
                                  " ON CONFLICT (measurement_id, name) DO NOTHING",
                                  im->error);
  }
  if (status != FTL_OK) return status;
  return ftl_database_prepare(
      im->database, &im->put_value,
      "INSERT INTO measured_values (measurement_id, metric, value, unit, impossible) VALUES (?, ?, ?, ?, ?)",
      im->error);
}

static ftl_status put_file(importer *im) {
  sqlite3_stmt *statement = NULL;
  ftl_status status =
      ftl_database_prepare(im->database, &statement,
                           "INSERT INTO measurement_files (path, hash, format, imported_utc) VALUES (?, ?, ?,"
                           " strftime('%Y-%m-%dT%H:%M:%SZ', 'now')) ON CONFLICT (hash) DO NOTHING",
                           im->error);
  if (status != FTL_OK) return status;
  char hash[17];
  snprintf(hash, sizeof hash, "%016" PRIx64, im->file->content_hash);
  ftl_database_bind_text(statement, 1, im->file->path);
  ftl_database_bind_text(statement, 2, hash);
  ftl_database_bind_text(statement, 3, ftl_measurement_format_name(im->file->format));
  status = ftl_database_step_done(im->database, statement, im->error);
  im->summary->was_there = status == FTL_OK && sqlite3_changes(im->database->sqlite) == 0;
  im->file_id = sqlite3_last_insert_rowid(im->database->sqlite);
  sqlite3_finalize(statement);
  return status;
}

static void bind_case(sqlite3_stmt *statement, const ftl_measured_case *c) {
  char buffer[32];
  ftl_database_bind_text(statement, 7, c->source);
  ftl_database_bind_text(statement, 8, c->arch);
  ftl_database_bind_text(statement, 9, c->spec.workload->name);
  for (int i = 0; i < FTL_PARAM_COUNT; i++) {
    int idx = FIRST_PARAM + 1 + i;
    if (!ftl_spec_takes(&c->spec, (ftl_param)i)) continue;
    if (ftl_param_is_text((ftl_param)i)) {
      ftl_database_bind_text(statement, idx, ftl_spec_text(&c->spec, (ftl_param)i, buffer));
    } else if (ftl_param_get((ftl_param)i)->is_real) {
      sqlite3_bind_double(statement, idx, ftl_spec_real(&c->spec, (ftl_param)i));
    } else {
      sqlite3_bind_int64(statement, idx, c->spec.value[i]);
    }
  }
  sqlite3_bind_int(statement, FIRST_PARAM + FTL_PARAM_COUNT + 1, c->part != FTL_PART_CALIBRATION);
}

// Parameters stay NULL where no configuration can express the row.
static ftl_status put_row(importer *im, const ftl_measurement *row) {
  ftl_measured_case c;
  ftl_error reason;
  ftl_status status = ftl_measured_case_of(&c, im->file, row, &reason);
  if (status != FTL_OK && status != FTL_INFEASIBLE) {
    return ftl_error_set(im->error, status, "%s:%lld: %.400s", im->file->path, (long long)row->line, reason.message);
  }
  sqlite3_clear_bindings(im->put_row);
  sqlite3_bind_int64(im->put_row, 1, im->file_id);
  sqlite3_bind_int64(im->put_row, 2, row->line);
  ftl_database_bind_text(im->put_row, 3, ftl_measurement_fact(row, "gpu"));
  ftl_database_bind_text(im->put_row, 4, ftl_measurement_fact(row, "condition"));
  ftl_database_bind_text(im->put_row, 5, ftl_measurement_fact(row, "kernel"));
  ftl_database_bind_text(im->put_row, 6, ftl_measurement_fact(row, "status"));
  if (status == FTL_OK) bind_case(im->put_row, &c);
  im->summary->num_comparable += status == FTL_OK;
  return ftl_database_step_done(im->database, im->put_row, im->error);
}

static ftl_status put_facts(importer *im, const ftl_measurement *row, int64_t id) {
  ftl_status status = FTL_OK;
  for (int i = 0; status == FTL_OK && i < row->num_facts; i++) {
    if (row->facts[i].text[0] == '\0') continue;
    sqlite3_bind_int64(im->put_fact, 1, id);
    ftl_database_bind_text(im->put_fact, 2, row->facts[i].name);
    ftl_database_bind_text(im->put_fact, 3, row->facts[i].text);
    status = ftl_database_step_done(im->database, im->put_fact, im->error);
  }
  return status;
}

static ftl_status put_values(importer *im, const ftl_measurement *row, int64_t id) {
  ftl_status status = FTL_OK;
  for (int i = 0; status == FTL_OK && i < row->num_values; i++) {
    const ftl_measured_value *v = &row->values[i];
    sqlite3_bind_int64(im->put_value, 1, id);
    ftl_database_bind_text(im->put_value, 2, v->metric);
    sqlite3_bind_double(im->put_value, 3, v->value);
    ftl_database_bind_text(im->put_value, 4, v->unit);
    sqlite3_bind_int(im->put_value, 5, v->is_impossible);
    status = ftl_database_step_done(im->database, im->put_value, im->error);
    im->summary->num_values++;
    im->summary->num_impossible += v->is_impossible;
  }
  return status;
}

static ftl_status put_locked(importer *im) {
  ftl_status status = put_file(im);
  if (status != FTL_OK || im->summary->was_there) return status;
  for (int64_t i = 0; status == FTL_OK && i < im->file->num_rows; i++) {
    const ftl_measurement *row = &im->file->rows[i];
    status = put_row(im, row);
    int64_t id = sqlite3_last_insert_rowid(im->database->sqlite);
    if (status == FTL_OK) status = put_facts(im, row, id);
    if (status == FTL_OK) status = put_values(im, row, id);
    im->summary->num_rows++;
  }
  return status;
}

ftl_status ftl_database_put_measurements(ftl_database *database, const ftl_measurement_file *file,
                                         ftl_import_summary *out, ftl_error *error) {
  *out = (ftl_import_summary){0};
  importer im = {.database = database, .file = file, .summary = out, .error = error};
  ftl_status status = prepare(&im);
  if (status == FTL_OK) status = ftl_database_begin(database, error);
  if (status == FTL_OK) status = ftl_database_end(database, put_locked(&im), error);
  sqlite3_finalize(im.put_row);
  sqlite3_finalize(im.put_fact);
  sqlite3_finalize(im.put_value);
  return status;
}
