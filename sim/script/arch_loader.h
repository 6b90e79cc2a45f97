// Arch models from Lua data files, and what-if changes to them. The syntax is in docs/arch_models.md.
// A die file says what the die is, a product file states only its differences; together every key must be set.
#ifndef FTL_SCRIPT_ARCH_LOADER_H
#define FTL_SCRIPT_ARCH_LOADER_H

#include "arch/arch.h"
#include "base/status.h"

typedef struct lua_State lua_State;  // as lua.h has it

// The folder with the shipped models: $FORETILE_ARCH_MODELS, else the source tree that this was built from, else
// ../share/foretile/arch_models or arch_models in a folder above the executable. FTL_IO_FAILED when there is none.
// *out is the caller's, to free().
FTL_MUST_USE ftl_status ftl_arch_models_dir(char **out, ftl_error *error);

// name_or_file: a shipped product ("h200"), or a user's file (ends in .lua or contains '/'). models_dir NULL: as
// ftl_arch_models_dir. Errors name file:line, key, and what is allowed; an unknown name gets the nearest one.
// *out is NULL on failure; destroy it with ftl_arch_destroy.
FTL_MUST_USE ftl_status ftl_arch_load(const char *models_dir, const char *name_or_file, ftl_arch **out,
                                      ftl_error *error);

// All shipped products, by name.
typedef struct ftl_arch_list {
  ftl_arch **archs;
  int num_archs;
} ftl_arch_list;
FTL_MUST_USE ftl_status ftl_arch_load_all(const char *models_dir, ftl_arch_list *out, ftl_error *error);
void ftl_arch_list_fini(ftl_arch_list *list);

// What-if: a changed copy of `base`, checked whole. Its name is the base's with one '*' behind it, its changed keys
// have the origin FTL_ORIGIN_OVERRIDE. *out is NULL on failure.
// - from text: "l2.size_bytes=123207680" or "l2.replacement=lru", num_pairs of them, of a key each;
FTL_MUST_USE ftl_status ftl_arch_create_what_if(const ftl_arch *base, const char *const *pairs, int num_pairs,
                                                ftl_arch **out, ftl_error *error);
// - from the Lua table at `index` of a sandbox's stack, { l2 = { size_bytes = 123207680 } }: bare values, no origins.
//   `where` ("file:line") goes into errors and origins. Never raises.
FTL_MUST_USE ftl_status ftl_arch_create_what_if_lua(const ftl_arch *base, lua_State *lua, int index, const char *where,
                                                    ftl_arch **out, ftl_error *error);

#endif
