// Where this project's own measurements are, and whether a file is one of them.
#ifndef FTL_RESULTS_MEASUREMENTS_DIR_H
#define FTL_RESULTS_MEASUREMENTS_DIR_H

#include <glob.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

// The folder is FORETILE_MEASUREMENTS, or that of the sources.
//
// The files that `validate` compares with by default, in order: attention_*, product_*, foreign_* and independent_* of
// both conditions, not those in folders beside them (kernels/measurements/HELDOUT.md: files that wait). FTL_IO_FAILED:
// none there. *out is freed with globfree, also after a failure.
FTL_MUST_USE ftl_status ftl_measurements_find(glob_t *out, ftl_error *error);

const char *ftl_measurements_folder(void);
// The path of a file of the folder by its name there ("attention_flash2_ncu.csv", "h100/…"), which the caller frees;
// NULL: no file of that name, or memory.
char *ftl_measurements_path(const char *name);

// Whether a file of that name, in the folder or in one of its folders, has these contents (XXH3): what HELDOUT.md
// there says of parts is said of these files only. A copy is still one of them, a changed one is not.
bool ftl_measurements_have(const char *path, uint64_t content_hash);

#endif
