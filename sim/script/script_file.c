#include "script/script_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILE_BYTES = 16 << 20, READ_BYTES = 65536 };

static ftl_status read_all(FILE *file, const char *path, char **text, size_t *size, ftl_error *error) {
  size_t capacity = 0, got;
  do {
    if (*size + READ_BYTES > capacity) {
      capacity = 2 * capacity + READ_BYTES;
      char *grown = realloc(*text, capacity);
      if (grown == NULL) return ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory", path);
      *text = grown;
    }
    got = fread(*text + *size, 1, READ_BYTES, file);
    *size += got;
    if (*size > MAX_FILE_BYTES) {
      return ftl_error_set(error, FTL_BAD_INPUT, "%s: larger than %d bytes", path, MAX_FILE_BYTES);
    }
  } while (got > 0);
  return ferror(file) ? ftl_error_set(error, FTL_IO_FAILED, "%s: %s", path, strerror(errno)) : FTL_OK;
}

ftl_status ftl_script_file_read(const char *path, char **out, size_t *out_size, ftl_error *error) {
  *out = NULL;
  *out_size = 0;
  FILE *file = fopen(path, "rb");
  if (file == NULL) return ftl_error_set(error, FTL_IO_FAILED, "%s: %s", path, strerror(errno));
  char *text = NULL;
  size_t size = 0;
  ftl_status status = read_all(file, path, &text, &size, error);
  fclose(file);
  if (status != FTL_OK) {
    free(text);
    return status;
  }
  if (size > 0 && text[0] == '#') {  // the newline stays, so that lines keep their numbers
    char *newline = memchr(text, '\n', size);
    memset(text, ' ', newline != NULL ? (size_t)(newline - text) : size);
  }
  *out = text;
  *out_size = size;
  return FTL_OK;
}
