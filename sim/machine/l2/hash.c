#include "machine/l2/hash.h"

ftl_l2_hash ftl_l2_hash_init(const ftl_arch *arch) {
  ftl_l2_hash hash = {
      .num_sides = (uint32_t)arch->l2_num_sides,
      .slices_per_side = (uint32_t)(arch->l2_num_slices / arch->l2_num_sides),
      .sets_per_slice = (uint32_t)(arch->l2_size_bytes / (arch->l2_num_slices * arch->l2_ways * arch->l1_line_bytes)),
      .granule_lines = (uint32_t)(arch->l2_side_hash_granule_bytes / arch->l1_line_bytes),
  };
  return hash;
}
