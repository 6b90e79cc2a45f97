#include "engine/sampled/stream.h"

#include "engine/sampled/ref_range.h"

// CTAs of a period that are looked at: all of the first, then a sample.
enum { CONTIGUOUS = 2048, PROBES = 257, SMALL_PART = 64 };

static bool is_small(const ftl_tensor *tensor, const ftl_arch *arch) {
  return SMALL_PART * ftl_tensor_bytes(tensor) <= arch->l2_size_bytes;
}

static bool moves_apart(const ftl_segments *segments, const ftl_warp_program *program, int32_t segment,
                        const ftl_segment_ref *ref, int64_t period) {
  if (!ftl_ref_moves_steadily(segments->tile, ref)) return false;
  int64_t stride = period > CONTIGUOUS + PROBES ? (period - CONTIGUOUS) / PROBES : 1;
  ftl_byte_range before = {0};
  for (int64_t cta = 0; cta < period; cta += cta < CONTIGUOUS ? 1 : stride) {
    ftl_byte_range range = ftl_ref_range_of(segments, program, segment, ref, cta);
    if (range.begin == range.end) continue;
    if (range.begin < before.end) return false;
    before = range;
  }
  return true;
}

bool ftl_ctas_read_apart(const ftl_segments *segments, const ftl_warp_program *program, const ftl_arch *arch,
                         int64_t num_ctas) {
  for (int32_t s = 0; s < 2 * segments->num_loops + 1; s++) {
    for (int32_t i = 0; i < segments->segments[s].num_refs; i++) {
      const ftl_segment_ref *ref = &segments->segments[s].refs[i];
      if (ref->is_store || is_small(&segments->tile->tensors[ref->ref.tensor], arch)) continue;
      if (!moves_apart(segments, program, s, ref, num_ctas)) return false;
    }
  }
  return true;
}

bool ftl_is_stream(const ftl_segments *segments, const ftl_warp_program *program, const ftl_arch *arch,
                   int64_t period) {
  if (period == 0 || segments->outer.loop >= 0) return false;
  if (period > segments->tile->num_ctas) period = segments->tile->num_ctas;
  return ftl_ctas_read_apart(segments, program, arch, period);
}

bool ftl_stream_loads_once(const ftl_segments *segments, const ftl_arch *arch) {
  bool is_loaded[FTL_TILE_MAX_TENSORS] = {false};
  for (int32_t s = 0; s < 2 * segments->num_loops + 1; s++) {
    for (int32_t i = 0; i < segments->segments[s].num_refs; i++) {
      const ftl_segment_ref *ref = &segments->segments[s].refs[i];
      if (ref->is_store || is_small(&segments->tile->tensors[ref->ref.tensor], arch)) continue;
      if (is_loaded[ref->ref.tensor]) return false;
      is_loaded[ref->ref.tensor] = true;
    }
  }
  return true;
}
