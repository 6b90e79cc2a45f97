// Parameters that a workload does not take, at the one value which says what it is anyway.
//
// A tool that describes kernels of many kinds by the same keys may so give all of them: pass=fwd to flash2_fwd,
// splits=1 to a kernel that does not split, acc_dtype=fp32 to attention, whose sums are always that.
#ifndef FTL_WORKLOADS_IMPLIED_H
#define FTL_WORKLOADS_IMPLIED_H

#include "workloads/spec.h"

// That value as text; NULL: there is none, or the workload takes the parameter.
const char *ftl_workload_implied(const ftl_workload *workload, ftl_param param);

// Whether `text` is that value, written in any way that the parameter is.
bool ftl_workload_implies(const ftl_workload *workload, ftl_param param, const char *text);

#endif
