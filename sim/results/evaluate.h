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
#include "results/space.h"

typedef struct ftl_point {
  ftl_spec spec;                                // complete, where nothing contradicts itself
  const ftl_arch *arch;                         // borrowed
  char contradiction[FTL_ERROR_MESSAGE_BYTES];  // what its parameters contradict each other in, else empty
} ftl_point;

// One combination of a space that may hold others: FTL_OK also where its parameters contradict each other.
FTL_MUST_USE ftl_status ftl_point_make(const ftl_space *space, int64_t point_idx, const ftl_arch *arch, ftl_point *out,
                                       ftl_error *error);
// What a GPU rules out in any configuration. FTL_BAD_INPUT: a held clock that it does not have; the line says its
// range.
FTL_MUST_USE ftl_status ftl_point_check_gpu(const ftl_spec *spec, const ftl_arch *arch, ftl_error *error);
static inline bool ftl_point_is_well_formed(const ftl_point *point) { return point->contradiction[0] == '\0'; }

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
// in its answer; one that contradicts itself is infeasible, and no database keeps it. The call itself fails with
// FTL_INTERRUPTED, FTL_NO_MEMORY, or a database error; what was finished is stored then.
FTL_MUST_USE ftl_status ftl_evaluate(const ftl_point *points, int64_t num_points, const ftl_evaluate_options *options,
                                     ftl_answer *answers, ftl_error *error);

// CPUs that this process may use.
int ftl_num_cpus(void);

#endif
