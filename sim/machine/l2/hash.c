#include "machine/l2/hash.h"

ftl_l2_hash ftl_l2_hash_make(uint32_t num_sides, uint32_t slices_per_side, uint32_t sets_per_slice,
                             uint32_t granule_lines) {
  return (ftl_l2_hash){.num_sides = num_sides,
                       .slices_per_side = slices_per_side,
                       .sets_per_slice = sets_per_slice,
                       .by_slices = ftl_divisor_of(slices_per_side),
                       .by_granule = ftl_divisor_of(granule_lines)};
}

ftl_l2_hash ftl_l2_hash_init(const ftl_arch *arch) {
  return ftl_l2_hash_make((uint32_t)arch->l2_num_sides, (uint32_t)(arch->l2_num_slices / arch->l2_num_sides),
                          (uint32_t)(arch->l2_size_bytes / (arch->l2_num_slices * arch->l2_ways * arch->l1_line_bytes)),
                          (uint32_t)(arch->l2_side_hash_granule_bytes / arch->l1_line_bytes));
}
