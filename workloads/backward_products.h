// Backward kernels that each keep what they compute in registers: dK and dV by tiles of keys, dQ by tiles of queries
// (dq=kernel). S and dP are computed in both.
#ifndef FTL_WORKLOADS_BACKWARD_PRODUCTS_H
#define FTL_WORKLOADS_BACKWARD_PRODUCTS_H

#include "workloads/backward.h"

// FTL_INFEASIBLE with the reason: rows against num_warps, copies, random numbers of dropout.
FTL_MUST_USE ftl_status ftl_backward_check_products(const ftl_spec *spec, ftl_error *error);
// A CTA keeps block_n keys (dK, dV) or queries (dQ), and walks the others, block_m a step.
void ftl_backward_write_dk_dv(ftl_backward *f);
void ftl_backward_write_dq(ftl_backward *f);

#endif
