// The results database: one SQLite file with runs, arch models and predictions. docs/results.md describes the tables.
// Every change is one transaction: what fails leaves the file as it was. One connection belongs to one thread at a
// time.
#ifndef FTL_RESULTS_DATABASE_H
#define FTL_RESULTS_DATABASE_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/arch.h"
#include "base/status.h"
#include "engine/predict.h"
#include "results/result_key.h"

typedef struct ftl_database ftl_database;

// Opens or creates. *out is NULL on failure. FTL_IO_FAILED in one line: no folder, no permission, read-only, locked
// (after 5 s), disk full, not a database, another program's database, written by a newer version. A file that could not
// be set up is removed again.
FTL_MUST_USE ftl_status ftl_database_open(ftl_database **out, const char *path, ftl_error *error);
// The same of a file that is there: nothing is created, and a file that only may be read is refused only where columns
// must be added. FTL_IO_FAILED too for an empty file.
FTL_MUST_USE ftl_status ftl_database_open_existing(ftl_database **out, const char *path, ftl_error *error);
void ftl_database_close(ftl_database *database);
const char *ftl_database_path(const ftl_database *database);

typedef enum ftl_run_state {
  FTL_RUN_STATE_RUNNING,
  FTL_RUN_STATE_DONE,
  FTL_RUN_STATE_FAILED,
  FTL_RUN_STATE_INTERRUPTED
} ftl_run_state;

// One use of the command. scenario_path and scenario_text (hashed) may be NULL. *run_id stays what it was on failure.
FTL_MUST_USE ftl_status ftl_database_begin_run(ftl_database *database, const char *command, const char *scenario_path,
                                               const char *scenario_text, int64_t *run_id, ftl_error *error);
FTL_MUST_USE ftl_status ftl_database_end_run(ftl_database *database, int64_t run_id, ftl_run_state state,
                                             ftl_error *error);

// The stored answer to `spec` with this key, and its link to the run; *found false when there is none.
FTL_MUST_USE ftl_status ftl_database_get(ftl_database *database, int64_t run_id, const ftl_result_key *key,
                                         const ftl_spec *spec, bool *found, ftl_prediction *out, ftl_error *error);
// Stores an answer, the arch model with its origins, and the link to the run. Nothing changes if the key is there.
// `spec` is as asked for: prediction->spec has its `auto` values resolved.
FTL_MUST_USE ftl_status ftl_database_put(ftl_database *database, int64_t run_id, const ftl_result_key *key,
                                         const ftl_spec *spec, const ftl_arch *arch, const ftl_prediction *prediction,
                                         ftl_error *error);

#endif
