// Arrays whose elements keep to cache lines of the host: an element of 64 bytes is in one line, not in two.
#ifndef FTL_BASE_LINES_H
#define FTL_BASE_LINES_H

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

enum { FTL_HOST_LINE_BYTES = 64 };

// realloc that aligns to a line, from `old_bytes` to more; NULL: out of memory, and the old array stays. To be freed
// with free.
static inline void *ftl_lines_grow(void *old, size_t old_bytes, size_t bytes) {
  void *grown = aligned_alloc(FTL_HOST_LINE_BYTES, ftl_round_up_size(bytes, FTL_HOST_LINE_BYTES));
  if (grown == NULL) return NULL;
  if (old_bytes > 0) memcpy(grown, old, old_bytes);
  free(old);
  return grown;
}

#endif
