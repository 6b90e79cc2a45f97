#include "engine/launch.h"

#include "base/integer.h"
#include "machine/cta/cta_scheduler.h"

int64_t ftl_launch_num_ctas(const ftl_launch *launch) {
  int64_t tiles = launch->tile->num_ctas;
  if (!launch->tile->persistent) return tiles;
  int64_t fit = ftl_cta_num_resident(launch->arch, launch->occupancy.ctas_per_sm, launch->tile->cluster_ctas);
  return tiles < fit ? tiles : fit;
}

int32_t ftl_launch_most_ctas_per_sm(const ftl_launch *launch) {
  int64_t num_sms = ftl_cta_num_resident(launch->arch, 1, launch->tile->cluster_ctas);
  int64_t most = ftl_divide_up(ftl_launch_num_ctas(launch), num_sms);
  return most < launch->occupancy.ctas_per_sm ? (int32_t)most : launch->occupancy.ctas_per_sm;
}

int64_t ftl_launch_hit_ratio_milli(const ftl_launch *launch) {
  const ftl_tile_program *tile = launch->tile;
  int64_t bytes = 0;
  for (int32_t t = 0; t < tile->num_tensors; t++)
    if (tile->tensors[t].l2_priority == FTL_L2_EVICT_LAST) bytes += tile->tensors[t].size_bytes;
  bytes *= launch->arch->l2_num_sides;
  int64_t most = launch->arch->l2_persisting_max_bytes;
  return bytes <= most ? 1000 : 1000 * most / bytes;
}

bool ftl_launch_is_cancelled(const ftl_launch *launch) { return launch->cancel && atomic_load(launch->cancel); }

int64_t ftl_launch_foul_bytes(const ftl_launch *launch) {
  return launch->l2_before == FTL_L2_FOULED ? FTL_FOUL_BYTES : FTL_PROFILER_DIRTY_BYTES;
}
