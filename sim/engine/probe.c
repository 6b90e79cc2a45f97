#include "engine/probe.h"

#include "engine/sampled/sampled.h"

enum {
  PROBE_WAVES = 3,
  PROBE_PERIODS = 3,
  LEAST_WAVES = 2 * PROBE_WAVES,
  UNEVEN_TILES = 32,
  LEAST_STEPS = 1 << 17,  // of a walk in single iterations that is worth another before it
  LEAST_GAIN = 4,         // times as often as the probe it asks for tiles
};

// Where heads follow each other, one that is walked alone finds L2 emptier than those between others. Of a launch so
// long that a second walk of it costs more than theirs, three are probed, if it has twice as many.
static int64_t probed_periods(const ftl_walk_plan *plan, int64_t all) {
  int64_t half = all / (2 * plan->period), most = plan->group > 1 ? PROBE_PERIODS : 1;
  return half < 1 ? 1 : half < most ? half : most;
}

// Of CTAs that differ in length the first waves are not like the others, and end with most SMs idle: whole periods are
// probed, or so many tiles of each persistent CTA that all have done about as much.
static int64_t probed_ctas(const ftl_pipeline_launch *whole, int64_t wave) {
  const ftl_walk_plan *plan = &whole->plan;
  int64_t all = whole->launch.tile->num_ctas, part = PROBE_WAVES * wave;
  if (all < LEAST_WAVES * wave) return all;
  if (!plan->is_even && plan->period > part) part = plan->period * probed_periods(plan, all);
  if (!plan->is_even && plan->stride > 0) part = UNEVEN_TILES * plan->stride;
  return part < all ? part : all;
}

// The CTAs of a few waves are walked one and all, since a period has a wave or more: where their straight code asks for
// too much, nothing else needs to be looked at.
static bool asks_too_much(const ftl_walk_plan *whole, int64_t num_ctas, int64_t wave) {
  return num_ctas <= PROBE_WAVES * wave && LEAST_GAIN * num_ctas * whole->pieces > whole->asks;
}

bool ftl_probe_try_init(ftl_probe *probe, const ftl_pipeline_launch *whole, ftl_pipeline_launch *part) {
  const ftl_launch *launch = &whole->launch;
  int64_t wave = launch->arch->chip_num_sms * launch->occupancy.ctas_per_sm;
  wave = wave / launch->tile->cluster_ctas * launch->tile->cluster_ctas;
  if (wave == 0 || (whole->plan.group == 1 && whole->plan.steps < LEAST_STEPS)) return false;
  probe->tile = *launch->tile;
  probe->tile.num_ctas = probed_ctas(whole, wave);
  if (asks_too_much(&whole->plan, probe->tile.num_ctas, wave)) return false;
  probe->warps = *launch->warps;
  probe->warps.tile = &probe->tile;
  *part = (ftl_pipeline_launch){.launch = *launch};
  bool has_periods = whole->plan.period > 0 && probe->tile.num_ctas % whole->plan.period == 0;
  if (has_periods && !whole->plan.is_even) part->whole_ctas = launch->tile->num_ctas;
  part->launch.tile = &probe->tile;
  part->launch.warps = &probe->warps;
  part->launch.is_probe = true;
  if (probe->tile.num_ctas < launch->tile->num_ctas) part->launch.least_read_bytes = 0;  // those are the whole launch's
  if (!ftl_sampled_try_plan(&part->launch, &part->plan) || LEAST_GAIN * part->plan.asks > whole->plan.asks)
    return false;
  part->work = ftl_static_work_of(&probe->warps, ftl_launch_num_ctas(&part->launch));
  return true;
}

int64_t ftl_probe_cycles(const ftl_pipeline_launch *one) {
  if (one->whole_ctas == 0) return one->totals.cycles;
  int64_t busy = one->totals.full_sm_cycles / one->launch.arch->chip_num_sms;
  return busy + (one->totals.cycles - busy) * one->launch.tile->num_ctas / one->whole_ctas;
}
