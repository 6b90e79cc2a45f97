// Shared by the files of the results database.
#ifndef FTL_RESULTS_DATABASE_INTERNAL_H
#define FTL_RESULTS_DATABASE_INTERNAL_H

#include <sqlite3.h>

#include "results/database.h"

enum { FTL_SCHEMA_VERSION = 1, FTL_BUSY_TIMEOUT_MS = 5000 };
enum { FTL_APPLICATION_ID = 0x46544c31 };  // "FTL1"

struct ftl_database {
  sqlite3 *sqlite;
  char *path;
  sqlite3_stmt *get_prediction, *get_launches, *put_prediction, *put_launch, *link_run;  // prepared at first use
  int64_t last_arch_id;                                                                  // of last_arch, already stored
  char last_arch[FTL_ARCH_NAME_BYTES + 17];                                              // name and hash
};

// The failure that the connection (or the return code alone) describes, as one line.
ftl_status ftl_database_failed(const ftl_database *database, int code, ftl_error *error);
FTL_MUST_USE ftl_status ftl_database_execute(ftl_database *database, const char *sql, ftl_error *error);
// *statement is prepared once and kept.
FTL_MUST_USE ftl_status ftl_database_prepare(ftl_database *database, sqlite3_stmt **statement, const char *sql,
                                             ftl_error *error);
FTL_MUST_USE ftl_status ftl_database_get_int(ftl_database *database, const char *sql, int64_t *out, ftl_error *error);
// Runs a bound statement that returns no row, and resets it.
FTL_MUST_USE ftl_status ftl_database_step_done(ftl_database *database, sqlite3_stmt *statement, ftl_error *error);
// The statement copies `text`; NULL binds NULL.
static inline void ftl_database_bind_text(sqlite3_stmt *statement, int idx, const char *text) {
  sqlite3_bind_text(statement, idx, text, -1, SQLITE_TRANSIENT);
}
// Begins a transaction that may write; ends it by what `status` says.
FTL_MUST_USE ftl_status ftl_database_begin(ftl_database *database, ftl_error *error);
FTL_MUST_USE ftl_status ftl_database_end(ftl_database *database, ftl_status status, ftl_error *error);

// All metrics of the row that `statement` stands at, one a column; NaN: not known (answer_store.c).
void ftl_database_read_metrics(sqlite3_stmt *statement, int first_column, ftl_metrics *out);

// Creates the tables of an empty file, or adds the columns of parameters and metrics that came since (schema.c).
FTL_MUST_USE ftl_status ftl_schema_set_up(ftl_database *database, ftl_error *error);

// The id of the arch model's row; stores it with all values and origins when it is not there (store.c).
FTL_MUST_USE ftl_status ftl_database_put_arch(ftl_database *database, const ftl_arch *arch, int64_t *arch_id,
                                              ftl_error *error);

#endif
