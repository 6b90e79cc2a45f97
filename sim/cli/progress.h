// One updating line on a terminal; nothing anywhere else.
#ifndef FTL_CLI_PROGRESS_H
#define FTL_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ftl_progress {
  bool enabled, shown;
  int64_t last_ms;
} ftl_progress;

// Enabled where standard error is a terminal and `quiet` is not set.
void ftl_progress_init(ftl_progress *progress, bool quiet);
// `user` is an ftl_progress; for ftl_evaluate_options. The line goes away when all is done.
void ftl_progress_update(void *user, int64_t num_done, int64_t num_points);
void ftl_progress_clear(ftl_progress *progress);

#endif
