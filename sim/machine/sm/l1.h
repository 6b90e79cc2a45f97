// L1 data: which sectors are present. No time in it.
// Models: sets and ways over what shared memory leaves of the unified array, a valid bit a sector; what is written goes
// through to L2 (local memory too: on H200 its store sectors are those that L2 is given, attention_flash2_ncu.csv) and
// stays.
//   Segmented least recently used replacement: a line that is used again is protected, and another line displaces the
//   oldest that is not. Of more protected lines than a set may have the oldest is one of the others again, the newest
//   (micro_l1_replacement.csv).
// Does not model: the hash of hardware's sets, carve-out steps.
#ifndef FTL_MACHINE_SM_L1_H
#define FTL_MACHINE_SM_L1_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/arch.h"
#include "base/arena.h"

typedef struct sm_l1_way {
  uint64_t line;
  uint32_t used;  // time of last use, or of its protection ending
  uint8_t valid;  // sectors; 0: empty
  bool is_protected;
} sm_l1_way;

typedef struct sm_l1 {
  sm_l1_way *ways_of_set;
  int32_t num_sets, num_ways;  // num_sets 0: no L1, everything misses
  int32_t max_protected;       // ways of a set
  uint32_t clock;
} sm_l1;

// Of an L1 of `bytes`, how much lines that are used again may take.
int64_t ftl_sm_l1_protected_bytes(const ftl_arch *arch, int64_t bytes);
// false: out of memory.
bool ftl_sm_l1_create(sm_l1 *l1, const ftl_arch *arch, int64_t bytes, ftl_arena *arena);
// Sectors of the line that are present.
uint8_t ftl_sm_l1_present(const sm_l1 *l1, uint64_t line);
// The same, as a use.
uint8_t ftl_sm_l1_lookup(sm_l1 *l1, uint64_t line);
// Sectors arrive, or are written: the line is allocated if it is absent.
void ftl_sm_l1_fill(sm_l1 *l1, uint64_t line, uint8_t sectors);

#endif
