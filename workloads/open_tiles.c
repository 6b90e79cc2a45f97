#include "workloads/open_tiles.h"

static const ftl_param tile_params[] = {FTL_PARAM_block_m, FTL_PARAM_block_n, FTL_PARAM_num_stages};
enum { NUM_TILE_PARAMS = sizeof tile_params / sizeof *tile_params };

static bool is_open(const ftl_spec *spec, ftl_param param) {
  return ftl_spec_takes(spec, param) && (spec->given >> param & 1) == 0;
}

bool ftl_spec_leaves_tiles_open(const ftl_spec *spec) {
  bool all = spec->workload->user_kernel == NULL;
  for (int i = 0; i < NUM_TILE_PARAMS; i++)
    if (ftl_spec_takes(spec, tile_params[i])) all &= is_open(spec, tile_params[i]);
  return all;
}

bool ftl_spec_leaves_open(const ftl_spec *spec, ftl_param param) {
  if (param == FTL_PARAM_num_warps) return is_open(spec, param) && ftl_spec_leaves_tiles_open(spec);
  bool is_of_tiles = false;
  for (int i = 0; i < NUM_TILE_PARAMS; i++) is_of_tiles |= tile_params[i] == param;
  return is_of_tiles && is_open(spec, param);
}

static bool try_narrow_blocks(ftl_spec *spec) {
  static const struct {
    ftl_param param;
    int64_t least;
  } steps[] = {{FTL_PARAM_block_n, 32}, {FTL_PARAM_block_m, 64}, {FTL_PARAM_block_n, 16}};
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    int64_t *value = &spec->value[steps[i].param];
    if (!ftl_spec_takes(spec, steps[i].param) || *value / 2 < steps[i].least || *value % 2 != 0) continue;
    *value /= 2;
    return true;
  }
  return false;
}

bool ftl_spec_narrow_tiles(ftl_spec *spec, const ftl_spec *general) {
  if (try_narrow_blocks(spec)) return true;
  int64_t warps = spec->value[FTL_PARAM_num_warps];
  bool was_one_buffer = !ftl_spec_takes(spec, FTL_PARAM_num_stages) || spec->value[FTL_PARAM_num_stages] == 1;
  if (was_one_buffer && (!ftl_spec_leaves_open(general, FTL_PARAM_num_warps) || warps % 2 != 0)) return false;
  *spec = *general;
  spec->value[FTL_PARAM_num_warps] = was_one_buffer ? warps / 2 : warps;
  if (!was_one_buffer) spec->value[FTL_PARAM_num_stages] = 1;
  return true;
}

// What may give way, and counts as given only where it had to.
static void take(ftl_spec *spec, const ftl_spec *resolved, ftl_param param, bool counts_anyway) {
  if (!ftl_spec_takes(spec, param)) return;
  bool gave_way = spec->value[param] != resolved->value[param];
  spec->value[param] = resolved->value[param];
  if (gave_way || counts_anyway) spec->given |= (ftl_param_set)1 << param;
}

void ftl_spec_take_tiles(ftl_spec *spec, const ftl_spec *resolved) {
  if (!ftl_spec_leaves_tiles_open(spec)) return;
  if (ftl_spec_leaves_open(spec, FTL_PARAM_num_warps)) take(spec, resolved, FTL_PARAM_num_warps, false);
  for (int i = 0; i < NUM_TILE_PARAMS; i++)
    take(spec, resolved, tile_params[i], tile_params[i] != FTL_PARAM_num_stages);
}
