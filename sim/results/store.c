// Runs and arch models.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#include "results/database_internal.h"
#include "results/version.h"

static const char *const state_names[] = {"running", "done", "failed", "interrupted"};

ftl_status ftl_database_begin_run(ftl_database *database, const char *command, const char *scenario_path,
                                  const char *scenario_text, int64_t *run_id, ftl_error *error) {
  sqlite3_stmt *statement = NULL;
  ftl_status status =
      ftl_database_prepare(database, &statement,
                           "INSERT INTO runs (command, scenario, scenario_hash, program_version, started_utc, state)"
                           " VALUES (?, ?, ?, ?, strftime('%Y-%m-%dT%H:%M:%SZ', 'now'), 'running')",
                           error);
  if (status != FTL_OK) return status;
  char hash[17] = "";
  if (scenario_text != NULL) {
    snprintf(hash, sizeof hash, "%016" PRIx64, (uint64_t)XXH3_64bits(scenario_text, strlen(scenario_text)));
  }
  ftl_database_bind_text(statement, 1, command);
  ftl_database_bind_text(statement, 2, scenario_path);
  ftl_database_bind_text(statement, 3, scenario_text != NULL ? hash : NULL);
  ftl_database_bind_text(statement, 4, ftl_program_version());
  status = ftl_database_step_done(database, statement, error);
  sqlite3_finalize(statement);
  if (status == FTL_OK) *run_id = sqlite3_last_insert_rowid(database->sqlite);
  return status;
}

ftl_status ftl_database_end_run(ftl_database *database, int64_t run_id, ftl_run_state state, ftl_error *error) {
  sqlite3_stmt *statement = NULL;
  ftl_status status = ftl_database_prepare(
      database, &statement,
      "UPDATE runs SET state = ?, finished_utc = strftime('%Y-%m-%dT%H:%M:%SZ', 'now') WHERE id = ?", error);
  if (status != FTL_OK) return status;
  ftl_database_bind_text(statement, 1, state_names[state]);
  sqlite3_bind_int64(statement, 2, run_id);
  status = ftl_database_step_done(database, statement, error);
  sqlite3_finalize(statement);
  return status;
}

// --- arch models ---

static ftl_status put_arch_value(ftl_database *database, sqlite3_stmt *statement, const ftl_arch *arch, int key_idx,
                                 ftl_error *error) {
  const ftl_arch_key *key = ftl_arch_key_get(key_idx);
  ftl_origin origin = ftl_arch_origin(arch, key_idx);
  ftl_database_bind_text(statement, 2, key->name);
  if (key->allowed != NULL) {
    ftl_database_bind_text(statement, 3, ftl_arch_text(arch, key_idx));
  } else {
    sqlite3_bind_int64(statement, 3, ftl_arch_int(arch, key_idx));
  }
  ftl_database_bind_text(statement, 4, key->unit);
  ftl_database_bind_text(statement, 5, ftl_origin_kind_name(origin.kind));
  ftl_database_bind_text(statement, 6, origin.text);
  ftl_database_bind_text(statement, 7, origin.file);
  sqlite3_bind_int(statement, 8, origin.line);
  return ftl_database_step_done(database, statement, error);
}

// Also when the model was there: its sources may have been corrected since, though its values are the same.
static ftl_status put_arch_values(ftl_database *database, const ftl_arch *arch, int64_t arch_id, ftl_error *error) {
  sqlite3_stmt *statement = NULL;
  ftl_status status = ftl_database_prepare(database, &statement,
                                           "REPLACE INTO arch_values (arch_id, key, value, unit, origin, source, file, "
                                           "line) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                                           error);
  if (status != FTL_OK) return status;
  sqlite3_bind_int64(statement, 1, arch_id);
  for (int i = 0; status == FTL_OK && i < ftl_arch_num_keys(); i++) {
    if (ftl_arch_is_set(arch, i)) status = put_arch_value(database, statement, arch, i, error);
  }
  sqlite3_finalize(statement);
  return status;
}

static ftl_status put_arch_row(ftl_database *database, const ftl_arch *arch, const char *hash, int64_t *arch_id,
                               ftl_error *error) {
  sqlite3_stmt *statement = NULL;
  // The update changes nothing; it makes RETURNING give the id of a row that was there.
  ftl_status status = ftl_database_prepare(database, &statement,
                                           "INSERT INTO arch_models (name, die, hash) VALUES (?, ?, ?)"
                                           " ON CONFLICT (name, hash) DO UPDATE SET die = excluded.die RETURNING id",
                                           error);
  if (status != FTL_OK) return status;
  ftl_database_bind_text(statement, 1, arch->name);
  ftl_database_bind_text(statement, 2, arch->die);
  ftl_database_bind_text(statement, 3, hash);
  int code = sqlite3_step(statement);
  if (code == SQLITE_ROW) {
    *arch_id = sqlite3_column_int64(statement, 0);
    code = sqlite3_step(statement);
  }
  if (code != SQLITE_DONE) status = ftl_database_failed(database, code, error);
  sqlite3_finalize(statement);
  return status;
}

ftl_status ftl_database_put_arch(ftl_database *database, const ftl_arch *arch, int64_t *arch_id, ftl_error *error) {
  char hash[17], identity[sizeof database->last_arch];
  snprintf(identity, sizeof identity, "%s%s", arch->name, ftl_arch_hash_text(arch, hash));
  if (strcmp(identity, database->last_arch) == 0) {
    *arch_id = database->last_arch_id;
    return FTL_OK;
  }
  ftl_status status = put_arch_row(database, arch, hash, arch_id, error);
  if (status == FTL_OK) status = put_arch_values(database, arch, *arch_id, error);
  if (status != FTL_OK) return status;
  memcpy(database->last_arch, identity, sizeof identity);
  database->last_arch_id = *arch_id;
  return FTL_OK;
}
