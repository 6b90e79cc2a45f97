#include "engine/sampled/step_times.h"

#include <string.h>

#include "engine/work.h"

// However CTAs interleave, a sub-core issues one instruction a cycle and its tensor pipe works on one.
static void fill_least(const ftl_launch *launch, const ftl_segments *segments, ftl_step_times *times) {
  ftl_static_work work[FTL_MAX_SEGMENTS];
  ftl_static_work_of_segments(launch->warps, segments->place_of_loop, work, times->num_segments);
  for (int32_t s = 0; s < times->num_segments; s++) {
    int64_t busy = work[s].warp_insts > work[s].tensor_busy_cycles ? work[s].warp_insts : work[s].tensor_busy_cycles;
    times->least[s] = busy * FTL_STEP_UNIT / launch->arch->sm_num_subcores;
  }
}

// Measures the point where it was not. A failure leaves its times 0.
static void measure(ftl_step_times *times, int32_t i) {
  if (times->is_measured[i] || times->failure.status != FTL_OK) return;
  times->is_measured[i] = true;
  if (ftl_step_measurement_take(times->measurement, times->latency_cycles[i], &times->points[0][i],
                                &times->points[1][i], &times->failure) != FTL_OK)
    times->points[0][i] = times->points[1][i] = (ftl_step_point){0};
}

ftl_status ftl_step_times_init(ftl_step_times *out, const ftl_launch *launch, const ftl_segments *segments,
                               int64_t sm_khz, const int64_t latency_cycles[FTL_NUM_STEP_LATENCIES], ftl_error *error) {
  memset(out, 0, sizeof *out);
  out->num_segments = 2 * segments->num_loops + 1;
  out->most_ctas = launch->occupancy.ctas_per_sm;
  memcpy(out->latency_cycles, latency_cycles, sizeof out->latency_cycles);
  fill_least(launch, segments, out);
  ftl_status status = ftl_step_measurement_create(&out->measurement, launch, segments, sm_khz, error);
  if (status != FTL_OK) return status;
  measure(out, 0);  // what cannot run at all is known before anything is walked
  return ftl_step_times_status(out, error);
}

void ftl_step_times_fini(ftl_step_times *times) { ftl_step_measurement_destroy(times->measurement); }

ftl_status ftl_step_times_status(const ftl_step_times *times, ftl_error *error) {
  if (times->failure.status != FTL_OK && error) *error = times->failure;
  return times->failure.status;
}

const ftl_step_point *ftl_step_times_point(ftl_step_times *times, int32_t row, int32_t i) {
  measure(times, i);
  return &times->points[row][i];
}

static int64_t between(int64_t x, int64_t x0, int64_t x1, int64_t y0, int64_t y1) {
  return x1 > x0 ? y0 + (y1 - y0) * (x - x0) / (x1 - x0) : y0;
}

static int64_t of_point(const ftl_step_point *point, int32_t segment, bool later) {
  return later ? point->later[segment] : point->time[segment];
}

static int64_t at_latency(ftl_step_times *times, int32_t row, int32_t segment, int64_t latency, bool later) {
  int32_t i = 1;
  if (latency <= times->latency_cycles[0]) return of_point(ftl_step_times_point(times, row, 0), segment, later);
  while (i < FTL_NUM_STEP_LATENCIES - 1 && latency > times->latency_cycles[i]) i++;
  return between(latency, times->latency_cycles[i - 1], times->latency_cycles[i],
                 of_point(ftl_step_times_point(times, row, i - 1), segment, later),
                 of_point(ftl_step_times_point(times, row, i), segment, later));
}

int64_t ftl_step_times_get(ftl_step_times *times, int32_t segment, int32_t resident, int64_t latency_cycles) {
  int64_t time = at_latency(times, 0, segment, latency_cycles, false), least = resident * times->least[segment];
  if (resident > 1)
    time = between(resident, 1, times->most_ctas, time, at_latency(times, 1, segment, latency_cycles, false));
  return time > least ? time : least;
}

// The mean of what an SM does whose loads hit L2 and of one whose loads come from DRAM.
int64_t ftl_step_times_deviation(ftl_step_times *times, int32_t k) {
  const ftl_step_point *hit = ftl_step_times_point(times, 1, 0), *miss = ftl_step_times_point(times, 1, 1);
  return (hit->deviation[k] + miss->deviation[k]) / 2;
}

int64_t ftl_step_times_get_later(ftl_step_times *times, int32_t segment, int32_t resident, int64_t latency_cycles) {
  if (times->most_ctas > 1) return ftl_step_times_get(times, segment, resident, latency_cycles);
  int64_t time = at_latency(times, 0, segment, latency_cycles, true), least = times->least[segment];
  return segment % 2 == 0 || time > least ? time : least;  // straight code overlaps that of the tile before
}
