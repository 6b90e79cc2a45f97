// Declarations, as methods of k: tensors, tables, rings, roles, barriers, the grid.
#include <string.h>

#include <lauxlib.h>

#include "base/integer.h"
#include "script/lua_sketch.h"
#include "script/sandbox.h"

enum { MAX_DIMS = 4, MAX_EXTENT = 65536, MAX_WARPS = 64, MAX_REGISTERS = 255 };

static const int64_t most = INT64_C(1) << 46;

// --- tensors ---

// The whole numbers of the list at `index`, behind `padding` ones of `fill`; how many there are.
static int get_list(lua_State *lua, int index, const char *what, int least_count, int most_count, int64_t least,
                    int64_t *out) {
  if (lua_type(lua, index) != LUA_TTABLE) {
    luaL_error(lua, "%s must be a list of whole numbers, not %s", what, ftl_sketch_type_name(lua, index));
  }
  lua_Unsigned count = lua_rawlen(lua, index);
  if (count < (lua_Unsigned)least_count || count > (lua_Unsigned)most_count) {
    luaL_error(lua, "%s has %d numbers; allowed are %d to %d", what, count > INT32_MAX ? INT32_MAX : (int)count,
               least_count, most_count);
  }
  for (int i = 0; i < (int)count; i++) {
    lua_rawgeti(lua, index, i + 1);
    out[i] = ftl_sketch_integer(lua, -1, what, least, most);
    lua_pop(lua, 1);
  }
  return (int)count;
}

// Strides of the dimensions that were declared, but for the columns', whose stride is 1.
static void get_strides(lua_State *lua, int options, int num_dims, ftl_tensor_shape *shape) {
  int64_t strides[MAX_DIMS - 1];
  int64_t *const of_dims[] = {&shape->batch_stride, &shape->head_stride, &shape->row_stride};
  if (lua_isnoneornil(lua, options)) return;
  if (lua_getfield(lua, options, "strides") != LUA_TNIL) {
    int count = num_dims > 1 ? num_dims - 1 : 1;
    get_list(lua, lua_gettop(lua), "strides (in elements, but for the columns')", count, count, 0, strides);
    for (int i = 0; i < count; i++) *of_dims[MAX_DIMS - 1 - count + i] = strides[i];
  }
  lua_pop(lua, 1);
}

static ftl_tensor_shape get_shape(lua_State *lua, int dims_index, int options, int *num_dims) {
  static const char *const known[] = {"strides", "l2", NULL};
  int64_t dims[MAX_DIMS] = {1, 1, 1, 1}, given[MAX_DIMS];
  *num_dims = get_list(lua, dims_index, "the shape", 1, MAX_DIMS, 1, given);
  // One dimension alone is the rows of one column.
  int first = *num_dims == 1 ? MAX_DIMS - 2 : MAX_DIMS - *num_dims;
  for (int i = 0; i < *num_dims; i++) dims[first + i] = given[i];
  // Strides of more than 2^46 elements belong to a tensor that is refused all the same.
  double elements = (double)dims[0] * (double)dims[1] * (double)dims[2] * (double)dims[3];
  if (elements > (double)most) luaL_error(lua, "the shape has more than 2^46 elements");
  ftl_tensor_shape shape = ftl_contiguous(dims[0], dims[1], dims[2], dims[3]);
  ftl_sketch_check_options(lua, options, known);
  get_strides(lua, options, *num_dims, &shape);
  return shape;
}

// What accesses to a tensor say to L2: option `l2`.
static ftl_l2_priority get_l2_priority(lua_State *lua, int options) {
  static const char *const names[] = {
      [FTL_L2_EVICT_NORMAL] = "evict_normal", [FTL_L2_EVICT_FIRST] = "evict_first", [FTL_L2_EVICT_LAST] = "evict_last"};
  if (lua_isnoneornil(lua, options) || lua_getfield(lua, options, "l2") == LUA_TNIL) return FTL_L2_EVICT_NORMAL;
  const char *name = lua_type(lua, -1) == LUA_TSTRING ? lua_tostring(lua, -1) : "";
  for (int i = 0; i < 3; i++)
    if (strcmp(name, names[i]) == 0) return (ftl_l2_priority)i;
  luaL_error(lua, "l2 must be \"evict_normal\", \"evict_first\" or \"evict_last\"");
  return FTL_L2_EVICT_NORMAL;
}

static void check_unused(lua_State *lua, const ftl_sketch *sketch, const char *name) {
  const ftl_tile_program *program = ftl_sketch_program(sketch);
  for (int32_t i = 0; i < program->num_tensors; i++)
    if (strcmp(program->tensors[i].name, name) == 0) luaL_error(lua, "there is a tensor %s already", name);
}

// k:input(name, dtype, {batches, heads, rows, columns}, {strides = {…}})
static int declare_tensor(lua_State *lua, ftl_tensor_use use) {
  ftl_sketch *sketch = ftl_sketch_begin(lua);
  lua_settop(lua, 5);
  const char *name = ftl_sketch_name(lua, 2, "a tensor's name");
  ftl_dtype dtype = ftl_sketch_dtype(lua, 3);
  check_unused(lua, sketch, name);
  int num_dims = 0;
  ftl_tensor_shape shape = get_shape(lua, 4, 5, &num_dims);
  int32_t tensor = ftl_builder_tensor(sketch->builder, name, dtype, use, shape);
  ftl_builder_l2_priority(sketch->builder, tensor, get_l2_priority(lua, 5));
  ftl_sketch_end(lua, sketch);
  return ftl_sketch_push_object(lua, sketch, ftl_lua_tensor_type, tensor, num_dims);
}

static int declare_input(lua_State *lua) { return declare_tensor(lua, FTL_TENSOR_INPUT); }
static int declare_output(lua_State *lua) { return declare_tensor(lua, FTL_TENSOR_OUTPUT); }

// k:table(name, {entries}): entry 0 is the first.
static int declare_table(lua_State *lua) {
  ftl_sketch *sketch = ftl_sketch_begin(lua);
  const char *name = ftl_sketch_name(lua, 2, "a table's name");
  check_unused(lua, sketch, name);
  if (lua_type(lua, 3) != LUA_TTABLE || lua_rawlen(lua, 3) == 0) {
    return luaL_error(lua, "table %s takes a list of at least one whole number", name);
  }
  lua_Unsigned count = lua_rawlen(lua, 3);
  if (count > INT32_MAX) return luaL_error(lua, "table %s has too many entries", name);
  ftl_sandbox_charge(lua, (int64_t)count);
  int32_t *entries = lua_newuserdatauv(lua, sizeof *entries * (size_t)count, 0);
  for (lua_Unsigned i = 0; i < count; i++) {
    lua_rawgeti(lua, 3, (lua_Integer)i + 1);
    entries[i] = (int32_t)ftl_sketch_integer(lua, -1, "an entry of a table", INT32_MIN, INT32_MAX);
    lua_pop(lua, 1);
  }
  int32_t table = ftl_builder_table(sketch->builder, name, entries, (int64_t)count);
  ftl_sketch_end(lua, sketch);
  return ftl_sketch_push_object(lua, sketch, ftl_lua_table_type, table, 0);
}

// Row `row` of bits, from the function at 5.
static void get_bits(lua_State *lua, int64_t row, int64_t columns, uint32_t *words) {
  enum { WORD_BITS = 32 };
  for (int64_t column = 0; column < columns; column++) {
    lua_pushvalue(lua, 5);
    lua_pushinteger(lua, (lua_Integer)row);
    lua_pushinteger(lua, (lua_Integer)column);
    lua_call(lua, 2, 1);
    if (lua_toboolean(lua, -1)) words[column / WORD_BITS] |= UINT32_C(1) << column % WORD_BITS;
    lua_pop(lua, 1);
  }
}

// k:bits(name, rows, columns, function(row, column) return whether it is seen end): bits(row, column) is a tile of it,
// whose columns are counted in words of 32.
static int declare_bits(lua_State *lua) {
  enum { WORD_BITS = 32 };
  ftl_sketch *sketch = ftl_sketch_begin(lua);
  lua_settop(lua, 5);
  const char *name = ftl_sketch_name(lua, 2, "a name of bits");
  check_unused(lua, sketch, name);
  int64_t rows = ftl_sketch_integer(lua, 3, "the rows of bits", 1, INT32_MAX);
  int64_t columns = ftl_sketch_integer(lua, 4, "the columns of bits", 1, INT32_MAX);
  if (lua_type(lua, 5) != LUA_TFUNCTION) return luaL_error(lua, "bits %s take function(row, column)", name);
  int64_t words_per_row = ftl_divide_up(columns, WORD_BITS);
  ftl_sandbox_charge(lua, rows * words_per_row);
  uint32_t *words = lua_newuserdatauv(lua, sizeof *words * (size_t)(rows * words_per_row), 0);
  memset(words, 0, sizeof *words * (size_t)(rows * words_per_row));
  for (int64_t row = 0; row < rows; row++) get_bits(lua, row, columns, words + row * words_per_row);
  int32_t bits = ftl_builder_bit_rows(sketch->builder, name, words, rows, words_per_row);
  ftl_sketch_end(lua, sketch);
  return ftl_sketch_push_object(lua, sketch, ftl_lua_tensor_type, bits, 2);
}

// blocks[i]
static int table_index(lua_State *lua) {
  ftl_sketch *sketch = ftl_sketch_begin(lua);
  const ftl_lua_object *table = ftl_sketch_check(lua, sketch, 1, ftl_lua_table_type, "a table");
  ftl_expr index = ftl_sketch_to_expr(lua, sketch, 2, "the index of a table");
  ftl_expr entry = ftl_lookup(sketch->builder, table->idx, index);
  ftl_sketch_end(lua, sketch);
  ftl_sketch_push_expr(lua, sketch, entry);
  return 1;
}

// --- tiles of tensors: q(batch, head, row), q(head, row, column, { present = x }) ---

static ftl_expr option_expr(lua_State *lua, ftl_sketch *sketch, int options, const char *name, ftl_expr fallback) {
  if (options == 0) return fallback;
  ftl_expr expr = fallback;
  if (lua_getfield(lua, options, name) != LUA_TNIL) expr = ftl_sketch_to_expr(lua, sketch, lua_gettop(lua), name);
  lua_pop(lua, 1);
  return expr;
}

static void get_ref_options(lua_State *lua, ftl_sketch *sketch, int options, ftl_lua_ref *out) {
  static const char *const known[] = {"present", "row_end", "column_end", "rows", "columns", NULL};
  if (options == 0) return;
  ftl_sketch_check_options(lua, options, known);
  out->ref.present = option_expr(lua, sketch, options, "present", FTL_ALWAYS);
  out->ref.row_end = option_expr(lua, sketch, options, "row_end", FTL_TENSOR_END);
  out->ref.column_end = option_expr(lua, sketch, options, "column_end", FTL_TENSOR_END);
  out->ref.rows = (int32_t)ftl_sketch_option(lua, options, "rows", 1, MAX_EXTENT, 0);
  out->ref.columns = (int32_t)ftl_sketch_option(lua, options, "columns", 1, MAX_EXTENT, 0);
  out->has_rows = out->ref.rows > 0;
  out->has_columns = out->ref.columns > 0;
}

static int tensor_call(lua_State *lua) {
  ftl_sketch *sketch = ftl_sketch_begin(lua);
  const ftl_lua_object *tensor = ftl_sketch_check(lua, sketch, 1, ftl_lua_tensor_type, "a tensor");
  int top = lua_gettop(lua);
  while (top > 1 && lua_isnil(lua, top)) top--;  // options that a script left out
  int options = top > 1 && lua_type(lua, top) == LUA_TTABLE ? top : 0;
  int count = (options ? top - 1 : top) - 1, num_dims = tensor->num_dims > 1 ? tensor->num_dims : 2;
  const char *name = ftl_sketch_program(sketch)->tensors[tensor->idx].name;
  if (count != num_dims - 1 && count != num_dims) {
    return luaL_error(lua, "a tile of %s begins at %d coordinates, or %d with the column; here are %d", name,
                      num_dims - 1, num_dims, count);
  }
  ftl_expr at[MAX_DIMS] = {0};  // expression 0 is the constant 0
  for (int i = 0; i < count; i++) at[MAX_DIMS - num_dims + i] = ftl_sketch_to_expr(lua, sketch, 2 + i, "a coordinate");
  ftl_lua_ref ref = {
      .serial = sketch->serial,
      .ref = {
          .tensor = tensor->idx, .batch = at[0], .head = at[1], .row = at[2], .column = at[3], .present = FTL_ALWAYS}};
  get_ref_options(lua, sketch, options, &ref);
  ftl_sketch_end(lua, sketch);
  ftl_lua_ref *pushed = ftl_sketch_push(lua, sketch, ftl_lua_ref_type, sizeof *pushed);
  *pushed = ref;
  return 1;
}

ftl_tile_ref ftl_sketch_to_ref(lua_State *lua, ftl_sketch *sketch, int index, int32_t rows, int32_t columns) {
  const ftl_lua_ref *object =
      ftl_sketch_check(lua, sketch, index, ftl_lua_ref_type, "a tile of a tensor, as q(head, row) gives it,");
  ftl_tile_ref ref = object->ref;
  int64_t tensor_columns = ftl_sketch_program(sketch)->tensors[ref.tensor].num_columns;
  if (!object->has_rows) ref.rows = rows;
  if (!object->has_columns) ref.columns = tensor_columns < columns ? (int32_t)tensor_columns : columns;
  return ref;
}

// --- rings ---

// k:ring(name, dtype, rows, columns, stages, { multicast = n, stride = n })
static int declare_ring(lua_State *lua) {
  static const char *const known[] = {"multicast", "stride", NULL};
  ftl_sketch *sketch = ftl_sketch_begin(lua);
  lua_settop(lua, 7);
  ftl_sketch_check_options(lua, 7, known);
  const char *name = ftl_sketch_name(lua, 2, "a ring's name");
  ftl_dtype dtype = ftl_sketch_dtype(lua, 3);
  int32_t rows = (int32_t)ftl_sketch_integer(lua, 4, "the rows of a stage", 1, MAX_EXTENT);
  int32_t columns = (int32_t)ftl_sketch_integer(lua, 5, "the columns of a stage", 1, MAX_EXTENT);
  int32_t stages = (int32_t)ftl_sketch_integer(lua, 6, "the stages of a ring", 1, MAX_EXTENT);
  ftl_multicast multicast = {
      .num_ctas = (int32_t)ftl_sketch_option(lua, 7, "multicast", 1, FTL_TILE_MAX_CLUSTER_CTAS, 1),
      .stride = (int32_t)ftl_sketch_option(lua, 7, "stride", 1, FTL_TILE_MAX_CLUSTER_CTAS, 1)};
  int32_t idx = ftl_builder_ring(sketch->builder, name, dtype, rows, columns, stages, -1, 0);
  ftl_builder_multicast(sketch->builder, idx, multicast);
  ftl_sketch_end(lua, sketch);
  sketch->ring_lines[idx] = (int)ftl_sketch_line(lua);
  ftl_lua_ring *ring = ftl_sketch_push(lua, sketch, ftl_lua_ring_type, sizeof *ring);
  ring->idx = idx;
  return 1;
}

// --- roles and barriers ---

// A role joins the barriers that were declared with its name.
static void join_barriers(ftl_sketch *sketch, const char *name, int32_t role) {
  for (int i = 0; i < sketch->num_barriers; i++)
    for (int r = 0; r < sketch->barriers[i].num_roles; r++)
      if (strcmp(sketch->barriers[i].roles[r], name) == 0) ftl_builder_barrier_joined_by(sketch->builder, i, role);
}

// k:role(name, warps, { registers = n, groups = n })
static int declare_role(lua_State *lua) {
  static const char *const known[] = {"registers", "groups", NULL};
  ftl_sketch *sketch = ftl_sketch_begin(lua);
  lua_settop(lua, 4);
  const char *name = ftl_sketch_name(lua, 2, "a role's name");
  int32_t warps = (int32_t)ftl_sketch_integer(lua, 3, "the warps of a role", 1, MAX_WARPS);
  ftl_sketch_check_options(lua, 4, known);
  int32_t registers = (int32_t)ftl_sketch_option(lua, 4, "registers", 1, MAX_REGISTERS, 0);
  int32_t groups = (int32_t)ftl_sketch_option(lua, 4, "groups", 1, MAX_WARPS, 1);
  if (warps % groups != 0) return luaL_error(lua, "%d warps are not %d equal groups", (int)warps, (int)groups);
  const ftl_tile_program *program = ftl_sketch_program(sketch);
  for (int32_t i = 0; i < program->num_roles; i++)
    if (strcmp(program->roles[i].name, name) == 0) return luaL_error(lua, "there is a role %s already", name);
  int32_t role = ftl_builder_role(sketch->builder, name, warps, registers);
  if (groups > 1) ftl_builder_groups(sketch->builder, groups);
  ftl_sketch_end(lua, sketch);
  join_barriers(sketch, name, role);
  return 0;
}

// k:barrier(name, {"role", "role"})
static int declare_barrier(lua_State *lua) {
  ftl_sketch *sketch = ftl_sketch_begin(lua);
  const char *name = ftl_sketch_name(lua, 2, "a barrier's name");
  lua_Unsigned count = lua_type(lua, 3) == LUA_TTABLE ? lua_rawlen(lua, 3) : 0;
  if (count < 1 || count > FTL_TILE_MAX_ROLES) {
    return luaL_error(lua, "barrier %s takes a list of the 1 to %d roles that meet there", name, FTL_TILE_MAX_ROLES);
  }
  ftl_sketch_barrier barrier = {.line = ftl_sketch_line(lua), .num_roles = (int)count};
  for (int i = 0; i < barrier.num_roles; i++) {
    lua_rawgeti(lua, 3, i + 1);
    const char *role = ftl_sketch_name(lua, -1, "a role of a barrier");
    memcpy(barrier.roles[i], role, strlen(role) + 1);
    lua_pop(lua, 1);
  }
  int32_t idx = ftl_builder_named_barrier(sketch->builder, name, 0);
  ftl_sketch_end(lua, sketch);
  sketch->barriers[sketch->num_barriers++] = barrier;
  const ftl_tile_program *program = ftl_sketch_program(sketch);
  for (int32_t i = 0; i < program->num_roles; i++)
    for (int r = 0; r < barrier.num_roles; r++)
      if (strcmp(program->roles[i].name, barrier.roles[r]) == 0) ftl_builder_barrier_joined_by(sketch->builder, idx, i);
  return ftl_sketch_push_object(lua, sketch, ftl_lua_barrier_type, idx, 0);
}

static int tile_begins(lua_State *lua) {
  ftl_sketch *sketch = ftl_sketch_begin(lua);
  ftl_builder_tile_begins(sketch->builder);
  ftl_sketch_end(lua, sketch);
  return 0;
}

// --- the grid ---

// k:grid(ctas, { persistent = true, dynamic = true, cluster = n })
static int set_grid(lua_State *lua) {
  static const char *const known[] = {"persistent", "dynamic", "cluster", NULL};
  ftl_sketch *sketch = ftl_sketch_begin(lua);
  lua_settop(lua, 3);
  if (sketch->has_grid) return luaL_error(lua, "the kernel has its k:grid already");
  int64_t num_ctas = ftl_sketch_integer(lua, 2, "the CTAs of a grid", 1, INT32_MAX);
  ftl_sketch_check_options(lua, 3, known);
  int32_t cluster = (int32_t)ftl_sketch_option(lua, 3, "cluster", 1, FTL_TILE_MAX_CLUSTER_CTAS, 1);
  if (num_ctas % cluster != 0)
    return luaL_error(lua, "%I CTAs are not whole clusters of %d", (lua_Integer)num_ctas, (int)cluster);
  ftl_builder_grid(sketch->builder, num_ctas, ftl_sketch_flag(lua, 3, "persistent"),
                   ftl_sketch_flag(lua, 3, "dynamic") ? FTL_TILES_ASKED_AHEAD : FTL_TILES_BY_STRIDE);
  ftl_builder_cluster(sketch->builder, cluster);
  sketch->has_grid = true;
  return 0;
}

// k:flops(n): FLOPs of the algorithm, for TFLOP/s
static int set_flops(lua_State *lua) {
  ftl_sketch *sketch = ftl_sketch_begin(lua);
  if (sketch->has_flops) return luaL_error(lua, "the kernel has its k:flops already");
  sketch->has_flops = true;
  ftl_builder_flops(sketch->builder, ftl_sketch_integer(lua, 2, "the FLOPs of a kernel", 0, INT64_C(1) << 62));
  return 0;
}

static int sync_warps(lua_State *lua) {
  ftl_sketch *sketch = ftl_sketch_begin(lua);
  ftl_sketch_role(lua, sketch);
  ftl_barrier(sketch->builder);
  ftl_sketch_end(lua, sketch);
  return 0;
}

const luaL_Reg ftl_sketch_declarations[] = {
    {"input", declare_input}, {"output", declare_output},   {"table", declare_table},     {"bits", declare_bits},
    {"ring", declare_ring},   {"role", declare_role},       {"barrier", declare_barrier}, {"grid", set_grid},
    {"flops", set_flops},     {"tile_begins", tile_begins}, {"sync_warps", sync_warps},   {NULL, NULL}};

static void open_type(lua_State *lua, const char *type, const char *event, lua_CFunction function) {
  luaL_newmetatable(lua, type);
  if (function != NULL) {
    lua_pushcfunction(lua, function);
    lua_setfield(lua, -2, event);
  }
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");
  lua_pop(lua, 1);
}

void ftl_lua_open_sketch_tensor(lua_State *lua) {
  open_type(lua, ftl_lua_tensor_type, "__call", tensor_call);
  open_type(lua, ftl_lua_table_type, "__index", table_index);
  open_type(lua, ftl_lua_ref_type, NULL, NULL);
}
