// Streams: launches of which no two CTAs of a period read the same, as element-wise ones and softmaxes of rows.
//
// What a CTA finds in L2, and what the coalescer merges, then does not hang on how far CTAs have drifted apart.
#ifndef FTL_ENGINE_SAMPLED_STREAM_H
#define FTL_ENGINE_SAMPLED_STREAM_H

#include "engine/sampled/segments.h"

// Whether what each of the first `num_ctas` CTAs loads lies beyond what the one before it loads, for every load; but
// for tensors that are a small part of L2 (a mask of keys that all rows add), which L2 holds whoever asks first.
bool ftl_ctas_read_apart(const ftl_segments *segments, const ftl_warp_program *program, const ftl_arch *arch,
                         int64_t num_ctas);
// Whether the CTAs of a period read apart. False where there is no period, or a loop around others.
bool ftl_is_stream(const ftl_segments *segments, const ftl_warp_program *program, const ftl_arch *arch, int64_t period);
// Whether no CTA of a stream loads a tile again: each tensor, but for small ones, is loaded in one place.
bool ftl_stream_loads_once(const ftl_segments *segments, const ftl_arch *arch);

#endif
