#include <stdio.h>
#include <string.h>

#include "engine/predict.h"

#define SUM FTL_COMBINE_SUM
#define MAX FTL_COMBINE_MAX
#define MEAN FTL_COMBINE_MEAN

static const ftl_metric_info infos[FTL_METRIC_COUNT] = {
#define FTL_METRIC(id, name_, unit_, combine_, doc_) \
  [FTL_METRIC_##id] = {.name = name_, .unit = unit_, .doc = doc_, .combine = combine_},
#include "engine/metrics.def"
#undef FTL_METRIC
};

const ftl_metric_info *ftl_metric_get(ftl_metric metric) { return &infos[metric]; }

const char *ftl_stall_name(ftl_metric stall, char *buffer) {
  enum { NAME_BYTES = 32 };
  const char *reason = strstr(infos[stall].name, "stalled_") + strlen("stalled_");
  snprintf(buffer, NAME_BYTES, "%.*s", (int)(strstr(reason, "_per_issue") - reason), reason);
  return buffer;
}

int ftl_metric_find(const char *name) {
  for (int i = 0; i < FTL_METRIC_COUNT; i++)
    if (strcmp(infos[i].name, name) == 0) return i;
  return -1;
}
