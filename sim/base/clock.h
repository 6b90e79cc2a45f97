// Clock domains. Edge n of a clock of f kHz is at floor(n * 10^9 / f) picoseconds, computed from n every time and never
// accumulated, so no drift. Domains exchange times in picoseconds only; each counts its own cycles.
#ifndef FTL_BASE_CLOCK_H
#define FTL_BASE_CLOCK_H

#include <stdint.h>

typedef struct ftl_clock {
  int64_t khz;
} ftl_clock;

// The time of edge `cycle`, in ps.
int64_t ftl_clock_edge_ps(ftl_clock clock, int64_t cycle);
// The first cycle whose edge is at or after `time_ps` (time_ps >= 0).
int64_t ftl_clock_cycle_at_or_after(ftl_clock clock, int64_t time_ps);

#endif
