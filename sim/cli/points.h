// Configurations from the command line: --arch, --set, --workload, KEY=VALUE.
#ifndef FTL_CLI_POINTS_H
#define FTL_CLI_POINTS_H

#include "cli/arguments.h"
#include "results/evaluate.h"
#include "results/space.h"
#include "script/session.h"

// A model by name or file, changed by --set. Lives as long as the session.
FTL_MUST_USE ftl_status ftl_points_arch(ftl_session *session, const ftl_arguments *arguments, const char *name,
                                        const ftl_arch **out, ftl_error *error);

typedef struct ftl_points {
  ftl_point *points;  // GPU after GPU, then as ftl_space orders them
  int64_t num_points;
} ftl_points;

// Every combination that the arguments name. lists: values (and GPUs) may be lists separated by commas; else there is
// one point. FTL_BAD_INPUT names the argument, or says what the first point contradicts itself in where all do. *out is
// freed with ftl_points_fini, also after a failure.
FTL_MUST_USE ftl_status ftl_points_make(ftl_session *session, const ftl_arguments *arguments, const char *command,
                                        bool lists, ftl_points *out, ftl_error *error);
void ftl_points_fini(ftl_points *points);

#endif
