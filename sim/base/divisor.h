// Division by a number that is known long before: a multiplication and a correction in place of a division of 64 bits
// (Granlund and Montgomery, PLDI 1994).
#ifndef FTL_BASE_DIVISOR_H
#define FTL_BASE_DIVISOR_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ftl_divisor {
  uint64_t inverse;  // floor((2^64 - 1) / number)
  uint32_t number;
} ftl_divisor;

typedef struct ftl_quotient {
  uint64_t quotient;
  uint32_t remainder;
} ftl_quotient;

// number > 0
static inline ftl_divisor ftl_divisor_of(uint32_t number) {
  return (ftl_divisor){.inverse = UINT64_MAX / number, .number = number};
}

// Exact for all x: the inverse is less than one part in 2^64 / number too small, so that the product is the quotient or
// one less.
static inline ftl_quotient ftl_divide(ftl_divisor by, uint64_t x) {
  uint64_t quotient = (uint64_t)((__extension__(unsigned __int128) x) * by.inverse >> 64);
  uint64_t remainder = x - quotient * by.number;
  bool is_less = remainder >= by.number;
  return (ftl_quotient){quotient + is_less, (uint32_t)(remainder - (is_less ? by.number : 0))};
}

#endif
