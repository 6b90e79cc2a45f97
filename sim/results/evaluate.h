// Answers for a list of configurations: from the database where they are known, else predicted, on several threads.
#ifndef FTL_RESULTS_EVALUATE_H
#define FTL_RESULTS_EVALUATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "arch/arch.h"
#include "base/status.h"
#include "engine/predict.h"
#include "results/database.h"

typedef struct ftl_point {
  ftl_spec spec;         // complete
  const ftl_arch *arch;  // borrowed
} ftl_point;

typedef struct ftl_answer {
  ftl_status status;  // of this point; FTL_OK also when it is infeasible
  char message[FTL_ERROR_MESSAGE_BYTES];
  bool is_stored;  // came from the database
  ftl_prediction prediction;
} ftl_answer;

typedef struct ftl_evaluate_options {
  int num_threads;                                                     // at least 1
  ftl_database *database;                                              // may be NULL
  int64_t run_id;                                                      // of the database
  const atomic_bool *cancel;                                           // may be NULL
  void (*progress)(void *user, int64_t num_done, int64_t num_points);  // may be NULL; called by one thread at a time
  void *progress_user;
} ftl_evaluate_options;

// answers[i] belongs to points[i], whatever the number of threads. Equal points are predicted once. A failed point is
// in its answer. The call itself fails with FTL_INTERRUPTED, FTL_NO_MEMORY, or a database error; what was finished is
// stored then.
FTL_MUST_USE ftl_status ftl_evaluate(const ftl_point *points, int64_t num_points, const ftl_evaluate_options *options,
                                     ftl_answer *answers, ftl_error *error);

// CPUs that this process may use.
int ftl_num_cpus(void);

#endif
