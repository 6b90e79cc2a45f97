// predict --batch: JSON lines in, JSON lines out, in order; what is wrong with a line is its answer.
#ifndef FTL_CLI_BATCH_H
#define FTL_CLI_BATCH_H

#include <stdio.h>

#include "cli/arguments.h"
#include "results/evaluate.h"
#include "script/session.h"

// One line as a configuration. --arch, --workload and --detail of the arguments are what a line leaves out.
FTL_MUST_USE ftl_status ftl_batch_parse(ftl_session *session, const ftl_arguments *arguments, const char *line,
                                        size_t size, ftl_point *out, ftl_error *error);

// Answers every line of `fd` on `out`. A line is answered before more input is waited for. *num_failed: lines answered
// by an error. The call fails with FTL_IO_FAILED, FTL_INTERRUPTED, FTL_NO_MEMORY, or a database error.
FTL_MUST_USE ftl_status ftl_batch_run(ftl_session *session, const ftl_arguments *arguments, int fd, const char *name,
                                      FILE *out, int64_t *num_failed, ftl_error *error);

#endif
