// A growable string. Failure to grow is remembered: `failed`.
#ifndef FTL_BASE_TEXT_H
#define FTL_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct ftl_text {
  char *data;  // NUL-terminated when size > 0; NULL when nothing was added
  size_t size, capacity;
  bool failed;
} ftl_text;

void ftl_text_add(ftl_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ftl_text_add_bytes(ftl_text *text, const char *bytes, size_t size);
const char *ftl_text_get(const ftl_text *text);  // "" when empty
void ftl_text_fini(ftl_text *text);

#endif
