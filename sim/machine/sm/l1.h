// L1 data: which sectors are present. No time in it.
// Models: sets and ways over what shared memory leaves of the unified array, a valid bit a sector; what is written goes
// through to L2 (local memory too: on H200 its store sectors are those that L2 is given, attention_flash2_ncu.csv) and
// stays.
//   Lines are spread over the sets by a hash: rows at random places displace each other as single lines do, and
//   neighbours do not (micro_l1_allocation.csv: rows_1 to rows_128). A line has its place from when it is asked for,
//   not from when it comes (late_dram, late_l2); one that has lost it meanwhile comes for those who wait for it alone.
//   Segmented least recently used replacement: a line that is used again is protected, and another line displaces the
//   oldest that is not. Of more protected lines than a set may have the oldest is one of the others again, the next to
//   go (micro_l1_replacement.csv, micro_l1_passes_ncu.csv).
// Does not model: the hash of hardware's sets, which is not known; carve-out steps.
#ifndef FTL_MACHINE_SM_L1_H
#define FTL_MACHINE_SM_L1_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/arch.h"
#include "base/arena.h"

typedef struct sm_l1_way {
  uint64_t line;
  uint32_t used;  // time of last use; 0: of a line that is no longer protected
  uint8_t valid;  // sectors that are there; none of a line on its way
  bool is_taken, is_protected;
} sm_l1_way;

typedef struct sm_l1 {
  sm_l1_way *ways_of_set;
  int32_t num_sets, num_ways;  // num_sets 0: no L1, everything misses
  int32_t max_protected;       // of all sets
  uint32_t clock;
} sm_l1;

// Of an L1 of `bytes`, a line of each set; 0: there is none.
int64_t ftl_sm_l1_way_bytes(const ftl_arch *arch, int64_t bytes);
// How much lines that are used again may take.
int64_t ftl_sm_l1_protected_bytes(const ftl_arch *arch, int64_t bytes);
// false: out of memory.
bool ftl_sm_l1_create(sm_l1 *l1, const ftl_arch *arch, int64_t bytes, ftl_arena *arena);
// Which of the sets a line belongs to: what tests choose lines by.
int64_t ftl_sm_l1_set(const sm_l1 *l1, uint64_t line);
// Sectors of the line that are present.
uint8_t ftl_sm_l1_present(const sm_l1 *l1, uint64_t line);
// The same, as a use.
uint8_t ftl_sm_l1_lookup(sm_l1 *l1, uint64_t line);
// The line is asked for: it has a place from now on.
void ftl_sm_l1_ask(sm_l1 *l1, uint64_t line);
// Sectors of a line that was asked for arrive.
void ftl_sm_l1_fill(sm_l1 *l1, uint64_t line, uint8_t sectors);
// Sectors are written: a use, for which the line has a place.
void ftl_sm_l1_write(sm_l1 *l1, uint64_t line, uint8_t sectors);

#endif
