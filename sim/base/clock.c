#include "base/clock.h"

enum { PS_TIMES_KHZ = 1000000000 };  // 1 kHz has a period of 10^9 ps

int64_t ftl_clock_edge_ps(ftl_clock clock, int64_t cycle) {
  return (int64_t)((__extension__(__int128) cycle) * PS_TIMES_KHZ / clock.khz);
}

int64_t ftl_clock_cycle_at_or_after(ftl_clock clock, int64_t time_ps) {
  // floor(n * 10^9 / f) >= t  <=>  n * 10^9 >= t * f  (t integer)
  return (int64_t)(((__extension__(__int128) time_ps) * clock.khz + PS_TIMES_KHZ - 1) / PS_TIMES_KHZ);
}
