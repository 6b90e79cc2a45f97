// From counts to the metrics of an answer.
#ifndef FTL_ENGINE_ANSWER_H
#define FTL_ENGINE_ANSWER_H

#include "engine/launch.h"
#include "engine/predict.h"
#include "engine/work.h"

// The metrics of one launch.
void ftl_answer_metrics(const ftl_launch *launch, const ftl_totals *totals, const ftl_static_work *work,
                        ftl_metrics *out);
// The metrics of a pipeline from those of its launches (see `combine` in metrics.def).
void ftl_answer_combine(const ftl_kernel_answer *kernels, int num_kernels, ftl_metrics *out);
// What bounds a launch, in a few words; `capacity` bytes.
void ftl_answer_bottleneck(const ftl_launch *launch, const ftl_totals *totals, const ftl_static_work *work, char *out,
                           int64_t capacity);

#endif
