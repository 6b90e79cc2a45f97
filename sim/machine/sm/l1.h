// L1 data: which sectors are present, least recently used replacement. No time in it.
// Models: sets and ways over what shared memory leaves of the unified array, a valid bit a sector; what is written goes
// through to
//   L2 (local memory too: on H200 its store sectors are those that L2 is given, attention_flash2_ncu.csv).
// Does not model: the hash of hardware's sets, carve-out steps.
#ifndef FTL_MACHINE_SM_L1_H
#define FTL_MACHINE_SM_L1_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

typedef struct sm_l1_way {
  uint64_t line;
  uint32_t used;  // time of last use
  uint8_t valid;  // sectors; 0: empty
} sm_l1_way;

typedef struct sm_l1 {
  sm_l1_way *ways_of_set;
  int32_t num_sets, num_ways;  // num_sets 0: no L1, everything misses
  uint32_t clock;
} sm_l1;

// false: out of memory.
bool ftl_sm_l1_create(sm_l1 *l1, int64_t bytes, int64_t line_bytes, int64_t num_ways, ftl_arena *arena);
// Sectors of the line that are present; counts as a use.
uint8_t ftl_sm_l1_lookup(sm_l1 *l1, uint64_t line);
// Sectors arrive, or are written to local memory: the line is allocated if it is absent.
void ftl_sm_l1_fill(sm_l1 *l1, uint64_t line, uint8_t sectors);

#endif
