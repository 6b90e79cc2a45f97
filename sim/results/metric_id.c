#include "results/metric_id.h"

#include <string.h>

static const char *const ids[] = {
#define FTL_METRIC(id, name, unit, combine, doc) #id,
#include "engine/metrics.def"
#undef FTL_METRIC
};

const char *ftl_metric_id(ftl_metric metric) { return ids[metric]; }

int ftl_metric_id_find(const char *id) {
  for (int i = 0; i < FTL_METRIC_COUNT; i++) {
    if (strcmp(ids[i], id) == 0) return i;
  }
  return -1;
}
