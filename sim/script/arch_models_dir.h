// The files of a folder with arch models.
#ifndef FTL_SCRIPT_ARCH_MODELS_DIR_H
#define FTL_SCRIPT_ARCH_MODELS_DIR_H

#include <stdbool.h>

#include "base/status.h"

// Names of the .lua files without the ending, sorted.
typedef struct ftl_arch_names {
  char **names;
  int num_names;
} ftl_arch_names;
FTL_MUST_USE ftl_status ftl_arch_names_init(ftl_arch_names *names, const char *models_dir, ftl_error *error);
void ftl_arch_names_fini(ftl_arch_names *names);
bool ftl_arch_names_has(const ftl_arch_names *names, const char *name);

#endif
