// How much code the segments of a program have, and when CTAs that share an SM drive each other's out of the
// instruction cache.
#ifndef FTL_ENGINE_SAMPLED_SEGMENT_CODE_H
#define FTL_ENGINE_SAMPLED_SEGMENT_CODE_H

#include "engine/sampled/segments.h"

typedef struct ftl_segment_code {
  int64_t bytes[FTL_MAX_SEGMENTS];
  int64_t cache_bytes;
  // All of it is in the cache at once, or most CTAs go the same way: those that begin together on an SM stay side by
  // side, and one finds what another has fetched.
  bool stays;
} ftl_segment_code;

// cache_bytes 0: a chip on which all code is always there. Of programs of one role without clusters or a loop around
// others; the code of others counts as staying.
void ftl_segment_code_init(ftl_segment_code *out, const ftl_segments *segments, const ftl_warp_program *program,
                           int64_t cache_bytes);

// Whether a CTA in segment `own` finds none of its code in the cache, while others of the SM are in those that are set
// in `others` (bit s: segment s). Where not all code fits, what runs once has left since a CTA came by; a loop's is
// there in its first iteration where another CTA is in the loop, and in later ones where it fits beside what the others
// run: of more, least recently used lines leave before they are used again.
bool ftl_segment_code_is_refetched(const ftl_segment_code *code, int32_t own, int64_t trips, int64_t iteration,
                                   uint64_t others);

#endif
