// Merges the requests that SMs made in one window into the order (time, SM, order made).
#ifndef FTL_ENGINE_REQUEST_MERGE_H
#define FTL_ENGINE_REQUEST_MERGE_H

#include "base/status.h"
#include "engine/sm_pool.h"
#include "machine/mem.h"

typedef struct ftl_request_merge {
  ftl_mem_request *requests;
  int64_t *first_of_cycle;  // counting sort: window_cycles + 1 entries
  int64_t capacity, count, window_cycles;
} ftl_request_merge;

// Windows of window_cycles SM cycles. FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_request_merge_init(ftl_request_merge *merge, int64_t window_cycles, ftl_error *error);
void ftl_request_merge_fini(ftl_request_merge *merge);
// Collects what the SMs 0 .. num_sms-1 made in cycles [from, from + window). SMs that are not busy may have none.
FTL_MUST_USE ftl_status ftl_request_merge_collect(ftl_request_merge *merge, ftl_sm_pool *pool, const bool *advanced,
                                                  int32_t num_sms, int64_t from, ftl_error *error);

#endif
