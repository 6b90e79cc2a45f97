#include <stddef.h>
#include <string.h>

#include "workloads/spec.h"

#define FTL_WORKLOAD(name) extern const ftl_workload ftl_workload_##name;
#include "workloads/workloads.def"
#undef FTL_WORKLOAD

static const ftl_workload *const workloads[] = {
#define FTL_WORKLOAD(name) &ftl_workload_##name,
#include "workloads/workloads.def"
#undef FTL_WORKLOAD
};

int ftl_workload_count(void) { return (int)(sizeof workloads / sizeof workloads[0]); }

const ftl_workload *ftl_workload_get(int workload_idx) { return workloads[workload_idx]; }

const ftl_workload *ftl_workload_find(const char *name) {
  for (int i = 0; i < ftl_workload_count(); i++)
    if (strcmp(workloads[i]->name, name) == 0) return workloads[i];
  return NULL;
}
