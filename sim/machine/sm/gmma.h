// The wgmmas of a warpgroup (gmma.c).
#ifndef FTL_MACHINE_SM_GMMA_H
#define FTL_MACHINE_SM_GMMA_H

#include "machine/sm/warp.h"

enum { SM_WARPGROUP = 4, SM_READS = 64 };

typedef struct sm_subcore sm_subcore;

typedef struct sm_warpgroup {
  uint32_t issued[SM_WARPGROUP];
  uint32_t reserved;       // wgmmas that all four warps have issued
  int64_t end[SM_GROUPS];  // of the math, by index
} sm_warpgroup;

// Operand reads of one wgmma or several in a row that leave the data pipe no cycle.
typedef struct sm_reads {
  int64_t begin, end;
} sm_reads;

// The warp's wgmma issues at `now`; with the last warp of its group the product begins.
void ftl_sm_gmma_issue(ftl_sm *sm, sm_warp *w, int64_t now);
// The sub-core's instruction that issues at `now` takes so many cycles of the wgmmas under way. What sub-cores take
// does not add up: each has its part of every product.
void ftl_sm_gmma_take(ftl_sm *sm, sm_subcore *sc, int64_t cycles, int64_t now);
// When the warp's WGMMA or WGMMA_WAIT may issue; SM_NEVER: nobody knows yet.
int64_t ftl_sm_gmma_ready(const ftl_sm *sm, const sm_warp *w);

#endif
