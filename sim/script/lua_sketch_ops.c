// Operations, as methods of register values.
#include <string.h>

#include <lauxlib.h>

#include "script/lua_module.h"
#include "script/lua_sketch.h"
#include "tile/dropout.h"

static const ftl_value *info_of(const ftl_sketch *sketch, int32_t value) {
  return &ftl_sketch_program(sketch)->values[value];
}

int32_t ftl_sketch_check_value(lua_State *lua, const ftl_sketch *sketch, int index, const char *what) {
  const ftl_lua_object *value = ftl_sketch_check(lua, sketch, index, ftl_lua_value_type, what);
  return value->idx;
}

// The sketch, and the value whose method this is.
static ftl_sketch *begin_value(lua_State *lua, int32_t *value) {
  ftl_sketch *sketch = ftl_sketch_begin(lua);
  *value = ftl_sketch_check_value(lua, sketch, 1, "a register tile before the :");
  ftl_sketch_role(lua, sketch);
  return sketch;
}

int ftl_sketch_give_back(lua_State *lua, const ftl_sketch *sketch) {
  ftl_sketch_end(lua, sketch);
  lua_settop(lua, 1);
  return 1;
}

static ftl_elem_fn check_reduction(lua_State *lua, int index) {
  bool is_name = lua_type(lua, index) == LUA_TSTRING;
  const char *name = is_name ? lua_tostring(lua, index) : "";
  if (strcmp(name, "max") == 0) return FTL_ELEM_MAX;
  if (strcmp(name, "sum") != 0)
    luaL_error(lua, "a reduction is \"max\" or \"sum\", not %s", is_name ? name : ftl_sketch_type_name(lua, index));
  return FTL_ELEM_ADD;
}

// --- values ---

static int value_set(lua_State *lua) {
  int32_t value;
  ftl_sketch *sketch = begin_value(lua, &value);
  lua_settop(lua, 2);
  ftl_sketch_assign(lua, sketch, value, 2);
  lua_settop(lua, 1);
  return 1;
}

// s:mma(a, b): s += a x b
static int value_mma(lua_State *lua) {
  int32_t value;
  ftl_sketch *sketch = begin_value(lua, &value);
  const ftl_lua_ring *b = ftl_sketch_check_ring(lua, sketch, 3, "B, a ring,");
  const ftl_lua_ring *a = ftl_sketch_test(lua, sketch, 2, ftl_lua_ring_type);
  ftl_sketch_reads(lua, sketch, b->idx);
  if (b->first_row != 0) return luaL_error(lua, "B is a whole stage of its ring; only A begins at a row");
  if (a == NULL) {
    int32_t a_value = ftl_sketch_check_value(lua, sketch, 2, "A, a register tile or a ring,");
    ftl_mma_value(sketch->builder, value, a_value, b->idx, b->transposed);
    return ftl_sketch_give_back(lua, sketch);
  }
  ftl_sketch_reads(lua, sketch, a->idx);
  ftl_mma_shared(sketch->builder, value, a->idx, b->idx, b->transposed);
  if (a->transposed) ftl_transposed_a(sketch->builder);
  if (a->first_row > 0) ftl_at_ring_row(sketch->builder, a->first_row);
  return ftl_sketch_give_back(lua, sketch);
}

// Field `name` of the table at 2; FTL_ALWAYS where it is not there.
static ftl_expr optional_expr(lua_State *lua, ftl_sketch *sketch, const char *name) {
  ftl_expr expr = FTL_ALWAYS;
  if (lua_getfield(lua, 2, name) != LUA_TNIL) expr = ftl_sketch_to_expr(lua, sketch, lua_gettop(lua), name);
  lua_pop(lua, 1);
  return expr;
}

static ftl_expr table_expr(lua_State *lua, ftl_sketch *sketch, const char *what, const char *name) {
  ftl_expr expr = optional_expr(lua, sketch, name);
  if (expr == FTL_ALWAYS) luaL_error(lua, "%s needs %s, which is missing", what, name);
  return expr;
}

// s:mask{ row = r, column = c, limit = n, diagonal = d, period = p, transposed = true }
static int value_mask(lua_State *lua) {
  static const char *const known[] = {"row", "column", "limit", "diagonal", "left", "period", "transposed", NULL};
  int32_t value;
  ftl_sketch *sketch = begin_value(lua, &value);
  lua_settop(lua, 2);
  if (lua_type(lua, 2) != LUA_TTABLE)
    return luaL_error(lua, "a mask is written mask{ row = …, column = …, limit = … }");
  ftl_sketch_check_options(lua, 2, known);
  ftl_expr row = table_expr(lua, sketch, "a mask", "row"), column = table_expr(lua, sketch, "a mask", "column");
  ftl_expr limit = table_expr(lua, sketch, "a mask", "limit"), diagonal = optional_expr(lua, sketch, "diagonal");
  ftl_expr left = optional_expr(lua, sketch, "left");
  int64_t period = ftl_sketch_option(lua, 2, "period", 1, INT32_MAX, 0);
  lua_getfield(lua, 2, "transposed");
  bool transposed = lua_toboolean(lua, -1);
  if (transposed && (period > 0 || left != FTL_ALWAYS))
    return luaL_error(lua, "a transposed mask has neither period nor left");
  if (transposed) {
    ftl_mask_transposed(sketch->builder, value, row, column, diagonal, limit);
  } else {
    ftl_mask_heads(sketch->builder, value, row, column, diagonal, limit, period);
  }
  if (left != FTL_ALWAYS) ftl_mask_left(sketch->builder, left);
  return ftl_sketch_give_back(lua, sketch);
}

// s:mask_bits(bits(row, column)): -inf where a bit is 0
static int value_mask_bits(lua_State *lua) {
  enum { WORD_BITS = 32 };
  int32_t value;
  ftl_sketch *sketch = begin_value(lua, &value);
  const ftl_value *info = info_of(sketch, value);
  int32_t groups = ftl_sketch_program(sketch)->roles[info->role].num_groups;
  ftl_tile_ref ref = ftl_sketch_to_ref(lua, sketch, 2, info->rows, info->columns * groups / WORD_BITS);
  ftl_mask_bits(sketch->builder, value, ref);
  return ftl_sketch_give_back(lua, sketch);
}

// p:dropout{ p = 0.1, head = h, row = r, column = c }: zeroes what dropout drops of a tile of probabilities
static int value_dropout(lua_State *lua) {
  static const char *const known[] = {"p", "head", "row", "column", NULL};
  int32_t value;
  ftl_sketch *sketch = begin_value(lua, &value);
  lua_settop(lua, 2);
  if (lua_type(lua, 2) != LUA_TTABLE)
    return luaL_error(lua, "dropout is written dropout{ p = …, head = …, row = …, column = … }");
  ftl_sketch_check_options(lua, 2, known);
  lua_getfield(lua, 2, "p");
  double probability = lua_type(lua, -1) == LUA_TNUMBER ? lua_tonumber(lua, -1) : -1;
  if (!(probability >= 0 && probability < 1))
    return luaL_error(lua, "p of a dropout must be a number from 0 to below 1");
  ftl_expr head = table_expr(lua, sketch, "a dropout", "head"), row = table_expr(lua, sketch, "a dropout", "row");
  ftl_expr column = table_expr(lua, sketch, "a dropout", "column");
  ftl_dropout(sketch->builder, value, head, row, column, ftl_dropout_threshold(probability));
  return ftl_sketch_give_back(lua, sketch);
}

// m:reduce("max", s): each lane over what it holds, with what m held
static int value_reduce(lua_State *lua) {
  int32_t value;
  ftl_sketch *sketch = begin_value(lua, &value);
  ftl_reduce_rows(sketch->builder, check_reduction(lua, 2), value,
                  ftl_sketch_check_value(lua, sketch, 3, "a register tile"));
  return ftl_sketch_give_back(lua, sketch);
}

static int value_reduce_lanes(lua_State *lua) {
  int32_t value;
  ftl_sketch *sketch = begin_value(lua, &value);
  ftl_reduce_lanes(sketch->builder, check_reduction(lua, 2), value);
  return ftl_sketch_give_back(lua, sketch);
}

static int reduce_through_ring(lua_State *lua, void (*reduce)(ftl_builder *, ftl_elem_fn, int32_t, int32_t)) {
  int32_t value;
  ftl_sketch *sketch = begin_value(lua, &value);
  ftl_elem_fn fn = check_reduction(lua, 2);
  reduce(sketch->builder, fn, value, ftl_sketch_check_staging(lua, sketch, 3, "a staging ring")->idx);
  return ftl_sketch_give_back(lua, sketch);
}

static int value_reduce_warps(lua_State *lua) { return reduce_through_ring(lua, ftl_reduce_warps); }
static int value_reduce_groups(lua_State *lua) { return reduce_through_ring(lua, ftl_reduce_groups); }

static int value_convert(lua_State *lua) {
  int32_t value;
  ftl_sketch *sketch = begin_value(lua, &value);
  ftl_convert(sketch->builder, value, ftl_sketch_check_value(lua, sketch, 2, "a register tile"));
  return ftl_sketch_give_back(lua, sketch);
}

static int value_fetch(lua_State *lua) {
  int32_t value;
  ftl_sketch *sketch = begin_value(lua, &value);
  int32_t ring = ftl_sketch_check_ring(lua, sketch, 2, "a ring")->idx;
  ftl_sketch_reads(lua, sketch, ring);
  ftl_fetch(sketch->builder, value, ring);
  return ftl_sketch_give_back(lua, sketch);
}

// x:load(t(row)): global memory into registers
static int value_load(lua_State *lua) {
  int32_t value;
  ftl_sketch *sketch = begin_value(lua, &value);
  const ftl_value *info = info_of(sketch, value);
  switch (info->kind) {
    case FTL_VALUE_TILE:
      ftl_load_tile(sketch->builder, value, ftl_sketch_to_ref(lua, sketch, 2, info->rows, info->columns));
      break;
    case FTL_VALUE_ROWS:
      ftl_load_rows(sketch->builder, value, ftl_sketch_to_ref(lua, sketch, 2, info->rows, 1));
      break;
    case FTL_VALUE_COLUMNS:
      ftl_load_columns(sketch->builder, value, ftl_sketch_to_ref(lua, sketch, 2, info->columns, 1));
      break;
  }
  return ftl_sketch_give_back(lua, sketch);
}

// The ring of option `through`; NULL: none.
static const ftl_lua_ring *get_staging(lua_State *lua, ftl_sketch *sketch, int options) {
  static const char *const known[] = {"through", NULL};
  ftl_sketch_check_options(lua, options, known);
  if (lua_isnoneornil(lua, options)) return NULL;
  lua_getfield(lua, options, "through");
  return ftl_sketch_check_staging(lua, sketch, lua_gettop(lua), "through = a ring");
}

// o:store(t(row), { through = ring })
static int value_store(lua_State *lua) {
  int32_t value;
  ftl_sketch *sketch = begin_value(lua, &value);
  lua_settop(lua, 3);
  const ftl_lua_ring *staging = get_staging(lua, sketch, 3);
  const ftl_value *info = info_of(sketch, value);
  if (info->kind == FTL_VALUE_COLUMNS) return luaL_error(lua, "a number a column is not stored");
  ftl_tile_ref ref = ftl_sketch_to_ref(lua, sketch, 2, info->rows, info->columns);
  if (info->kind == FTL_VALUE_ROWS) {
    if (staging != NULL) return luaL_error(lua, "a number a row is stored directly, not through a ring");
    ftl_store_rows(sketch->builder, ref, value);
    return ftl_sketch_give_back(lua, sketch);
  }
  ftl_store(sketch->builder, ref, value, staging != NULL ? staging->idx : -1);
  if (staging != NULL && staging->first_row > 0) ftl_at_ring_row(sketch->builder, staging->first_row);
  return ftl_sketch_give_back(lua, sketch);
}

// dq:atomic_add(t(row)): other CTAs add to the same elements
static int value_atomic_add(lua_State *lua) {
  int32_t value;
  ftl_sketch *sketch = begin_value(lua, &value);
  const ftl_value *info = info_of(sketch, value);
  ftl_atomic_add(sketch->builder, ftl_sketch_to_ref(lua, sketch, 2, info->rows, info->columns), value,
                 FTL_ADD_IN_LINES);
  return ftl_sketch_give_back(lua, sketch);
}

// o:store_merged(t(row), max, sum, scale_log2, output_ring, rows_ring)
static int value_store_merged(lua_State *lua) {
  int32_t value;
  ftl_sketch *sketch = begin_value(lua, &value);
  const ftl_value *info = info_of(sketch, value);
  ftl_tile_ref ref = ftl_sketch_to_ref(lua, sketch, 2, info->rows, info->columns);
  int32_t max = ftl_sketch_check_value(lua, sketch, 3, "the row maxima"),
          sum = ftl_sketch_check_value(lua, sketch, 4, "the row sums");
  if (lua_type(lua, 5) != LUA_TNUMBER) return luaL_error(lua, "the scale must be a number");
  float scale_log2 = (float)lua_tonumber(lua, 5);
  ftl_store_merged(sketch->builder, ref, value, max, sum, scale_log2,
                   ftl_sketch_check_staging(lua, sketch, 6, "a staging ring")->idx,
                   ftl_sketch_check_staging(lua, sketch, 7, "a second staging ring")->idx);
  return ftl_sketch_give_back(lua, sketch);
}

static int value_index(lua_State *lua) { return ftl_lua_method(lua, "a register tile"); }

// --- opening ---

void ftl_sketch_open_type(lua_State *lua, const char *type, lua_CFunction index, const luaL_Reg *methods) {
  luaL_newmetatable(lua, type);
  lua_newtable(lua);
  luaL_setfuncs(lua, methods, 0);
  lua_pushcclosure(lua, index, 1);
  lua_setfield(lua, -2, "__index");
  if (strcmp(type, ftl_lua_value_type) == 0) ftl_sketch_set_arithmetic(lua);
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");
  lua_pop(lua, 1);
}

void ftl_lua_open_sketch_ops(lua_State *lua) {
  const luaL_Reg values[] = {{"set", value_set},
                             {"mma", value_mma},
                             {"mask", value_mask},
                             {"mask_bits", value_mask_bits},
                             {"dropout", value_dropout},
                             {"reduce", value_reduce},
                             {"reduce_lanes", value_reduce_lanes},
                             {"reduce_warps", value_reduce_warps},
                             {"reduce_groups", value_reduce_groups},
                             {"convert", value_convert},
                             {"fetch", value_fetch},
                             {"load", value_load},
                             {"store", value_store},
                             {"atomic_add", value_atomic_add},
                             {"store_merged", value_store_merged},
                             {NULL, NULL}};
  ftl_sketch_open_type(lua, ftl_lua_value_type, value_index, values);
}
