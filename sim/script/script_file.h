// Whole text files in memory.
#ifndef FTL_SCRIPT_SCRIPT_FILE_H
#define FTL_SCRIPT_SCRIPT_FILE_H

#include <stddef.h>

#include "base/status.h"

// *out is the caller's, to free(); NULL on failure. A file above 16 MiB is FTL_BAD_INPUT. A first line that starts with
// '#' is blanked.
FTL_MUST_USE ftl_status ftl_script_file_read(const char *path, char **out, size_t *out_size, ftl_error *error);

#endif
