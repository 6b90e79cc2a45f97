// Orders the instructions of each straight-line stretch, as a compiler's scheduler does.
//
// List scheduling from the end of the stretch to its start: an instruction is placed as late as its users' latency
// allows, so that loads stand about their latency ahead of their first use and fragments are double-buffered rather
// than all loaded at the top. Asynchronous copies stand their latency ahead of the fence or stretch end that follows.
// Among those that may stand here loads go last, then the one with the longest path from the start (ties by program
// order). When an instruction would raise the live registers over `limit`, one that does not is taken instead, its
// latency notwithstanding, or the written order is left only as far as registers allow (turns.h).
#ifndef FTL_LOWER_SCHEDULE_H
#define FTL_LOWER_SCHEDULE_H

#include "lower/op_timing.h"
#include "lower/registers.h"

// `limit`: registers that may be live, and in stretch i waiting[i] more (NULL: none); *fits: no stretch needs more.
// Stretches for which no order tried fits are left in the one that needs least, for the spiller, or if this is the
// final time in the quickest that needs no more than the order at hand. False when memory is out.
bool ftl_schedule(ftl_draft *draft, const ftl_flow *flow, const ftl_liveness *liveness, const ftl_arch *arch,
                  int32_t limit, const int32_t *waiting, bool is_final, bool *fits, ftl_arena *arena);

#endif
