// Elementwise terms: what register tiles are set to. s:set(k:exp2(s * scale + shift)) becomes an FMA and an EXP2 in s.
//
// A term is a tree that is worked out in its destination, from the innermost operation outwards, so each operation has
// at most one operand that is itself a term, and what the destination held is read by the innermost one only. A product
// that is added to something is one FMA, as compilers make it.
#include <math.h>

#include <lauxlib.h>

#include "script/lua_sketch.h"

enum { MAX_ARGS = 3, MAX_DEPTH = 32 };

typedef enum arg_kind { ARG_NUMBER, ARG_VALUE, ARG_TERM } arg_kind;

typedef struct arg {
  arg_kind kind;
  float number;
  int32_t value;
} arg;

// Arguments that are terms are its user values of the same number, from 1.
typedef struct term {
  int64_t serial;
  ftl_elem_fn fn;
  int num_args, depth;
  arg args[MAX_ARGS];
} term;

bool ftl_sketch_is_elementwise(lua_State *lua, int index) {
  return luaL_testudata(lua, index, ftl_lua_value_type) != NULL ||
         luaL_testudata(lua, index, ftl_lua_term_type) != NULL;
}

static arg to_arg(lua_State *lua, ftl_sketch *sketch, int index) {
  if (lua_type(lua, index) == LUA_TNUMBER) return (arg){.kind = ARG_NUMBER, .number = (float)lua_tonumber(lua, index)};
  const ftl_lua_object *value = ftl_sketch_test(lua, sketch, index, ftl_lua_value_type);
  if (value != NULL) return (arg){.kind = ARG_VALUE, .value = value->idx};
  ftl_sketch_check(lua, sketch, index, ftl_lua_term_type, "a number, a register tile or an elementwise term");
  return (arg){.kind = ARG_TERM};
}

static int depth_of(lua_State *lua, int index) {
  const term *t = lua_touserdata(lua, index);
  return t->depth;
}

void ftl_sketch_push_term(lua_State *lua, ftl_sketch *sketch, ftl_elem_fn fn, int num_args, const int *args) {
  term t = {.serial = sketch->serial, .fn = fn, .num_args = num_args, .depth = 1};
  for (int i = 0; i < num_args; i++) {
    t.args[i] = to_arg(lua, sketch, args[i]);
    if (t.args[i].kind == ARG_TERM && depth_of(lua, args[i]) >= t.depth) t.depth = depth_of(lua, args[i]) + 1;
  }
  if (t.depth > MAX_DEPTH) luaL_error(lua, "a term of more than %d operations: set a value in between", MAX_DEPTH);
  term *pushed = ftl_sketch_push(lua, sketch, ftl_lua_term_type, sizeof *pushed);
  *pushed = t;
  for (int i = 0; i < num_args; i++) {
    if (t.args[i].kind != ARG_TERM) continue;
    lua_pushvalue(lua, args[i]);
    lua_setiuservalue(lua, -2, i + 1);
  }
}

// --- operators ---

static bool is_product(lua_State *lua, int index) {
  const term *t = luaL_testudata(lua, index, ftl_lua_term_type);
  return t != NULL && t->fn == FTL_ELEM_MUL;
}

// Pushes argument `i` of the term at `index`.
static void push_arg(lua_State *lua, ftl_sketch *sketch, int index, int i) {
  const term *t = lua_touserdata(lua, index);
  if (t->args[i].kind == ARG_NUMBER) {
    lua_pushnumber(lua, (lua_Number)t->args[i].number);
  } else if (t->args[i].kind == ARG_VALUE) {
    ftl_lua_object *value = ftl_sketch_push(lua, sketch, ftl_lua_value_type, sizeof *value);
    value->idx = ((const term *)lua_touserdata(lua, index))->args[i].value;
  } else {
    lua_getiuservalue(lua, index, i + 1);
  }
}

// product * 1 + added, as an FMA of what the product multiplies.
static int push_fma(lua_State *lua, ftl_sketch *sketch, int product, int added) {
  push_arg(lua, sketch, product, 0);
  push_arg(lua, sketch, product, 1);
  const int args[] = {lua_gettop(lua) - 1, lua_gettop(lua), added};
  ftl_sketch_push_term(lua, sketch, FTL_ELEM_FMA, 3, args);
  return 1;
}

static int push_plain(lua_State *lua, ftl_sketch *sketch, ftl_elem_fn fn) {
  const int args[] = {1, 2};
  ftl_sketch_push_term(lua, sketch, fn, 2, args);
  return 1;
}

static int push_sum(lua_State *lua, ftl_sketch *sketch) {
  if (is_product(lua, 1)) return push_fma(lua, sketch, 1, 2);
  return is_product(lua, 2) ? push_fma(lua, sketch, 2, 1) : push_plain(lua, sketch, FTL_ELEM_ADD);
}

static int push_difference(lua_State *lua, ftl_sketch *sketch) {
  if (!is_product(lua, 1) || lua_type(lua, 2) != LUA_TNUMBER) return push_plain(lua, sketch, FTL_ELEM_SUB);
  lua_pushnumber(lua, -lua_tonumber(lua, 2));
  lua_replace(lua, 2);
  return push_fma(lua, sketch, 1, 2);
}

// By a number: a product. By a value: element by element.
static int push_quotient(lua_State *lua, ftl_sketch *sketch) {
  if (lua_type(lua, 2) != LUA_TNUMBER) return push_plain(lua, sketch, FTL_ELEM_DIV_FULL);
  if (lua_tonumber(lua, 2) == 0) return luaL_error(lua, "a register tile is divided by 0");
  lua_pushnumber(lua, 1 / lua_tonumber(lua, 2));
  lua_replace(lua, 2);
  return push_plain(lua, sketch, FTL_ELEM_MUL);
}

int ftl_sketch_term_arithmetic(lua_State *lua, ftl_sketch *sketch, int lua_operator) {
  lua_settop(lua, 2);
  switch (lua_operator) {
    case LUA_OPADD:
      return push_sum(lua, sketch);
    case LUA_OPSUB:
      return push_difference(lua, sketch);
    case LUA_OPMUL:
      return push_plain(lua, sketch, FTL_ELEM_MUL);
    case LUA_OPDIV:
      return push_quotient(lua, sketch);
    case LUA_OPUNM:
      lua_pushnumber(lua, -1);
      lua_replace(lua, 2);
      return push_plain(lua, sketch, FTL_ELEM_MUL);
    default:
      return luaL_error(lua, "// and %% are for index expressions, not for register tiles");
  }
}

// --- functions ---

static int push_function(lua_State *lua, ftl_elem_fn fn, int num_args) {
  ftl_sketch *sketch = ftl_sketch_begin(lua);
  lua_settop(lua, 1 + num_args);
  const int args[] = {2, 3, 4};
  ftl_sketch_push_term(lua, sketch, fn, num_args, args);
  return 1;
}

static int exp2_of(lua_State *lua) { return push_function(lua, FTL_ELEM_EXP2, 1); }
static int log2_of(lua_State *lua) { return push_function(lua, FTL_ELEM_LOG2, 1); }
static int log_of(lua_State *lua) { return push_function(lua, FTL_ELEM_LOG, 1); }
static int recip_of(lua_State *lua) { return push_function(lua, FTL_ELEM_RECIP, 1); }
static int zero_if_neg_inf_of(lua_State *lua) { return push_function(lua, FTL_ELEM_ZERO_IF_NEG_INF, 1); }
static int fma_of(lua_State *lua) { return push_function(lua, FTL_ELEM_FMA, 3); }

const luaL_Reg ftl_sketch_functions[] = {{"exp2", exp2_of}, {"log2", log2_of},
                                         {"log", log_of},   {"recip", recip_of},
                                         {"fma", fma_of},   {"zero_if_neg_inf", zero_if_neg_inf_of},
                                         {NULL, NULL}};

// --- working a term out ---

static ftl_operand operand_of(arg a, int32_t dst) {
  if (a.kind == ARG_NUMBER) return ftl_immediate(a.number);
  return ftl_value_operand(a.kind == ARG_TERM ? dst : a.value);
}

static void check_args(lua_State *lua, const term *t, const char *dst_name, int32_t dst) {
  int num_terms = 0;
  for (int i = 0; i < t->num_args; i++) num_terms += t->args[i].kind == ARG_TERM;
  if (num_terms > 1) {
    luaL_error(lua, "two parts of this need a place of their own: set one to a value first, %s holds the other",
               dst_name);
  }
  for (int i = 0; i < t->num_args; i++)
    if (num_terms > 0 && t->args[i].kind == ARG_VALUE && t->args[i].value == dst) {
      luaL_error(lua, "%s is needed here and was overwritten by an inner part: set another value", dst_name);
    }
}

// The term at the top of the stack.
static void assign_term(lua_State *lua, ftl_sketch *sketch, int32_t dst) {
  const term *t = lua_touserdata(lua, -1);
  check_args(lua, t, ftl_sketch_program(sketch)->values[dst].name, dst);
  luaL_checkstack(lua, 2, "a term");
  for (int i = 0; i < t->num_args; i++) {
    if (t->args[i].kind != ARG_TERM) continue;
    lua_getiuservalue(lua, -1, i + 1);
    assign_term(lua, sketch, dst);
    lua_pop(lua, 1);
  }
  ftl_operand operands[MAX_ARGS] = {ftl_immediate(0), ftl_immediate(0), ftl_immediate(0)};
  for (int i = 0; i < t->num_args; i++) operands[i] = operand_of(t->args[i], dst);
  ftl_elem(sketch->builder, t->fn, dst, operands[0], operands[1], operands[2]);
  ftl_sketch_end(lua, sketch);
}

void ftl_sketch_assign(lua_State *lua, ftl_sketch *sketch, int32_t dst, int index) {
  arg a = to_arg(lua, sketch, index);
  if (a.kind == ARG_NUMBER) {
    ftl_fill(sketch->builder, dst, a.number);
  } else if (a.kind == ARG_VALUE) {
    ftl_unary(sketch->builder, FTL_ELEM_COPY, dst, a.value);
  } else {
    lua_pushvalue(lua, index);
    assign_term(lua, sketch, dst);
    lua_pop(lua, 1);
    return;
  }
  ftl_sketch_end(lua, sketch);
}

void ftl_lua_open_sketch_term(lua_State *lua) {
  luaL_newmetatable(lua, ftl_lua_term_type);
  ftl_sketch_set_arithmetic(lua);
  lua_pop(lua, 1);
}
