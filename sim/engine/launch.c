#include "engine/launch.h"

int64_t ftl_launch_num_ctas(const ftl_launch *launch) {
  int64_t tiles = launch->tile->num_ctas;
  if (!launch->tile->persistent) return tiles;
  int64_t fit = launch->arch->chip_num_sms * launch->occupancy.ctas_per_sm;
  return tiles < fit ? tiles : fit;
}

bool ftl_launch_is_cancelled(const ftl_launch *launch) { return launch->cancel && atomic_load(launch->cancel); }

int64_t ftl_launch_foul_bytes(const ftl_launch *launch) {
  if (launch->l2_before == FTL_L2_FOULED) return FTL_FOUL_BYTES;
  return launch->arch->l2_size_bytes * FTL_PROFILER_DIRTY_MILLI / 1000;
}
