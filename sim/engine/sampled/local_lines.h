// What spilled registers do to L2: local memory is written through L1, so every local store reaches L2 and, as far as
// L2 may not keep it dirty, DRAM.
// Models: the slots that each segment stores, per resident warp, at the addresses that the SM model gives them, on the
//   sampled sets. Does not model: loads that miss L1 (L2 has what was stored last), several stores of a slot in one
//   iteration.
#ifndef FTL_ENGINE_SAMPLED_LOCAL_LINES_H
#define FTL_ENGINE_SAMPLED_LOCAL_LINES_H

#include "engine/launch.h"
#include "machine/l2/tags.h"

typedef struct ftl_local_line {
  ftl_l2_known_line known;
  uint32_t segments;  // that store it, one bit each
} ftl_local_line;

typedef struct ftl_local_lines {
  int64_t *first;  // per CTA slot of the GPU, and one more: its lines are lines[first[slot] ... first[slot + 1])
  ftl_local_line *lines;
} ftl_local_lines;

// Both arrays stay NULL when nothing is spilled.
FTL_MUST_USE ftl_status ftl_local_lines_init(ftl_local_lines *local, const ftl_launch *launch, const ftl_l2_tags *tags,
                                             ftl_error *error);
void ftl_local_lines_fini(ftl_local_lines *local);
// CTA slot `slot` (of SM slot / ctas_per_sm, which is on `side`) runs a segment once: sectors that L2 writes back for
// that, in the sample.
int64_t ftl_local_lines_store(const ftl_local_lines *local, int32_t slot, int32_t segment, int32_t side,
                              ftl_l2_tags *tags);

#endif
