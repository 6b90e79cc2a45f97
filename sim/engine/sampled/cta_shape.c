#include "engine/sampled/cta_shape.h"

#include "lower/walk.h"

// The first iteration of an access's loop. `known` has what the access before found, at the same point perhaps.
static ftl_expr_point first_point(const ftl_segments *segments, const ftl_segment_ref *ref, int64_t cta, int64_t outer,
                                  ftl_expr_known *known) {
  ftl_expr_point point = {.cta = cta, .known = known};
  if (ref->outer_var >= 0) point.loop[ref->outer_var] = outer;
  if (ref->loop_var >= 0) point.loop[ref->loop_var] = ftl_expr_eval(segments->tile, ref->lo, &point);
  return point;
}

void ftl_cta_shape_get(const ftl_segments *segments, const ftl_warp_program *program, int64_t cta,
                       ftl_cta_shape *shape) {
  int64_t first, outer;
  shape->outer_trips = ftl_segments_outer_trips(segments, program, cta, &outer);
  for (int32_t k = 0; k < segments->num_loops; k++)
    shape->trips[k] = ftl_segments_trips(segments, program, k, cta, &first);
  shape->num_refs = 0;
  ftl_expr_known known = {0};
  const ftl_segment_ref *before = NULL;
  for (int32_t s = 0; s < 2 * segments->num_loops + 1; s++) {
    const ftl_segment *segment = &segments->segments[s];
    for (int32_t i = 0; i < segment->num_refs; i++) {
      const ftl_segment_ref *ref = &segment->refs[i];
      shape->num_rows[shape->num_refs] = 0;  // the accesses of a loop that does not run count as absent
      shape->address[shape->num_refs++] = 0;
      if ((s % 2 == 1 && shape->trips[s / 2] == 0) || (ref->outer_var >= 0 && shape->outer_trips == 0)) continue;
      if (!before || !ftl_refs_share_point(before, ref)) ftl_expr_known_forget(&known);
      before = ref;
      ftl_expr_point point = first_point(segments, ref, cta, outer, &known);
      ftl_tile_place place = ftl_tile_place_of(segments->tile, &ref->ref, &point);
      shape->address[shape->num_refs - 1] = place.address_bytes;
      shape->num_rows[shape->num_refs - 1] = place.num_rows;
      shape->row_bytes[shape->num_refs - 1] = place.row_bytes;
    }
  }
}

bool ftl_cta_shapes_alike(const ftl_segments *segments, const ftl_cta_shape *a, const ftl_cta_shape *b) {
  if (a->outer_trips != b->outer_trips) return false;
  for (int32_t k = 0; k < segments->num_loops; k++)
    if (a->trips[k] != b->trips[k]) return false;
  for (int32_t i = 0; i < a->num_refs; i++)
    if (a->num_rows[i] != b->num_rows[i] || (a->num_rows[i] > 0 && a->row_bytes[i] != b->row_bytes[i])) return false;
  return true;
}
