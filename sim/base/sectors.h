// A line has four 32-byte sectors; which of them are meant is a mask of four bits.
#ifndef FTL_BASE_SECTORS_H
#define FTL_BASE_SECTORS_H

#include <stdint.h>

enum { FTL_LINE_BYTES = 128, FTL_SECTOR_BYTES = 32, FTL_LINE_SECTORS = 4, FTL_ALL_SECTORS = 15 };

// The number of sectors in a mask, from a table: without a flag for newer processors a population count is a call into
// the compiler's library, and a table in a constant takes an instruction more (callgrind, detail=full).
static inline int ftl_num_sectors(uint8_t mask) {
  static const uint8_t counts[FTL_ALL_SECTORS + 1] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};
  return counts[mask & FTL_ALL_SECTORS];
}

// Bits [from, to) of a mask of a line's sectors or words; none where from >= to.
static inline uint32_t ftl_mask_between(uint64_t from, uint64_t to) {
  return from < to ? (uint32_t)((UINT64_C(1) << to) - (UINT64_C(1) << from)) : 0;
}

// The halves of a line's sectors: bit i is the first of sector i, bit 4 + i the second.
static inline uint8_t ftl_halves_of_sectors(uint8_t sectors) {
  return (uint8_t)(sectors | sectors << FTL_LINE_SECTORS);
}
static inline uint8_t ftl_sectors_of_halves(uint8_t halves) { return (uint8_t)(halves & halves >> FTL_LINE_SECTORS); }

// Those of which all four words are in the mask of the line's 32 words.
static inline uint8_t ftl_halves_of_words(uint32_t words) {
  uint32_t whole = words & words >> 1 & words >> 2 & words >> 3, halves = 0;
  for (int sector = 0; sector < FTL_LINE_SECTORS; sector++)
    halves |= (whole >> (8 * sector) & 1) << sector | (whole >> (8 * sector + 4) & 1) << (FTL_LINE_SECTORS + sector);
  return (uint8_t)halves;
}

#endif
