#include "engine/sampled/period.h"

#include "engine/sampled/cta_shape.h"

// Every CTA of the first CONTIGUOUS is compared, so that the step from one head to the next is among them; then a
// sample.
enum { CONTIGUOUS = 8192, PROBES = 257 };

static bool same_but_moved(const ftl_segments *segments, const ftl_cta_shape *a, const ftl_cta_shape *b,
                           int64_t *distance, bool *has_distance) {
  if (!ftl_cta_shapes_alike(segments, a, b)) return false;
  for (int32_t i = 0; i < a->num_refs; i++) {
    if (a->num_rows[i] == 0) continue;
    int64_t d = b->address[i] - a->address[i];
    if (has_distance[i] && d != distance[i]) return false;
    distance[i] = d;
    has_distance[i] = true;
  }
  return true;
}

// How far the accesses of a CTA lie from those of the one a period before, as far as some pair has shown it.
typedef struct distances {
  const ftl_segments *segments;
  const ftl_warp_program *program;
  int64_t period;
  int64_t distance[FTL_CTA_MAX_REFS];
  bool has_distance[FTL_CTA_MAX_REFS];
} distances;

static bool agree_at(distances *d, int64_t cta) {
  ftl_cta_shape a, b;
  ftl_cta_shape_get(d->segments, d->program, cta, &a);
  ftl_cta_shape_get(d->segments, d->program, cta + d->period, &b);
  return same_but_moved(d->segments, &a, &b, d->distance, d->has_distance);
}

// The sample comes first: most that is no period differs somewhere in it.
static bool is_period(const ftl_segments *segments, const ftl_warp_program *program, int64_t period) {
  int64_t last = program->tile->num_ctas - period, contiguous = last < CONTIGUOUS ? last : CONTIGUOUS;
  int64_t stride = last > CONTIGUOUS + PROBES ? (last - CONTIGUOUS) / PROBES : 1;
  distances d = {.segments = segments, .program = program, .period = period};
  for (int64_t cta = contiguous; cta < last; cta += stride)
    if (!agree_at(&d, cta)) return false;
  for (int64_t cta = 0; cta < contiguous; cta++)
    if (!agree_at(&d, cta)) return false;
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
bool ftl_tables_decide(const ftl_segments *segments, const ftl_warp_program *program) {
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
  if (ftl_tables_decide(segments, program)) return 0;
  for (int64_t periods = num_ctas; periods > 1; periods--)
    if (num_ctas % periods == 0 && is_period(segments, program, num_ctas / periods)) return num_ctas / periods;
  return 0;
}
