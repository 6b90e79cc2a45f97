// Register values of a sketch, declared by methods of k.
#include <lauxlib.h>

#include "script/lua_sketch.h"

enum { MAX_EXTENT = 65536, MAX_WARPS = 64 };

static ftl_value_layout get_layout(lua_State *lua, int options) {
  static const char *const known[] = {"threads_per_row", "vector_columns", "warps_per_row", "repeated", NULL};
  ftl_sketch_check_options(lua, options, known);
  return (ftl_value_layout){
      .threads_per_row = (int32_t)ftl_sketch_option(lua, options, "threads_per_row", 1, MAX_EXTENT, 0),
      .vector_columns = (int32_t)ftl_sketch_option(lua, options, "vector_columns", 1, MAX_EXTENT, 0)};
}

static int push_value(lua_State *lua, const ftl_sketch *sketch, int32_t idx) {
  ftl_sketch_end(lua, sketch);
  return ftl_sketch_push_object(lua, sketch, ftl_lua_value_type, idx, 0);
}

// The value declared last, held by warps side by side: each has a share of the columns, or all (`repeated`).
static int push_shared_value(lua_State *lua, const ftl_sketch *sketch, int32_t idx, int options) {
  int32_t warps = (int32_t)ftl_sketch_option(lua, options, "warps_per_row", 1, MAX_WARPS, 1);
  bool is_repeated = ftl_sketch_flag(lua, options, "repeated");
  if (is_repeated && warps == 1) luaL_error(lua, "repeated: by warps side by side, warps_per_row of 2 and more");
  if (is_repeated)
    ftl_builder_repeat(sketch->builder, warps);
  else if (warps > 1)
    ftl_builder_side_by_side(sketch->builder, warps);
  return push_value(lua, sketch, idx);
}

// k:tile(name, dtype, rows, columns, { threads_per_row = n, vector_columns = n, warps_per_row = n, repeated = true })
static int declare_tile(lua_State *lua) {
  ftl_sketch *sketch = ftl_sketch_begin(lua);
  lua_settop(lua, 6);
  ftl_sketch_role(lua, sketch);
  const char *name = ftl_sketch_name(lua, 2, "a tile's name");
  ftl_dtype dtype = ftl_sketch_dtype(lua, 3);
  int32_t rows = (int32_t)ftl_sketch_integer(lua, 4, "the rows of a tile", 1, MAX_EXTENT);
  int32_t columns = (int32_t)ftl_sketch_integer(lua, 5, "the columns of a tile", 1, MAX_EXTENT);
  ftl_value_layout layout = get_layout(lua, 6);
  return push_shared_value(lua, sketch, ftl_builder_tile_by_rows(sketch->builder, name, dtype, rows, columns, layout),
                           6);
}

// k:rows(name, rows, { threads_per_row = n, vector_columns = n, warps_per_row = n, repeated = true })
static int declare_rows(lua_State *lua) {
  ftl_sketch *sketch = ftl_sketch_begin(lua);
  lua_settop(lua, 4);
  ftl_sketch_role(lua, sketch);
  const char *name = ftl_sketch_name(lua, 2, "a value's name");
  int32_t rows = (int32_t)ftl_sketch_integer(lua, 3, "the rows of a value", 1, MAX_EXTENT);
  return push_shared_value(lua, sketch, ftl_builder_rows_by_rows(sketch->builder, name, rows, get_layout(lua, 4)), 4);
}

// k:columns(name, columns)
static int declare_columns(lua_State *lua) {
  ftl_sketch *sketch = ftl_sketch_begin(lua);
  ftl_sketch_role(lua, sketch);
  const char *name = ftl_sketch_name(lua, 2, "a value's name");
  int32_t columns = (int32_t)ftl_sketch_integer(lua, 3, "the columns of a value", 1, MAX_EXTENT);
  return push_value(lua, sketch, ftl_builder_columns(sketch->builder, name, columns));
}

const luaL_Reg ftl_sketch_value_declarations[] = {
    {"tile", declare_tile}, {"rows", declare_rows}, {"columns", declare_columns}, {NULL, NULL}};
