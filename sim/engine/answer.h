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
// Percent of the peak of each of FTL_RESOURCE_COUNT resources.
void ftl_answer_usage(const ftl_launch *launch, const ftl_totals *totals, const ftl_static_work *work,
                      float *usage_pct);
// What bounds a launch of that usage.
ftl_bottleneck ftl_answer_bottleneck(const ftl_launch *launch, const ftl_totals *totals, const float *usage_pct);

#endif
