// What an instruction waits for besides what it reads. A warp has six scoreboards: an instruction of variable latency
// counts on one, and its reader waits until all that count on it are done. Where results are more than scoreboards,
// readers wait for each other's.
#ifndef FTL_LOWER_SCOREBOARDS_H
#define FTL_LOWER_SCOREBOARDS_H

#include "lower/flow.h"

// Sets also_awaits of a draft in its final order. False when memory is out.
FTL_MUST_USE bool ftl_scoreboards_share(ftl_draft *draft, const ftl_flow *flow, const ftl_arch *arch, ftl_arena *arena);

#endif
