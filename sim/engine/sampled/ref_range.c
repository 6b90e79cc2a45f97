#include "engine/sampled/ref_range.h"

#include "engine/sampled/cursor.h"

static void add_place(ftl_byte_range *range, const ftl_tile_place *place) {
  if (place->num_rows == 0 || place->row_bytes <= 0) return;
  int64_t end = ftl_tile_place_row(place, place->num_rows - 1) + place->row_bytes;
  bool is_first = range->begin == range->end;
  if (is_first || place->address_bytes < range->begin) range->begin = place->address_bytes;
  if (is_first || end > range->end) range->end = end;
}

// The tile in an iteration of the access's loop, which the point is set to.
static ftl_tile_place place_at(const ftl_tile_program *tile, const ftl_segment_ref *ref, ftl_expr_point point,
                               int64_t iteration) {
  if (ref->loop_var >= 0) point.loop[ref->loop_var] = ftl_expr_eval(tile, ref->lo, &point) + iteration;
  return ftl_tile_place_of(tile, &ref->ref, &point);
}

// Loads that run ahead end some iterations before their loop does, and then stay away.
static void add_iterations(ftl_byte_range *range, const ftl_tile_program *tile, const ftl_segment_ref *ref,
                           ftl_expr_point point, int64_t trips) {
  ftl_tile_place first = place_at(tile, ref, point, 0), last = place_at(tile, ref, point, trips - 1);
  int64_t is_there = 0, is_away = trips - 1;
  while (first.num_rows > 0 && last.num_rows == 0 && is_away - is_there > 1) {
    int64_t between = is_there + (is_away - is_there) / 2;
    ftl_tile_place place = place_at(tile, ref, point, between);
    if (place.num_rows == 0) {
      is_away = between;
    } else {
      is_there = between;
      add_place(range, &place);
    }
  }
  add_place(range, &first);
  add_place(range, &last);
}

ftl_byte_range ftl_ref_range_of(const ftl_segments *segments, const ftl_warp_program *program, int32_t segment,
                                const ftl_segment_ref *ref, int64_t cta) {
  ftl_byte_range range = {0};
  int64_t first_outer, outer_trips = ftl_segments_outer_trips(segments, program, cta, &first_outer);
  const int64_t outers[] = {first_outer, first_outer + outer_trips - 1};
  for (int32_t i = 0; i < (ref->outer_var >= 0 ? 2 : 1) && outer_trips > 0; i++) {
    ftl_expr_point point = {.cta = cta};
    int64_t first_value, trips = 1;
    if (segment % 2 == 1)
      trips = ftl_segments_trips_in(segments, program, segment / 2, &(ftl_cta_at){.cta = cta, .outer = outers[i]},
                                    &first_value);
    if (ref->outer_var >= 0) point.loop[ref->outer_var] = outers[i];
    if (trips > 0) add_iterations(&range, segments->tile, ref, point, trips);
  }
  return range;
}

bool ftl_ref_moves_steadily(const ftl_tile_program *tile, const ftl_segment_ref *ref) {
  ftl_segment_ref outer = *ref;
  outer.loop_var = ref->outer_var;
  return ftl_ref_step_of(tile, ref).is_steady && ftl_ref_step_of(tile, &outer).is_steady;
}
