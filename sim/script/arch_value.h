// A value of a model file as Lua holds it: what datasheet(v, "source") and its like return.
#ifndef FTL_SCRIPT_ARCH_VALUE_H
#define FTL_SCRIPT_ARCH_VALUE_H

#include <stdint.h>

#include <lua.h>

#include "arch/arch.h"

typedef enum ftl_arch_value_type { FTL_ARCH_VALUE_INT, FTL_ARCH_VALUE_TEXT, FTL_ARCH_VALUE_OTHER } ftl_arch_value_type;

// A userdata with user values 1 = the text (TEXT) or description (OTHER), 2 = the source.
typedef struct ftl_arch_value {
  ftl_origin_kind kind;
  int line;
  ftl_arch_value_type type;
  int64_t number;
} ftl_arch_value;

// The value at `index`, or NULL when it is something else. Never raises.
ftl_arch_value *ftl_arch_value_test(lua_State *lua, int index);

#endif
