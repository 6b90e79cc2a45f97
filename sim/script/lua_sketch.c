#include "script/lua_sketch.h"

#include <string.h>

#include <lauxlib.h>

#include "script/lua_module.h"
#include "script/sandbox.h"

static const char *const sketch_type = "foretile.sketch";
const char *const ftl_lua_expr_type = "foretile.index";
const char *const ftl_lua_tensor_type = "foretile.tensor";
const char *const ftl_lua_table_type = "foretile.table";
const char *const ftl_lua_ring_type = "foretile.ring";
const char *const ftl_lua_value_type = "foretile.value";
const char *const ftl_lua_barrier_type = "foretile.barrier";
const char *const ftl_lua_ref_type = "foretile.tile_of_tensor";
const char *const ftl_lua_term_type = "foretile.term";

static const char current_key = 0, serial_key = 0;  // of the registry

// --- the sketch being built ---

static int sketch_collect(lua_State *lua) {
  ftl_sketch *sketch = luaL_checkudata(lua, 1, sketch_type);
  ftl_builder_destroy(sketch->builder);
  sketch->builder = NULL;
  return 0;
}

static int sketch_close(lua_State *lua) {
  sketch_collect(lua);
  lua_pushnil(lua);
  lua_rawsetp(lua, LUA_REGISTRYINDEX, &current_key);
  return 0;
}

static int64_t next_serial(lua_State *lua) {
  lua_rawgetp(lua, LUA_REGISTRYINDEX, &serial_key);
  int64_t serial = (int64_t)lua_tointeger(lua, -1) + 1;
  lua_pop(lua, 1);
  lua_pushinteger(lua, (lua_Integer)serial);
  lua_rawsetp(lua, LUA_REGISTRYINDEX, &serial_key);
  return serial;
}

ftl_sketch *ftl_lua_push_sketch(lua_State *lua, ftl_user_kernel *kernel) {
  if (lua_rawgetp(lua, LUA_REGISTRYINDEX, &current_key) != LUA_TNIL) {
    luaL_error(lua, "a kernel is built inside the function of another");
  }
  lua_pop(lua, 1);
  ftl_sketch *sketch = lua_newuserdatauv(lua, sizeof *sketch, 0);
  memset(sketch, 0, sizeof *sketch);
  sketch->serial = next_serial(lua);
  sketch->kernel = kernel;
  luaL_setmetatable(lua, sketch_type);
  ftl_error error;
  if (ftl_builder_create(&sketch->builder, kernel->name, &error) != FTL_OK) ftl_lua_raise(lua, &error);
  lua_pushvalue(lua, -1);
  lua_rawsetp(lua, LUA_REGISTRYINDEX, &current_key);
  return sketch;
}

// The script's line that is running: C functions between have none.
int ftl_sketch_line(lua_State *lua) {
  lua_Debug event;
  for (int level = 1; lua_getstack(lua, level, &event); level++) {
    lua_getinfo(lua, "l", &event);
    if (event.currentline > 0) return event.currentline;
  }
  return 0;
}

ftl_sketch *ftl_sketch_begin(lua_State *lua) {
  enum { STEPS = 8 };
  lua_rawgetp(lua, LUA_REGISTRYINDEX, &current_key);
  ftl_sketch *sketch = lua_touserdata(lua, -1);
  lua_pop(lua, 1);
  if (sketch == NULL || sketch->builder == NULL) {
    luaL_error(lua, "this belongs to the function of ft.kernel, and to no other place");
  }
  if (sketch->is_infeasible) luaL_error(lua, "the kernel was said to be infeasible: return after k:infeasible");
  ftl_sandbox_charge(lua, STEPS);
  ftl_builder_source(sketch->builder, ftl_sandbox_chunk(ftl_sandbox_of(lua)), ftl_sketch_line(lua));
  return sketch;
}

void ftl_sketch_end(lua_State *lua, const ftl_sketch *sketch) {
  ftl_error error;
  if (ftl_builder_check_latest(sketch->builder, &error) != FTL_OK) ftl_lua_raise_placed(lua, &error);
}

const ftl_tile_program *ftl_sketch_program(const ftl_sketch *sketch) { return ftl_builder_program(sketch->builder); }

int32_t ftl_sketch_role(lua_State *lua, const ftl_sketch *sketch) {
  int32_t num_roles = ftl_sketch_program(sketch)->num_roles;
  if (num_roles == 0) luaL_error(lua, "operations and values belong to a role: call k:role first");
  return num_roles - 1;
}

// --- its end ---

static int raise_at(lua_State *lua, int line, const char *format, const char *name, const char *other) {
  lua_pushfstring(lua, "%s:%d: ", ftl_sandbox_chunk(ftl_sandbox_of(lua)), line);
  lua_pushfstring(lua, format, name, other);
  lua_concat(lua, 2);
  return lua_error(lua);
}

static void check_rings(lua_State *lua, const ftl_sketch *sketch) {
  const ftl_tile_program *program = ftl_sketch_program(sketch);
  for (int32_t i = 0; i < program->num_rings; i++) {
    const ftl_ring *ring = &program->rings[i];
    if (ring->producer < 0) raise_at(lua, sketch->ring_lines[i], "ring %s is never filled", ring->name, NULL);
    if (ring->consumers_mask == 0) raise_at(lua, sketch->ring_lines[i], "ring %s is never read", ring->name, NULL);
  }
}

static bool is_role(const ftl_tile_program *program, const char *name) {
  for (int32_t i = 0; i < program->num_roles; i++)
    if (strcmp(program->roles[i].name, name) == 0) return true;
  return false;
}

static void check_barriers(lua_State *lua, const ftl_sketch *sketch) {
  const ftl_tile_program *program = ftl_sketch_program(sketch);
  for (int i = 0; i < sketch->num_barriers; i++) {
    const ftl_sketch_barrier *barrier = &sketch->barriers[i];
    for (int r = 0; r < barrier->num_roles; r++)
      if (!is_role(program, barrier->roles[r]))
        raise_at(lua, barrier->line, "barrier %s: no role is called %s", program->barriers[i].name, barrier->roles[r]);
  }
}

static void check_loops(lua_State *lua, const ftl_sketch *sketch) {
  if (sketch->num_open_loops == 0) return;
  raise_at(lua, sketch->open_loop_lines[sketch->num_open_loops - 1],
           "this loop was left before its end: a loop of a kernel has no break, goto or return%s", "", NULL);
}

// The check walked the protocol of a few CTAs on the script's behalf, each as far as it does, and looked up entries.
static void charge_check(lua_State *lua, const ftl_bounds_steps *done) {
  enum { WALKED_CTAS = 6, WALKED_STEPS = 1 << 20, STEPS_AN_INSTRUCTION = 4 };
  int64_t steps = done->most_a_cta < WALKED_STEPS ? done->most_a_cta : WALKED_STEPS;
  ftl_sandbox_charge(lua, (WALKED_CTAS * steps + done->visits) / STEPS_AN_INSTRUCTION);
}

void ftl_lua_finish_sketch(lua_State *lua, ftl_sketch *sketch) {
  ftl_tile_program *program = NULL;
  ftl_error error;
  check_loops(lua, sketch);
  check_rings(lua, sketch);
  check_barriers(lua, sketch);
  if (!sketch->has_grid) luaL_error(lua, "%s has no k:grid(ctas): how many CTAs run it?", sketch->kernel->name);
  size_t size = ftl_tile_program_packed_bytes(ftl_sketch_program(sketch));
  void *block = ftl_lua_push_block(lua, size, 0);
  if (ftl_builder_finish(sketch->builder, &program, &error) != FTL_OK) ftl_lua_raise_placed(lua, &error);
  ftl_bounds_steps steps;
  ftl_status status = ftl_tile_program_check_bounds(program, &steps, &error);
  if (status == FTL_OK) sketch->kernel->program = ftl_tile_program_pack(program, block);
  ftl_tile_program_destroy(program);
  if (status != FTL_OK) ftl_lua_raise_placed(lua, &error);
  charge_check(lua, &steps);
}

// --- objects ---

void *ftl_sketch_push(lua_State *lua, const ftl_sketch *sketch, const char *type, size_t size) {
  int64_t *object = lua_newuserdatauv(lua, size, 3);
  memset(object, 0, size);
  *object = sketch->serial;
  luaL_setmetatable(lua, type);
  return object;
}

int ftl_sketch_push_object(lua_State *lua, const ftl_sketch *sketch, const char *type, int32_t idx, int num_dims) {
  ftl_lua_object *object = ftl_sketch_push(lua, sketch, type, sizeof *object);
  object->idx = idx;
  object->num_dims = num_dims;
  return 1;
}

void *ftl_sketch_test(lua_State *lua, const ftl_sketch *sketch, int index, const char *type) {
  int64_t *object = luaL_testudata(lua, index, type);
  if (object != NULL && *object != sketch->serial) {
    luaL_error(lua, "%s belongs to a kernel that is finished", ftl_sketch_type_name(lua, index));
  }
  return object;
}

void *ftl_sketch_check(lua_State *lua, const ftl_sketch *sketch, int index, const char *type, const char *what) {
  void *object = ftl_sketch_test(lua, sketch, index, type);
  if (object == NULL) luaL_error(lua, "%s is wanted here, not %s", what, ftl_sketch_type_name(lua, index));
  return object;
}

const char *ftl_sketch_type_name(lua_State *lua, int index) {
  static const struct {
    const char *const *type;
    const char *name;
  } names[] = {{&ftl_lua_expr_type, "an index expression"}, {&ftl_lua_tensor_type, "a tensor"},
               {&ftl_lua_table_type, "a table of entries"}, {&ftl_lua_ring_type, "a ring"},
               {&ftl_lua_value_type, "a register tile"},    {&ftl_lua_barrier_type, "a barrier"},
               {&ftl_lua_ref_type, "a tile of a tensor"},   {&ftl_lua_term_type, "an elementwise term"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (luaL_testudata(lua, index, *names[i].type) != NULL) return names[i].name;
  switch (lua_type(lua, index)) {
    case LUA_TNONE:
    case LUA_TNIL:
      return "nothing";
    case LUA_TNUMBER:
      return "a number";
    case LUA_TSTRING:
      return "a string";
    case LUA_TTABLE:
      return "a Lua table";
    default:
      return luaL_typename(lua, index);
  }
}

// --- arguments ---

int64_t ftl_sketch_integer(lua_State *lua, int index, const char *what, int64_t least, int64_t most) {
  int is_integer = 0;
  lua_Integer value = lua_tointegerx(lua, index, &is_integer);
  if (!is_integer && lua_type(lua, index) == LUA_TNUMBER) {
    luaL_error(lua, "%s is %f; allowed is a whole number of %I to %I", what, lua_tonumber(lua, index),
               (lua_Integer)least, (lua_Integer)most);
  }
  if (lua_type(lua, index) != LUA_TNUMBER) {
    luaL_error(lua, "%s must be a whole number, not %s", what, ftl_sketch_type_name(lua, index));
  }
  if (value < least || value > most) {
    luaL_error(lua, "%s is %I; allowed is %I to %I", what, value, (lua_Integer)least, (lua_Integer)most);
  }
  return (int64_t)value;
}

const char *ftl_sketch_name(lua_State *lua, int index, const char *what) {
  if (lua_type(lua, index) != LUA_TSTRING) {
    luaL_error(lua, "%s must be a name, not %s", what, ftl_sketch_type_name(lua, index));
  }
  size_t size = 0;
  const char *name = lua_tolstring(lua, index, &size);
  bool is_plain = size > 0 && size < FTL_TILE_NAME_BYTES;
  for (size_t i = 0; i < size; i++) is_plain = is_plain && name[i] >= ' ' && name[i] <= '~';
  if (!is_plain) luaL_error(lua, "%s must be 1 to %d printable characters", what, FTL_TILE_NAME_BYTES - 1);
  return name;
}

// All but packed pairs, which have no element of their own, and int32, which is of tables.
static bool is_element_type(ftl_dtype dtype) { return dtype != FTL_INT32 && ftl_dtype_numbers(dtype) == 1; }

ftl_dtype ftl_sketch_dtype(lua_State *lua, int index) {
  const char *name = lua_type(lua, index) == LUA_TSTRING ? lua_tostring(lua, index) : NULL;
  luaL_Buffer known;
  for (int i = 0; name != NULL && i < FTL_DTYPE_COUNT; i++)
    if (is_element_type((ftl_dtype)i) && strcmp(ftl_dtype_name((ftl_dtype)i), name) == 0) return (ftl_dtype)i;
  luaL_buffinit(lua, &known);
  for (int i = 0; i < FTL_DTYPE_COUNT; i++) {
    if (!is_element_type((ftl_dtype)i)) continue;
    if (i > 0) luaL_addstring(&known, ", ");
    luaL_addstring(&known, ftl_dtype_name((ftl_dtype)i));
  }
  luaL_pushresult(&known);
  luaL_error(lua, "an element type is %s; here is %s", lua_tostring(lua, -1),
             name != NULL ? name : ftl_sketch_type_name(lua, index));
  return FTL_FP16;
}

int64_t ftl_sketch_option(lua_State *lua, int index, const char *name, int64_t least, int64_t most, int64_t fallback) {
  if (lua_isnoneornil(lua, index)) return fallback;
  int64_t value = fallback;
  if (lua_getfield(lua, index, name) != LUA_TNIL) value = ftl_sketch_integer(lua, -1, name, least, most);
  lua_pop(lua, 1);
  return value;
}

bool ftl_sketch_flag(lua_State *lua, int options, const char *name) {
  if (lua_isnoneornil(lua, options)) return false;
  int type = lua_getfield(lua, options, name);
  if (type != LUA_TNIL && type != LUA_TBOOLEAN) {
    luaL_error(lua, "%s must be true or false, not %s", name, ftl_sketch_type_name(lua, -1));
  }
  bool flag = lua_toboolean(lua, -1);
  lua_pop(lua, 1);
  return flag;
}

static bool is_among(const char *name, const char *const *names) {
  for (; *names != NULL; names++)
    if (strcmp(name, *names) == 0) return true;
  return false;
}

void ftl_sketch_check_options(lua_State *lua, int index, const char *const *names) {
  if (lua_isnoneornil(lua, index)) return;
  if (lua_type(lua, index) != LUA_TTABLE) {
    luaL_error(lua, "options are written { name = value }, not %s", ftl_sketch_type_name(lua, index));
  }
  lua_pushnil(lua);
  while (lua_next(lua, index) != 0) {
    lua_pop(lua, 1);
    if (lua_type(lua, -1) == LUA_TSTRING && is_among(lua_tostring(lua, -1), names)) continue;
    luaL_Buffer known;
    lua_pushvalue(lua, -1);
    const char *name = luaL_tolstring(lua, -1, NULL);
    luaL_buffinit(lua, &known);
    for (int i = 0; names[i] != NULL; i++) {
      if (i > 0) luaL_addstring(&known, ", ");
      luaL_addstring(&known, names[i]);
    }
    luaL_pushresult(&known);
    luaL_error(lua, "no option is called %s; known are %s", name, lua_tostring(lua, -1));
  }
}

// --- k ---

static int sketch_infeasible(lua_State *lua) {
  ftl_sketch *sketch = ftl_sketch_begin(lua);
  size_t size = 0;
  const char *reason = lua_type(lua, 2) == LUA_TSTRING ? lua_tolstring(lua, 2, &size) : "";
  if (size == 0) return luaL_error(lua, "k:infeasible takes the reason, a string");
  ftl_error error;
  (void)ftl_error_set(&error, FTL_INFEASIBLE, "%s", reason);  // one line
  memcpy(sketch->kernel->reason, error.message, sizeof sketch->kernel->reason);
  sketch->is_infeasible = true;
  return 0;
}

static const luaL_Reg own_methods[] = {{"infeasible", sketch_infeasible},
                                       {"min", ftl_sketch_min},
                                       {"max", ftl_sketch_max},
                                       {"range", ftl_sketch_range},
                                       {NULL, NULL}};

static int sketch_index(lua_State *lua) {
  const char *name = lua_type(lua, 2) == LUA_TSTRING ? lua_tostring(lua, 2) : "";
  if (strcmp(name, "cta") == 0) {
    ftl_sketch *sketch = ftl_sketch_begin(lua);
    ftl_sketch_push_expr(lua, sketch, ftl_cta(sketch->builder));
    return 1;
  }
  return ftl_lua_method(lua, "the kernel");
}

// The methods of k, as a table: upvalue of its __index.
static void push_methods(lua_State *lua) {
  lua_newtable(lua);
  luaL_setfuncs(lua, own_methods, 0);
  luaL_setfuncs(lua, ftl_sketch_functions, 0);
  luaL_setfuncs(lua, ftl_sketch_declarations, 0);
  luaL_setfuncs(lua, ftl_sketch_value_declarations, 0);
}

void ftl_lua_open_sketch(lua_State *lua) {
  const luaL_Reg functions[] = {{"__gc", sketch_collect}, {"__close", sketch_close}, {NULL, NULL}};
  luaL_newmetatable(lua, sketch_type);
  luaL_setfuncs(lua, functions, 0);
  push_methods(lua);
  lua_pushcclosure(lua, sketch_index, 1);
  lua_setfield(lua, -2, "__index");
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");
  lua_pop(lua, 1);
  ftl_lua_open_sketch_expr(lua);
  ftl_lua_open_sketch_term(lua);
  ftl_lua_open_sketch_tensor(lua);
  ftl_lua_open_sketch_ops(lua);
  ftl_lua_open_sketch_rings(lua);
}
