// Periods to come that are not run: when that is, and what is counted for them.
#include <math.h>

#include "base/integer.h"
#include "engine/sampled/gpu_run.h"

#include "base/sectors.h"

enum {
  KEPT_PERIODS = 1,  // run in any case at the end, so that the tail is real
  // Before any are skipped: what CTAs find in L2, and merge, goes on changing as they drift apart.
  LEAST_STEPS = 1 << 18,
  STREAM_L2S = 4,      // times what L2 holds, that a stream has moved by then
  STREAM_PERIODS = 4,  // of a stream, each a wave or little more, that stand for those to come
};

// The periods that stand for those to come.
typedef struct window {
  const ftl_steady_mark *since;
  int64_t dirty_sectors;  // at its end
  double times;           // its work, that of those to come
} window;

static void grow(int64_t *sum, int64_t before, double times) { *sum += llround((double)(*sum - before) * times); }

static void repeat_counts(ftl_traffic_counts *counts, const window *last) {
  int64_t *sum = (int64_t *)counts;  // every field is an int64_t
  const int64_t *old = (const int64_t *)&last->since->counts;
  for (size_t i = 0; i < sizeof *counts / sizeof *sum; i++) grow(&sum[i], old[i], last->times);
}

static double ratio(int64_t a, int64_t b) { return b > 0 ? (double)a / (double)b : 0; }

// Loads and stores of those to come, as multiples of the window's; of what the sample has of either, too.
typedef struct stream_times {
  double loads, stores, sampled_loads, sampled_stores;
} stream_times;

// A window may begin or end with CTAs that have loaded and not stored yet, and the sample may have more or less than
// its share of the lines that it touched.
static stream_times times_of_stream(const ftl_gpu_run *run, const window *last, int64_t left) {
  const ftl_traffic_counts *now = &run->traffic->counts, *old = &last->since->counts;
  const ftl_tile_lines *tiles = &run->traffic->tiles;
  int64_t loaded = now->asked_sectors + now->l1_hit_sectors - old->asked_sectors - old->l1_hit_sectors;
  int64_t stored = now->store_sectors - old->store_sectors;
  int64_t loaded_new = now->new_sectors - old->new_sectors,
          looked_up = now->new_looked_up_sectors - old->new_looked_up_sectors;
  double share = ratio(tiles->sampled_sectors, tiles->total_sectors);
  stream_times times = {.loads = (double)left * ratio(run->period_work - run->period_stored, loaded),
                        .stores = (double)left * ratio(run->period_stored, stored)};
  times.sampled_loads = times.loads * (looked_up > 0 ? share * ratio(loaded_new, looked_up) : 1);
  times.sampled_stores = times.stores * share * ratio(stored, now->stored_in_sample - old->stored_in_sample);
  return times;
}

// What is dirty in L2 stays what it is from now on: what the window dirtied and did not write is written later.
static void repeat_stream(ftl_gpu_run *run, const window *last, int64_t left) {
  ftl_traffic_counts *now = &run->traffic->counts;
  const ftl_traffic_counts *old = &last->since->counts;
  stream_times times = times_of_stream(run, last, left);
  grow(&now->asked_sectors, old->asked_sectors, times.loads);
  grow(&now->coalesced_sectors, old->coalesced_sectors, times.loads);
  grow(&now->l1_hit_sectors, old->l1_hit_sectors, times.loads);
  grow(&now->load_latency_cycles, old->load_latency_cycles, times.loads);
  grow(&now->num_loads, old->num_loads, times.loads);
  grow(&now->new_sectors, old->new_sectors, times.loads);
  grow(&now->looked_up_sectors, old->looked_up_sectors, times.sampled_loads);
  grow(&now->hit_sectors, old->hit_sectors, times.sampled_loads);
  grow(&now->far_sectors, old->far_sectors, times.sampled_loads);
  grow(&now->dram_read_sectors, old->dram_read_sectors, times.sampled_loads);
  grow(&now->new_looked_up_sectors, old->new_looked_up_sectors, times.sampled_loads);
  grow(&now->new_dram_read_sectors, old->new_dram_read_sectors, times.sampled_loads);
  grow(&now->store_sectors, old->store_sectors, times.stores);
  grow(&now->atomic_sectors, old->atomic_sectors, times.stores);
  grow(&now->store_bytes, old->store_bytes, times.stores);
  int64_t written = now->dram_write_sectors - old->dram_write_sectors;
  int64_t dirtied = last->dirty_sectors - last->since->dirty_sectors;
  now->dram_write_sectors += llround((double)(written + dirtied) * times.sampled_stores);
}

// Of a stream, as many as fill L2: a launch chained to it finds what was streamed last.
static int64_t kept_periods(const ftl_gpu_run *run) {
  int64_t bytes = run->period_work * FTL_SECTOR_BYTES;
  if (!run->plan.is_stream || bytes == 0) return KEPT_PERIODS;
  return KEPT_PERIODS + ftl_divide_up(run->launch->arch->l2_size_bytes, bytes);
}

static bool walked_enough(const ftl_gpu_run *run) {
  if (run->plan.is_stream) return run->work * FTL_SECTOR_BYTES >= STREAM_L2S * run->launch->arch->l2_size_bytes;
  return run->num_steps >= LEAST_STEPS;
}

void ftl_gpu_consider_skip(ftl_gpu_run *run, int64_t now_ticks) {
  ftl_steady_mark mark = {.ticks = now_ticks,
                          .work = run->work,
                          .counts = run->traffic->counts,
                          .dirty_sectors = ftl_l2_tags_dirty_sectors(run->traffic->tags)};
  ftl_steady_add(&run->steady, &mark);
  int64_t left = ftl_cta_scheduler_num_left(run->scheduler) / run->plan.period - kept_periods(run);
  if (left < 1 || run->period_ctas < run->plan.period || !walked_enough(run)) return;
  int64_t skipped_ctas = left * run->plan.period;
  ftl_steady_window found = ftl_steady_find(&run->steady, run->plan.is_stream ? STREAM_PERIODS : 1,
                                            1000 * skipped_ctas / run->segments->tile->num_ctas);
  if (found.num_periods == 0) return;
  window last = {.since = &found.since,
                 .dirty_sectors = mark.dirty_sectors,
                 .times = (double)left * (double)run->period_work / (double)(mark.work - found.since.work)};
  if (run->plan.is_stream)
    repeat_stream(run, &last, left);
  else
    repeat_counts(&run->traffic->counts, &last);
  run->skipped_cycles += llround((double)(now_ticks - found.since.ticks) * last.times) / FTL_TICKS_PER_CYCLE;
  ftl_cta_scheduler_skip(run->scheduler, skipped_ctas);
  run->out->skipped_ctas += skipped_ctas;
  run->out->period_spread_permille = found.spread_permille;
}
