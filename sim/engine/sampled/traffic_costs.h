// Latencies of a launch's traffic, and what its sectors cost each server.
#ifndef FTL_ENGINE_SAMPLED_TRAFFIC_COSTS_H
#define FTL_ENGINE_SAMPLED_TRAFFIC_COSTS_H

#include "engine/sampled/dram_rate.h"
#include "engine/sampled/traffic.h"

// Of a traffic that has its GPU and its clock.
void ftl_traffic_set_costs(ftl_traffic *traffic, const ftl_launch *launch, const ftl_dram_rate *rate);

#endif
