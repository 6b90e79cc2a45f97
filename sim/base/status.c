#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

static ftl_status set(ftl_error *error, ftl_status status, const char *subject, const char *format, va_list args) {
  int capacity = sizeof error->message, length = snprintf(error->message, sizeof error->message, "%s", subject);
  if (length >= capacity) length = capacity - 1;
  vsnprintf(error->message + length, (size_t)(capacity - length), format, args);
  for (char *c = error->message; *c; c++)
    if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
  error->subject_bytes = length;
  error->status = status;
  return status;
}

ftl_status ftl_error_set(ftl_error *error, ftl_status status, const char *format, ...) {
  if (!error) return status;
  va_list args;
  va_start(args, format);
  set(error, status, "", format, args);
  va_end(args);
  return status;
}

ftl_status ftl_error_set_about(ftl_error *error, ftl_status status, const char *subject, const char *format, ...) {
  if (!error) return status;
  va_list args;
  va_start(args, format);
  set(error, status, subject, format, args);
  va_end(args);
  return status;
}
