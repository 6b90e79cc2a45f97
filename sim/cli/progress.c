#include "cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { INTERVAL_MS = 100 };

static int64_t now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

void ftl_progress_init(ftl_progress *progress, bool quiet) {
  *progress = (ftl_progress){.enabled = !quiet && isatty(STDERR_FILENO), .last_ms = now_ms()};
}

void ftl_progress_update(void *user, int64_t num_done, int64_t num_points) {
  ftl_progress *progress = user;
  if (!progress->enabled) return;
  if (num_done == num_points) {
    ftl_progress_clear(progress);
    return;
  }
  int64_t now = now_ms();
  if (now - progress->last_ms < INTERVAL_MS) return;
  progress->last_ms = now;
  progress->shown = true;
  fprintf(stderr, "\r\033[K%" PRId64 " of %" PRId64 " configurations", num_done, num_points);
  fflush(stderr);
}

void ftl_progress_clear(ftl_progress *progress) {
  if (progress->shown) fprintf(stderr, "\r\033[K");
  progress->shown = false;
}
