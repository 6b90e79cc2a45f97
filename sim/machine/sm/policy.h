// Warp scheduler policies: which of several warps that can issue does.
#ifndef FTL_MACHINE_SM_POLICY_H
#define FTL_MACHINE_SM_POLICY_H

#include "machine/sm/subcore.h"

// By the names of sm.scheduler ("goy", "gol", "gty", "gto", "lrr"); NULL: none.
const sm_policy *ftl_sm_policy_find(const char *name);

#endif
