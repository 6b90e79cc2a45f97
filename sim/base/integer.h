// Integer arithmetic that C leaves to everybody.
#ifndef FTL_BASE_INTEGER_H
#define FTL_BASE_INTEGER_H

#include <stddef.h>
#include <stdint.h>

// ceil(a / b) of a >= 0, b > 0.
static inline int64_t ftl_divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

static inline int32_t ftl_divide_up32(int32_t a, int32_t b) { return (a + b - 1) / b; }

// The least multiple of b > 0 that is no less than a >= 0.
static inline int64_t ftl_round_up(int64_t a, int64_t b) { return ftl_divide_up(a, b) * b; }
static inline int32_t ftl_round_up32(int32_t a, int32_t b) { return ftl_divide_up32(a, b) * b; }
static inline size_t ftl_round_up_size(size_t a, size_t b) { return (a + b - 1) / b * b; }

// What is left of a, of any sign, over a multiple of b > 0: 0 to b - 1.
static inline int64_t ftl_modulo(int64_t a, int64_t b) {
  int64_t rest = a % b;
  return rest < 0 ? rest + b : rest;
}

static inline int64_t ftl_smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t ftl_larger(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int32_t ftl_smaller32(int32_t a, int32_t b) { return a < b ? a : b; }

#endif
