// Predictions: in and out. The launches of a prediction are rows of their own; launch_idx -1 is their sum.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "results/database_internal.h"
#include "results/metric_id.h"
#include "results/version.h"
#include "workloads/open_tiles.h"

enum { FIRST_PARAM_COLUMN = 7, FIRST_METRIC_COLUMN = 2, SUM_IDX = -1 };

static ftl_status prepare_text(ftl_database *database, sqlite3_stmt **statement, ftl_text *sql, ftl_error *error) {
  ftl_status status = sql->failed ? ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory", database->path)
                                  : ftl_database_prepare(database, statement, ftl_text_get(sql), error);
  ftl_text_fini(sql);
  return status;
}

static void add_param_columns(ftl_text *sql) {
  for (int i = 0; i < FTL_PARAM_COUNT; i++) ftl_text_add(sql, ", \"%s\"", ftl_param_get((ftl_param)i)->name);
}

static void add_metric_columns(ftl_text *sql) {
  for (int i = 0; i < FTL_METRIC_COUNT; i++) ftl_text_add(sql, ", \"%s\"", ftl_metric_id((ftl_metric)i));
}

// --- out ---

static ftl_status prepare_get(ftl_database *database, ftl_error *error) {
  if (database->get_launches != NULL) return FTL_OK;
  ftl_text sql = {0}, launches_sql = {0};
  ftl_text_add(&sql,
               "SELECT id, feasible, reason, bottleneck, error_bound_cycles_pct, error_bound_hbm_bytes_pct, wall_s");
  add_param_columns(&sql);
  ftl_text_add(&sql, ", num_launches FROM predictions WHERE key = ?");
  ftl_text_add(&launches_sql, "SELECT launch_idx, name");
  add_metric_columns(&launches_sql);
  ftl_text_add(&launches_sql, " FROM launches WHERE prediction_id = ? ORDER BY launch_idx");
  ftl_status status = prepare_text(database, &database->get_prediction, &sql, error);
  ftl_status launches_status = prepare_text(database, &database->get_launches, &launches_sql, error);
  return status != FTL_OK ? status : launches_status;
}

static void copy_text(char *out, size_t size, sqlite3_stmt *statement, int column) {
  const unsigned char *text = sqlite3_column_text(statement, column);
  snprintf(out, size, "%s", text != NULL ? (const char *)text : "");
}

static ftl_status damaged(const ftl_database *database, const char *what, ftl_error *error) {
  return ftl_error_set(error, FTL_IO_FAILED, "%s: a damaged database: %s", database->path, what);
}

static ftl_status read_params(ftl_database *database, sqlite3_stmt *statement, ftl_spec *spec, ftl_error *error) {
  ftl_param_set given = spec->given;
  for (int i = 0; i < FTL_PARAM_COUNT; i++) {
    int column = FIRST_PARAM_COLUMN + i;
    if (sqlite3_column_type(statement, column) == SQLITE_NULL) continue;
    const char *name = ftl_param_get((ftl_param)i)->name;
    const char *text = (const char *)sqlite3_column_text(statement, column);
    if (text == NULL || ftl_spec_set_text(spec, name, text, NULL) != FTL_OK) return damaged(database, name, error);
  }
  spec->given = given;
  return FTL_OK;
}

void ftl_database_read_metrics(sqlite3_stmt *statement, int first_column, ftl_metrics *out) {
  for (int i = 0; i < FTL_METRIC_COUNT; i++) {
    bool known = sqlite3_column_type(statement, first_column + i) != SQLITE_NULL;
    out->value[i] = known ? sqlite3_column_double(statement, first_column + i) : (double)NAN;
  }
}

static ftl_status read_launches(ftl_database *database, int64_t prediction_id, ftl_prediction *out, ftl_error *error) {
  sqlite3_stmt *statement = database->get_launches;
  sqlite3_bind_int64(statement, 1, prediction_id);
  int code, num_rows = 0;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    int64_t launch_idx = sqlite3_column_int64(statement, 0);
    if (launch_idx == SUM_IDX) {
      ftl_database_read_metrics(statement, FIRST_METRIC_COLUMN, &out->metrics);
      num_rows++;
    } else if (launch_idx >= 0 && launch_idx < out->num_kernels) {
      copy_text(out->kernels[launch_idx].name, sizeof out->kernels[launch_idx].name, statement, 1);
      ftl_database_read_metrics(statement, FIRST_METRIC_COLUMN, &out->kernels[launch_idx].metrics);
      num_rows++;
    }
  }
  sqlite3_reset(statement);
  if (code != SQLITE_DONE) return ftl_database_failed(database, code, error);
  return out->feasible && num_rows != out->num_kernels + 1 ? damaged(database, "launches are missing", error) : FTL_OK;
}

static ftl_status read_prediction(ftl_database *database, sqlite3_stmt *statement, const ftl_spec *spec,
                                  ftl_prediction *out, ftl_error *error) {
  memset(out, 0, sizeof *out);
  out->spec = *spec;
  out->feasible = sqlite3_column_int(statement, 1) != 0;
  copy_text(out->reason, sizeof out->reason, statement, 2);
  copy_text(out->bottleneck, sizeof out->bottleneck, statement, 3);
  out->error_bound_cycles_pct = sqlite3_column_double(statement, 4);
  out->error_bound_hbm_bytes_pct = sqlite3_column_double(statement, 5);
  out->wall_s = sqlite3_column_double(statement, 6);
  int64_t num_kernels = sqlite3_column_int64(statement, FIRST_PARAM_COLUMN + FTL_PARAM_COUNT);
  if (num_kernels < 0 || num_kernels > FTL_MAX_LAUNCHES) return damaged(database, "num_launches", error);
  out->num_kernels = (int)num_kernels;
  ftl_status status = read_params(database, statement, &out->spec, error);
  return status != FTL_OK ? status : read_launches(database, sqlite3_column_int64(statement, 0), out, error);
}

static ftl_status link_run(ftl_database *database, int64_t run_id, const ftl_result_key *key, ftl_error *error) {
  ftl_status status = ftl_database_prepare(database, &database->link_run,
                                           "INSERT INTO run_predictions (run_id, prediction_id)"
                                           " SELECT ?, id FROM predictions WHERE key = ?"
                                           " ON CONFLICT (run_id, prediction_id) DO NOTHING",
                                           error);
  if (status != FTL_OK) return status;
  sqlite3_bind_int64(database->link_run, 1, run_id);
  ftl_database_bind_text(database->link_run, 2, key->hex);
  return ftl_database_step_done(database, database->link_run, error);
}

ftl_status ftl_database_get(ftl_database *database, int64_t run_id, const ftl_result_key *key, const ftl_spec *spec,
                            bool *found, ftl_prediction *out, ftl_error *error) {
  *found = false;
  ftl_status status = prepare_get(database, error);
  if (status != FTL_OK) return status;
  sqlite3_stmt *statement = database->get_prediction;
  ftl_database_bind_text(statement, 1, key->hex);
  int code = sqlite3_step(statement);
  if (code == SQLITE_ROW) {
    status = read_prediction(database, statement, spec, out, error);
    sqlite3_reset(statement);
    if (status == FTL_OK) status = link_run(database, run_id, key, error);
    *found = status == FTL_OK;
    return status;
  }
  sqlite3_reset(statement);
  return code == SQLITE_DONE ? FTL_OK : ftl_database_failed(database, code, error);
}

// --- in ---

static void add_placeholders(ftl_text *sql, int count) {
  for (int i = 0; i < count; i++) ftl_text_add(sql, i == 0 ? "?" : ", ?");
}

static ftl_status prepare_put(ftl_database *database, ftl_error *error) {
  if (database->put_launch != NULL) return FTL_OK;
  ftl_text sql = {0}, launch_sql = {0};
  ftl_text_add(&sql,
               "INSERT INTO predictions (key, arch_id, program_version, spec, workload, feasible, reason,"
               " num_launches, bottleneck, error_bound_cycles_pct, error_bound_hbm_bytes_pct, wall_s");
  add_param_columns(&sql);
  ftl_text_add(&sql, ", created_utc) VALUES (");
  add_placeholders(&sql, 12 + FTL_PARAM_COUNT);
  ftl_text_add(&sql, ", strftime('%%Y-%%m-%%dT%%H:%%M:%%SZ', 'now')) ON CONFLICT (key) DO NOTHING");
  ftl_text_add(&launch_sql, "INSERT INTO launches (prediction_id, launch_idx, name");
  add_metric_columns(&launch_sql);
  ftl_text_add(&launch_sql, ") VALUES (");
  add_placeholders(&launch_sql, 3 + FTL_METRIC_COUNT);
  ftl_text_add(&launch_sql, ")");
  ftl_status status = prepare_text(database, &database->put_prediction, &sql, error);
  ftl_status launch_status = prepare_text(database, &database->put_launch, &launch_sql, error);
  return status != FTL_OK ? status : launch_status;
}

static void bind_params(sqlite3_stmt *statement, int first, const ftl_spec *spec) {
  char buffer[32];
  for (int i = 0; i < FTL_PARAM_COUNT; i++) {
    if (!ftl_spec_takes(spec, (ftl_param)i)) {
      sqlite3_bind_null(statement, first + i);
    } else if (ftl_param_is_text((ftl_param)i)) {
      ftl_database_bind_text(statement, first + i, ftl_spec_text(spec, (ftl_param)i, buffer));
    } else if (ftl_param_get((ftl_param)i)->is_real) {
      sqlite3_bind_double(statement, first + i, ftl_spec_real(spec, (ftl_param)i));
    } else {
      sqlite3_bind_int64(statement, first + i, spec->value[i]);
    }
  }
}

static ftl_status bind_prediction(ftl_database *database, const ftl_spec *spec, const ftl_prediction *prediction,
                                  ftl_error *error) {
  sqlite3_stmt *statement = database->put_prediction;
  ftl_text canonical = {0};
  ftl_spec settled = *spec;
  ftl_spec_take_tiles(&settled, &prediction->spec);
  ftl_spec_canonical(&settled, &canonical);
  ftl_database_bind_text(statement, 3, ftl_program_version());
  ftl_database_bind_text(statement, 4, ftl_text_get(&canonical));
  bool failed = canonical.failed;
  ftl_text_fini(&canonical);
  if (failed) return ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory", database->path);
  bool feasible = prediction->feasible;
  ftl_database_bind_text(statement, 5, spec->workload->name);
  sqlite3_bind_int(statement, 6, feasible);
  ftl_database_bind_text(statement, 7, feasible ? NULL : prediction->reason);
  sqlite3_bind_int(statement, 8, feasible ? prediction->num_kernels : 0);
  ftl_database_bind_text(statement, 9, feasible ? prediction->bottleneck : NULL);
  sqlite3_bind_double(statement, 10, prediction->error_bound_cycles_pct);
  sqlite3_bind_double(statement, 11, prediction->error_bound_hbm_bytes_pct);
  sqlite3_bind_double(statement, 12, prediction->wall_s);
  bind_params(statement, 13, &prediction->spec);
  return FTL_OK;
}

static ftl_status put_launch(ftl_database *database, int64_t prediction_id, int launch_idx, const char *name,
                             const ftl_metrics *metrics, ftl_error *error) {
  sqlite3_stmt *statement = database->put_launch;
  sqlite3_bind_int64(statement, 1, prediction_id);
  sqlite3_bind_int(statement, 2, launch_idx);
  ftl_database_bind_text(statement, 3, name);
  // SQLite stores NaN as NULL: a metric that is not known.
  for (int i = 0; i < FTL_METRIC_COUNT; i++) sqlite3_bind_double(statement, 4 + i, metrics->value[i]);
  return ftl_database_step_done(database, statement, error);
}

static ftl_status put_launches(ftl_database *database, int64_t prediction_id, const ftl_prediction *prediction,
                               ftl_error *error) {
  ftl_status status = put_launch(database, prediction_id, SUM_IDX, "sum", &prediction->metrics, error);
  for (int i = 0; status == FTL_OK && i < prediction->num_kernels; i++) {
    status =
        put_launch(database, prediction_id, i, prediction->kernels[i].name, &prediction->kernels[i].metrics, error);
  }
  return status;
}

static ftl_status put_locked(ftl_database *database, int64_t run_id, const ftl_result_key *key, const ftl_spec *spec,
                             const ftl_arch *arch, const ftl_prediction *prediction, ftl_error *error) {
  int64_t arch_id = 0;
  ftl_status status = ftl_database_put_arch(database, arch, &arch_id, error);
  if (status == FTL_OK) status = bind_prediction(database, spec, prediction, error);
  if (status != FTL_OK) return status;
  ftl_database_bind_text(database->put_prediction, 1, key->hex);
  sqlite3_bind_int64(database->put_prediction, 2, arch_id);
  status = ftl_database_step_done(database, database->put_prediction, error);
  bool inserted = sqlite3_changes(database->sqlite) > 0;  // else another process was first, with the same answer
  if (status == FTL_OK && inserted && prediction->feasible) {
    status = put_launches(database, sqlite3_last_insert_rowid(database->sqlite), prediction, error);
  }
  return status != FTL_OK ? status : link_run(database, run_id, key, error);
}

ftl_status ftl_database_put(ftl_database *database, int64_t run_id, const ftl_result_key *key, const ftl_spec *spec,
                            const ftl_arch *arch, const ftl_prediction *prediction, ftl_error *error) {
  ftl_status status = prepare_put(database, error);
  if (status == FTL_OK) status = ftl_database_begin(database, error);
  if (status != FTL_OK) return status;
  status = ftl_database_end(database, put_locked(database, run_id, key, spec, arch, prediction, error), error);
  if (status != FTL_OK) database->last_arch[0] = '\0';  // its row was rolled back
  return status;
}
