#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

ftl_status ftl_error_set(ftl_error *error, ftl_status status, const char *format, ...) {
  if (!error) return status;
  va_list args;
  va_start(args, format);
  vsnprintf(error->message, sizeof error->message, format, args);
  va_end(args);
  for (char *c = error->message; *c; c++)
    if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
  error->status = status;
  return status;
}
