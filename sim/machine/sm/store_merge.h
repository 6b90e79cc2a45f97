// Lines that stores write to: what is stored to a line before it closes goes to L2 in one request.
// Models: as many open lines as l1.store_merge_lines, least recently stored to first out; a line closes when all of it
//   is stored, and all do when no store has come for l1.store_merge_cycles.
// Does not model: what a load of an open line does to it.
// Numbers: kernels/measurements/micro_store_merge_ncu.csv.
#ifndef FTL_MACHINE_SM_STORE_MERGE_H
#define FTL_MACHINE_SM_STORE_MERGE_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/arch.h"
#include "arch/arch_limits.h"

enum { SM_MAX_OPEN_LINES = FTL_ARCH_MAX_l1_store_merge_lines };

typedef struct sm_open_line {
  uint64_t line;
  uint64_t last_use;  // by number of the stores' lines
  uint32_t words;     // of 4 bytes, stored since it was opened; 0: the place is free
  uint8_t priority;
} sm_open_line;

typedef struct sm_store_merge {
  sm_open_line lines[SM_MAX_OPEN_LINES];
  uint64_t uses;
  int32_t num_open;
  int64_t closes;  // when all lines close; INT64_MAX: none is open
} sm_store_merge;

// No line is open.
void ftl_sm_store_merge_init(sm_store_merge *merge);
// A store's words of a line, the last of whose lines passes the LSU at `passed`; of a line in_words, those that the
// open line has not, one of FTL_LANE_WORDS a time. False: it went to an open line.
// `closed`: the line that closes with it; one without words: none does.
bool ftl_sm_store_merge_add(sm_store_merge *merge, const ftl_arch *arch, sm_open_line store, bool in_words,
                            int64_t passed, sm_open_line *closed);
// Takes a line that is closed at `now`; false: there is none.
bool ftl_sm_store_merge_take(sm_store_merge *merge, int64_t now, sm_open_line *closed);

#endif
