#include "engine/pipeline.h"

#include <stdlib.h>

#include "base/integer.h"
#include "engine/full.h"
#include "engine/power.h"
#include "engine/probe.h"
#include "engine/sampled/sampled.h"

// Since DRAM and L2 keep their own clocks, a launch behaves differently at each SM clock: it is run again until the
// clock that its power allows is the one it ran at. Where a probe has found it, two steps beside it will do.
enum { MAX_CLOCK_RUNS = 3, MAX_PROBED_RUNS = 2, PROBED_STEPS = 2 };

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

// The clock that the launches [from, to) together may hold, by their last run.
static int64_t allowed_khz(const ftl_pipeline *pipeline, int from, int to) {
  ftl_totals sum = {0};
  int64_t tensor_macs = 0;
  for (int i = from; i < to; i++) {
    const ftl_pipeline_launch *one = &pipeline->launches[i];
    ftl_sm_counters_add(&sum.sm, &one->totals.sm);
    sum.cycles += ftl_probe_cycles(one);
    sum.memory.l2_sectors_from_sms += one->totals.memory.l2_sectors_from_sms;
    sum.memory.dram_read_bytes += one->totals.memory.dram_read_bytes;
    sum.memory.dram_write_bytes += one->totals.memory.dram_write_bytes;
    tensor_macs += one->work.tensor_fp16_macs;
  }
  return ftl_power_clock_khz(pipeline->launches[from].launch.arch, &sum, tensor_macs, pipeline->num_in_a_row);
}

typedef struct clock_search {
  int max_runs;
  int64_t tolerance_khz;  // a run stands for one at the clock that it allows, if that is so near its own
  bool foresees;          // and so is one that another run would hardly change, without that run
} clock_search;

static void hold_clock(ftl_pipeline *pipeline, int from, int to, int64_t khz) {
  for (int i = from; i < to; i++) pipeline->launches[i].totals.sm_khz = khz;
}

// *khz: the first clock to try; then that of the last run, or the one that is foreseen.
static ftl_status settle_clock(ftl_pipeline *pipeline, int from, int to, bool full, clock_search search, int64_t *khz,
                               ftl_error *error) {
  int64_t before = 0;  // by how much the clock changed last
  for (int run = 1;; run++) {
    ftl_status status = run_group(pipeline, from, to, *khz, full, error);
    if (status != FTL_OK || pipeline->held_khz) return status;
    int64_t change = allowed_khz(pipeline, from, to) - *khz;
    bool is_near = llabs(change) <= search.tolerance_khz;
    if (run == search.max_runs && !is_near) return FTL_OK;
    *khz += change;
    if (is_near) {
      hold_clock(pipeline, from, to, *khz);
      return FTL_OK;
    }
    if (search.foresees && ftl_power_clock_converges(pipeline->launches[from].launch.arch, before, change))
      return FTL_OK;
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
  return settle_clock(&part, 0, 1, false, (clock_search){.max_runs = MAX_CLOCK_RUNS, .foresees = true}, khz, error);
}

static ftl_status settle_sampled_clock(ftl_pipeline *pipeline, int from, int to, int64_t *khz, ftl_error *error) {
  clock_search search = {.max_runs = MAX_CLOCK_RUNS};
  bool found = false;
  if (to - from == 1 && !pipeline->held_khz) {
    ftl_status status = probe_clock(pipeline, from, khz, &found, error);
    if (status != FTL_OK) return status;
  }
  if (found)
    search = (clock_search){.max_runs = MAX_PROBED_RUNS,
                            .tolerance_khz = PROBED_STEPS * pipeline->launches[from].launch.arch->clock_sm_step_khz};
  return settle_clock(pipeline, from, to, false, search, khz, error);
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

// No clock above it can settle: with tensor operations, the first run at the highest clock of all would be for nothing.
static int64_t top_khz(const ftl_pipeline *pipeline, int from, int to) {
  int64_t tensor_macs = 0;
  for (int i = from; i < to; i++) tensor_macs += pipeline->launches[i].work.tensor_fp16_macs;
  return ftl_power_top_khz(pipeline->launches[from].launch.arch, tensor_macs);
}

static ftl_status run_clock_group(ftl_pipeline *pipeline, int from, int to, ftl_error *error) {
  int64_t khz = pipeline->held_khz ? pipeline->held_khz : top_khz(pipeline, from, to);
  bool sampling = try_plan(pipeline, from, to), full = pipeline->full || !sampling;
  // A sampled run finds the clock cheaply; `full` then starts where it is likely to end.
  if (!full || (sampling && !pipeline->held_khz)) {
    ftl_status status = settle_sampled_clock(pipeline, from, to, &khz, error);
    if (status != FTL_OK || !full) return status;
  }
  return settle_clock(pipeline, from, to, true, (clock_search){.max_runs = MAX_CLOCK_RUNS}, &khz, error);
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
