// CTAs of a program that an SM holds.
// Source: the rules of the CUDA occupancy calculator: registers are allocated a warp at a time in units, from the
// register file of the warp's sub-core. Warps of all CTAs together are dealt to the sub-cores: two CTAs of two warps
// take the room of one of four (kernels/measurements/micro_occupancy.csv, 1 to 16 warps a CTA).
#include "base/integer.h"
#include "lower/lower.h"

static int64_t by_registers(const ftl_warp_program *program, const ftl_arch *arch) {
  int64_t sides = arch->sm_num_subcores;
  int64_t registers_per_warp =
      ftl_round_up((int64_t)program->registers_per_thread * FTL_WARP_LANES, arch->sm_register_unit);
  if (registers_per_warp == 0) return arch->sm_max_ctas;
  int64_t warps_per_side = arch->sm_num_registers / sides / registers_per_warp;
  return warps_per_side * sides / program->num_warps;
}

ftl_occupancy ftl_occupancy_of(const ftl_warp_program *program, const ftl_arch *arch) {
  int64_t shared = ftl_round_up(program->shared_bytes + arch->shared_reserved_bytes_per_cta, arch->shared_unit_bytes);
  int64_t limits[FTL_LIMIT_COUNT] = {
      [FTL_LIMIT_CTAS] = arch->sm_max_ctas,
      [FTL_LIMIT_WARPS] = arch->sm_max_warps / program->num_warps,
      [FTL_LIMIT_REGISTERS] = by_registers(program, arch),
      [FTL_LIMIT_SHARED] = shared > 0 ? arch->shared_bytes_per_sm / shared : arch->sm_max_ctas,
      [FTL_LIMIT_BARRIERS] = program->num_barriers <= arch->sm_num_barriers ? arch->sm_max_ctas : 0,
  };
  ftl_occupancy occupancy = {.ctas_per_sm = (int32_t)limits[0], .limited_by = FTL_LIMIT_CTAS};
  for (int i = 0; i < FTL_LIMIT_COUNT; i++) {
    occupancy.limits[i] = (int32_t)limits[i];
    if (occupancy.limits[i] >= occupancy.ctas_per_sm) continue;
    occupancy.ctas_per_sm = occupancy.limits[i];
    occupancy.limited_by = (ftl_occupancy_limit)i;
  }
  return occupancy;
}
