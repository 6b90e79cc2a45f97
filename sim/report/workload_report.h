// What `foretile workload list|show` prints.
#ifndef FTL_REPORT_WORKLOAD_REPORT_H
#define FTL_REPORT_WORKLOAD_REPORT_H

#include <stdbool.h>

#include "base/status.h"
#include "base/text.h"
#include "workloads/spec.h"

FTL_MUST_USE ftl_status ftl_workload_report_list(bool json, ftl_text *out, ftl_error *error);
// Every parameter that the workload takes: what is allowed, default, unit, meaning.
FTL_MUST_USE ftl_status ftl_workload_report_show(const ftl_workload *workload, bool json, ftl_text *out,
                                                 ftl_error *error);

#endif
