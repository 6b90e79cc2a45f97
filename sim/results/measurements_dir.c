#include "results/measurements_dir.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <xxhash.h>

#include "base/path.h"
#include "base/text.h"
#include "results/csv.h"

const char *ftl_measurements_folder(void) {
  const char *folder = getenv("FORETILE_MEASUREMENTS");
  return folder != NULL && folder[0] != '\0' ? folder : FTL_MEASUREMENTS_DIR;
}

ftl_status ftl_measurements_find(glob_t *out, ftl_error *error) {
  static const char *const patterns[] = {"attention_*_ncu.csv",   "attention_*_stream.csv",  "product_*_ncu.csv",
                                         "product_*_stream.csv",  "foreign_*_ncu.csv",       "foreign_*_stream.csv",
                                         "independent_*_ncu.csv", "independent_*_stream.csv"};
  const char *folder = ftl_measurements_folder();
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

// Below the folder: no absolute path, and no step upwards.
static bool stays_below(const char *name) {
  if (name[0] == '/' || name[0] == '\0') return false;
  for (const char *part = name; part != NULL; part = strchr(part, '/')) {
    part += part[0] == '/';
    if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0')) return false;
  }
  return true;
}

static bool is_file(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

char *ftl_measurements_path(const char *name) {
  if (!stays_below(name)) return NULL;
  ftl_text path = {0};
  ftl_text_add(&path, "%s/%s", ftl_measurements_folder(), name);
  char *found = !path.failed && is_file(ftl_text_get(&path)) ? strdup(ftl_text_get(&path)) : NULL;
  ftl_text_fini(&path);
  return found;
}

static bool has_contents(const char *path, uint64_t content_hash) {
  ftl_csv csv;
  ftl_error unused;
  if (!is_file(path) || ftl_csv_open(&csv, path, &unused) != FTL_OK) return false;
  bool has = XXH3_64bits(csv.text, csv.size) == content_hash;
  ftl_csv_fini(&csv);
  return has;
}

static bool is_among(const char *pattern, uint64_t content_hash) {
  glob_t found = {0};
  bool is = false;
  if (glob(pattern, 0, NULL, &found) == 0) {
    for (size_t i = 0; !is && i < found.gl_pathc; i++) is = has_contents(found.gl_pathv[i], content_hash);
  }
  globfree(&found);
  return is;
}

bool ftl_measurements_have(const char *path, uint64_t content_hash) {
  static const char *const where[] = {"", "*/"};
  const char *folder = ftl_measurements_folder(), *name = ftl_path_file_name(path);
  ftl_text rule = {0};
  ftl_text_add(&rule, "%s/HELDOUT.md", folder);
  bool have = !rule.failed && is_file(ftl_text_get(&rule)), is = false;
  ftl_text_fini(&rule);
  if (!have || name[strcspn(name, "*?[\\")] != '\0') return false;
  for (size_t i = 0; !is && i < sizeof where / sizeof *where; i++) {
    ftl_text pattern = {0};
    ftl_text_add(&pattern, "%s/%s%s", folder, where[i], name);
    is = !pattern.failed && is_among(ftl_text_get(&pattern), content_hash);
    ftl_text_fini(&pattern);
  }
  return is;
}
