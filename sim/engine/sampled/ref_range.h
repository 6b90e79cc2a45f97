// From the first byte to the last that a CTA's access touches in all of its iterations.
#ifndef FTL_ENGINE_SAMPLED_REF_RANGE_H
#define FTL_ENGINE_SAMPLED_REF_RANGE_H

#include "engine/sampled/segments.h"

typedef struct ftl_byte_range {
  int64_t begin, end;  // equal: nothing is touched
} ftl_byte_range;

// Over the first iteration and the last in which the access is there, of its loop and of the loop around that.
ftl_byte_range ftl_ref_range_of(const ftl_segments *segments, const ftl_warp_program *program, int32_t segment,
                                const ftl_segment_ref *ref, int64_t cta);
// Whether the tiles of all iterations lie between those: only where they move steadily.
bool ftl_ref_moves_steadily(const ftl_tile_program *tile, const ftl_segment_ref *ref);

#endif
