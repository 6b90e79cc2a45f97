#include "base/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

_Noreturn void ftl_check_failed(const char *file, int line, const char *format, ...) {
  fprintf(stderr, "foretile: broken invariant at %s:%d: ", file, line);
  va_list args;
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fputc('\n', stderr);
  abort();
}
