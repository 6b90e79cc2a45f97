// The tables. Columns of parameters and metrics come from their lists (params.def, metrics.def): a file from before a
// parameter or metric existed gets the column when it is opened, and NULL in the rows that it has.
#include <stdio.h>
#include <time.h>

#include "base/text.h"
#include "results/database_internal.h"
#include "results/metric_id.h"

static const char *const fixed_tables =
    "CREATE TABLE IF NOT EXISTS runs ("
    " id INTEGER PRIMARY KEY, command TEXT NOT NULL, scenario TEXT, scenario_hash TEXT, program_version TEXT NOT NULL,"
    " started_utc TEXT NOT NULL, finished_utc TEXT,"
    " state TEXT NOT NULL CHECK (state IN ('running', 'done', 'failed', 'interrupted'))) STRICT;"
    "CREATE TABLE IF NOT EXISTS arch_models ("
    " id INTEGER PRIMARY KEY, name TEXT NOT NULL, die TEXT NOT NULL, hash TEXT NOT NULL, UNIQUE (name, hash)) STRICT;"
    "CREATE TABLE IF NOT EXISTS arch_values ("
    " arch_id INTEGER NOT NULL REFERENCES arch_models (id), key TEXT NOT NULL, value ANY NOT NULL, unit TEXT NOT NULL,"
    " origin TEXT NOT NULL, source TEXT, file TEXT, line INTEGER, PRIMARY KEY (arch_id, key)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS predictions ("
    " id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, arch_id INTEGER NOT NULL REFERENCES arch_models (id),"
    " program_version TEXT NOT NULL, created_utc TEXT NOT NULL, spec TEXT NOT NULL, workload TEXT NOT NULL,"
    " feasible INTEGER NOT NULL CHECK (feasible IN (0, 1)), reason TEXT, num_launches INTEGER NOT NULL, bottleneck "
    "TEXT,"
    " error_bound_cycles_pct REAL, error_bound_hbm_bytes_pct REAL, wall_s REAL) STRICT;"
    "CREATE TABLE IF NOT EXISTS launches ("
    " prediction_id INTEGER NOT NULL REFERENCES predictions (id), launch_idx INTEGER NOT NULL, name TEXT NOT NULL,"
    " PRIMARY KEY (prediction_id, launch_idx)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS run_predictions ("
    " run_id INTEGER NOT NULL REFERENCES runs (id), prediction_id INTEGER NOT NULL REFERENCES predictions (id),"
    " PRIMARY KEY (run_id, prediction_id)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS measurement_files ("
    " id INTEGER PRIMARY KEY, path TEXT NOT NULL, hash TEXT NOT NULL UNIQUE, format TEXT NOT NULL,"
    " imported_utc TEXT NOT NULL) STRICT;"
    "CREATE TABLE IF NOT EXISTS measurements ("
    " id INTEGER PRIMARY KEY, file_id INTEGER NOT NULL REFERENCES measurement_files (id), line INTEGER NOT NULL,"
    " gpu TEXT, condition TEXT, kernel TEXT, status TEXT, source TEXT, arch TEXT, workload TEXT,"
    " held_out INTEGER CHECK (held_out IN (0, 1))) STRICT;"
    "CREATE TABLE IF NOT EXISTS measured_facts ("
    " measurement_id INTEGER NOT NULL REFERENCES measurements (id), name TEXT NOT NULL, text TEXT NOT NULL,"
    " PRIMARY KEY (measurement_id, name)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS measured_values ("
    " measurement_id INTEGER NOT NULL REFERENCES measurements (id), metric TEXT NOT NULL, value REAL NOT NULL,"
    " unit TEXT NOT NULL, impossible INTEGER NOT NULL CHECK (impossible IN (0, 1)),"
    " PRIMARY KEY (measurement_id, metric)) STRICT, WITHOUT ROWID;";

static ftl_status has_column(ftl_database *database, const char *table, const char *column, bool *out,
                             ftl_error *error) {
  char sql[256];
  snprintf(sql, sizeof sql, "SELECT count(*) FROM pragma_table_info('%s') WHERE name = '%s'", table, column);
  int64_t count = 0;
  ftl_status status = ftl_database_get_int(database, sql, &count, error);
  *out = count > 0;
  return status;
}

static ftl_status add_column(ftl_database *database, const char *table, const char *column, const char *type,
                             bool *added, ftl_error *error) {
  bool there = false;
  ftl_status status = has_column(database, table, column, &there, error);
  if (status != FTL_OK || there) return status;
  char sql[256];
  snprintf(sql, sizeof sql, "ALTER TABLE %s ADD COLUMN \"%s\" %s", table, column, type);
  *added = true;
  return ftl_database_execute(database, sql, error);
}

static ftl_status add_columns(ftl_database *database, bool *added, ftl_error *error) {
  ftl_status status = FTL_OK;
  for (int i = 0; status == FTL_OK && i < FTL_PARAM_COUNT; i++) {
    const ftl_param_info *info = ftl_param_get((ftl_param)i);
    const char *type = ftl_param_is_text((ftl_param)i) ? "TEXT" : info->is_real ? "REAL" : "INTEGER";
    status = add_column(database, "predictions", info->name, type, added, error);
    if (status == FTL_OK) status = add_column(database, "measurements", info->name, type, added, error);
  }
  for (int i = 0; status == FTL_OK && i < FTL_METRIC_COUNT; i++) {
    status = add_column(database, "launches", ftl_metric_id((ftl_metric)i), "REAL", added, error);
  }
  return status;
}

// `answers`: a row a prediction, with the sum over its launches; `kernels`: a row a launch. Metrics by Nsight name.
static ftl_status make_view(ftl_database *database, const char *name, const char *which_launches, ftl_error *error) {
  ftl_text sql = {0};
  ftl_text_add(&sql, "DROP VIEW IF EXISTS %s; CREATE VIEW %s AS SELECT p.id, a.name AS arch, p.workload", name, name);
  for (int i = 0; i < FTL_PARAM_COUNT; i++) ftl_text_add(&sql, ", p.\"%s\"", ftl_param_get((ftl_param)i)->name);
  ftl_text_add(&sql, ", p.feasible, p.reason, p.bottleneck, l.name AS launch");
  for (int i = 0; i < FTL_METRIC_COUNT; i++) {
    ftl_text_add(&sql, ", l.\"%s\" AS \"%s\"", ftl_metric_id((ftl_metric)i), ftl_metric_get((ftl_metric)i)->name);
  }
  ftl_text_add(&sql,
               ", p.error_bound_cycles_pct, p.error_bound_hbm_bytes_pct, p.wall_s, p.created_utc, p.program_version,"
               " p.spec, a.hash AS arch_hash FROM predictions p JOIN arch_models a ON a.id = p.arch_id"
               " LEFT JOIN launches l ON l.prediction_id = p.id AND %s",
               which_launches);
  ftl_status status = sql.failed ? ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory", database->path)
                                 : ftl_database_execute(database, ftl_text_get(&sql), error);
  ftl_text_fini(&sql);
  return status;
}

// `compared`: a row a measured value and a prediction of the same configuration (at any detail) on the same GPU.
static ftl_status make_compared(ftl_database *database, ftl_error *error) {
  ftl_text sql = {0};
  ftl_text_add(&sql,
               "DROP VIEW IF EXISTS compared; CREATE VIEW compared AS SELECT m.id AS measurement_id, p.id AS"
               " prediction_id, m.source, m.held_out, a.name AS arch, m.workload, m.kernel");
  for (int i = 0; i < FTL_PARAM_COUNT; i++) ftl_text_add(&sql, ", p.\"%s\"", ftl_param_get((ftl_param)i)->name);
  ftl_text_add(&sql, ", v.metric, v.unit, CASE v.metric");
  for (int i = 0; i < FTL_METRIC_COUNT; i++) {
    ftl_text_add(&sql, " WHEN '%s' THEN l.\"%s\"", ftl_metric_get((ftl_metric)i)->name, ftl_metric_id((ftl_metric)i));
  }
  ftl_text_add(&sql,
               " END AS predicted, v.value AS measured, v.impossible, p.program_version FROM measurements m"
               " JOIN arch_models a ON a.name = m.arch JOIN predictions p ON p.arch_id = a.id AND p.workload = "
               "m.workload");
  for (int i = 0; i < FTL_PARAM_COUNT; i++) {
    const char *name = ftl_param_get((ftl_param)i)->name;
    if (i != FTL_PARAM_detail) ftl_text_add(&sql, " AND p.\"%s\" IS m.\"%s\"", name, name);
  }
  ftl_text_add(&sql,
               " JOIN launches l ON l.prediction_id = p.id AND l.launch_idx = -1"
               " JOIN measured_values v ON v.measurement_id = m.id WHERE predicted IS NOT NULL");
  ftl_status status = sql.failed ? ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory", database->path)
                                 : ftl_database_execute(database, ftl_text_get(&sql), error);
  ftl_text_fini(&sql);
  return status;
}

static ftl_status make_views(ftl_database *database, ftl_error *error) {
  ftl_status status = make_view(database, "answers", "l.launch_idx = -1", error);
  if (status == FTL_OK) status = make_view(database, "kernels", "l.launch_idx >= 0", error);
  return status == FTL_OK ? make_compared(database, error) : status;
}

static ftl_status set_up_locked(ftl_database *database, ftl_error *error) {
  bool added = false;
  char sql[128];
  ftl_status status = ftl_database_execute(database, fixed_tables, error);
  if (status == FTL_OK) status = add_columns(database, &added, error);
  if (status == FTL_OK) status = make_views(database, error);
  if (status != FTL_OK) return status;
  snprintf(sql, sizeof sql, "PRAGMA application_id = %d; PRAGMA user_version = %d", FTL_APPLICATION_ID,
           FTL_SCHEMA_VERSION);
  return ftl_database_execute(database, sql, error);
}

static ftl_status refuse_foreign(ftl_database *database, int64_t application, int64_t version, ftl_error *error) {
  if (application != FTL_APPLICATION_ID) {
    return ftl_error_set(error, FTL_IO_FAILED, "%s: a database of another program", database->path);
  }
  if (version > FTL_SCHEMA_VERSION) {
    return ftl_error_set(error, FTL_IO_FAILED, "%s: written by a newer foretile (schema %lld, this one knows up to %d)",
                         database->path, (long long)version, FTL_SCHEMA_VERSION);
  }
  return FTL_OK;
}

static ftl_status count_columns(ftl_database *database, const char *table, int num_names,
                                const char *(*name_of)(int idx), int64_t *out, ftl_error *error) {
  ftl_text sql = {0};
  ftl_text_add(&sql, "SELECT count(*) FROM pragma_table_info('%s') WHERE name IN (''", table);
  for (int i = 0; i < num_names; i++) ftl_text_add(&sql, ", '%s'", name_of(i));
  ftl_text_add(&sql, ")");
  ftl_status status = sql.failed ? ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory", database->path)
                                 : ftl_database_get_int(database, ftl_text_get(&sql), out, error);
  ftl_text_fini(&sql);
  return status;
}

static const char *param_name(int idx) { return ftl_param_get((ftl_param)idx)->name; }
static const char *metric_name(int idx) { return ftl_metric_id((ftl_metric)idx); }

// Whether the file has every column that the lists name, so that opening it writes nothing.
static ftl_status is_current(ftl_database *database, bool *out, ftl_error *error) {
  int64_t params = 0, measured = 0, metrics = 0;
  ftl_status status = count_columns(database, "predictions", FTL_PARAM_COUNT, param_name, &params, error);
  if (status == FTL_OK) {
    status = count_columns(database, "measurements", FTL_PARAM_COUNT, param_name, &measured, error);
  }
  if (status == FTL_OK) status = count_columns(database, "launches", FTL_METRIC_COUNT, metric_name, &metrics, error);
  *out = params == FTL_PARAM_COUNT && measured == FTL_PARAM_COUNT && metrics == FTL_METRIC_COUNT;
  return status;
}

// Unlike other locks, the one for a change of journal is not waited for by SQLite itself.
static ftl_status use_write_ahead_log(ftl_database *database, ftl_error *error) {
  const struct timespec pause = {.tv_nsec = 10000000};
  int code = SQLITE_BUSY;
  for (int waited_ms = 0; code == SQLITE_BUSY && waited_ms < FTL_BUSY_TIMEOUT_MS; waited_ms += 10) {
    code = sqlite3_exec(database->sqlite, "PRAGMA journal_mode = WAL", NULL, NULL, NULL) & 0xff;
    if (code == SQLITE_BUSY) nanosleep(&pause, NULL);
  }
  return code == SQLITE_OK ? FTL_OK : ftl_database_failed(database, code, error);
}

ftl_status ftl_schema_set_up(ftl_database *database, ftl_error *error) {
  int64_t num_objects = 0, application = 0, version = 0;
  bool current = false;
  ftl_status status = ftl_database_get_int(database, "SELECT count(*) FROM sqlite_schema", &num_objects, error);
  if (status == FTL_OK) status = ftl_database_get_int(database, "PRAGMA application_id", &application, error);
  if (status == FTL_OK) status = ftl_database_get_int(database, "PRAGMA user_version", &version, error);
  if (status == FTL_OK && num_objects > 0) status = refuse_foreign(database, application, version, error);
  if (status == FTL_OK && num_objects > 0) status = is_current(database, &current, error);
  if (status != FTL_OK || current) return status;
  if (num_objects == 0) status = use_write_ahead_log(database, error);
  if (status == FTL_OK) status = ftl_database_begin(database, error);
  return status != FTL_OK ? status : ftl_database_end(database, set_up_locked(database, error), error);
}
