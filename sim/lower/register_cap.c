#include "lower/register_cap.h"

#include "base/integer.h"
#include "lower/occupancy_steps.h"
#include "lower/select/select.h"

enum {
  LEAST_CAP = 24,  // "adjusting per thread register count of 8 to lower bound of 24", ptxas 13.0, sm_75 to sm_90a
  REGISTERS_OF_FULL_SM = 32
};

int32_t ftl_register_cap(const ftl_arch *arch, ftl_lower_options options, int32_t num_warps) {
  int64_t ctas = ftl_larger(options.min_ctas, 1);
  int64_t cap = ftl_larger(ftl_registers_for_ctas(arch, num_warps, ctas), LEAST_CAP);
  if (cap > arch->sm_max_registers_per_thread) cap = arch->sm_max_registers_per_thread;
  int64_t asked_for = ftl_larger(options.max_registers, LEAST_CAP);
  if (options.max_registers > 0 && asked_for < cap) cap = asked_for;
  return (int32_t)cap;
}

// Registers that the results of a role's products take together; 0 where warps side by side share the rows of one and
// pass P through shared memory.
static int32_t accumulator_registers(const ftl_tile_program *tile, const ftl_role *role,
                                     const ftl_fragment_shape *shape) {
  int32_t registers = 0;
  for (int32_t i = 0; i < tile->num_values; i++) {
    const ftl_value *value = &tile->values[i];
    if (!value->accumulates || &tile->roles[value->role] != role) continue;
    if (value->warps_per_row > 1) return 0;
    ftl_fragment_map map = ftl_fragment_map_of(shape, value, role->num_warps);
    registers += map.num_slabs * map.per_slab * map.num_registers;
  }
  return registers;
}

static bool is_given_up(const ftl_tile_program *tile, const ftl_role *role, const ftl_arch *arch,
                        ftl_lower_options options, const ftl_fragment_shape *shape) {
  if (options.mma != FTL_MMA_MMA || options.is_cuda || options.buffers_fragments || role->num_groups > 1) return false;
  if (ftl_fewest_registers(arch, role->num_warps) > REGISTERS_OF_FULL_SM) return false;
  if (ftl_select_ops_multiply_one_a(&tile->ops[role->first_op], role->num_ops)) return false;
  return accumulator_registers(tile, role, shape) > arch->sm_max_registers_per_thread;
}

int32_t ftl_register_cap_of_role(const ftl_tile_program *tile, const ftl_role *role, const ftl_arch *arch,
                                 ftl_lower_options options, const ftl_fragment_shape *shape) {
  if (role->num_registers > 0) return role->num_registers;
  int32_t cap = ftl_register_cap(arch, options, ftl_tile_num_warps(tile));
  bool says_nothing = options.max_registers == 0 && options.min_ctas == 0;
  bool is_short = says_nothing && tile->num_roles == 1 && is_given_up(tile, role, arch, options, shape);
  return is_short && cap > REGISTERS_OF_FULL_SM ? REGISTERS_OF_FULL_SM : cap;
}
