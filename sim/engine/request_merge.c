#include "engine/request_merge.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

ftl_status ftl_request_merge_init(ftl_request_merge *merge, int64_t window_cycles, ftl_error *error) {
  *merge = (ftl_request_merge){.window_cycles = window_cycles};
  merge->first_of_cycle = calloc((size_t)window_cycles + 1, sizeof *merge->first_of_cycle);
  return merge->first_of_cycle ? FTL_OK : ftl_error_set(error, FTL_NO_MEMORY, "out of memory for memory requests");
}

void ftl_request_merge_fini(ftl_request_merge *merge) {
  free(merge->requests);
  free(merge->first_of_cycle);
}

static int64_t cycle_of(const ftl_request_merge *merge, const ftl_mem_request *request, int64_t from) {
  int64_t cycle = request->time - from;
  FTL_CHECK(cycle >= 0 && cycle < merge->window_cycles, "request at cycle %lld outside the window that starts at %lld",
            (long long)request->time, (long long)from);
  return cycle;
}

static ftl_status reserve(ftl_request_merge *merge, int64_t count, ftl_error *error) {
  if (count <= merge->capacity) return FTL_OK;
  int64_t capacity = merge->capacity ? merge->capacity : 4096;
  while (capacity < count) capacity *= 2;
  ftl_mem_request *requests = realloc(merge->requests, (size_t)capacity * sizeof *requests);
  if (!requests) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for memory requests");
  merge->requests = requests;
  merge->capacity = capacity;
  return FTL_OK;
}

ftl_status ftl_request_merge_collect(ftl_request_merge *merge, ftl_sm_pool *pool, const bool *advanced, int32_t num_sms,
                                     int64_t from, ftl_error *error) {
  int64_t *first = merge->first_of_cycle;
  memset(first, 0, ((size_t)merge->window_cycles + 1) * sizeof *first);
  merge->count = 0;
  for (int32_t sm = 0; sm < num_sms; sm++) {
    if (!advanced[sm]) continue;
    int32_t count;
    const ftl_mem_request *requests = ftl_sm_requests(ftl_sm_pool_get(pool, sm), &count);
    for (int32_t i = 0; i < count; i++) first[cycle_of(merge, &requests[i], from) + 1]++;
    merge->count += count;
  }
  ftl_status status = reserve(merge, merge->count, error);
  if (status != FTL_OK) return status;
  for (int64_t cycle = 0; cycle < merge->window_cycles; cycle++) first[cycle + 1] += first[cycle];
  for (int32_t sm = 0; sm < num_sms; sm++) {
    if (!advanced[sm]) continue;
    int32_t count;
    const ftl_mem_request *requests = ftl_sm_requests(ftl_sm_pool_get(pool, sm), &count);
    for (int32_t i = 0; i < count; i++) merge->requests[first[requests[i].time - from]++] = requests[i];
  }
  return FTL_OK;
}
