// A kernel that a script is building with ft.kernel: the object `k` of its function, and the objects that `k` makes.
//
// An object (index expression, tensor, tile of a tensor, table, ring, value, barrier, elementwise term) is a userdata
// that begins with the serial number of its sketch, and holds indices into the program. It is of use while that sketch
// is being built and not afterwards; nothing in it can dangle. Every operation is checked as it is added, so that an
// error comes from the script's line.
#ifndef FTL_SCRIPT_LUA_SKETCH_H
#define FTL_SCRIPT_LUA_SKETCH_H

#include <lauxlib.h>

#include "tile/builder.h"
#include "workloads/user_kernel.h"

// Names of roles that meet at a barrier, some of which may not have begun.
typedef struct ftl_sketch_barrier {
  int line, num_roles;
  char roles[FTL_TILE_MAX_ROLES][FTL_TILE_NAME_BYTES];
} ftl_sketch_barrier;

typedef struct ftl_sketch {
  int64_t serial;
  ftl_builder *builder;  // owned; NULL when finished
  ftl_user_kernel *kernel;
  bool is_infeasible;  // the script said so; the reason is the kernel's
  bool has_grid, has_flops;
  int ring_lines[FTL_TILE_MAX_RINGS];
  int num_barriers;
  ftl_sketch_barrier barriers[FTL_TILE_MAX_BARRIERS];
  int num_open_loops;
  int open_loop_lines[FTL_TILE_MAX_LOOP_VARS];
} ftl_sketch;

// --- the sketch (lua_sketch.c) ---
void ftl_lua_open_sketch(lua_State *lua);  // makes all metatables
// Pushes the sketch of `kernel` and makes it the one being built, until the C function that called this returns or
// raises: the caller lets it be closed by lua_toclose. Raises if another is being built.
ftl_sketch *ftl_lua_push_sketch(lua_State *lua, ftl_user_kernel *kernel);
// Completes the program; kernel->program then lives in a userdata that this pushes. Raises with the script's line.
void ftl_lua_finish_sketch(lua_State *lua, ftl_sketch *sketch);

// The sketch being built, and the line that is running as the line of operations to come. Raises outside of one.
ftl_sketch *ftl_sketch_begin(lua_State *lua);
// Checks what was added last, and raises with its line.
void ftl_sketch_end(lua_State *lua, const ftl_sketch *sketch);
int ftl_sketch_line(lua_State *lua);  // the script's line that is running
const ftl_tile_program *ftl_sketch_program(const ftl_sketch *sketch);
int32_t ftl_sketch_role(lua_State *lua, const ftl_sketch *sketch);  // begun last; raises before the first

// --- objects ---
typedef struct ftl_lua_expr {
  int64_t serial;
  ftl_expr expr;
} ftl_lua_expr;

typedef struct ftl_lua_object {
  int64_t serial;
  int32_t idx;   // of the tensor, table, value or barrier
  int num_dims;  // of a tensor, as declared
} ftl_lua_object;

typedef struct ftl_lua_ring {
  int64_t serial;
  int32_t idx;
  bool transposed;
  int32_t first_row;
} ftl_lua_ring;

typedef struct ftl_lua_ref {
  int64_t serial;
  ftl_tile_ref ref;
  bool has_rows, has_columns;  // given by the script; else the operation's other side decides
} ftl_lua_ref;

extern const char *const ftl_lua_expr_type,
    *const ftl_lua_tensor_type, *const ftl_lua_table_type,
                                    *const ftl_lua_ring_type, *const ftl_lua_value_type,
                                                                  *const ftl_lua_barrier_type,
                                                                      *const ftl_lua_ref_type, *const ftl_lua_term_type;

// Pushes an object of a type with the sketch's serial number; the rest is zero.
void *ftl_sketch_push(lua_State *lua, const ftl_sketch *sketch, const char *type, size_t size);
// The same of an ftl_lua_object. Gives 1, how many were pushed.
int ftl_sketch_push_object(lua_State *lua, const ftl_sketch *sketch, const char *type, int32_t idx, int num_dims);
// The object at `index`, of that type and of this sketch; raises with `what` was wanted and what is there.
void *ftl_sketch_check(lua_State *lua, const ftl_sketch *sketch, int index, const char *type, const char *what);
// The same without raising for another type: NULL.
void *ftl_sketch_test(lua_State *lua, const ftl_sketch *sketch, int index, const char *type);

// What the argument at `index` is, for errors: "nil", "a number", "a tile of a tensor", ...
const char *ftl_sketch_type_name(lua_State *lua, int index);

// --- arguments ---
// A whole number from least to most.
int64_t ftl_sketch_integer(lua_State *lua, int index, const char *what, int64_t least, int64_t most);
// A name that fits the program's fields.
const char *ftl_sketch_name(lua_State *lua, int index, const char *what);
ftl_dtype ftl_sketch_dtype(lua_State *lua, int index);
// Field `name` of the options at `index` (a table, or absent); `fallback` where it is not there.
int64_t ftl_sketch_option(lua_State *lua, int index, const char *name, int64_t least, int64_t most, int64_t fallback);
// True or false of the table at `options`; false where it is not there.
bool ftl_sketch_flag(lua_State *lua, int options, const char *name);
// Raises for a field of the options that is none of `names`, a list that ends in NULL.
void ftl_sketch_check_options(lua_State *lua, int index, const char *const *names);

// --- index expressions (lua_sketch_expr.c) ---
void ftl_lua_open_sketch_expr(lua_State *lua);
void ftl_sketch_push_expr(lua_State *lua, const ftl_sketch *sketch, ftl_expr expr);
// Of a whole number or an index expression.
ftl_expr ftl_sketch_to_expr(lua_State *lua, ftl_sketch *sketch, int index, const char *what);
// + - * // % of what is at 1 and 2; the operator is upvalue 1. Set as metamethods of expressions, values and terms.
void ftl_sketch_set_arithmetic(lua_State *lua);
int ftl_sketch_min(lua_State *lua);    // k:min(a, b)
int ftl_sketch_max(lua_State *lua);    // k:max(a, b), of index expressions or elementwise
int ftl_sketch_range(lua_State *lua);  // k:range(lo, hi)

// --- elementwise terms (lua_sketch_term.c) ---
void ftl_lua_open_sketch_term(lua_State *lua);
// Pushes fn of the operands at the stack indices args[0 .. num_args-1]: numbers, values or terms.
void ftl_sketch_push_term(lua_State *lua, ftl_sketch *sketch, ftl_elem_fn fn, int num_args, const int *args);
bool ftl_sketch_is_elementwise(lua_State *lua, int index);  // a value or a term
// An elementwise operator of the operands at 1 and 2, one of which is a value or a term.
int ftl_sketch_term_arithmetic(lua_State *lua, ftl_sketch *sketch, int lua_operator);
// Adds the operations that give value `dst` what is at `index`: a number, a value or a term.
void ftl_sketch_assign(lua_State *lua, ftl_sketch *sketch, int32_t dst, int index);
extern const luaL_Reg ftl_sketch_functions[];  // exp2, log2, recip, zero_if_neg_inf, fma: methods of k

// --- declarations (lua_sketch_declare.c): methods of k ---
void ftl_lua_open_sketch_tensor(lua_State *lua);
extern const luaL_Reg ftl_sketch_declarations[];
extern const luaL_Reg ftl_sketch_value_declarations[];  // lua_sketch_values.c
// The tile that an operation moves: the reference at `index`, whose extents, where the script left them out, are those
// of the other side as far as the tensor has columns.
ftl_tile_ref ftl_sketch_to_ref(lua_State *lua, ftl_sketch *sketch, int index, int32_t rows, int32_t columns);

// --- operations (lua_sketch_ops.c): methods of values ---
void ftl_lua_open_sketch_ops(lua_State *lua);
int32_t ftl_sketch_check_value(lua_State *lua, const ftl_sketch *sketch, int index, const char *what);
// Ends an operation, which gives back its object, so that calls can be chained.
int ftl_sketch_give_back(lua_State *lua, const ftl_sketch *sketch);
// The metatable of a type of objects; `index` has the methods as its upvalue.
void ftl_sketch_open_type(lua_State *lua, const char *type, lua_CFunction index, const luaL_Reg *methods);

// --- rings and barriers (lua_sketch_rings.c): their methods ---
void ftl_lua_open_sketch_rings(lua_State *lua);
const ftl_lua_ring *ftl_sketch_check_ring(lua_State *lua, const ftl_sketch *sketch, int index, const char *what);
// The role begun last reads this ring.
void ftl_sketch_reads(lua_State *lua, ftl_sketch *sketch, int32_t ring);
// The ring that an operation passes numbers through: one that nobody has filled or read is its role's own.
const ftl_lua_ring *ftl_sketch_check_staging(lua_State *lua, ftl_sketch *sketch, int index, const char *what);

#endif
