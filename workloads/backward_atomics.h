// dQ, dK and dV in one kernel, dQ added up by atomics, as FlashAttention-2's library has it.
#ifndef FTL_WORKLOADS_BACKWARD_ATOMICS_H
#define FTL_WORKLOADS_BACKWARD_ATOMICS_H

#include "workloads/backward.h"

// FTL_INFEASIBLE with the reason: rows and columns of the tiles against num_warps, wgmma.
FTL_MUST_USE ftl_status ftl_backward_check_atomics(const ftl_spec *spec, ftl_error *error);
// A CTA keeps block_n keys and walks the queries, block_m a step; expects dQ's sum to be 0.
void ftl_backward_write_dq_dk_dv(ftl_backward *f);
// dQ = scale * sum, rounded.
void ftl_backward_convert_dq(ftl_backward *f);

#endif
