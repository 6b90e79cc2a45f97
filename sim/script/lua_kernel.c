// ft.kernel([name,] [defaults,] function(k, p) … end).
#include "script/lua_kernel.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "report/column.h"
#include "script/lua_module.h"
#include "script/lua_sketch.h"

static const char *const kernel_type = "foretile.kernel";
static const char *const params_type = "foretile.kernel_params";

const ftl_lua_kernel *ftl_lua_test_kernel(lua_State *lua, int index) { return luaL_testudata(lua, index, kernel_type); }

const ftl_lua_kernel *ftl_lua_check_kernel(lua_State *lua, int index) {
  return luaL_checkudata(lua, index, kernel_type);
}

// --- parameters ---

static void set_number(lua_State *lua, int index, const char *name, ftl_own_param *param) {
  int is_integer = 0;
  lua_Integer integer = lua_tointegerx(lua, index, &is_integer);
  param->number = lua_tonumber(lua, index);
  if (!isfinite(param->number)) luaL_error(lua, "%s must be a finite number", name);
  if (is_integer) {
    snprintf(param->text, sizeof param->text, "%lld", (long long)integer);
  } else {
    snprintf(param->text, sizeof param->text, "%.17g", param->number);
  }
}

static void set_text(lua_State *lua, int index, const char *name, ftl_own_param *param) {
  static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-";
  size_t size = 0;
  const char *text = lua_tolstring(lua, index, &size);
  if (size == 0 || size >= sizeof param->text || strspn(text, allowed) != size) {
    luaL_error(lua, "%s must be a name of 1 to %d letters, digits and _ . + -", name, (int)sizeof param->text - 1);
  }
  memcpy(param->text, text, size + 1);
}

// The value at `index` as a parameter of this name.
static ftl_own_param param_of(lua_State *lua, const char *name, int index) {
  ftl_own_param param = {.kind = FTL_OWN_NUMBER};
  snprintf(param.name, sizeof param.name, "%s", name);
  switch (lua_type(lua, index)) {
    case LUA_TNUMBER:
      set_number(lua, index, name, &param);
      break;
    case LUA_TBOOLEAN:
      param.kind = FTL_OWN_BOOL;
      snprintf(param.text, sizeof param.text, "%s", lua_toboolean(lua, index) ? "true" : "false");
      break;
    case LUA_TSTRING:
      param.kind = FTL_OWN_NAME;
      set_text(lua, index, name, &param);
      break;
    default:
      luaL_error(lua, "%s must be a number, a name, or true or false, not a %s", name, luaL_typename(lua, index));
  }
  return param;
}

ftl_own_param ftl_lua_own_param(lua_State *lua, const ftl_lua_kernel *kernel, int param, int index) {
  static const char *const kinds[] = {"a number", "true or false", "a name"};
  const ftl_own_param *wanted = &kernel->params[param];
  ftl_own_param value = param_of(lua, wanted->name, index);
  if (value.kind != wanted->kind) {
    luaL_error(lua, "%s must be %s, as its default %s is", wanted->name, kinds[wanted->kind], wanted->text);
  }
  return value;
}

void ftl_lua_push_own_param(lua_State *lua, const ftl_own_param *param) {
  if (param->kind == FTL_OWN_NUMBER) {
    lua_stringtonumber(lua, param->text);  // an integer stays one
  } else if (param->kind == FTL_OWN_BOOL) {
    lua_pushboolean(lua, strcmp(param->text, "true") == 0);
  } else {
    lua_pushstring(lua, param->text);
  }
}

// A column of tables that is no parameter would hide, or be hidden by, a parameter of its name.
static void check_param_name(lua_State *lua, const char *name) {
  static const char *const parts[] = {
      "feasible", "params", "kernels",   "metrics",  "wall_s", "error_bound_cycles_pct", "error_bound_hbm_bytes_pct",
      "where",    "inputs", "reference", "tolerance"};
  ftl_error error;
  ftl_column column;
  if (ftl_user_kernel_check_param(name, &error) != FTL_OK) ftl_lua_raise(lua, &error);
  bool is_taken = ftl_column_find(name, &column, &error) == FTL_OK && column.kind != FTL_COLUMN_PARAM;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) is_taken = is_taken || strcmp(name, parts[i]) == 0;
  if (is_taken) luaL_error(lua, "a result has a %s already; the parameter needs another name", name);
}

static int compare_params(const void *a, const void *b) {
  const ftl_own_param *x = a, *y = b;
  return strcmp(x->name, y->name);
}

static void get_defaults(lua_State *lua, int index, ftl_lua_kernel *kernel) {
  lua_pushnil(lua);
  while (lua_next(lua, index) != 0) {
    if (lua_type(lua, -2) != LUA_TSTRING) luaL_error(lua, "parameters are written name = value");
    const char *name = lua_tostring(lua, -2);
    if (kernel->num_params == FTL_MAX_OWN_PARAMS)
      luaL_error(lua, "a kernel has at most %d parameters", FTL_MAX_OWN_PARAMS);
    check_param_name(lua, name);
    kernel->params[kernel->num_params++] = param_of(lua, name, lua_gettop(lua));
    lua_pop(lua, 1);
  }
  qsort(kernel->params, (size_t)kernel->num_params, sizeof *kernel->params, compare_params);
}

void ftl_lua_get_own_params(lua_State *lua, const ftl_lua_kernel *kernel, int index, ftl_own_param *params) {
  for (int i = 0; i < kernel->num_params; i++) {
    params[i] = kernel->params[i];
    if (lua_getfield(lua, index, params[i].name) != LUA_TNIL) {
      params[i] = ftl_lua_own_param(lua, kernel, i, lua_gettop(lua));
    }
    lua_pop(lua, 1);
  }
}

// --- fields of a question ---

static bool is_field(const ftl_lua_kernel *kernel, const char *name, const char *const *others) {
  for (int i = 0; i < kernel->num_params; i++)
    if (strcmp(kernel->params[i].name, name) == 0) return true;
  for (; *others != NULL; others++)
    if (strcmp(*others, name) == 0) return true;
  int param = ftl_param_find(name);
  return param >= 0 && (ftl_user_kernel_accepts() >> param & 1) != 0;
}

static void consider(const char *name, const char *candidate, const char **nearest, int *least) {
  int distance = ftl_edit_distance(name, candidate);
  if (distance >= *least) return;
  *least = distance;
  *nearest = candidate;
}

static const char *nearest_field(const ftl_lua_kernel *kernel, const char *name) {
  const char *nearest = "";
  int least = INT32_MAX;
  for (int i = 0; i < kernel->num_params; i++) consider(name, kernel->params[i].name, &nearest, &least);
  for (int i = 0; i < FTL_PARAM_COUNT; i++)
    if (ftl_user_kernel_accepts() >> i & 1) consider(name, ftl_param_get((ftl_param)i)->name, &nearest, &least);
  return nearest;
}

// Of several unknown fields the first by name is reported: Lua's own order differs from run to run.
void ftl_lua_check_kernel_fields(lua_State *lua, const ftl_lua_kernel *kernel, int index, const char *const *others) {
  const char *unknown = NULL;
  lua_pushnil(lua);
  while (lua_next(lua, index) != 0) {
    lua_pop(lua, 1);
    if (lua_type(lua, -1) != LUA_TSTRING) {
      luaL_error(lua, "parameters are written name = value; there is a value without a name");
    }
    const char *name = lua_tostring(lua, -1);
    if (is_field(kernel, name, others)) continue;
    if (unknown == NULL || strcmp(name, unknown) < 0) unknown = name;  // the table keeps it alive
  }
  if (unknown == NULL) return;
  luaL_error(lua, "%s has no parameter \"%s\"; the nearest is %s", kernel->name, unknown,
             nearest_field(kernel, unknown));
}

// --- building ---

// A parameter that the kernel does not have is a mistake, not nil.
static int params_index(lua_State *lua) {
  return luaL_error(lua, "the kernel has no parameter \"%s\"; its parameters are the defaults that ft.kernel was given",
                    luaL_tolstring(lua, 2, NULL));
}

static void push_params_table(lua_State *lua, const ftl_user_kernel *kernel) {
  lua_createtable(lua, 0, kernel->num_params);
  for (int i = 0; i < kernel->num_params; i++) {
    ftl_lua_push_own_param(lua, &kernel->params[i]);
    lua_setfield(lua, -2, kernel->params[i].name);
  }
  luaL_setmetatable(lua, params_type);
}

static ftl_user_kernel *push_user_kernel(lua_State *lua, const ftl_lua_kernel *kernel, const ftl_own_param *params) {
  ftl_user_kernel *built = ftl_lua_push_block(lua, sizeof *built, 1);
  memset(built, 0, sizeof *built);
  memcpy(built->name, kernel->name, sizeof built->name);
  built->num_params = kernel->num_params;
  memcpy(built->params, params, sizeof *params * (size_t)kernel->num_params);
  return built;
}

// A C function of its own, so that the sketch is closed whether it returns or raises. Stack: the kernel's function, a
// pointer to the ftl_user_kernel. Gives the program's memory, or nil.
static int run_sketch(lua_State *lua) {
  ftl_user_kernel *built = lua_touserdata(lua, 2);
  ftl_sketch *sketch = ftl_lua_push_sketch(lua, built);
  lua_toclose(lua, -1);
  lua_pushvalue(lua, 1);
  lua_pushvalue(lua, -2);
  push_params_table(lua, built);
  lua_call(lua, 2, 0);
  if (sketch->is_infeasible) {
    lua_pushnil(lua);
  } else {
    ftl_lua_finish_sketch(lua, sketch);
  }
  return 1;
}

ftl_user_kernel *ftl_lua_build_kernel(lua_State *lua, int index, const ftl_own_param *params) {
  index = lua_absindex(lua, index);
  ftl_user_kernel *built = push_user_kernel(lua, ftl_lua_check_kernel(lua, index), params);
  lua_pushcfunction(lua, run_sketch);
  lua_getiuservalue(lua, index, 1);
  lua_pushlightuserdata(lua, built);
  lua_call(lua, 2, 1);
  lua_setiuservalue(lua, -2, 1);
  ftl_user_kernel_finish(built);
  return built;
}

// --- the kernel ---

static const char *check_name(lua_State *lua, int index) {
  ftl_error error;
  const char *name = lua_tostring(lua, index);
  if (ftl_user_kernel_check_name(name, &error) != FTL_OK) ftl_lua_raise(lua, &error);
  return name;
}

int ftl_lua_new_kernel(lua_State *lua) {
  int at = 1;
  const char *name = "kernel";
  if (lua_type(lua, at) == LUA_TSTRING) name = check_name(lua, at++);
  int defaults = lua_type(lua, at) == LUA_TTABLE ? at++ : 0;
  if (lua_type(lua, at) != LUA_TFUNCTION || lua_gettop(lua) != at) {
    return luaL_error(lua,
                      "ft.kernel takes a name, a table of parameters with their defaults (both may be left out), and "
                      "function(k, p)");
  }
  ftl_lua_kernel *kernel = lua_newuserdatauv(lua, sizeof *kernel, 1);
  memset(kernel, 0, sizeof *kernel);
  luaL_setmetatable(lua, kernel_type);
  snprintf(kernel->name, sizeof kernel->name, "%s", name);
  if (defaults != 0) get_defaults(lua, defaults, kernel);
  lua_pushvalue(lua, at);
  lua_setiuservalue(lua, -2, 1);
  return 1;
}

// kernel:program{ … }: the tile program as text
static int kernel_program(lua_State *lua) {
  static const char *const others[] = {NULL};
  const ftl_lua_kernel *kernel = ftl_lua_check_kernel(lua, 1);
  ftl_own_param params[FTL_MAX_OWN_PARAMS];
  lua_settop(lua, 2);
  if (lua_isnil(lua, 2)) {
    lua_newtable(lua);
    lua_replace(lua, 2);
  }
  luaL_checktype(lua, 2, LUA_TTABLE);
  ftl_lua_check_kernel_fields(lua, kernel, 2, others);
  ftl_lua_get_own_params(lua, kernel, 2, params);
  const ftl_user_kernel *built = ftl_lua_build_kernel(lua, 1, params);
  if (built->program == NULL) return luaL_error(lua, "%s is infeasible: %s", kernel->name, built->reason);
  ftl_text *text = ftl_lua_push_text(lua);
  char *data = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&data, &size);
  if (out == NULL) return luaL_error(lua, "out of memory");
  ftl_tile_program_write(out, built->program);
  fclose(out);
  ftl_text_add_bytes(text, data, size);
  free(data);
  ftl_lua_take_text(lua, text);
  return 1;
}

static int kernel_index(lua_State *lua) {
  const ftl_lua_kernel *kernel = ftl_lua_check_kernel(lua, 1);
  if (lua_type(lua, 2) == LUA_TSTRING && strcmp(lua_tostring(lua, 2), "name") == 0) {
    lua_pushstring(lua, kernel->name);
    return 1;
  }
  return ftl_lua_method(lua, "a kernel");
}

static int kernel_tostring(lua_State *lua) {
  const ftl_lua_kernel *kernel = ftl_lua_check_kernel(lua, 1);
  lua_pushfstring(lua, "kernel %s", kernel->name);
  for (int i = 0; i < kernel->num_params; i++) {
    lua_pushfstring(lua, "%s %s=%s", lua_tostring(lua, -1), kernel->params[i].name, kernel->params[i].text);
    lua_remove(lua, -2);
  }
  return 1;
}

void ftl_lua_open_kernel(lua_State *lua) {
  const luaL_Reg functions[] = {{"__tostring", kernel_tostring}, {NULL, NULL}};
  const luaL_Reg methods[] = {{"check", ftl_lua_kernel_check}, {"program", kernel_program}, {NULL, NULL}};
  luaL_newmetatable(lua, kernel_type);
  luaL_setfuncs(lua, functions, 0);
  lua_newtable(lua);
  luaL_setfuncs(lua, methods, 0);
  lua_pushcclosure(lua, kernel_index, 1);
  lua_setfield(lua, -2, "__index");
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");
  luaL_newmetatable(lua, params_type);
  lua_pushcfunction(lua, params_index);
  lua_setfield(lua, -2, "__index");
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");
  lua_pop(lua, 2);
  ftl_lua_open_sketch(lua);
}
