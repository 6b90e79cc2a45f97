// The short names of metrics (the first column of metrics.def): columns of the database, names in scenarios.
#ifndef FTL_RESULTS_METRIC_ID_H
#define FTL_RESULTS_METRIC_ID_H

#include "engine/predict.h"

const char *ftl_metric_id(ftl_metric metric);  // "time_ns"
int ftl_metric_id_find(const char *id);        // -1: none

#endif
