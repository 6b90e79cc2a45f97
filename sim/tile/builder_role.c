// Roles, and what they share: rings of stages and named barriers.
#include "tile/builder_internal.h"

int32_t ftl_builder_ring(ftl_builder *builder, const char *name, ftl_dtype dtype, int32_t rows, int32_t columns,
                         int32_t num_stages, int32_t producer_role, int32_t consumers_mask) {
  ftl_tile_program *program = builder->program;
  if (!ftl_builder_is_ok(builder)) return 0;
  if (program->num_rings == FTL_TILE_MAX_RINGS) {
    ftl_builder_fail(builder, FTL_BAD_INPUT, "ring %s: allowed are %d rings", name, FTL_TILE_MAX_RINGS);
    return 0;
  }
  ftl_ring *ring = &program->rings[program->num_rings];
  *ring = (ftl_ring){.dtype = dtype,
                     .rows = rows,
                     .columns = columns,
                     .num_stages = num_stages,
                     .producer = producer_role,
                     .consumers_mask = consumers_mask};
  ftl_builder_copy_name(ring->name, name);
  return program->num_rings++;
}

void ftl_builder_overlay(ftl_builder *builder, int32_t ring) {
  if (ftl_builder_is_ok(builder)) builder->program->rings[ring].overlaid = true;
}

void ftl_builder_through_registers(ftl_builder *builder, int32_t ring) {
  if (ftl_builder_is_ok(builder)) builder->program->rings[ring].through_registers = true;
}

void ftl_builder_count_releases(ftl_builder *builder, int32_t ring) {
  if (ftl_builder_is_ok(builder)) builder->program->rings[ring].counts_releases = true;
}

void ftl_builder_multicast(ftl_builder *builder, int32_t ring, ftl_multicast multicast) {
  if (ftl_builder_is_ok(builder)) builder->program->rings[ring].multicast = multicast;
}

void ftl_builder_ring_filled_by(ftl_builder *builder, int32_t ring, int32_t role) {
  if (ftl_builder_is_ok(builder)) builder->program->rings[ring].producer = role;
}

void ftl_builder_ring_read_by(ftl_builder *builder, int32_t ring, int32_t role) {
  if (ftl_builder_is_ok(builder)) builder->program->rings[ring].consumers_mask |= 1 << role;
}

void ftl_builder_barrier_joined_by(ftl_builder *builder, int32_t barrier, int32_t role) {
  if (ftl_builder_is_ok(builder)) builder->program->barriers[barrier].roles_mask |= 1 << role;
}

int32_t ftl_builder_role(ftl_builder *builder, const char *name, int32_t num_warps, int32_t num_registers) {
  ftl_tile_program *program = builder->program;
  if (builder->num_open_loops > 0) ftl_builder_fail(builder, FTL_BAD_INPUT, "role %s begins inside a loop", name);
  if (program->num_roles == FTL_TILE_MAX_ROLES)
    ftl_builder_fail(builder, FTL_BAD_INPUT, "role %s: allowed are %d roles", name, FTL_TILE_MAX_ROLES);
  if (!ftl_builder_is_ok(builder)) return 0;
  ftl_role *role = &program->roles[program->num_roles];
  *role = (ftl_role){.num_warps = num_warps,
                     .first_warp = ftl_tile_num_warps(program),
                     .num_registers = num_registers,
                     .num_groups = 1,
                     .first_op = program->num_ops};
  ftl_builder_copy_name(role->name, name);
  builder->num_role_loops = 0;
  ftl_builder_drop_lookups(builder, 0);
  return program->num_roles++;
}

void ftl_builder_groups(ftl_builder *builder, int32_t num_groups) {
  if (!ftl_builder_is_ok(builder) || builder->program->num_roles == 0) return;
  builder->program->roles[builder->program->num_roles - 1].num_groups = num_groups;
}

void ftl_builder_tile_begins(ftl_builder *builder) {
  ftl_tile_program *program = builder->program;
  if (program->num_roles == 0 || builder->num_open_loops > 0)
    ftl_builder_fail(builder, FTL_BAD_INPUT, "a tile begins outside a role, or inside a loop");
  if (!ftl_builder_is_ok(builder)) return;
  ftl_role *role = &program->roles[program->num_roles - 1];
  if (role->num_setup_ops > 0) {
    ftl_builder_fail(builder, FTL_BAD_INPUT, "the tile of role %s begins twice", role->name);
    return;
  }
  role->num_setup_ops = role->num_ops;
  ftl_builder_drop_lookups(builder, 0);
}

int32_t ftl_builder_named_barrier(ftl_builder *builder, const char *name, int32_t roles_mask) {
  ftl_tile_program *program = builder->program;
  if (program->num_barriers == FTL_TILE_MAX_BARRIERS)
    ftl_builder_fail(builder, FTL_BAD_INPUT, "barrier %s: allowed are %d named barriers", name, FTL_TILE_MAX_BARRIERS);
  if (!ftl_builder_is_ok(builder)) return 0;
  ftl_named_barrier *barrier = &program->barriers[program->num_barriers];
  *barrier = (ftl_named_barrier){.roles_mask = roles_mask};
  ftl_builder_copy_name(barrier->name, name);
  return program->num_barriers++;
}
