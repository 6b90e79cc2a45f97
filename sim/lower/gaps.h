// Arithmetic between special functions, once everything else has its order.
#ifndef FTL_LOWER_GAPS_H
#define FTL_LOWER_GAPS_H

#include "lower/flow.h"

// Takes each run of special functions apart and lets arithmetic from behind go into the cycles between them, as far as
// no register but those of a lane's sums is live for longer. Positions change: flow and liveness have to be found
// again. False: no memory.
bool ftl_fill_gaps(ftl_draft *draft, const ftl_flow *flow, const ftl_arch *arch, ftl_arena *arena);

#endif
