// What-ifs: one resource of a GPU made better by a stated factor, all else as it is.
// A resource is one or more keys of the arch model; clock and power act through the launch, not through its programs.
#ifndef FTL_EXPLAIN_WHAT_IF_H
#define FTL_EXPLAIN_WHAT_IF_H

#include "base/text.h"
#include "results/evaluate.h"

int ftl_num_what_ifs(void);
const char *ftl_what_if_name(int what_if_idx);  // "hbm_bandwidth"
const char *ftl_what_if_doc(int what_if_idx);

// The changed point of an answered one, with the answer's tiles also where the user left them open. *arch is the
// caller's to destroy, NULL where the model is not changed. `change` is what was done ("dram.num_channels 188 -> 235"),
// `factor` by how much the resource grew; below 1 where it could not grow: an interval of one cycle. *applies is false,
// and nothing was changed, where the chip or the kernel has no such resource, or the first of its keys is at its limit.
FTL_MUST_USE ftl_status ftl_what_if_make(int what_if_idx, const ftl_point *base, const ftl_prediction *answer,
                                         bool *applies, ftl_point *out, ftl_arch **arch, ftl_text *change,
                                         double *factor, ftl_error *error);

#endif
