// Rules between parameters that hold on every GPU.
#ifndef FTL_WORKLOADS_SPEC_RULES_H
#define FTL_WORKLOADS_SPEC_RULES_H

#include "workloads/spec.h"

// FTL_BAD_INPUT names the parameter, its value and the limit. Afterwards no size of the problem overflows 63 bits:
// every tensor has at most 2^46 bytes, the grid at most 2^31 - 1 CTAs, the work at most 2^60 FLOPs forward.
FTL_MUST_USE ftl_status ftl_spec_check_rules(const ftl_spec *spec, ftl_error *error);

#endif
