// Declarations, nesting of loops, and the ring protocol.
#include <stdarg.h>
#include <stdio.h>

#include "tile/check_internal.h"
#include "tile/exec.h"

enum { MAX_TILE_EXTENT = 65536, MAX_TILE_ELEMENTS = 1 << 24, MAX_WARPS = 64 };

ftl_status ftl_check_fail(const ftl_check *check, const char *format, ...) {
  char text[FTL_ERROR_MESSAGE_BYTES];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  const ftl_tile_program *program = check->program;
  char where[FTL_TILE_WHERE_BYTES];
  return ftl_error_set(check->error, FTL_BAD_INPUT, "%s: %s", ftl_tile_op_where(program, check->op_idx, NULL, where),
                       text);
}

static bool extents_ok(int32_t rows, int32_t columns) {
  return rows >= 1 && rows <= MAX_TILE_EXTENT && columns >= 1 && columns <= MAX_TILE_EXTENT &&
         (int64_t)rows * columns <= MAX_TILE_ELEMENTS;
}

ftl_status ftl_check_ring(const ftl_tile_program *program, int32_t ring_idx, ftl_error *error) {
  const ftl_ring *ring = &program->rings[ring_idx];
  if (extents_ok(ring->rows, ring->columns) && ring->num_stages >= 1 && ring->num_stages <= FTL_TILE_MAX_STAGES)
    return FTL_OK;
  return ftl_error_set(error, FTL_BAD_INPUT,
                       "%s: ring %s of %d x %d, %d stages: allowed are %d elements, 1 to %d stages", program->name,
                       ring->name, ring->rows, ring->columns, ring->num_stages, MAX_TILE_ELEMENTS, FTL_TILE_MAX_STAGES);
}

static int64_t ring_bytes(const ftl_ring *ring) {
  return (int64_t)ring->rows * ring->columns * ring->num_stages * ftl_dtype_bytes(ring->dtype);
}

static ftl_status check_overlay(const ftl_tile_program *program, int32_t ring, ftl_error *error) {
  int64_t room = 0;
  for (int32_t i = 0; i < ring; i++)
    if (!program->rings[i].overlaid) room += ring_bytes(&program->rings[i]);
  if (!program->rings[ring].overlaid || ring_bytes(&program->rings[ring]) <= room) return FTL_OK;
  return ftl_error_set(error, FTL_BAD_INPUT, "%s: ring %s of %lld bytes lies over %lld", program->name,
                       program->rings[ring].name, (long long)ring_bytes(&program->rings[ring]), (long long)room);
}

static ftl_status check_rings(const ftl_tile_program *program, ftl_error *error) {
  for (int32_t i = 0; i < program->num_rings; i++) {
    const ftl_ring *ring = &program->rings[i];
    ftl_status status = ftl_check_ring(program, i, error);
    if (status == FTL_OK) status = check_overlay(program, i, error);
    if (status != FTL_OK) return status;
    if (ring->producer < 0 || ring->producer >= program->num_roles || ring->consumers_mask <= 0 ||
        ring->consumers_mask >= 1 << program->num_roles)
      return ftl_error_set(error, FTL_BAD_INPUT, "%s: ring %s needs a producer and consumers among the %d roles",
                           program->name, ring->name, program->num_roles);
  }
  return FTL_OK;
}

// Rows and columns of a row-wise value fill its threads evenly.
static bool layout_ok(const ftl_tile_program *program, const ftl_value *value) {
  const ftl_value_layout *layout = &value->layout;
  int32_t threads = layout->threads_per_row, num_threads = program->roles[value->role].num_warps * FTL_WARP_LANES;
  if (threads == 0) return true;
  bool divides_warp = threads > 0 && FTL_WARP_LANES % threads == 0, whole_warps = threads % FTL_WARP_LANES == 0;
  if (threads < 0 || (!divides_warp && !whole_warps) || num_threads % threads != 0) return false;
  if (value->rows % (num_threads / threads) != 0) return false;
  if (value->kind == FTL_VALUE_ROWS) return true;
  int32_t vector = layout->vector_columns;
  return (vector == 1 || vector == 2 || vector == 4 || vector == 8) && value->columns % (threads * vector) == 0;
}

static bool side_by_side_ok(const ftl_tile_program *program, const ftl_value *value) {
  const ftl_role *role = &program->roles[value->role];
  if (value->warps_per_row == 1) return !value->is_repeated;
  return value->kind != FTL_VALUE_COLUMNS && value->layout.threads_per_row == 0 && role->num_groups == 1 &&
         value->warps_per_row > 1 && role->num_warps % value->warps_per_row == 0 &&
         (value->kind == FTL_VALUE_ROWS || value->is_repeated || value->columns % value->warps_per_row == 0);
}

ftl_status ftl_check_value(const ftl_tile_program *program, int32_t value_idx, ftl_error *error) {
  const ftl_value *value = &program->values[value_idx];
  if (!extents_ok(value->rows, value->columns))
    return ftl_error_set(error, FTL_BAD_INPUT, "%s: value %s of %d x %d; allowed are %d elements", program->name,
                         value->name, value->rows, value->columns, MAX_TILE_ELEMENTS);
  if (!side_by_side_ok(program, value))
    return ftl_error_set(error, FTL_BAD_INPUT,
                         "%s: value %s of %d x %d, %d warps side by side: allowed are divisors of the role's warps "
                         "and of the columns, for fragments of a role of one group",
                         program->name, value->name, value->rows, value->columns, value->warps_per_row);
  if (layout_ok(program, value)) return FTL_OK;
  return ftl_error_set(error, FTL_BAD_INPUT,
                       "%s: value %s of %d x %d, %d threads a row, %d columns at once: the threads of a row are a "
                       "power of two up to a warp or whole warps of the role, rows a multiple of the groups of "
                       "threads, columns of threads x 1, 2, 4 or 8",
                       program->name, value->name, value->rows, value->columns, value->layout.threads_per_row,
                       value->layout.vector_columns);
}

static ftl_status check_values(const ftl_tile_program *program, ftl_error *error) {
  for (int32_t i = 0; i < program->num_values; i++) {
    ftl_status status = ftl_check_value(program, i, error);
    if (status != FTL_OK) return status;
  }
  return FTL_OK;
}

static ftl_status check_barriers(const ftl_tile_program *program, ftl_error *error) {
  for (int32_t i = 0; i < program->num_barriers; i++) {
    int32_t roles = program->barriers[i].roles_mask;
    if (roles > 0 && roles < 1 << program->num_roles) continue;
    return ftl_error_set(error, FTL_BAD_INPUT, "%s: barrier %s needs roles among the %d", program->name,
                         program->barriers[i].name, program->num_roles);
  }
  return FTL_OK;
}

static ftl_status check_declarations(const ftl_tile_program *program, ftl_error *error) {
  if (program->num_ctas < 1 || program->num_ctas > INT32_MAX)
    return ftl_error_set(error, FTL_BAD_INPUT, "%s: a grid of %lld CTAs; allowed is 1 to %d", program->name,
                         (long long)program->num_ctas, INT32_MAX);
  if (program->handout != FTL_TILES_BY_STRIDE && (!program->persistent || program->cluster_ctas > 1))
    return ftl_error_set(error, FTL_BAD_INPUT, "%s: dynamic tiles are of persistent CTAs without clusters",
                         program->name);
  if (program->num_roles < 1 || program->num_ops < 1)
    return ftl_error_set(error, FTL_BAD_INPUT, "%s: %s", program->name,
                         program->num_roles < 1 ? "no role" : "its roles do nothing");
  for (int32_t i = 0; i < program->num_roles; i++)
    if (program->roles[i].num_warps < 1 || program->roles[i].num_warps > MAX_WARPS)
      return ftl_error_set(error, FTL_BAD_INPUT, "%s: role %s of %d warps; allowed is 1 to %d", program->name,
                           program->roles[i].name, program->roles[i].num_warps, MAX_WARPS);
  for (int32_t i = 0; i < program->num_roles; i++) {
    const ftl_role *role = &program->roles[i];
    if (role->num_groups < 1 || role->num_warps % role->num_groups != 0)
      return ftl_error_set(error, FTL_BAD_INPUT, "%s: role %s of %d warps in %d groups; groups must be equal",
                           program->name, role->name, role->num_warps, role->num_groups);
  }
  ftl_status status = check_values(program, error);
  if (status == FTL_OK) status = check_barriers(program, error);
  return status == FTL_OK ? check_rings(program, error) : status;
}

// Each loop variable is set by one loop, which ends inside the role and around whole loops.
static ftl_status check_role(const ftl_tile_program *program, int32_t role_idx, ftl_error *error) {
  const ftl_role *role = &program->roles[role_idx];
  ftl_check check = {.program = program, .role_idx = role_idx, .error = error};
  int32_t open[FTL_TILE_MAX_LOOP_VARS], num_open = 0;
  uint32_t used_loops = 0;
  for (check.op_idx = role->first_op; check.op_idx < role->first_op + role->num_ops; check.op_idx++) {
    const ftl_tile_op *op = &program->ops[check.op_idx];
    ftl_status status = ftl_check_op(&check);
    if (status == FTL_OK) status = ftl_check_written(&check);
    if (status != FTL_OK) return status;
    if (op->kind == FTL_TILE_LOOP) {
      if (op->loop_var < 0 || op->loop_var >= program->num_loop_vars || (used_loops >> op->loop_var & 1) != 0)
        return ftl_check_fail(&check, "loop variable %d is not this loop's own", op->loop_var);
      used_loops |= 1u << op->loop_var;
      check.live_loops |= 1u << op->loop_var;
      open[num_open++] = op->loop_var;
    } else if (op->kind == FTL_TILE_END_LOOP) {
      if (num_open == 0 || open[num_open - 1] != op->loop_var) return ftl_check_fail(&check, "no such loop is open");
      check.live_loops &= ~(1u << open[--num_open]);
    }
  }
  if (num_open == 0) return FTL_OK;
  return ftl_error_set(error, FTL_BAD_INPUT, "%s: role %s leaves a loop open", program->name, role->name);
}

// Rings give the same order whichever role runs first, and a deadlock is one in any order. An arrival at a barrier may
// overtake: a role that comes twice in a phase does so when a role that the phase waits for is as late as can be.
static ftl_status check_walks(const ftl_tile_program *program, ftl_exec_options options, ftl_error *error) {
  ftl_status status = ftl_exec_cta(program, &options, error);
  bool may_overtake = program->num_barriers > 0 && program->num_roles > 1;
  for (int32_t role = 0; status == FTL_OK && may_overtake && role < program->num_roles; role++) {
    options.late_role = FTL_FIRST_LATE_ROLE + role;
    status = ftl_exec_cta(program, &options, error);
  }
  return status;
}

// The protocol depends on the CTA only through trip counts and absent tiles: the first, the last and some between show
// it. Iterations of a loop repeat after at most as many as a ring has stages, so the middle of a long loop is left out.
static ftl_status check_protocol(const ftl_tile_program *program, ftl_error *error) {
  const int64_t last = program->num_ctas - 1;
  const int64_t tiles[] = {0, 1, last / 3, last / 2, last - 1, last};
  for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++) {
    if (tiles[i] < 0 || tiles[i] > last || (i > 0 && tiles[i] <= tiles[i - 1])) continue;
    // A persistent CTA walks its first tile and the last one: enough to see whether the rings come back in order.
    int64_t stride = program->persistent && tiles[i] < last ? last - tiles[i] : program->num_ctas;
    ftl_exec_options options = {.first_tile = tiles[i],
                                .tile_stride = stride,
                                .max_trips = 2 * (FTL_TILE_MAX_STAGES + 1),
                                .max_steps = 1 << 20};  // bounds what deeply nested loops cost
    ftl_error found = {0};
    if (check_walks(program, options, &found) != FTL_OK)
      return ftl_error_set(error, FTL_BAD_INPUT, "%s", found.message);
  }
  return FTL_OK;
}

ftl_status ftl_tile_program_check(const ftl_tile_program *program, ftl_error *error) {
  ftl_status status = check_declarations(program, error);
  for (int32_t i = 0; status == FTL_OK && i < program->num_roles; i++) status = check_role(program, i, error);
  if (status == FTL_OK) status = check_protocol(program, error);
  return status == FTL_OK ? ftl_check_cluster(program, error) : status;
}
