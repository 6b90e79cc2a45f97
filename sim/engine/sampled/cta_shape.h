// What a CTA does, for comparing it with others: its loops' lengths and where its accesses begin.
#ifndef FTL_ENGINE_SAMPLED_CTA_SHAPE_H
#define FTL_ENGINE_SAMPLED_CTA_SHAPE_H

#include "engine/sampled/segments.h"

enum { FTL_CTA_MAX_REFS = FTL_MAX_SEGMENTS * FTL_MAX_SEGMENT_REFS };

typedef struct ftl_cta_shape {
  int64_t trips[FTL_MAX_SEGMENT_LOOPS], outer_trips;
  int32_t num_refs;  // of all segments, in their order
  int64_t address[FTL_CTA_MAX_REFS];
  int32_t num_rows[FTL_CTA_MAX_REFS];  // 0: absent, or in a loop that does not run
  int32_t row_bytes[FTL_CTA_MAX_REFS];
} ftl_cta_shape;

// A CTA's loops, and its accesses in their first iteration (and in the first of the loop around them).
void ftl_cta_shape_get(const ftl_segments *segments, const ftl_warp_program *program, int64_t cta,
                       ftl_cta_shape *shape);
// Whether two CTAs have the same loops, and the same parts of tiles wherever these lie.
bool ftl_cta_shapes_alike(const ftl_segments *segments, const ftl_cta_shape *a, const ftl_cta_shape *b);

#endif
