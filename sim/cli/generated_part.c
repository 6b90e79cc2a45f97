#include "cli/generated_part.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "report/output_file.h"

static ftl_status read_file(const char *path, ftl_text *out, ftl_error *error) {
  FILE *file = fopen(path, "r");
  if (file == NULL) return ftl_error_set(error, FTL_IO_FAILED, "%s: %s", path, strerror(errno));
  char buffer[4096];
  for (size_t size; (size = fread(buffer, 1, sizeof buffer, file)) > 0;) ftl_text_add_bytes(out, buffer, size);
  bool failed = ferror(file) != 0;
  fclose(file);
  if (failed) return ftl_error_set(error, FTL_IO_FAILED, "%s: %s", path, strerror(errno));
  return out->failed ? ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory", path) : FTL_OK;
}

// Reads the document and finds its two marker lines.
static ftl_status find_part(const char *path, ftl_text *old, const char **begin, const char **end, ftl_error *error) {
  ftl_status status = read_file(path, old, error);
  if (status != FTL_OK) return status;
  *begin = strstr(ftl_text_get(old), FTL_GENERATED_BEGIN);
  *end = *begin != NULL ? strstr(*begin, FTL_GENERATED_END) : NULL;
  if (*end != NULL) return FTL_OK;
  return ftl_error_set(error, FTL_BAD_INPUT, "%s: the lines %.36s and %.34s are not there", path, FTL_GENERATED_BEGIN,
                       FTL_GENERATED_END);
}

ftl_status ftl_generated_part_check(const char *path, ftl_error *error) {
  ftl_text old = {0};
  const char *begin = NULL, *end = NULL;
  ftl_status status = find_part(path, &old, &begin, &end, error);
  ftl_text_fini(&old);
  return status;
}

ftl_status ftl_generated_part_replace(const char *path, const ftl_text *part, ftl_error *error) {
  ftl_text old = {0}, text = {0};
  const char *begin = NULL, *end = NULL;
  ftl_status status = find_part(path, &old, &begin, &end, error);
  if (status == FTL_OK) {
    ftl_text_add_bytes(&text, old.data, (size_t)(begin - old.data) + strlen(FTL_GENERATED_BEGIN));
    ftl_text_add_bytes(&text, ftl_text_get(part), part->size);
    ftl_text_add_bytes(&text, end, strlen(end));
    status = ftl_output_file_write(path, &text, error);
  }
  ftl_text_fini(&old);
  ftl_text_fini(&text);
  return status;
}
