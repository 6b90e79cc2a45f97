#include "engine/sampled/step_times.h"

#include <string.h>

#include "base/sectors.h"
#include "engine/sampled/latency_pool.h"
#include "engine/work.h"

// However CTAs interleave, a sub-core issues one instruction a cycle and its tensor pipe works on one.
static void fill_least(const ftl_launch *launch, const ftl_segments *segments, ftl_step_times *times) {
  ftl_static_work work[FTL_MAX_SEGMENTS];
  ftl_static_work_of_segments(launch->warps, segments->place_of_loop, work, times->num_segments);
  for (int32_t s = 0; s < times->num_segments; s++) {
    int64_t busy = work[s].warp_insts > work[s].tensor_busy_cycles ? work[s].warp_insts : work[s].tensor_busy_cycles;
    times->least_sixteenths[s] = busy * FTL_SIXTEENTHS_PER_CYCLE / launch->arch->sm_num_subcores;
  }
}

static void fill_times_run(const ftl_launch *launch, const ftl_segments *segments, ftl_step_times *times) {
  int64_t cta = ftl_step_measurement_representative(times->measurement), first;
  for (int32_t s = 0; s < times->num_segments; s++) {
    times->times_run[s] = ftl_segments_visits(segments, launch->warps, s, cta);
    if (s % 2 == 1) times->times_run[s] *= ftl_segments_trips(segments, launch->warps, s / 2, cta, &first);
    times->least_of_cta_sixteenths += times->least_sixteenths[s] * times->times_run[s];
  }
}

enum { HIT, DRAM, REFRESH, BUSY };  // latencies by index: of L2, of DRAM, of DRAM that refreshes, or is busy

// Measures the point where it was not. A failure leaves its times 0.
static void take(ftl_step_times *times, int32_t i) {
  if (times->is_measured[i] || times->failure.status != FTL_OK) return;
  times->is_measured[i] = true;
  if (ftl_step_measurement_take(times->measurement, times->latency_cycles[i], &times->points[0][i],
                                &times->points[1][i], &times->failure) != FTL_OK)
    times->points[0][i] = times->points[1][i] = (ftl_step_point){0};
}

// With one CTA: what comes to an SM comes for all its warps. Data come from DRAM when a launch begins.
static void take_cold(ftl_step_times *times) {
  if (times->failure.status != FTL_OK) return;
  if (ftl_step_measurement_take_cold(times->measurement, times->latency_cycles[DRAM], &times->points[0][DRAM],
                                     times->cold_sixteenths, &times->failure) != FTL_OK)
    memset(times->cold_sixteenths, 0, sizeof times->cold_sixteenths);
}

static void take_bare_at(ftl_step_times *times, int64_t latency_cycles, bool is_warm, int64_t *sixteenths) {
  if (times->failure.status != FTL_OK) return;
  if (ftl_step_measurement_take_bare(times->measurement, latency_cycles, is_warm, sixteenths, &times->failure) !=
      FTL_OK)
    *sixteenths = 0;
}

static void take_bare_shared_at(ftl_step_times *times, int32_t i) {
  int64_t alone = times->bare_sixteenths[0][i];
  times->bare_sixteenths[1][i] = alone;
  if (times->failure.status != FTL_OK || times->most_ctas < 2) return;
  if (ftl_step_measurement_take_bare_shared(times->measurement, times->latency_cycles[i], alone,
                                            &times->bare_sixteenths[1][i], &times->failure) != FTL_OK)
    times->bare_sixteenths[1][i] = 0;
}

// The straight code of a CTA that runs no loop waits for nothing that a loop needs, and hides behind nothing in it.
static void take_bare(ftl_step_times *times) {
  if (!ftl_step_measurement_has_bare(times->measurement)) return;
  for (int32_t s = 0; s < times->num_segments; s += 2) times->least_of_bare_sixteenths += times->least_sixteenths[s];
  for (int32_t i = HIT; i <= DRAM; i++) {
    take_bare_at(times, times->latency_cycles[i], true, &times->bare_sixteenths[0][i]);
    take_bare_shared_at(times, i);
  }
  take_bare_at(times, times->latency_cycles[DRAM], false, &times->bare_cold_sixteenths);
  times->bare_cold_sixteenths -= times->bare_sixteenths[0][DRAM];
  times->has_bare = times->least_of_bare_sixteenths > 0;
}

static void raise_to(int64_t *time, int64_t least) {
  if (*time < least) *time = least;
}

static bool loads_directly(const ftl_segment *loop) {
  for (int32_t i = 0; i < loop->num_refs; i++)
    if (loop->refs[i].is_direct && !loop->refs[i].is_lookup) return true;
  return false;
}

// Of CTAs that share an SM, but for those that an iteration takes half of the time of or more: such are run from
// beginnings all over their time. Not of loops that load into registers: they wait for memory, where what one CTA loses
// another gains. Nor of a loop around others, which was cut to iterations of its own.
static bool has_succession(const ftl_segments *segments, const ftl_step_times *times) {
  const int64_t *time = times->points[1][HIT].time_sixteenths;
  int64_t whole = time[0] * times->times_run[0], longest = 0;
  for (int32_t loop = 1; loop < times->num_segments; loop += 2) {
    if (loads_directly(&segments->segments[loop])) return false;
    whole += time[loop] * times->times_run[loop] + time[loop + 1] * times->times_run[loop + 1];
    if (time[loop] > longest) longest = time[loop];
  }
  return longest > 0 && whole > 2 * longest && times->most_ctas > 1;
}

static void take_succession(const ftl_segments *segments, ftl_step_times *times) {
  const ftl_step_point *shared = &times->points[1][HIT];
  if (times->failure.status != FTL_OK || segments->outer.loop >= 0 || !has_succession(segments, times)) return;
  while (times->first_timed + 1 < times->num_segments && shared->time_sixteenths[times->first_timed] == 0)
    times->first_timed += 2;
  if (ftl_step_measurement_take_succession(times->measurement, times->latency_cycles[HIT], shared, &times->succession,
                                           &times->failure) != FTL_OK)
    times->succession = (ftl_step_succession){0};
}

// A sixteenth of its sectors and more are sent in parts.
static bool stores_parts(const ftl_sm_counters *sm) {
  return sm->global_store_sectors * FTL_SECTOR_BYTES > sm->global_store_bytes + sm->global_store_bytes / 16;
}

// Which parts of sectors merge hangs on how an SM's CTAs come to their stores. Those that repeat a loop have drifted
// apart by then; others come as they began, in the first wave all at once.
static void take_stores(const ftl_segments *segments, ftl_step_times *times) {
  const ftl_step_point *alone = &times->points[0][HIT], *shared = &times->points[1][HIT];
  times->storing = shared->counters;
  if (times->failure.status != FTL_OK || times->most_ctas < 2 || has_succession(segments, times)) return;
  if (!stores_parts(&alone->counters) && !stores_parts(&shared->counters)) return;
  times->store_as_launched = true;
  if (ftl_step_measurement_take_launch(times->measurement, times->latency_cycles[DRAM], &times->storing,
                                       &times->failure) != FTL_OK)
    times->storing = (ftl_sm_counters){0};
}

// No loop is shorter than at the latency before.
static void ascend(ftl_step_times *times, int32_t i) {
  for (int32_t row = 0; row < 2; row++)
    for (int32_t loop = 1; loop < times->num_segments; loop += 2) {
      raise_to(&times->points[row][i].time_sixteenths[loop], times->points[row][i - 1].time_sixteenths[loop]);
      raise_to(&times->points[row][i].later_sixteenths[loop], times->points[row][i - 1].later_sixteenths[loop]);
    }
}

static void fill_whole_cta(ftl_step_times *times) {
  for (int32_t row = 0; row < 2; row++)
    for (int32_t i = 0; i < FTL_NUM_STEP_LATENCIES; i++) {
      times->whole_cta_sixteenths[row][i] = 0;
      for (int32_t s = 0; s < times->num_segments; s++)
        times->whole_cta_sixteenths[row][i] += times->points[row][i].time_sixteenths[s] * times->times_run[s];
    }
}

// Those of L2 and DRAM are there from the beginning; a longer one may be there before a shorter one is.
static void measure(ftl_step_times *times, int32_t i) {
  if (i < REFRESH) return;
  measure(times, i - 1);
  if (times->is_measured[i]) return;
  take(times, i);
  for (int32_t j = i; j < FTL_NUM_STEP_LATENCIES && times->is_measured[j]; j++) ascend(times, j);
  fill_whole_cta(times);
}

static ftl_latency_point lone_point(const ftl_step_times *times, int32_t loop, int32_t i) {
  return (ftl_latency_point){.time_sixteenths = times->points[0][i].time_sixteenths[loop],
                             .latency_cycles = times->latency_cycles[i]};
}

// Whether a lone CTA hides DRAM's latency in the loop; CTAs that share an SM then do too. A time that is longer by
// chance shows where that of a still longer latency is not. So does one of a loop that waits in the iteration that
// asks: did it hide less than DRAM's latency, twice that would cost it more than half of what it adds.
static bool is_dram_hidden(ftl_step_times *times, const ftl_segment *segment, int32_t loop) {
  ftl_latency_point hit = lone_point(times, loop, HIT), dram = lone_point(times, loop, DRAM);
  int32_t lookahead = ftl_latency_lookahead(segment);
  bool is_unseen = ftl_latency_is_unseen(hit, dram);
  if (lookahead == 0 && !is_unseen) return false;
  if (lookahead > 0) {
    if (!ftl_latency_fits(hit, dram, lookahead)) return false;
    if (is_unseen) return true;
    ftl_latency_point busy = {.latency_cycles = times->latency_cycles[BUSY]};
    if (!ftl_latency_fits(hit, busy, lookahead)) return false;
  }
  take(times, BUSY);
  return ftl_latency_is_unseen(hit, lone_point(times, loop, BUSY));
}

static void pool_unloaded(ftl_step_times *times, const ftl_segments *segments) {
  for (int32_t loop = 1; loop < times->num_segments; loop += 2) {
    bool is_hidden = is_dram_hidden(times, &segments->segments[loop], loop);
    for (int32_t row = 0; row < 2; row++) {
      ftl_step_point *hit = &times->points[row][HIT], *dram = &times->points[row][DRAM];
      times->scatter_sixteenths[loop] = ftl_latency_pool(&hit->time_sixteenths[loop], &dram->time_sixteenths[loop],
                                                         is_hidden);  // the last row's stays
      (void)ftl_latency_pool(&hit->later_sixteenths[loop], &dram->later_sixteenths[loop], is_hidden);
    }
  }
  if (times->is_measured[BUSY]) ascend(times, BUSY);
}

ftl_status ftl_step_times_init(ftl_step_times *out, const ftl_launch *launch, const ftl_segments *segments,
                               int64_t sm_khz, const int64_t latency_cycles[FTL_NUM_STEP_LATENCIES], ftl_error *error) {
  memset(out, 0, sizeof *out);
  out->num_segments = 2 * segments->num_loops + 1;
  out->most_ctas = ftl_launch_most_ctas_per_sm(launch);
  memcpy(out->latency_cycles, latency_cycles, sizeof out->latency_cycles);
  fill_least(launch, segments, out);
  ftl_status status = ftl_step_measurement_create(&out->measurement, launch, segments, sm_khz, error);
  if (status != FTL_OK) return status;
  fill_times_run(launch, segments, out);
  take(out, HIT);  // what cannot run at all is known before anything is walked
  take(out, DRAM);
  take_cold(out);  // before loops' times are pooled: these compare with what was measured
  take_bare(out);
  take_succession(segments, out);
  take_stores(segments, out);
  if (out->failure.status == FTL_OK) pool_unloaded(out, segments);
  fill_whole_cta(out);
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
  return later ? point->later_sixteenths[segment] : point->time_sixteenths[segment];
}

// The first point of at least that latency, or the last; it and the one before are measured.
static int32_t point_behind(ftl_step_times *times, int64_t latency) {
  int32_t i = 0;
  while (i < FTL_NUM_STEP_LATENCIES - 1 && latency > times->latency_cycles[i]) i++;
  measure(times, i);
  return i;
}

static int64_t at_latency(ftl_step_times *times, int32_t row, int32_t segment, int64_t latency, bool later) {
  int32_t i = point_behind(times, latency);
  const ftl_step_point *point = &times->points[row][i];
  if (i == 0) return of_point(point, segment, later);
  return between(latency, times->latency_cycles[i - 1], times->latency_cycles[i], of_point(point - 1, segment, later),
                 of_point(point, segment, later));
}

static int64_t whole_cta_at_latency(ftl_step_times *times, int32_t row, int64_t latency) {
  int32_t i = point_behind(times, latency);
  const int64_t *whole = &times->whole_cta_sixteenths[row][i];
  return i == 0 ? whole[0]
                : between(latency, times->latency_cycles[i - 1], times->latency_cycles[i], whole[-1], whole[0]);
}

bool ftl_step_times_show_latency(ftl_step_times *times, int32_t loop) {
  return !ftl_latency_is_unseen(lone_point(times, loop, HIT), lone_point(times, loop, DRAM));
}

bool ftl_step_times_has(const ftl_step_times *times, int32_t segment) {
  return times->points[0][HIT].time_sixteenths[segment] > 0 || times->points[1][HIT].time_sixteenths[segment] > 0;
}

int64_t ftl_step_times_least_before(const ftl_step_times *times, int32_t segment) {
  int64_t least = 0;
  if (!ftl_step_times_has(times, segment)) return 0;
  for (int32_t s = segment - 1; s >= 0 && !ftl_step_times_has(times, s); s--)
    if (s % 2 == 0) least += times->least_sixteenths[s];
  return least;
}

// CTAs that share an SM are not all in the same segment: while some wait in theirs others compute. It is all segments
// together that take no less than their issue slots and tensor pipes.
static int64_t stretched(ftl_step_times *times, int64_t time, int32_t resident, int64_t latency_cycles) {
  int64_t least = resident * times->least_of_cta_sixteenths;
  int64_t whole = whole_cta_at_latency(times, 0, latency_cycles);
  if (resident > 1)
    whole = between(resident, 1, times->most_ctas, whole, whole_cta_at_latency(times, 1, latency_cycles));
  return whole > 0 && least > whole ? (int64_t)((__extension__(__int128) time) * least / whole) : time;
}

int64_t ftl_step_times_get(ftl_step_times *times, int32_t segment, int32_t resident, int64_t latency_cycles) {
  int64_t time = at_latency(times, 0, segment, latency_cycles, false);
  if (resident > 1)
    time = between(resident, 1, times->most_ctas, time, at_latency(times, 1, segment, latency_cycles, false));
  if (times->times_run[segment] == 0) raise_to(&time, resident * times->least_sixteenths[segment]);
  return stretched(times, time, resident, latency_cycles);
}

static int64_t share_of_bare(const ftl_step_times *times, int32_t segment, int64_t whole_sixteenths) {
  return whole_sixteenths * times->least_sixteenths[segment] / times->least_of_bare_sixteenths;
}

static int64_t bare_at_latency(const ftl_step_times *times, int32_t row, int64_t latency_cycles) {
  const int64_t *time = times->bare_sixteenths[row];
  return between(latency_cycles, times->latency_cycles[HIT], times->latency_cycles[DRAM], time[HIT], time[DRAM]);
}

int64_t ftl_step_times_get_bare(const ftl_step_times *times, int32_t segment, int32_t resident,
                                int64_t latency_cycles) {
  int64_t whole = bare_at_latency(times, 0, latency_cycles);
  if (resident > 1) whole = between(resident, 1, times->most_ctas, whole, bare_at_latency(times, 1, latency_cycles));
  raise_to(&whole, resident * times->least_of_bare_sixteenths);
  return share_of_bare(times, segment, whole);
}

int64_t ftl_step_times_bare_cold(const ftl_step_times *times, int32_t segment) {
  return share_of_bare(times, segment, times->bare_cold_sixteenths);
}

int64_t ftl_step_times_get_later(ftl_step_times *times, int32_t segment, int32_t resident, int64_t latency_cycles) {
  if (times->most_ctas > 1) return ftl_step_times_get(times, segment, resident, latency_cycles);
  int64_t time = at_latency(times, 0, segment, latency_cycles, true), least = times->least_sixteenths[segment];
  return segment % 2 == 0 || time > least ? time : least;  // straight code overlaps that of the tile before
}
