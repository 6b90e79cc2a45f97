// Parameters that are lists of numbers: kept in a specification as canonical text, so that it stays one flat value.
#ifndef FTL_WORKLOADS_SPEC_LIST_H
#define FTL_WORKLOADS_SPEC_LIST_H

#include "workloads/spec.h"

typedef enum ftl_list_outcome { FTL_LIST_SET, FTL_LIST_MALFORMED, FTL_LIST_TOO_LONG } ftl_list_outcome;

// "512:4096x8:77" (x8: eight times), or "none": whole numbers from the parameter's min to its max,
// FTL_PARAM_MOST_LISTED at most. What is not set changes nothing.
ftl_list_outcome ftl_spec_list_set(ftl_spec *spec, ftl_param param, const char *text);
// Canonical: equal neighbours are one entry with their number; "none" where it is empty. Valid while the spec is.
const char *ftl_spec_list_text(const ftl_spec *spec, ftl_param param);
// The smallest and the largest number of a list that is not empty.
int64_t ftl_spec_list_least(const ftl_spec *spec, ftl_param param);
int64_t ftl_spec_list_most(const ftl_spec *spec, ftl_param param);

#endif
