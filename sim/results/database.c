#include "results/database.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "results/database_internal.h"

// --- failures ---

static const char *plain_reason(int code) {
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "locked by another program (waited 5 s)";
    case SQLITE_READONLY:
      return "read-only, so results cannot be written";
    case SQLITE_FULL:
      return "the disk is full";
    case SQLITE_NOTADB:
      return "not a database";
    case SQLITE_CORRUPT:
      return "a damaged database";
    case SQLITE_NOMEM:
      return "out of memory";
    default:
      return NULL;
  }
}

ftl_status ftl_database_failed(const ftl_database *database, int code, ftl_error *error) {
  const char *reason = plain_reason(code);
  int system_error = database->sqlite != NULL ? sqlite3_system_errno(database->sqlite) : 0;
  bool from_system = (code & 0xff) == SQLITE_IOERR || (code & 0xff) == SQLITE_CANTOPEN;
  if (reason == NULL && from_system && system_error != 0) reason = strerror(system_error);
  // A failure inside COMMIT leaves no errno.
  if (reason == NULL && (code & 0xff) == SQLITE_IOERR) {
    reason = "disk I/O error (a full disk, a file-size limit, or a failing device)";
  }
  if (reason == NULL) reason = database->sqlite != NULL ? sqlite3_errmsg(database->sqlite) : sqlite3_errstr(code);
  return ftl_error_set(error, FTL_IO_FAILED, "%s: %s", database->path, reason);
}

ftl_status ftl_database_execute(ftl_database *database, const char *sql, ftl_error *error) {
  int code = sqlite3_exec(database->sqlite, sql, NULL, NULL, NULL);
  return code == SQLITE_OK ? FTL_OK : ftl_database_failed(database, code, error);
}

ftl_status ftl_database_prepare(ftl_database *database, sqlite3_stmt **statement, const char *sql, ftl_error *error) {
  if (*statement != NULL) return FTL_OK;
  int code = sqlite3_prepare_v3(database->sqlite, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);
  return code == SQLITE_OK ? FTL_OK : ftl_database_failed(database, code, error);
}

ftl_status ftl_database_step_done(ftl_database *database, sqlite3_stmt *statement, ftl_error *error) {
  int code = sqlite3_step(statement);
  ftl_status status = code == SQLITE_DONE || code == SQLITE_ROW ? FTL_OK : ftl_database_failed(database, code, error);
  sqlite3_reset(statement);
  return status;
}

ftl_status ftl_database_get_int(ftl_database *database, const char *sql, int64_t *out, ftl_error *error) {
  sqlite3_stmt *statement = NULL;
  int code = sqlite3_prepare_v2(database->sqlite, sql, -1, &statement, NULL);
  if (code == SQLITE_OK) code = sqlite3_step(statement);
  if (code == SQLITE_ROW) *out = sqlite3_column_int64(statement, 0);
  ftl_status status = code == SQLITE_ROW ? FTL_OK : ftl_database_failed(database, code, error);
  sqlite3_finalize(statement);
  return status;
}

// --- transactions ---

ftl_status ftl_database_begin(ftl_database *database, ftl_error *error) {
  return ftl_database_execute(database, "BEGIN IMMEDIATE", error);
}

ftl_status ftl_database_end(ftl_database *database, ftl_status status, ftl_error *error) {
  if (status == FTL_OK) status = ftl_database_execute(database, "COMMIT", error);
  if (status != FTL_OK && !sqlite3_get_autocommit(database->sqlite)) {
    sqlite3_exec(database->sqlite, "ROLLBACK", NULL, NULL, NULL);
  }
  return status;
}

// --- open and close ---

static ftl_status check_folder(const char *path, ftl_error *error) {
  const char *slash = strrchr(path, '/');
  size_t size = slash == NULL ? 1 : slash == path ? 1 : (size_t)(slash - path);
  char *folder = strndup(slash == NULL ? "." : path, size);
  if (folder == NULL) return ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory", path);
  struct stat info;
  ftl_status status = FTL_OK;
  if (stat(folder, &info) != 0) {
    status = ftl_error_set(error, FTL_IO_FAILED, "%s: the folder %s: %s", path, folder, strerror(errno));
  } else if (!S_ISDIR(info.st_mode)) {
    status = ftl_error_set(error, FTL_IO_FAILED, "%s: %s is not a folder", path, folder);
  } else if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
    status = ftl_error_set(error, FTL_IO_FAILED, "%s: not a file, so no database", path);
  }
  free(folder);
  return status;
}

// A database file comes from anywhere: its triggers and views must not run functions with side effects.
static void distrust(sqlite3 *sqlite) {
  sqlite3_db_config(sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  sqlite3_db_config(sqlite, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
  sqlite3_busy_timeout(sqlite, FTL_BUSY_TIMEOUT_MS);
  sqlite3_extended_result_codes(sqlite, 1);
}

// A file that only may be read, and into which nobody writes (that would have a log beside it): SQLite wants to write
// beside a database with a write-ahead log unless it is told that the file does not change.
static bool is_at_rest(const char *path) {
  struct stat log;
  ftl_text log_path = {0};
  ftl_text_add(&log_path, "%s-wal", path);
  bool has_log = log_path.failed || (stat(ftl_text_get(&log_path), &log) == 0 && log.st_size > 0);
  ftl_text_fini(&log_path);
  return !has_log && access(path, W_OK) != 0;
}

static int open_at_rest(ftl_database *database) {
  ftl_text uri = {0};
  ftl_text_add(&uri, "file:");
  for (const char *c = database->path; *c != '\0'; c++) ftl_text_add(&uri, "%%%02x", (unsigned char)*c);
  ftl_text_add(&uri, "?immutable=1");
  int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
  int code = uri.failed ? SQLITE_NOMEM : sqlite3_open_v2(ftl_text_get(&uri), &database->sqlite, flags, NULL);
  ftl_text_fini(&uri);
  return code;
}

static ftl_status connect(ftl_database *database, bool may_create, ftl_error *error) {
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (may_create ? SQLITE_OPEN_CREATE : 0);
  int code = !may_create && is_at_rest(database->path)
                 ? open_at_rest(database)
                 : sqlite3_open_v2(database->path, &database->sqlite, flags, NULL);
  if (code != SQLITE_OK) return ftl_database_failed(database, code, error);
  bool is_readonly = sqlite3_db_readonly(database->sqlite, "main") == 1;
  if (may_create && is_readonly) return ftl_database_failed(database, SQLITE_READONLY, error);
  distrust(database->sqlite);
  return ftl_database_execute(database, "PRAGMA foreign_keys = ON; PRAGMA synchronous = NORMAL", error);
}

// `is_new` for the one process that makes the file: only that one may remove it again. SQLite takes an empty file for
// new.
static ftl_status create_file(const char *path, bool *is_new, ftl_error *error) {
  int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0644);
  *is_new = fd >= 0;
  if (fd < 0 && errno != EEXIST) {
    return ftl_error_set(error, FTL_IO_FAILED, "%s: cannot be created: %s", path, strerror(errno));
  }
  if (fd >= 0) close(fd);
  return FTL_OK;
}

static void remove_files(const char *path) {
  static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
  for (int i = 0; i < 4; i++) {
    ftl_text name = {0};
    ftl_text_add(&name, "%s%s", path, suffixes[i]);
    if (!name.failed) unlink(ftl_text_get(&name));
    ftl_text_fini(&name);
  }
}

static ftl_status check_is_filled(const char *path, ftl_error *error) {
  struct stat info;
  if (stat(path, &info) != 0) return ftl_error_set(error, FTL_IO_FAILED, "%s: %s", path, strerror(errno));
  return info.st_size > 0 ? FTL_OK : ftl_error_set(error, FTL_IO_FAILED, "%s: an empty file, no results in it", path);
}

static ftl_status open_database(ftl_database **out, const char *path, bool may_create, ftl_error *error) {
  *out = NULL;
  ftl_database *database = calloc(1, sizeof *database);
  if (database != NULL) database->path = strdup(path);
  if (database == NULL || database->path == NULL) {
    ftl_database_close(database);
    return ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory", path);
  }
  ftl_status status = check_folder(path, error);
  bool is_new = false;
  if (status == FTL_OK) status = may_create ? create_file(path, &is_new, error) : check_is_filled(path, error);
  if (status == FTL_OK) status = connect(database, may_create, error);
  if (status == FTL_OK) status = ftl_schema_set_up(database, error);
  if (status != FTL_OK) {
    ftl_database_close(database);
    if (is_new) remove_files(path);
    return status;
  }
  *out = database;
  return FTL_OK;
}

ftl_status ftl_database_open(ftl_database **out, const char *path, ftl_error *error) {
  return open_database(out, path, true, error);
}

ftl_status ftl_database_open_existing(ftl_database **out, const char *path, ftl_error *error) {
  return open_database(out, path, false, error);
}

void ftl_database_close(ftl_database *database) {
  if (database == NULL) return;
  sqlite3_finalize(database->get_prediction);
  sqlite3_finalize(database->get_launches);
  sqlite3_finalize(database->put_prediction);
  sqlite3_finalize(database->put_launch);
  sqlite3_finalize(database->link_run);
  sqlite3_close(database->sqlite);
  free(database->path);
  free(database);
}

const char *ftl_database_path(const ftl_database *database) { return database->path; }
