#include "lower/occupancy_steps.h"

#include "base/integer.h"
#include "base/warp.h"

enum { FREE_SINCE_COMPUTE_CAPABILITY = 80 };

int32_t ftl_registers_for_ctas(const ftl_arch *arch, int32_t num_warps, int64_t ctas) {
  int64_t sides = arch->sm_num_subcores, warps_per_side = ftl_divide_up(num_warps * ctas, sides);
  int64_t a_warp = arch->sm_num_registers / sides / warps_per_side / arch->sm_register_unit * arch->sm_register_unit;
  return (int32_t)(a_warp / FTL_WARP_LANES);
}

// As warps and CTAs allow, whatever their registers.
static int64_t most_ctas(const ftl_arch *arch, int32_t num_warps) {
  int64_t ctas = arch->sm_max_warps / num_warps;
  return ctas < arch->sm_max_ctas ? ctas : arch->sm_max_ctas;
}

int32_t ftl_next_occupancy_step(const ftl_arch *arch, int32_t num_warps, int32_t registers) {
  int64_t most = most_ctas(arch, num_warps);
  for (int64_t ctas = 1; ctas <= most; ctas++) {
    int32_t step = ftl_registers_for_ctas(arch, num_warps, ctas);
    if (step < registers) return step;
  }
  return 0;
}

int32_t ftl_fewest_registers(const ftl_arch *arch, int32_t num_warps) {
  return ftl_registers_for_ctas(arch, num_warps, most_ctas(arch, num_warps));
}

int32_t ftl_registers_taken(const ftl_arch *arch, int32_t num_warps, int32_t registers) {
  if (arch->chip_compute_capability < FREE_SINCE_COMPUTE_CAPABILITY) return registers;
  int64_t ctas = most_ctas(arch, num_warps);
  while (ctas > 1 && ftl_registers_for_ctas(arch, num_warps, ctas) < registers) ctas--;
  int32_t most = ftl_registers_for_ctas(arch, num_warps, ctas);
  return most > registers ? most : registers;
}
