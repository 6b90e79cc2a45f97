#include "engine/sampled/period.h"

#include "lower/walk.h"

// Every CTA of the first CONTIGUOUS is compared, so that the step from one head to the next is among them; then a
// sample.
enum { CONTIGUOUS = 8192, PROBES = 257, MAX_REFS = FTL_MAX_SEGMENTS * FTL_MAX_SEGMENT_REFS };

typedef struct cta_shape {
  int64_t trips[FTL_MAX_SEGMENT_LOOPS], outer_trips;
  int32_t num_refs;
  int64_t address[MAX_REFS];
  int32_t num_rows[MAX_REFS], row_bytes[MAX_REFS];
} cta_shape;

// A CTA's loops, and its accesses in their first iteration (and in the first of the loop around them).
static void get_shape(const ftl_segments *segments, const ftl_warp_program *program, int64_t cta, cta_shape *shape) {
  int64_t first, outer;
  shape->outer_trips = ftl_segments_outer_trips(segments, program, cta, &outer);
  for (int32_t k = 0; k < segments->num_loops; k++)
    shape->trips[k] = ftl_segments_trips(segments, program, k, cta, &first);
  shape->num_refs = 0;
  for (int32_t s = 0; s < 2 * segments->num_loops + 1; s++) {
    const ftl_segment *segment = &segments->segments[s];
    for (int32_t i = 0; i < segment->num_refs; i++) {
      const ftl_segment_ref *ref = &segment->refs[i];
      ftl_expr_point point = {.cta = cta};
      shape->num_rows[shape->num_refs] = 0;  // the accesses of a loop that does not run count as absent
      shape->address[shape->num_refs++] = 0;
      if ((s % 2 == 1 && shape->trips[s / 2] == 0) || (ref->outer_var >= 0 && shape->outer_trips == 0)) continue;
      if (ref->outer_var >= 0) point.loop[ref->outer_var] = outer;
      if (ref->loop_var >= 0) point.loop[ref->loop_var] = ftl_expr_eval(segments->tile, ref->lo, &point);
      ftl_tile_place place = ftl_tile_place_of(segments->tile, &ref->ref, &point);
      shape->address[shape->num_refs - 1] = place.address_bytes;
      shape->num_rows[shape->num_refs - 1] = place.num_rows;
      shape->row_bytes[shape->num_refs - 1] = place.row_bytes;
    }
  }
}

static bool same_but_moved(const ftl_segments *segments, const cta_shape *a, const cta_shape *b, int64_t *distance,
                           bool *has_distance) {
  if (a->outer_trips != b->outer_trips) return false;
  for (int32_t k = 0; k < segments->num_loops; k++)
    if (a->trips[k] != b->trips[k]) return false;
  for (int32_t i = 0; i < a->num_refs; i++) {
    if (a->num_rows[i] != b->num_rows[i]) return false;
    if (a->num_rows[i] == 0) continue;
    if (a->row_bytes[i] != b->row_bytes[i]) return false;
    int64_t d = b->address[i] - a->address[i];
    if (has_distance[i] && d != distance[i]) return false;
    distance[i] = d;
    has_distance[i] = true;
  }
  return true;
}

static bool is_period(const ftl_segments *segments, const ftl_warp_program *program, int64_t period) {
  int64_t last = program->tile->num_ctas - period;
  int64_t stride = last > CONTIGUOUS + PROBES ? (last - CONTIGUOUS) / PROBES : 1;
  int64_t distance[MAX_REFS];
  bool has_distance[MAX_REFS] = {false};
  cta_shape a, b;
  for (int64_t cta = 0; cta < last; cta += cta < CONTIGUOUS ? 1 : stride) {
    get_shape(segments, program, cta, &a);
    get_shape(segments, program, cta + period, &b);
    if (!same_but_moved(segments, &a, &b, distance, has_distance)) return false;
  }
  return true;
}

// Whether an expression has a lookup whose index reads the loop variable, or (-1) any lookup.
static bool looks_up(const ftl_tile_program *tile, ftl_expr expr, int32_t loop_var) {
  if (expr < 0) return false;
  const ftl_expr_node *node = &tile->exprs[expr];
  if (node->kind < FTL_EXPR_ADD) return false;
  if (node->kind == FTL_EXPR_LOOKUP) return loop_var < 0 || ftl_expr_uses(tile, node->a, loop_var);
  return looks_up(tile, node->a, loop_var) || looks_up(tile, node->b, loop_var);
}

static bool ref_looks_up(const ftl_tile_program *tile, const ftl_tile_ref *ref, int32_t loop_var) {
  return looks_up(tile, ref->batch, loop_var) || looks_up(tile, ref->head, loop_var) ||
         looks_up(tile, ref->row, loop_var) || looks_up(tile, ref->column, loop_var) ||
         looks_up(tile, ref->column_end, loop_var) || looks_up(tile, ref->row_end, loop_var) ||
         looks_up(tile, ref->present, loop_var);
}

// The first iteration of a loop does not tell what a table has for those after it, nor a few CTAs what it has for
// others.
static bool tables_decide(const ftl_segments *segments, const ftl_warp_program *program) {
  const ftl_tile_program *tile = program->tile;
  bool all_compared = tile->num_ctas <= CONTIGUOUS;
  for (int32_t s = 0; s < 2 * segments->num_loops + 1; s++) {
    for (int32_t i = 0; i < segments->segments[s].num_refs; i++) {
      const ftl_segment_ref *ref = &segments->segments[s].refs[i];
      if (ref->ref.pages.page_rows > 0) return true;
      if (ref->loop_var >= 0 && ref_looks_up(tile, &ref->ref, ref->loop_var)) return true;
      if (ref->outer_var >= 0 && ref_looks_up(tile, &ref->ref, ref->outer_var)) return true;
      if (!all_compared && ref_looks_up(tile, &ref->ref, -1)) return true;
    }
  }
  for (int32_t k = 0; k < segments->num_loops && !all_compared; k++) {
    if (segments->loops[k] < 0) continue;
    const ftl_warp_loop *loop = &program->loops[segments->loops[k]];
    if (looks_up(tile, loop->lo, -1) || looks_up(tile, loop->hi, -1)) return true;
  }
  return false;
}

int64_t ftl_period_find(const ftl_segments *segments, const ftl_warp_program *program) {
  int64_t num_ctas = program->tile->num_ctas;
  if (tables_decide(segments, program)) return 0;
  for (int64_t periods = num_ctas; periods > 1; periods--)
    if (num_ctas % periods == 0 && is_period(segments, program, num_ctas / periods)) return num_ctas / periods;
  return 0;
}
