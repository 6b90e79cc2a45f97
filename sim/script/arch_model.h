// One model file, run in a sandbox: `return die "name" { ... }`, the same with `: on "die"`, or `return product "name"
// : on "base" { ... }`; and the application of such a table to an arch. The loader chains files with it.
#ifndef FTL_SCRIPT_ARCH_MODEL_H
#define FTL_SCRIPT_ARCH_MODEL_H

#include <stdbool.h>

#include "arch/arch.h"
#include "script/sandbox.h"

typedef struct ftl_arch_model {
  ftl_sandbox *sandbox;  // its stack holds the table at index 1
  char *text;            // of the file
  size_t text_size;
  const char *path;     // the caller's
  int line, base_line;  // of die or product, and of on, in the file
  char name[FTL_ARCH_NAME_BYTES];
  char base[256];  // "" for a die that stands on none
  bool is_die;
} ftl_arch_model;

// model is caller's storage; fini it after success only. `path` must outlive it.
FTL_MUST_USE ftl_status ftl_arch_model_init(ftl_arch_model *model, const char *path, ftl_error *error);
// From text instead of a file; `path` is used in errors and origins.
FTL_MUST_USE ftl_status ftl_arch_model_init_text(ftl_arch_model *model, const char *path, const char *text, size_t size,
                                                 ftl_error *error);
void ftl_arch_model_fini(ftl_arch_model *model);

// Sets the model's keys in arch. Of several faults, the first in the file is reported.
FTL_MUST_USE ftl_status ftl_arch_model_apply(const ftl_arch_model *model, ftl_arch *arch, ftl_error *error);

// The same for a table of bare values at `index` of any Lua stack; `where` ("file:line") goes into errors and origins.
FTL_MUST_USE ftl_status ftl_arch_what_if_apply(lua_State *lua, int index, const char *where, ftl_arch *arch,
                                               ftl_error *error);

#endif
