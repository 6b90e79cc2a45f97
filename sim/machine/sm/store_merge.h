// Lines that stores wrote to just now: what is stored to a sector again before its line closes goes to L2 with it.
// Models: as many open lines as l1.store_merge_lines, least recently stored to first out; a line closes
//   l1.store_merge_cycles after its last store. A sector is sent when it is first stored to.
// Does not model: that the hardware sends it when the line closes, whole for L2 where its parts have come.
// Numbers: kernels/measurements/micro_store_merge_ncu.csv.
#ifndef FTL_MACHINE_SM_STORE_MERGE_H
#define FTL_MACHINE_SM_STORE_MERGE_H

#include <stdint.h>

#include "arch/arch.h"

enum { SM_MAX_OPEN_LINES = 64 };  // the range of l1.store_merge_lines

typedef struct sm_open_line {
  uint64_t line;
  int64_t closes;   // the first cycle in which it is closed
  uint8_t sectors;  // sent since it was opened
} sm_open_line;

typedef struct sm_store_merge {
  sm_open_line lines[SM_MAX_OPEN_LINES];
} sm_store_merge;

// The sectors of a store at `now` that no open line has sent.
uint8_t ftl_sm_store_merge(sm_store_merge *merge, const ftl_arch *arch, uint64_t line, uint8_t sectors, int64_t now);

#endif
