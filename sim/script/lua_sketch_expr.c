// Index expressions: whole numbers of the CTA and the loop variables, written with + - * // %.
#include <lauxlib.h>

#include "script/lua_sketch.h"

void ftl_sketch_push_expr(lua_State *lua, const ftl_sketch *sketch, ftl_expr expr) {
  ftl_lua_expr *object = ftl_sketch_push(lua, sketch, ftl_lua_expr_type, sizeof *object);
  object->expr = expr;
}

ftl_expr ftl_sketch_to_expr(lua_State *lua, ftl_sketch *sketch, int index, const char *what) {
  const ftl_lua_expr *object = ftl_sketch_test(lua, sketch, index, ftl_lua_expr_type);
  if (object != NULL) return object->expr;
  int is_integer = 0;
  lua_Integer value = lua_type(lua, index) == LUA_TNUMBER ? lua_tointegerx(lua, index, &is_integer) : 0;
  if (!is_integer) {
    luaL_error(lua, "%s must be a whole number or an index expression, not %s", what, ftl_sketch_type_name(lua, index));
  }
  return ftl_const(sketch->builder, value);
}

typedef ftl_expr (*binary_fn)(ftl_builder *builder, ftl_expr a, ftl_expr b);

static int push_binary(lua_State *lua, ftl_sketch *sketch, binary_fn apply, const char *what) {
  ftl_expr a = ftl_sketch_to_expr(lua, sketch, 1, what), b = ftl_sketch_to_expr(lua, sketch, 2, what);
  ftl_expr x = apply(sketch->builder, a, b);
  ftl_sketch_end(lua, sketch);
  ftl_sketch_push_expr(lua, sketch, x);
  return 1;
}

static int index_arithmetic(lua_State *lua, ftl_sketch *sketch, int lua_operator) {
  switch (lua_operator) {
    case LUA_OPADD:
      return push_binary(lua, sketch, ftl_add, "each side of +");
    case LUA_OPSUB:
      return push_binary(lua, sketch, ftl_sub, "each side of -");
    case LUA_OPMUL:
      return push_binary(lua, sketch, ftl_mul, "each side of *");
    case LUA_OPIDIV:
      return push_binary(lua, sketch, ftl_div, "each side of //");
    case LUA_OPMOD:
      return push_binary(lua, sketch, ftl_mod, "each side of %");
    case LUA_OPUNM:  // Lua gives the operand twice
      lua_pushinteger(lua, 0);
      lua_replace(lua, 1);
      return push_binary(lua, sketch, ftl_sub, "what follows -");
    default:
      return luaL_error(lua, "an index expression is divided by //");
  }
}

static int arithmetic(lua_State *lua) {
  ftl_sketch *sketch = ftl_sketch_begin(lua);
  int lua_operator = (int)lua_tointeger(lua, lua_upvalueindex(1));
  if (ftl_sketch_is_elementwise(lua, 1) || ftl_sketch_is_elementwise(lua, 2)) {
    return ftl_sketch_term_arithmetic(lua, sketch, lua_operator);
  }
  return index_arithmetic(lua, sketch, lua_operator);
}

void ftl_sketch_set_arithmetic(lua_State *lua) {
  static const struct {
    const char *event;
    int lua_operator;
  } events[] = {{"__add", LUA_OPADD},   {"__sub", LUA_OPSUB}, {"__mul", LUA_OPMUL}, {"__div", LUA_OPDIV},
                {"__idiv", LUA_OPIDIV}, {"__mod", LUA_OPMOD}, {"__unm", LUA_OPUNM}};
  for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
    lua_pushinteger(lua, events[i].lua_operator);
    lua_pushcclosure(lua, arithmetic, 1);
    lua_setfield(lua, -2, events[i].event);
  }
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");
}

int ftl_sketch_min(lua_State *lua) {
  ftl_sketch *sketch = ftl_sketch_begin(lua);
  lua_settop(lua, 3);
  lua_remove(lua, 1);
  return push_binary(lua, sketch, ftl_min, "each argument of k:min");
}

int ftl_sketch_max(lua_State *lua) {
  ftl_sketch *sketch = ftl_sketch_begin(lua);
  lua_settop(lua, 3);
  lua_remove(lua, 1);
  if (!ftl_sketch_is_elementwise(lua, 1) && !ftl_sketch_is_elementwise(lua, 2)) {
    return push_binary(lua, sketch, ftl_max, "each argument of k:max");
  }
  const int args[] = {1, 2};
  ftl_sketch_push_term(lua, sketch, FTL_ELEM_MAX, 2, args);
  return 1;
}

// --- loops: `for i in k:range(lo, hi) do` runs its body once, between the operations that begin and end the loop ---

enum { RANGE_STATE = 1, RANGE_LO, RANGE_HI };  // upvalues
enum { RANGE_NEW = -1 };                       // else the loop's depth, from 0

static bool is_at_most(const ftl_expr_node *nodes, ftl_expr expr, int64_t limit) {
  const ftl_expr_node *node = &nodes[expr];
  if (node->kind == FTL_EXPR_MIN) return is_at_most(nodes, node->a, limit) || is_at_most(nodes, node->b, limit);
  return node->kind == FTL_EXPR_CONST && node->value <= limit;
}

// A range that ends at the least of a number and one more than its begin, or less, is a condition in the source.
static bool is_condition(const ftl_expr_node *nodes, ftl_expr lo, ftl_expr hi) {
  bool is_clamped = nodes[lo].kind == FTL_EXPR_CONST && nodes[hi].kind == FTL_EXPR_MIN;
  return is_clamped && is_at_most(nodes, hi, nodes[lo].value + 1);
}

static int range_begin(lua_State *lua, ftl_sketch *sketch) {
  ftl_expr lo = ftl_sketch_to_expr(lua, sketch, lua_upvalueindex(RANGE_LO), "the begin of a range");
  ftl_expr hi = ftl_sketch_to_expr(lua, sketch, lua_upvalueindex(RANGE_HI), "the end of a range");
  const ftl_expr_node *nodes = ftl_sketch_program(sketch)->exprs;
  bool is_known = nodes[lo].kind == FTL_EXPR_CONST && nodes[hi].kind == FTL_EXPR_CONST;
  if (is_known && nodes[lo].value >= nodes[hi].value) return 0;  // empty whatever the CTA: no code
  ftl_sketch_role(lua, sketch);
  bool is_once = is_condition(nodes, lo, hi);
  int32_t loop_var = is_once ? ftl_loop_once(sketch->builder, lo, hi) : ftl_loop(sketch->builder, lo, hi);
  ftl_sketch_end(lua, sketch);
  lua_pushinteger(lua, sketch->num_open_loops);
  lua_replace(lua, lua_upvalueindex(RANGE_STATE));
  const ftl_tile_program *program = ftl_sketch_program(sketch);
  sketch->open_loop_lines[sketch->num_open_loops++] = program->ops[program->num_ops - 1].source_line;
  ftl_sketch_push_expr(lua, sketch, ftl_loop_value(sketch->builder, loop_var));
  return 1;
}

static int range_next(lua_State *lua) {
  ftl_sketch *sketch = ftl_sketch_begin(lua);
  lua_Integer depth = lua_tointeger(lua, lua_upvalueindex(RANGE_STATE));
  if (depth == RANGE_NEW) return range_begin(lua, sketch);
  if (depth != sketch->num_open_loops - 1) {
    return luaL_error(lua,
                      "the loop of line %d was left before its end: a loop of a kernel has no break, goto or return",
                      sketch->open_loop_lines[sketch->num_open_loops > 0 ? sketch->num_open_loops - 1 : 0]);
  }
  sketch->num_open_loops--;
  ftl_end_loop(sketch->builder);
  ftl_sketch_end(lua, sketch);
  return 0;
}

int ftl_sketch_range(lua_State *lua) {
  ftl_sketch *sketch = ftl_sketch_begin(lua);
  lua_settop(lua, 3);
  ftl_sketch_to_expr(lua, sketch, 2, "the begin of a range");
  ftl_sketch_to_expr(lua, sketch, 3, "the end of a range");
  lua_pushinteger(lua, RANGE_NEW);
  lua_pushvalue(lua, 2);
  lua_pushvalue(lua, 3);
  lua_pushcclosure(lua, range_next, 3);
  return 1;
}

void ftl_lua_open_sketch_expr(lua_State *lua) {
  luaL_newmetatable(lua, ftl_lua_expr_type);
  ftl_sketch_set_arithmetic(lua);
  lua_pop(lua, 1);
}
