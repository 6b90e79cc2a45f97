// Integer arithmetic that C leaves to everybody.
#ifndef FTL_BASE_INTEGER_H
#define FTL_BASE_INTEGER_H

#include <stdint.h>

// ceil(a / b) of a >= 0, b > 0.
static inline int64_t ftl_divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

static inline int64_t ftl_smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t ftl_larger(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int32_t ftl_smaller32(int32_t a, int32_t b) { return a < b ? a : b; }

#endif
