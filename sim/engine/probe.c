#include "engine/probe.h"

#include "engine/sampled/sampled.h"

enum {
  PROBE_WAVES = 3,
  LEAST_WAVES = 2 * PROBE_WAVES,
  LEAST_STEPS = 1 << 17,  // of a walk in single iterations that is worth another before it
  LEAST_GAIN = 4,         // times as often as the probe it asks for tiles
};

bool ftl_probe_try_init(ftl_probe *probe, const ftl_pipeline_launch *whole, ftl_pipeline_launch *part) {
  const ftl_launch *launch = &whole->launch;
  int64_t wave = launch->arch->chip_num_sms * launch->occupancy.ctas_per_sm;
  wave = wave / launch->tile->cluster_ctas * launch->tile->cluster_ctas;
  if (wave == 0 || (whole->plan.group == 1 && whole->plan.steps < LEAST_STEPS)) return false;
  probe->tile = *launch->tile;
  if (launch->tile->num_ctas >= LEAST_WAVES * wave) probe->tile.num_ctas = PROBE_WAVES * wave;
  probe->warps = *launch->warps;
  probe->warps.tile = &probe->tile;
  *part = (ftl_pipeline_launch){.launch = *launch};
  part->launch.tile = &probe->tile;
  part->launch.warps = &probe->warps;
  part->launch.is_probe = true;
  if (!ftl_sampled_try_plan(&part->launch, &part->plan) || LEAST_GAIN * part->plan.asks > whole->plan.asks)
    return false;
  part->work = ftl_static_work_of(&probe->warps, ftl_launch_num_ctas(&part->launch));
  return true;
}
