#include "engine/pipeline.h"

#include <stdlib.h>

#include "base/integer.h"
#include "engine/full.h"
#include "engine/power.h"
#include "engine/probe.h"
#include "engine/sampled/sampled.h"

// Since DRAM and L2 keep their own clocks, a launch behaves differently at each SM clock: it is run again until the
// clock that its power allows is the one it ran at. What waits for memory takes as long at a lower clock, where each
// run allows too much, if by less and less: after a few, two of them foretell where that ends, and after many the
// clocks between one that is too much and one that is not are halved. Of a probe, two steps beside its clock will do.
enum { PLAIN_RUNS = 3, FORETOLD_RUNS = 8, PROBED_STEPS = 2 };

// What one launch leaves in L2 for the next, at either level of detail.
typedef struct kept_l2 {
  ftl_memory *memory;
  ftl_l2_tags *tags;
} kept_l2;

static void release_kept(kept_l2 *kept) {
  ftl_memory_destroy(kept->memory);
  ftl_l2_tags_destroy(kept->tags);
  *kept = (kept_l2){0};
}

static ftl_status run_launch(ftl_pipeline_launch *one, int64_t khz, bool full, ftl_l2_before before, kept_l2 *kept,
                             ftl_error *error) {
  if (before != FTL_L2_KEPT) release_kept(kept);
  one->launch.l2_before = before;
  return full ? ftl_full_run(&one->launch, khz, &kept->memory, &one->totals, error)
              : ftl_sampled_run(&one->launch, one->plan, &one->work, khz, &kept->tags, &one->totals, error);
}

static ftl_l2_before cold(const ftl_pipeline *pipeline) {
  return pipeline->caches.fouled ? FTL_L2_FOULED : FTL_L2_PROFILED;
}

// Launches [from, to) at one clock, each on what the one before left if they are chained.
static ftl_status run_group(ftl_pipeline *pipeline, int from, int to, int64_t khz, bool full, ftl_error *error) {
  kept_l2 kept = {0};
  ftl_status status = FTL_OK;
  int rounds = pipeline->caches.warm ? 2 : 1;
  for (int round = 0; status == FTL_OK && round < rounds; round++)
    for (int i = from; status == FTL_OK && i < to; i++) {
      bool first = round == 0 && i == from;
      status = run_launch(&pipeline->launches[i], khz, full, first ? cold(pipeline) : FTL_L2_KEPT, &kept, error);
    }
  release_kept(&kept);
  return status;
}

// No clock above it can settle: with tensor operations, the first run at the highest clock of all would be for nothing.
static int64_t top_khz(const ftl_pipeline *pipeline, int from, int to) {
  int64_t tensor_macs = 0;
  for (int i = from; i < to; i++) tensor_macs += pipeline->launches[i].work.tensor_fp16_macs;
  return ftl_power_top_khz(pipeline->launches[from].launch.arch, tensor_macs);
}

// What the launches [from, to) together did in their last run.
typedef struct group_work {
  ftl_totals totals;
  int64_t tensor_macs;
} group_work;

static group_work work_of(const ftl_pipeline *pipeline, int from, int to) {
  group_work sum = {0};
  for (int i = from; i < to; i++) {
    const ftl_pipeline_launch *one = &pipeline->launches[i];
    ftl_sm_counters_add(&sum.totals.sm, &one->totals.sm);
    sum.totals.cycles += ftl_probe_cycles(one);
    sum.totals.memory.l2_sectors_from_sms += one->totals.memory.l2_sectors_from_sms;
    sum.totals.memory.dram_read_bytes += one->totals.memory.dram_read_bytes;
    sum.totals.memory.dram_write_bytes += one->totals.memory.dram_write_bytes;
    sum.tensor_macs += one->work.tensor_fp16_macs;
  }
  return sum;
}

// The highest clock up to `most_khz` that they may hold, by that run.
static int64_t allowed_khz(const ftl_pipeline *pipeline, int from, const group_work *work, int64_t most_khz) {
  return ftl_power_clock_khz(pipeline->launches[from].launch.arch, &work->totals, work->tensor_macs,
                             pipeline->num_in_a_row, most_khz);
}

// A run at a clock: by how much more or less its power allows, and by how much that exceeds the limit.
typedef struct clock_run {
  int64_t khz, change_khz, excess_mw;
} clock_run;

// What the runs of a search have shown.
typedef struct clock_bracket {
  int64_t step_khz, least_khz;
  int64_t hot_khz;   // no run at this clock or above keeps the limit; at first a step above the highest
  int64_t cool_khz;  // the highest clock at which one did; none: 0
  ftl_totals cool[FTL_MAX_LAUNCHES];  // of that run
} clock_bracket;

// The last run, at `khz`. What lasts too long there for the limit on bursts may be short enough at a higher clock,
// which the first runs follow.
static clock_run judge(const clock_bracket *bracket, const ftl_pipeline *pipeline, int from, int to, int run,
                       int64_t khz) {
  group_work work = work_of(pipeline, from, to);
  int64_t excess_mw = ftl_power_excess_mw(pipeline->launches[from].launch.arch, &work.totals, work.tensor_macs,
                                          pipeline->num_in_a_row, khz);
  int64_t below_khz = excess_mw <= 0 || run < PLAIN_RUNS ? bracket->hot_khz : khz;
  int64_t allowed = allowed_khz(pipeline, from, &work, below_khz - bracket->step_khz);
  return (clock_run){.khz = khz, .change_khz = allowed - khz, .excess_mw = excess_mw};
}

// Adds the last run, of launches [from, to).
static void narrow(clock_bracket *bracket, const ftl_pipeline *pipeline, int from, int to, clock_run now) {
  if (now.change_khz < 0) bracket->hot_khz = now.khz;
  if (now.excess_mw > 0 || now.khz <= bracket->cool_khz) return;
  bracket->cool_khz = now.khz;
  for (int i = from; i < to; i++) bracket->cool[i] = pipeline->launches[i].totals;
}

// The clock to try after `now`, the last run, and the one before it: a step below `hot`; where that leaves none,
// `cool`.
static int64_t next_clock_khz(const clock_bracket *bracket, int run, clock_run before, clock_run now) {
  int64_t khz = now.khz + now.change_khz, up_khz = now.khz - before.khz, more_mw = now.excess_mw - before.excess_mw;
  if (run >= PLAIN_RUNS && now.change_khz < 0 && (up_khz > 0) == (more_mw > 0) && more_mw != 0)
    khz = now.khz - now.excess_mw * up_khz / more_mw;  // where the excess, linear in the clock, is none
  if (run >= FORETOLD_RUNS || khz <= bracket->cool_khz || khz >= bracket->hot_khz)
    khz = (bracket->hot_khz + ftl_larger(bracket->cool_khz, bracket->least_khz)) / 2;
  khz = bracket->hot_khz - ftl_round_up(bracket->hot_khz - khz, bracket->step_khz);
  return khz > bracket->least_khz ? khz : bracket->least_khz;
}

static void hold_clock(ftl_pipeline *pipeline, int from, int to, int64_t khz) {
  for (int i = from; i < to; i++) pipeline->launches[i].totals.sm_khz = khz;
}

// *khz: the first clock to try; then that of the run that stands. A run stands for one at the clock that it allows, if
// that is within the tolerance of its own.
static ftl_status settle_clock(ftl_pipeline *pipeline, int from, int to, bool full, int64_t tolerance_khz, int64_t *khz,
                               ftl_error *error) {
  const ftl_arch *arch = pipeline->launches[from].launch.arch;
  clock_bracket bracket = {.step_khz = arch->clock_sm_step_khz, .least_khz = arch->clock_sm_min_khz};
  bracket.hot_khz = top_khz(pipeline, from, to) + bracket.step_khz;
  clock_run before = {0};
  for (int run = 1;; run++) {
    ftl_status status = run_group(pipeline, from, to, *khz, full, error);
    if (status != FTL_OK || pipeline->held_khz) return status;
    clock_run now = judge(&bracket, pipeline, from, to, run, *khz);
    if (llabs(now.change_khz) <= tolerance_khz) {
      *khz += now.change_khz;
      hold_clock(pipeline, from, to, *khz);
      return FTL_OK;
    }
    narrow(&bracket, pipeline, from, to, now);
    *khz = next_clock_khz(&bracket, run, before, now);
    if (*khz == bracket.cool_khz) {
      for (int i = from; i < to; i++) pipeline->launches[i].totals = bracket.cool[i];
      return FTL_OK;
    }
    before = now;
  }
}

// *khz: the first clock to try; then one near that which the power of the probe allows: the last that was run, or one
// that another run would hardly change.
static ftl_status settle_probe(ftl_pipeline *probe, int64_t *khz, ftl_error *error) {
  const ftl_arch *arch = probe->launches[0].launch.arch;
  int64_t before = 0;  // by how much the clock changed last
  for (int run = 1;; run++) {
    ftl_status status = run_group(probe, 0, 1, *khz, false, error);
    if (status != FTL_OK || run == PLAIN_RUNS) return status;
    group_work work = work_of(probe, 0, 1);
    int64_t change = allowed_khz(probe, 0, &work, top_khz(probe, 0, 1)) - *khz;
    *khz += change;
    if (change == 0 || ftl_power_clock_converges(arch, before, change)) return FTL_OK;
    before = change;
  }
}

// The clock of the first waves of a launch that is long to sample; *khz stays and *found is false where it is not.
static ftl_status probe_clock(const ftl_pipeline *pipeline, int launch_idx, int64_t *khz, bool *found,
                              ftl_error *error) {
  const ftl_pipeline_launch *whole = &pipeline->launches[launch_idx];
  ftl_pipeline part = {.num_launches = 1, .caches = {.fouled = pipeline->caches.fouled}};
  ftl_probe probe;
  ftl_pipeline_launch *first = &part.launches[0];
  *found = ftl_probe_try_init(&probe, whole, first);
  if (!*found) return FTL_OK;
  part.num_in_a_row = pipeline->num_in_a_row * ftl_divide_up(whole->launch.tile->num_ctas, probe.tile.num_ctas);
  return settle_probe(&part, khz, error);
}

// The clock dips as the launches begin, `khz` being that of their last run: a mean that differs by more than half a
// step has a run of its own.
static ftl_status dip_at_onset(ftl_pipeline *pipeline, int from, int to, bool full, int64_t khz, ftl_error *error) {
  const ftl_arch *arch = pipeline->launches[from].launch.arch;
  group_work work = work_of(pipeline, from, to);
  int64_t mean_khz = ftl_power_onset_khz(arch, &work.totals, work.tensor_macs, pipeline->num_in_a_row, khz);
  if (pipeline->held_khz || mean_khz == khz) return FTL_OK;
  for (int i = from; i < to; i++) pipeline->launches[i].launch.onset_khz = mean_khz;
  if (2 * (khz - mean_khz) > arch->clock_sm_step_khz) return run_group(pipeline, from, to, mean_khz, full, error);
  hold_clock(pipeline, from, to, mean_khz);
  return FTL_OK;
}

static ftl_status settle_sampled_clock(ftl_pipeline *pipeline, int from, int to, int64_t *khz, ftl_error *error) {
  bool found = false;
  if (to - from == 1 && !pipeline->held_khz) {
    ftl_status status = probe_clock(pipeline, from, khz, &found, error);
    if (status != FTL_OK) return status;
  }
  int64_t tolerance_khz = found ? PROBED_STEPS * pipeline->launches[from].launch.arch->clock_sm_step_khz : 0;
  return settle_clock(pipeline, from, to, false, tolerance_khz, khz, error);
}

// Chained launches keep the sample of the first, which is to suit those that move a share worth the name.
static void share_sample(ftl_pipeline *pipeline, int from, int to) {
  int64_t most = 0, smallest = INT64_MAX;
  for (int i = from; i < to; i++)
    if (pipeline->launches[i].plan.moved_bytes > most) most = pipeline->launches[i].plan.moved_bytes;
  for (int i = from; i < to; i++) {
    const ftl_walk_plan *plan = &pipeline->launches[i].plan;
    if (FTL_SAMPLED_LEAST_SHARE * plan->moved_bytes >= most && plan->tile_lines < smallest) smallest = plan->tile_lines;
  }
  pipeline->launches[from].plan.tile_lines = smallest;
}

static bool try_plan(ftl_pipeline *pipeline, int from, int to) {
  for (int i = from; i < to; i++)
    if (!ftl_sampled_try_plan(&pipeline->launches[i].launch, &pipeline->launches[i].plan)) return false;
  share_sample(pipeline, from, to);
  return true;
}

static ftl_status run_clock_group(ftl_pipeline *pipeline, int from, int to, ftl_error *error) {
  int64_t khz = pipeline->held_khz ? pipeline->held_khz : top_khz(pipeline, from, to);
  bool sampling = try_plan(pipeline, from, to), full = pipeline->full || !sampling;
  // A sampled run finds the clock cheaply; `full` then starts where it is likely to end.
  if (!full || (sampling && !pipeline->held_khz)) {
    ftl_status status = settle_sampled_clock(pipeline, from, to, &khz, error);
    if (status != FTL_OK) return status;
    if (!full) return dip_at_onset(pipeline, from, to, false, khz, error);
  }
  ftl_status status = settle_clock(pipeline, from, to, true, 0, &khz, error);
  return status == FTL_OK ? dip_at_onset(pipeline, from, to, true, khz, error) : status;
}

// An earlier launch of the same program, as eager PyTorch has copies in a row; NULL: there is none.
static const ftl_pipeline_launch *find_same(const ftl_pipeline *pipeline, int launch_idx) {
  uint64_t hash = ftl_tile_program_hash(pipeline->launches[launch_idx].launch.tile);
  for (int i = 0; i < launch_idx; i++)
    if (ftl_tile_program_hash(pipeline->launches[i].launch.tile) == hash) return &pipeline->launches[i];
  return NULL;
}

ftl_status ftl_pipeline_run(ftl_pipeline *pipeline, ftl_error *error) {
  bool together = pipeline->caches.chain || pipeline->caches.warm;
  int step = together ? pipeline->num_launches : 1;
  for (int from = 0; from < pipeline->num_launches; from += step) {
    const ftl_pipeline_launch *same = together ? NULL : find_same(pipeline, from);
    if (same != NULL) {  // each finds the same caches
      pipeline->launches[from].totals = same->totals;
      continue;
    }
    ftl_status status = run_clock_group(pipeline, from, from + step, error);
    if (status != FTL_OK) return status;
  }
  return FTL_OK;
}
