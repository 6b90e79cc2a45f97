// Measured cases in scenarios: what ft.measurements gives. A set is a list of cases of a store; sets made from it share
// the store. A store never changes: predicting makes another, whose answers live as long as it does.
#ifndef FTL_SCRIPT_LUA_CASES_H
#define FTL_SCRIPT_LUA_CASES_H

#include "report/validate.h"
#include "script/lua_module.h"

typedef struct ftl_lua_case {
  ftl_case one;
  const ftl_arch *arch;  // that it is predicted for; NULL: it is not yet
} ftl_lua_case;

// Pushes a store with room for num_cases. Its user value 1 is for the userdata with the answers.
ftl_lua_case *ftl_lua_push_case_store(lua_State *lua, int64_t num_cases);

// The case of a store that this is the first member of.
static inline const ftl_lua_case *ftl_lua_case_of(const ftl_case *one) { return (const ftl_lua_case *)one; }

// Pushes a set with room for num_cases of the store at `store`.
const ftl_case **ftl_lua_push_case_set(lua_State *lua, int64_t num_cases, int store);

// Pushes a case of that store (lua_case.c).
void ftl_lua_push_case(lua_State *lua, const ftl_lua_case *c, int store);
void ftl_lua_open_case(lua_State *lua);
void ftl_lua_open_case_set(lua_State *lua);

// Pushes a set like the one at `set`, predicted; `options` is the index of a table with arch or detail, or 0.
void ftl_lua_push_predicted(lua_State *lua, int set, int options);
// Pushes a table: "hbm" and "dram__bytes_read.sum" to { measured, predicted, error, unit }.
void ftl_lua_push_comparison(lua_State *lua, const ftl_case *c);

// --- what is asked for (lua_case_filter.c) ---
typedef struct ftl_lua_case_filter ftl_lua_case_filter;
// Reads the arguments at 1 and pushes a userdata with the filter, which refers to them.
const ftl_lua_case_filter *ftl_lua_push_case_filter(lua_State *lua);
// ftl_case_filter.wants.
bool ftl_lua_case_filter_wants(const void *filter, const ftl_measured_case *c);

#endif
