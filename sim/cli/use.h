// One use of a command that predicts: session, database, run, progress, Ctrl-C.
#ifndef FTL_CLI_USE_H
#define FTL_CLI_USE_H

#include "cli/arguments.h"
#include "cli/progress.h"
#include "results/database.h"
#include "script/session.h"

typedef struct ftl_use {
  ftl_session session;
  ftl_database *database;
  ftl_progress progress;
} ftl_use;

// database_path may be NULL. scenario_path and scenario_text may be NULL. On failure there is nothing to end.
FTL_MUST_USE ftl_status ftl_use_begin(ftl_use *use, const ftl_arguments *arguments, const char *command,
                                      const char *database_path, const char *scenario_path, const char *scenario_text,
                                      ftl_error *error);
// Writes how the run ended and frees everything. Gives the worse of `status` and its own.
FTL_MUST_USE ftl_status ftl_use_end(ftl_use *use, ftl_status status, ftl_error *error);

#endif
