#include "cli/measurements_dir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

ftl_status ftl_measurements_find(glob_t *out, ftl_error *error) {
  static const char *const patterns[] = {"attention_*_ncu.csv",  "attention_*_stream.csv", "product_*_ncu.csv",
                                         "product_*_stream.csv", "foreign_*_ncu.csv",      "foreign_*_stream.csv"};
  const char *folder = getenv("FORETILE_MEASUREMENTS");
  if (folder == NULL || folder[0] == '\0') folder = FTL_MEASUREMENTS_DIR;
  memset(out, 0, sizeof *out);
  for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
    ftl_text pattern = {0};
    ftl_text_add(&pattern, "%s/%s", folder, patterns[i]);
    int code = pattern.failed ? GLOB_NOSPACE : glob(ftl_text_get(&pattern), i > 0 ? GLOB_APPEND : 0, NULL, out);
    ftl_text_fini(&pattern);
    if (code == GLOB_NOSPACE) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  }
  if (out->gl_pathc > 0) return FTL_OK;
  return ftl_error_set(error, FTL_IO_FAILED,
                       "no measurements in %s: name files with --measurements, or the folder in FORETILE_MEASUREMENTS",
                       folder);
}
