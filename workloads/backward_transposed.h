// dQ, dK and dV in one kernel on transposed scores, each warp with keys of its own, as kernels written by hand have it.
#ifndef FTL_WORKLOADS_BACKWARD_TRANSPOSED_H
#define FTL_WORKLOADS_BACKWARD_TRANSPOSED_H

#include "workloads/backward.h"

// FTL_INFEASIBLE with the reason: keys and columns against num_warps, random numbers of dropout, wgmma, packed
// sequences of grouped heads in a loop.
FTL_MUST_USE ftl_status ftl_backward_check_transposed(const ftl_spec *spec, ftl_error *error);
// Whether the warps can divide a tile's keys and dQ's tile so, and a lane's registers hold what it computes.
bool ftl_backward_suits_transposed(const ftl_spec *spec);
// A CTA keeps block_n keys and walks the queries, block_m a step; expects dQ's sum to be 0.
void ftl_backward_write_transposed(ftl_backward *f);

#endif
