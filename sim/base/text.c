#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool text_reserve(ftl_text *text, size_t extra) {
  if (text->failed) return false;
  size_t needed = text->size + extra + 1;
  if (needed <= text->capacity) return true;
  size_t capacity = text->capacity ? text->capacity : 256;
  while (capacity < needed) capacity *= 2;
  char *data = realloc(text->data, capacity);
  if (!data) {
    text->failed = true;
    return false;
  }
  text->data = data;
  text->capacity = capacity;
  return true;
}

void ftl_text_add_bytes(ftl_text *text, const char *bytes, size_t size) {
  if (!text_reserve(text, size)) return;
  memcpy(text->data + text->size, bytes, size);
  text->size += size;
  text->data[text->size] = '\0';
}

void ftl_text_add(ftl_text *text, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int size = vsnprintf(NULL, 0, format, args);
  va_end(args);
  if (size < 0 || !text_reserve(text, (size_t)size)) return;
  va_start(args, format);
  vsnprintf(text->data + text->size, (size_t)size + 1, format, args);
  va_end(args);
  text->size += (size_t)size;
}

const char *ftl_text_get(const ftl_text *text) { return text->data ? text->data : ""; }

void ftl_text_fini(ftl_text *text) {
  free(text->data);
  *text = (ftl_text){0};
}
