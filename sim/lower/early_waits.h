// Where the waits for wgmmas stand before instructions are ordered.
//
// A compiler takes a wgmma to be done a latency after its own issue: it does not know what queues before it in the
// tensor core. ptxas puts the wait there, with the arrive that gives the stage back behind it, although work that does
// not need the result stands between that and where the program waits. In the code of kernels/attention/flash3.h (CUDA
// 13.0) the wait for P V stands 78 cycles of issue after its last wgmma for head_dim 64, 92 to 143 for head_dim 128: in
// or behind the row maximum, ahead of the exponentials.
#ifndef FTL_LOWER_EARLY_WAITS_H
#define FTL_LOWER_EARLY_WAITS_H

#include "base/arena.h"
#include "lower/draft.h"

// Moves each WGMMA_WAIT, and the MBAR_RELEASEs that follow it, up to that place, but past no fence, loop or branch.
// False when memory is out.
bool ftl_waits_move_up(ftl_draft *draft, const ftl_arch *arch, ftl_arena *arena);

#endif
