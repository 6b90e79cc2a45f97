// Where the committed measurements are.
#ifndef FTL_CLI_MEASUREMENTS_DIR_H
#define FTL_CLI_MEASUREMENTS_DIR_H

#include <glob.h>

#include "base/status.h"

// The files that `validate` compares with by default, in order: attention_*, product_* and foreign_* of both
// conditions, not those in folders beside them (kernels/measurements/HELDOUT.md: files that wait). From
// FORETILE_MEASUREMENTS, or the folder of the sources. FTL_IO_FAILED: none there. *out is freed with globfree, also
// after a failure.
FTL_MUST_USE ftl_status ftl_measurements_find(glob_t *out, ftl_error *error);

#endif
