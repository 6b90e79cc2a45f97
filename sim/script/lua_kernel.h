// Kernels of a script: ft.kernel gives one, ft.predict and ft.explore take it as a workload, kernel:check proves it.
#ifndef FTL_SCRIPT_LUA_KERNEL_H
#define FTL_SCRIPT_LUA_KERNEL_H

#include <lua.h>

#include "workloads/user_kernel.h"

// What ft.kernel gives: a function that writes the program, and the defaults of its parameters. The function is user
// value 1 of the userdata.
typedef struct ftl_lua_kernel {
  char name[FTL_TILE_NAME_BYTES];
  int num_params;
  ftl_own_param params[FTL_MAX_OWN_PARAMS];  // defaults, in the order of their names
} ftl_lua_kernel;

// The kernel at `index`, or NULL.
const ftl_lua_kernel *ftl_lua_test_kernel(lua_State *lua, int index);
const ftl_lua_kernel *ftl_lua_check_kernel(lua_State *lua, int index);

// The value at `index` as that of the kernel's parameter number `param`, of the default's kind.
ftl_own_param ftl_lua_own_param(lua_State *lua, const ftl_lua_kernel *kernel, int param, int index);
void ftl_lua_push_own_param(lua_State *lua, const ftl_own_param *param);
// Raises for a field of the table at `index` that is neither a parameter of the kernel, nor one that every kernel
// takes, nor one of `others`, which ends in NULL.
void ftl_lua_check_kernel_fields(lua_State *lua, const ftl_lua_kernel *kernel, int index, const char *const *others);

// Builds the kernel at `index` with these parameters: pushes a userdata with the ftl_user_kernel, whose program it
// owns. An error comes from the script's line.
ftl_user_kernel *ftl_lua_build_kernel(lua_State *lua, int index, const ftl_own_param *params);
// The parameters of a table's fields, defaults where it has none, into params.
void ftl_lua_get_own_params(lua_State *lua, const ftl_lua_kernel *kernel, int index, ftl_own_param *params);

// ft.predict and ft.explore of the kernel in field `workload` of the table at 1 (lua_kernel_points.c).
int ftl_lua_kernel_predict(lua_State *lua);
int ftl_lua_kernel_explore(lua_State *lua);
// kernel:check{ … } (lua_kernel_check.c)
int ftl_lua_kernel_check(lua_State *lua);

#endif
