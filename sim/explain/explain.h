// Why a launch takes as long as it does: its prediction, the same with one resource of the GPU changed at a time, and
// its neighbours among kernels.
#ifndef FTL_EXPLAIN_EXPLAIN_H
#define FTL_EXPLAIN_EXPLAIN_H

#include "explain/neighbours.h"
#include "report/column.h"
#include "results/evaluate.h"

// One changed question and its answer.
typedef struct ftl_explain_case {
  const char *name;  // of the what-if, or of the parameter
  const char *what;  // of the what-if: what the resource is
  char value[32];    // of the parameter
  ftl_text change;   // of the what-if: keys, old and new values
  double factor;     // by which its resource grew
  bool feasible;
  char reason[FTL_ERROR_MESSAGE_BYTES];    // where it is not feasible, or has no answer
  double time_ns, hbm_bytes;               // of its answer
  double time_change_pct, hbm_change_pct;  // against the base; NAN where that is infeasible
  double elasticity;  // of a what-if, -log(time ratio) / log(factor): 1 where time falls as the resource grows
} ftl_explain_case;

typedef struct ftl_explanation {
  const ftl_arch *arch;  // borrowed
  ftl_answer base;
  ftl_explain_case *what_ifs;    // the largest elasticity first; none where the base is infeasible
  ftl_explain_case *neighbours;  // the fastest first, infeasible ones last
  int num_what_ifs, num_neighbours;
} ftl_explanation;

// Asks no database, whatever the options say: it does not keep what an explanation is made of. A failed prediction of
// the base fails the call; of another it is the reason of that case. *out is NULL on failure.
FTL_MUST_USE ftl_status ftl_explain(const ftl_point *point, const ftl_evaluate_options *options, ftl_explanation **out,
                                    ftl_error *error);
void ftl_explanation_destroy(ftl_explanation *explanation);

// For people, in sections; and one JSON object, no newline (docs/explain.md).
FTL_MUST_USE ftl_status ftl_explanation_text(const ftl_explanation *explanation, ftl_text *out, ftl_error *error);
void ftl_explanation_json(const ftl_explanation *explanation, ftl_text *out);

#endif
