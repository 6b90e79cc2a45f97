// Detail level `full`: every CTA, every instruction, all SMs against the whole memory system.
#ifndef FTL_ENGINE_FULL_H
#define FTL_ENGINE_FULL_H

#include "engine/launch.h"

// Runs one launch at sm_khz. With l2_before == FTL_L2_KEPT, `*memory` is the memory system that the launch before left
// (same sm_khz); otherwise *memory may be NULL. On FTL_OK *memory is the one this launch used; the caller destroys it.
FTL_MUST_USE ftl_status ftl_full_run(const ftl_launch *launch, int64_t sm_khz, ftl_memory **memory, ftl_totals *out,
                                     ftl_error *error);

#endif
