// All that a results database holds, read at once: runs, GPU models, predictions, measured rows. Reads only.
// Not here: which prediction belongs to which measured row (report/page_cases.c).
#ifndef FTL_RESULTS_CONTENTS_H
#define FTL_RESULTS_CONTENTS_H

#include "base/arena.h"
#include "results/database.h"
#include "results/measurement.h"

// Text is "" where the database has NULL.
typedef struct ftl_stored_run {
  int64_t id, num_predictions;
  const char *command, *scenario, *version, *started_utc, *finished_utc, *state;
} ftl_stored_run;

typedef struct ftl_stored_arch {
  ftl_arch *model;  // keys that this program no longer knows, or that came since, are not set
  const char *hash;
  int64_t id, num_predictions;
} ftl_stored_arch;

typedef struct ftl_stored_prediction {
  int arch_idx;
  const char *workload, *question, *version, *created_utc, *bottleneck, *reason;
  const ftl_spec *spec;  // `auto` as resolved; NULL: a scenario's own kernel, or a workload of another version
  bool feasible;
  ftl_metrics metrics;  // of all launches; NaN: not known
} ftl_stored_prediction;

typedef struct ftl_stored_file {
  ftl_measurement_file file;  // of its values those that are metrics; content_hash is not read
  const char *hash, *format, *imported_utc;
  int64_t id;
} ftl_stored_file;

typedef struct ftl_contents {
  char *path;
  ftl_stored_run *runs;
  ftl_stored_arch *archs;  // by name, then hash
  ftl_stored_prediction *predictions;
  ftl_stored_file *files;
  int64_t num_runs, num_predictions, num_measurements;
  int num_archs, num_files;
  ftl_arena arena;  // holds all text and arrays
} ftl_contents;

// *out is NULL on failure. FTL_IO_FAILED as ftl_database_open_existing; FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_contents_read(ftl_contents **out, const char *path, ftl_error *error);
void ftl_contents_destroy(ftl_contents *contents);

#endif
