// Which roles run the same code.
#ifndef FTL_MACHINE_SM_ROLE_CODE_H
#define FTL_MACHINE_SM_ROLE_CODE_H

#include "lower/warp_program.h"

// The first role of the same instructions as `role`, but for named barriers: consumers that take turns run one code, in
// which only who begins arrives at a barrier more. Here each is scheduled on its own.
int32_t ftl_sm_first_like(const ftl_warp_program *program, int32_t role);

#endif
