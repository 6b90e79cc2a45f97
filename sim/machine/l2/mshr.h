// Sectors on their way into a side of L2, and who waits for them: a read of one in flight fetches nothing.
// Models: any number of lines in flight, any number of waiters each.
// Does not model: a limit on misses in flight (the SMs' limits bound them).
#ifndef FTL_MACHINE_L2_MSHR_H
#define FTL_MACHINE_L2_MSHR_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "machine/l2/hash.h"

enum { FTL_L2_NO_WAITER = UINT32_MAX };

typedef struct ftl_l2_mshr {
  uint64_t key;          // line * 2 + side
  uint32_t last_waiter;  // FTL_L2_NO_WAITER, or the end of the owner's list, which leads back to the first
  uint8_t in_flight;     // sectors; 0: a free place
} ftl_l2_mshr;

typedef struct ftl_l2_mshrs {
  ftl_l2_mshr *table;  // open addressing, linear probing
  uint64_t capacity;   // a power of two
  uint32_t shift;      // 64 less its logarithm
  uint64_t count;
} ftl_l2_mshrs;

// capacity: places to begin with; more are made as lines need them. FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_l2_mshrs_init(ftl_l2_mshrs *mshrs, uint64_t capacity, ftl_error *error);
void ftl_l2_mshrs_fini(ftl_l2_mshrs *mshrs);

static inline uint64_t ftl_l2_mshr_key(uint64_t line, uint32_t side) { return line * 2 + side; }

// Golden-ratio steps (Knuth, TAOCP 3, 6.4): where keys lie decides nothing but how soon they are found.
static inline uint64_t ftl_l2_mshrs_home(const ftl_l2_mshrs *mshrs, uint64_t key) {
  return key * 0x9e3779b97f4a7c15u >> mshrs->shift;
}

// The key's place: where it is, or the free one where it would go.
static inline ftl_l2_mshr *ftl_l2_mshrs_place(const ftl_l2_mshrs *mshrs, uint64_t key) {
  uint64_t i = ftl_l2_mshrs_home(mshrs, key);
  while (mshrs->table[i].in_flight != 0 && mshrs->table[i].key != key) i = (i + 1) & (mshrs->capacity - 1);
  return &mshrs->table[i];
}

// NULL when nothing of the line is on its way to that side. The pointer holds until the next add or remove.
static inline ftl_l2_mshr *ftl_l2_mshrs_find(const ftl_l2_mshrs *mshrs, uint64_t line, uint32_t side) {
  if (mshrs->count == 0) return NULL;
  ftl_l2_mshr *place = ftl_l2_mshrs_place(mshrs, ftl_l2_mshr_key(line, side));
  return place->in_flight != 0 ? place : NULL;
}
// Notes that sectors (at least one) are on their way.
ftl_l2_mshr *ftl_l2_mshrs_add(ftl_l2_mshrs *mshrs, uint64_t line, uint32_t side, uint8_t sectors);
// All of the line has come.
void ftl_l2_mshrs_remove(ftl_l2_mshrs *mshrs, ftl_l2_mshr *mshr);

#endif
