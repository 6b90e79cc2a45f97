#include "report/output_file.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// The errno of what failed first; 0: nothing did.
static int write_to(const char *path, const ftl_text *text) {
  FILE *file = fopen(path, "w");
  if (file == NULL) return errno;
  int failure = fwrite(ftl_text_get(text), 1, text->size, file) == text->size ? 0 : errno;
  if (fclose(file) != 0 && failure == 0) failure = errno;
  return failure;
}

static int write_beside(const char *path, const char *beside, const ftl_text *text) {
  int failure = write_to(beside, text);
  if (failure == 0 && rename(beside, path) != 0) failure = errno;
  if (failure != 0) unlink(beside);
  return failure;
}

// By the 16 bytes that every file of SQLite's begins with, the last of them 0.
static bool is_database(const char *path) {
  static const char magic[16] = "SQLite format 3";
  char head[sizeof magic];
  FILE *file = fopen(path, "r");
  if (file == NULL) return false;
  bool is = fread(head, 1, sizeof head, file) == sizeof head && memcmp(head, magic, sizeof head) == 0;
  fclose(file);
  return is;
}

ftl_status ftl_output_file_write(const char *path, const ftl_text *text, ftl_error *error) {
  if (text->failed) return ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory", path);
  char resolved[PATH_MAX];  // of a link, so that the link stays
  const char *target = realpath(path, resolved) != NULL ? resolved : path;
  struct stat info;
  bool exists = stat(target, &info) == 0, is_file = exists && S_ISREG(info.st_mode);
  if (is_file && is_database(target))
    return ftl_error_set(error, FTL_BAD_INPUT, "%s: a database, which is not written over", path);
  ftl_text beside = {0};
  ftl_text_add(&beside, "%s.new", target);
  int failure = ENOMEM;
  if (exists && !is_file) {
    failure = write_to(target, text);
  } else if (!beside.failed) {
    failure = write_beside(target, ftl_text_get(&beside), text);
  }
  ftl_text_fini(&beside);
  return failure == 0 ? FTL_OK : ftl_error_set(error, FTL_IO_FAILED, "%s: %s", path, strerror(failure));
}
