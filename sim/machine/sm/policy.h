// Warp scheduler policies: which of several warps that can issue does.
#ifndef FTL_MACHINE_SM_POLICY_H
#define FTL_MACHINE_SM_POLICY_H

#include "machine/sm/state.h"

// Gives the position of one of the set bits of `eligible` (at least one).
typedef int32_t (*sm_policy)(const sm_subcore *sc, uint64_t eligible);
// By the names of sm.scheduler ("gto", "gty", "lrr"); NULL: none.
sm_policy ftl_sm_policy_find(const char *name);

#endif
