// What one use of the command shares: the arch models loaded so far, and how predictions are made and kept.
#ifndef FTL_SCRIPT_SESSION_H
#define FTL_SCRIPT_SESSION_H

#include "arch/arch.h"
#include "base/status.h"
#include "results/evaluate.h"

// What-ifs of one scenario, so that a loop cannot hoard models.
enum { FTL_SESSION_MAX_ARCHS = 4096 };

typedef struct ftl_session {
  ftl_evaluate_options evaluate;
  const char *detail;               // the default of `detail` for this session; NULL: the parameter's own
  struct ftl_session_entry *archs;  // owned
  int num_archs;
  // The first failure of a prediction or of the database: a scenario may catch the error, the command still reports it.
  ftl_status status;
  char message[FTL_ERROR_MESSAGE_BYTES];
} ftl_session;

void ftl_session_init(ftl_session *session);
void ftl_session_fini(ftl_session *session);

// A shipped product or a file, loaded once. *out lives as long as the session.
FTL_MUST_USE ftl_status ftl_session_arch(ftl_session *session, const char *name_or_file, const ftl_arch **out,
                                         ftl_error *error);
// Takes `arch` (also on failure); gives back the model of that name and content that the session has.
FTL_MUST_USE ftl_status ftl_session_take_arch(ftl_session *session, ftl_arch *arch, const ftl_arch **out,
                                              ftl_error *error);

// Keeps the first failure in `status`.
void ftl_session_keep(ftl_session *session, ftl_status status, const char *message);
// Predicts, keeps the first failure of a point or of the call in `status`, and returns it. A point whose parameters
// contradict each other is infeasible, unless all do.
FTL_MUST_USE ftl_status ftl_session_evaluate(ftl_session *session, const ftl_point *points, int64_t num_points,
                                             ftl_answer *answers, ftl_error *error);

#endif
