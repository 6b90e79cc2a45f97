// Finds a line among the ways of a set: a byte of each line's hash, of eight ways at once in a 64-bit word. Comparing
// whole lines one by one was a quarter of what the L2 tags cost.
#ifndef FTL_MACHINE_L2_PRINTS_H
#define FTL_MACHINE_L2_PRINTS_H

#include <stdint.h>

#include "machine/l2/hash.h"

// Of a way without a line, and of the ways beyond the last one in the last word; a line's print is between them.
enum { FTL_L2_PRINT_FREE = 0, FTL_L2_PRINT_NONE = 255, FTL_L2_PRINTS_OF_WORD = 8 };

#define FTL_L2_PRINTS_ONES UINT64_C(0x0101010101010101)

// Words of a set.
static inline uint32_t ftl_l2_print_words(uint32_t num_ways) {
  return (num_ways + FTL_L2_PRINTS_OF_WORD - 1) / FTL_L2_PRINTS_OF_WORD;
}

// Of a line, between FTL_L2_PRINT_FREE and FTL_L2_PRINT_NONE.
static inline uint8_t ftl_l2_print_of(uint64_t line) {
  return (uint8_t)(1 + ftl_l2_scale(line * 0x9e3779b97f4a7c15u, FTL_L2_PRINT_NONE - 1));
}

// The ways of a word with this print: the highest bit of their bytes. The lowest one is right; a byte above a right one
// may be there though it differs in its last bit.
static inline uint64_t ftl_l2_prints_like(uint64_t word, uint8_t print) {
  uint64_t differ = word ^ print * FTL_L2_PRINTS_ONES;
  return (differ - FTL_L2_PRINTS_ONES) & ~differ & FTL_L2_PRINTS_ONES << 7;
}

// The first way of those that ftl_l2_prints_like gives, of which there is one.
static inline uint32_t ftl_l2_prints_first(uint64_t like) {
  return (uint32_t)__builtin_ctzll(like) / FTL_L2_PRINTS_OF_WORD;
}

static inline void ftl_l2_prints_set(uint64_t *prints, uint32_t way, uint8_t print) {
  uint32_t shift = way % FTL_L2_PRINTS_OF_WORD * 8;
  uint64_t *word = &prints[way / FTL_L2_PRINTS_OF_WORD];
  *word = (*word & ~(UINT64_C(255) << shift)) | (uint64_t)print << shift;
}

#endif
