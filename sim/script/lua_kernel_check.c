// kernel:check{ …, reference = { o = function(t, head, row) … end }, tolerance = x }: runs the tile program on the CPU
// and compares each row of its outputs with what the reference gives.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <lauxlib.h>

#include "script/lua_kernel.h"
#include "script/lua_module.h"
#include "script/lua_sketch.h"
#include "script/sandbox.h"
#include "tile/interpreter.h"

static const char *const numbers_type = "foretile.numbers";
static const char *const report_type = "foretile.check_report";

enum { MAX_DIMS = 4, ELEMENTS_PER_STEP = 16 };

// The numbers of one tensor, laid out by its strides.
typedef struct numbers {
  ftl_tensor tensor;
  int num_dims;  // as coordinates: batch, head, row, column, the leading ones left out
  float x[];
} numbers;

// --- tensors as a reference sees them: t.q(head, row, column), t.q:row(head, row) ---

static int64_t extent_of(const ftl_tensor *tensor, int dim) {
  const int64_t extents[MAX_DIMS] = {tensor->num_batches, tensor->num_heads, tensor->num_rows, tensor->num_columns};
  return extents[dim];
}

static int64_t element_of(const ftl_tensor *tensor, const int64_t *at) {
  return at[0] * tensor->batch_stride + at[1] * tensor->head_stride + at[2] * tensor->row_stride + at[3];
}

// The leading dimensions of extent 1 need no coordinate, but rows and columns do.
static int num_dims_of(const ftl_tensor *tensor) { return tensor->num_batches > 1 ? 4 : tensor->num_heads > 1 ? 3 : 2; }

// Coordinates from stack index 2 on, of a row or of an element. Leading ones that the tensor does not need may be
// given: its own tiles have them.
static void get_coordinates(lua_State *lua, const numbers *n, bool of_row, int64_t *at) {
  static const char *const names[] = {"batch", "head", "row", "column"};
  // Of one column the row is the element.
  int last = of_row || (n->tensor.num_columns == 1 && lua_gettop(lua) == n->num_dims) ? MAX_DIMS - 1 : MAX_DIMS;
  int count = lua_gettop(lua) - 1, least = n->num_dims - (MAX_DIMS - last);
  if (count < least || count > last) {
    luaL_error(lua, "%s takes %d coordinates; here are %d", n->tensor.name, least, count);
  }
  memset(at, 0, sizeof *at * MAX_DIMS);
  for (int dim = last - count; dim < last; dim++)
    at[dim] = ftl_sketch_integer(lua, 2 + dim - (last - count), names[dim], 0, extent_of(&n->tensor, dim) - 1);
}

static int numbers_call(lua_State *lua) {
  const numbers *n = luaL_checkudata(lua, 1, numbers_type);
  int64_t at[MAX_DIMS];
  get_coordinates(lua, n, false, at);
  lua_pushnumber(lua, (lua_Number)n->x[element_of(&n->tensor, at)]);
  return 1;
}

static int numbers_row(lua_State *lua) {
  const numbers *n = luaL_checkudata(lua, 1, numbers_type);
  int64_t at[MAX_DIMS];
  get_coordinates(lua, n, true, at);
  int64_t first = element_of(&n->tensor, at), count = n->tensor.num_columns;
  if (count > INT32_MAX) return luaL_error(lua, "a row of %s is too long", n->tensor.name);
  ftl_sandbox_charge(lua, count);
  lua_createtable(lua, (int)count, 0);
  for (int64_t c = 0; c < count; c++) {
    lua_pushnumber(lua, (lua_Number)n->x[first + c]);
    lua_rawseti(lua, -2, (lua_Integer)c + 1);
  }
  return 1;
}

static int numbers_index(lua_State *lua) {
  const numbers *n = luaL_checkudata(lua, 1, numbers_type);
  const char *name = lua_type(lua, 2) == LUA_TSTRING ? lua_tostring(lua, 2) : "";
  if (strcmp(name, "rows") == 0) return lua_pushinteger(lua, (lua_Integer)n->tensor.num_rows), 1;
  if (strcmp(name, "columns") == 0) return lua_pushinteger(lua, (lua_Integer)n->tensor.num_columns), 1;
  return ftl_lua_method(lua, "a tensor's numbers");
}

// --- inputs ---

// Uniform in [-1, 1): splitmix64 of the tensor's and the element's numbers.
static float random_number(uint64_t tensor, uint64_t element) {
  uint64_t z = (tensor << 40) + element + 1;
  z *= UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  z ^= z >> 31;
  return (float)(z >> 40) * 0x1p-23f - 1.0f;
}

static void fill_random(numbers *n, int32_t tensor_idx, int64_t num_elements) {
  for (int64_t i = 0; i < num_elements; i++)
    n->x[i] = ftl_dtype_round(n->tensor.dtype, random_number((uint64_t)tensor_idx, (uint64_t)i));
}

static bool next_element(const ftl_tensor *tensor, int64_t *at, int last_dim) {
  for (int dim = last_dim; dim >= 0; dim--) {
    if (++at[dim] < extent_of(tensor, dim)) return true;
    at[dim] = 0;
  }
  return false;
}

// Pushes the coordinates that a function of the script gets; how many.
static int push_coordinates(lua_State *lua, const numbers *n, const int64_t *at, bool of_row) {
  int last = of_row ? MAX_DIMS - 1 : MAX_DIMS, count = 0;
  for (int dim = MAX_DIMS - n->num_dims; dim < last; dim++, count++) lua_pushinteger(lua, (lua_Integer)at[dim]);
  return count;
}

// Each element from the function at the top.
static void fill_by_function(lua_State *lua, numbers *n) {
  int64_t at[MAX_DIMS] = {0};
  do {
    lua_pushvalue(lua, -1);
    int count = push_coordinates(lua, n, at, false);
    lua_call(lua, count, 1);
    if (lua_type(lua, -1) != LUA_TNUMBER) {
      luaL_error(lua, "the input %s must give a number for each element, not %s", n->tensor.name,
                 ftl_sketch_type_name(lua, -1));
    }
    n->x[element_of(&n->tensor, at)] = ftl_dtype_round(n->tensor.dtype, (float)lua_tonumber(lua, -1));
    lua_pop(lua, 1);
  } while (next_element(&n->tensor, at, MAX_DIMS - 1));
}

// Field `name` of field `list` of the question at 2; nil where either is not there.
static int get_nested(lua_State *lua, const char *list, const char *name) {
  int type = lua_getfield(lua, 2, list);
  if (type != LUA_TNIL && type != LUA_TTABLE) luaL_error(lua, "%s must be a table of functions by name", list);
  if (type == LUA_TTABLE) {
    type = lua_getfield(lua, -1, name);
    lua_remove(lua, -2);
  }
  return type;
}

// Pushes the numbers of tensor `tensor_idx`.
static numbers *push_numbers(lua_State *lua, const ftl_tile_program *program, int32_t tensor_idx) {
  const ftl_tensor *tensor = &program->tensors[tensor_idx];
  int64_t num_elements = tensor->size_bytes / ftl_dtype_bytes(tensor->dtype);
  ftl_sandbox_charge(lua, num_elements / ELEMENTS_PER_STEP);
  numbers *n = lua_newuserdatauv(lua, sizeof *n + sizeof(float) * (size_t)num_elements, 0);
  n->tensor = *tensor;
  n->num_dims = num_dims_of(tensor);
  luaL_setmetatable(lua, numbers_type);
  for (int64_t i = 0; i < num_elements; i++) n->x[i] = NAN;  // what nobody stores does not go unnoticed
  if (tensor->use != FTL_TENSOR_INPUT || tensor->table != NULL) return n;
  int type = get_nested(lua, "inputs", tensor->name);
  if (type == LUA_TFUNCTION) {
    fill_by_function(lua, n);
  } else if (type == LUA_TNIL) {
    fill_random(n, tensor_idx, num_elements);
  } else {
    luaL_error(lua, "the input %s must be a function of an element's coordinates, not %s", tensor->name,
               ftl_sketch_type_name(lua, -1));
  }
  lua_pop(lua, 1);
  return n;
}

// --- comparison ---

typedef struct difference {
  double error, got, wanted;  // the largest, and where
  int64_t at[MAX_DIMS];
} difference;

static double distance(double got, double wanted) {
  if (got == wanted) return 0;  // infinities too
  double d = fabs(got - wanted);
  return isnan(d) ? (double)INFINITY : d;
}

// What the reference gave for a row, at the top, is a list of it, or the number of a single column.
static void check_row(lua_State *lua, const numbers *n) {
  bool is_list = lua_type(lua, -1) == LUA_TTABLE;
  int64_t columns = n->tensor.num_columns, given = is_list ? (int64_t)lua_rawlen(lua, -1) : 1;
  if (given != columns) {
    luaL_error(lua, "the reference of %s must give a row of %I numbers, not %I", n->tensor.name, (lua_Integer)columns,
               (lua_Integer)given);
  }
}

// Element `c` of what the reference gave for a row, at the top: a list, or the number itself.
static double wanted_element(lua_State *lua, const numbers *n, int64_t c) {
  bool is_list = lua_type(lua, -1) == LUA_TTABLE;
  if (is_list) {
    lua_rawgeti(lua, -1, (lua_Integer)c + 1);
  } else {
    lua_pushvalue(lua, -1);
  }
  if (lua_type(lua, -1) != LUA_TNUMBER) {
    luaL_error(lua, "the reference of %s must give a row of %d numbers", n->tensor.name, (int)n->tensor.num_columns);
  }
  double wanted = lua_tonumber(lua, -1);
  lua_pop(lua, 1);
  return wanted;
}

// With the function at the top, and the tensors at stack index `tensors`.
static difference compare(lua_State *lua, const numbers *n, int tensors) {
  difference largest = {.error = -1};
  int64_t at[MAX_DIMS] = {0};
  do {
    lua_pushvalue(lua, -1);
    lua_pushvalue(lua, tensors);
    int count = push_coordinates(lua, n, at, true);
    lua_call(lua, 1 + count, 1);
    ftl_sandbox_charge(lua, n->tensor.num_columns);
    check_row(lua, n);
    for (at[3] = 0; at[3] < n->tensor.num_columns; at[3]++) {
      double got = (double)n->x[element_of(&n->tensor, at)], wanted = wanted_element(lua, n, at[3]);
      double error = distance(got, wanted);
      if (error <= largest.error) continue;
      largest = (difference){.error = error, .got = got, .wanted = wanted};
      memcpy(largest.at, at, sizeof at);
    }
    at[3] = 0;
    lua_pop(lua, 1);
  } while (next_element(&n->tensor, at, MAX_DIMS - 2));
  return largest;
}

// Pushes "o(1, 5, 3)".
static void push_place(lua_State *lua, const numbers *n, const difference *d) {
  lua_pushfstring(lua, "%s(", n->tensor.name);
  for (int dim = MAX_DIMS - n->num_dims; dim < MAX_DIMS; dim++) {
    lua_pushfstring(lua, "%s%I%s", lua_tostring(lua, -1), (lua_Integer)d->at[dim], dim == MAX_DIMS - 1 ? ")" : ", ");
    lua_remove(lua, -2);
  }
}

// Compares output `n`, with its reference at the top, and writes it into the report at stack index `report`.
static double report_output(lua_State *lua, const char *kernel, const numbers *n, int tensors, int report,
                            double tolerance) {
  difference d = compare(lua, n, tensors);
  char error_text[32], tolerance_text[32];
  push_place(lua, n, &d);
  lua_pushfstring(lua, "%s is %f, the reference %f", lua_tostring(lua, -1), d.got, d.wanted);
  snprintf(error_text, sizeof error_text, "%.3g", d.error);
  snprintf(tolerance_text, sizeof tolerance_text, "%.3g", tolerance);
  if (!(d.error <= tolerance)) {
    luaL_error(lua, "%s: %s: the error %s is above the tolerance %s", kernel, lua_tostring(lua, -1), error_text,
               tolerance_text);
  }
  lua_getfield(lua, report, "text");
  lua_pushfstring(lua, "%s%s%s: %s within %s of the reference (tolerance %s)", lua_tostring(lua, -1),
                  lua_rawlen(lua, -1) > 0 ? "\n" : "", kernel, n->tensor.name, error_text, tolerance_text);
  lua_setfield(lua, report, "text");
  lua_getfield(lua, report, "errors");
  lua_pushnumber(lua, d.error);
  lua_setfield(lua, -2, n->tensor.name);
  lua_pop(lua, 4);
  return d.error;
}

// --- the check ---

static double get_tolerance(lua_State *lua) {
  lua_getfield(lua, 2, "tolerance");
  double tolerance = lua_type(lua, -1) == LUA_TNUMBER ? lua_tonumber(lua, -1) : -1;
  if (!(tolerance >= 0))
    luaL_error(lua, "kernel:check needs tolerance, the largest |got - wanted| that is right, 0 or more");
  lua_pop(lua, 1);
  return tolerance;
}

// A name among the inputs or the references that is no tensor of the kernel of this use.
static void check_names(lua_State *lua, const ftl_tile_program *program, const char *list, ftl_tensor_use use) {
  if (lua_getfield(lua, 2, list) == LUA_TTABLE) {
    lua_pushnil(lua);
    while (lua_next(lua, -2) != 0) {
      bool is_known = false;
      const char *name = lua_type(lua, -2) == LUA_TSTRING ? lua_tostring(lua, -2) : "?";
      for (int32_t i = 0; i < program->num_tensors; i++) {
        const ftl_tensor *tensor = &program->tensors[i];
        is_known = is_known || (tensor->use == use && tensor->table == NULL && strcmp(tensor->name, name) == 0);
      }
      if (!is_known)
        luaL_error(lua, "%s: %s has no %s of this name", name, program->name,
                   use == FTL_TENSOR_INPUT ? "input" : "output");
      lua_pop(lua, 1);
    }
  }
  lua_pop(lua, 1);
}

// Pushes the tensors by name; x[i] are their numbers.
static void push_tensors(lua_State *lua, const ftl_tile_program *program, float **x) {
  lua_createtable(lua, 0, program->num_tensors);
  for (int32_t i = 0; i < program->num_tensors; i++) {
    x[i] = push_numbers(lua, program, i)->x;
    lua_setfield(lua, -2, program->tensors[i].name);
  }
}

static void run(lua_State *lua, const ftl_tile_program *program, float *const *x) {
  ftl_sandbox *sandbox = ftl_sandbox_of(lua);
  int64_t steps = ftl_sandbox_steps_left(sandbox), left = steps;
  ftl_error error;
  ftl_status status = ftl_interpret_within(program, x, NULL, &left, &error);
  if (status != FTL_OK) ftl_lua_raise_placed(lua, &error);
  ftl_sandbox_charge(lua, steps - left);
}

// Pushes the report; outputs whose reference is false are left out.
static void compare_outputs(lua_State *lua, const ftl_tile_program *program, int tensors) {
  double tolerance = get_tolerance(lua), largest = 0;
  lua_createtable(lua, 0, 4);
  int report = lua_gettop(lua);
  lua_pushliteral(lua, "");
  lua_setfield(lua, report, "text");
  lua_newtable(lua);
  lua_setfield(lua, report, "errors");
  for (int32_t i = 0; i < program->num_tensors; i++) {
    if (program->tensors[i].use != FTL_TENSOR_OUTPUT) continue;
    const char *name = program->tensors[i].name;
    lua_getfield(lua, tensors, name);
    const numbers *n = lua_touserdata(lua, -1);
    int type = get_nested(lua, "reference", name);
    bool is_left_out = type == LUA_TBOOLEAN && !lua_toboolean(lua, -1);
    if (type != LUA_TFUNCTION && !is_left_out) {
      luaL_error(lua, "reference.%s must be function(t, …) of a row's coordinates, or false to leave the output out",
                 name);
    }
    double error = is_left_out ? 0 : report_output(lua, program->name, n, tensors, report, tolerance);
    if (error > largest) largest = error;
    lua_settop(lua, report);
  }
  lua_pushnumber(lua, largest);
  lua_setfield(lua, report, "max_error");
  luaL_setmetatable(lua, report_type);
}

static int report_tostring(lua_State *lua) {
  lua_getfield(lua, 1, "text");
  return 1;
}

static void open_types(lua_State *lua) {
  const luaL_Reg methods[] = {{"row", numbers_row}, {NULL, NULL}};
  if (luaL_newmetatable(lua, numbers_type)) {
    lua_pushcfunction(lua, numbers_call);
    lua_setfield(lua, -2, "__call");
    lua_newtable(lua);
    luaL_setfuncs(lua, methods, 0);
    lua_pushcclosure(lua, numbers_index, 1);
    lua_setfield(lua, -2, "__index");
    lua_pushboolean(lua, 0);
    lua_setfield(lua, -2, "__metatable");
  }
  if (luaL_newmetatable(lua, report_type)) {
    lua_pushcfunction(lua, report_tostring);
    lua_setfield(lua, -2, "__tostring");
    lua_pushboolean(lua, 0);
    lua_setfield(lua, -2, "__metatable");
  }
  lua_pop(lua, 2);
}

int ftl_lua_kernel_check(lua_State *lua) {
  static const char *const others[] = {"inputs", "reference", "tolerance", NULL};
  const ftl_lua_kernel *kernel = ftl_lua_check_kernel(lua, 1);
  lua_settop(lua, 2);
  luaL_checktype(lua, 2, LUA_TTABLE);
  open_types(lua);
  ftl_lua_check_kernel_fields(lua, kernel, 2, others);
  get_tolerance(lua);
  ftl_own_param params[FTL_MAX_OWN_PARAMS];
  ftl_lua_get_own_params(lua, kernel, 2, params);
  const ftl_user_kernel *built = ftl_lua_build_kernel(lua, 1, params);
  if (built->program == NULL) return luaL_error(lua, "%s is infeasible: %s", kernel->name, built->reason);
  check_names(lua, built->program, "inputs", FTL_TENSOR_INPUT);
  check_names(lua, built->program, "reference", FTL_TENSOR_OUTPUT);
  float *x[FTL_TILE_MAX_TENSORS];
  push_tensors(lua, built->program, x);
  int tensors = lua_gettop(lua);
  run(lua, built->program, x);
  compare_outputs(lua, built->program, tensors);
  return 1;
}
