// A line has four 32-byte sectors; which of them are meant is a mask of four bits.
#ifndef FTL_BASE_SECTORS_H
#define FTL_BASE_SECTORS_H

#include <stdint.h>

enum { FTL_LINE_BYTES = 128, FTL_SECTOR_BYTES = 32, FTL_LINE_SECTORS = 4, FTL_ALL_SECTORS = 15 };

// The number of sectors in a mask, from a table in a constant: without a flag for newer processors a population count
// is a call into the compiler's library.
static inline int ftl_num_sectors(uint8_t mask) { return (int)(0x4332322132212110u >> (4 * mask) & 7); }

#endif
