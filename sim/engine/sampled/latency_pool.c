#include "engine/sampled/latency_pool.h"

// An iteration asks for its loads anywhere in it, in the middle on average: half of the iterations ahead are sure to
// lie between a load and the wait for it.
bool ftl_latency_fits(ftl_latency_point shortest, ftl_latency_point longer, int32_t lookahead) {
  return 2 * longer.latency_cycles * FTL_SIXTEENTHS_PER_CYCLE <= lookahead * shortest.time_sixteenths;
}

// Where the code waits sooner all the same, every cycle of latency is one of the iteration.
bool ftl_latency_is_unseen(ftl_latency_point shortest, ftl_latency_point longer) {
  int64_t added_sixteenths = (longer.latency_cycles - shortest.latency_cycles) * FTL_SIXTEENTHS_PER_CYCLE;
  return 2 * (longer.time_sixteenths - shortest.time_sixteenths) <= added_sixteenths;
}

int32_t ftl_latency_lookahead(const ftl_segment *loop) {
  int32_t least = INT32_MAX;
  for (int32_t i = 0; i < loop->num_refs; i++) {
    const ftl_segment_ref *ref = &loop->refs[i];
    if (!ref->is_store && !ref->is_lookup && ref->lookahead < least) least = ref->lookahead;
  }
  return least < INT32_MAX ? least : 0;
}

int64_t ftl_latency_pool(int64_t *time_sixteenths, int64_t *longer_sixteenths, bool is_hidden) {
  if (!is_hidden && *longer_sixteenths >= *time_sixteenths) return 0;
  int64_t mean = (*time_sixteenths + *longer_sixteenths) / 2;
  int64_t change = *time_sixteenths > mean ? *time_sixteenths - mean : mean - *time_sixteenths;
  *time_sixteenths = *longer_sixteenths = mean;
  return change;
}
