#include "engine/sampled/stream.h"

#include "engine/sampled/cursor.h"

// CTAs of a period that are looked at: all of the first, then a sample.
enum { CONTIGUOUS = 2048, PROBES = 257, SMALL_PART = 64 };

typedef struct byte_range {
  int64_t begin, end;  // equal: nothing is loaded
} byte_range;

static void widen(byte_range *range, const ftl_tile_place *place) {
  if (place->num_rows == 0 || place->row_bytes <= 0) return;
  int64_t end = ftl_tile_place_row(place, place->num_rows - 1) + place->row_bytes;
  bool is_first = range->begin == range->end;
  if (is_first || place->address_bytes < range->begin) range->begin = place->address_bytes;
  if (is_first || end > range->end) range->end = end;
}

// From the first byte to the last that the CTA loads, in the first iterations and the last of the loop that the access
// is in, and of the loop around that.
static byte_range range_of(const ftl_segments *segments, const ftl_warp_program *program, int32_t segment,
                           const ftl_segment_ref *ref, int64_t cta) {
  byte_range range = {0};
  int64_t first_outer, outer_trips = ftl_segments_outer_trips(segments, program, cta, &first_outer);
  const int64_t outers[] = {first_outer, first_outer + outer_trips - 1};
  for (int32_t i = 0; i < (ref->outer_var >= 0 ? 2 : 1) && outer_trips > 0; i++) {
    int64_t first_value = 0, trips = 1;
    if (segment % 2 == 1) trips = ftl_segments_trips_in(segments, program, segment / 2, cta, outers[i], &first_value);
    const int64_t iterations[] = {0, trips - 1};
    for (int32_t k = 0; k < 2 && trips > 0; k++) {
      ftl_expr_point point = {.cta = cta};
      if (ref->outer_var >= 0) point.loop[ref->outer_var] = outers[i];
      if (ref->loop_var >= 0)
        point.loop[ref->loop_var] = ftl_expr_eval(segments->tile, ref->lo, &point) + iterations[k];
      ftl_tile_place place = ftl_tile_place_of(segments->tile, &ref->ref, &point);
      widen(&range, &place);
    }
  }
  return range;
}

static bool is_small(const ftl_tensor *tensor, const ftl_arch *arch) {
  int64_t bytes =
      tensor->num_batches * tensor->num_heads * tensor->num_rows * tensor->num_columns * ftl_dtype_bytes(tensor->dtype);
  return SMALL_PART * bytes <= arch->l2_size_bytes;
}

// Between the first iteration and the last, tiles lie between theirs only if they move steadily.
static bool moves_steadily(const ftl_tile_program *tile, const ftl_segment_ref *ref) {
  ftl_segment_ref outer = *ref;
  outer.loop_var = ref->outer_var;
  return ftl_ref_step_of(tile, ref).is_steady && ftl_ref_step_of(tile, &outer).is_steady;
}

static bool moves_apart(const ftl_segments *segments, const ftl_warp_program *program, int32_t segment,
                        const ftl_segment_ref *ref, int64_t period) {
  if (!moves_steadily(segments->tile, ref)) return false;
  int64_t stride = period > CONTIGUOUS + PROBES ? (period - CONTIGUOUS) / PROBES : 1;
  byte_range before = {0};
  for (int64_t cta = 0; cta < period; cta += cta < CONTIGUOUS ? 1 : stride) {
    byte_range range = range_of(segments, program, segment, ref, cta);
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
