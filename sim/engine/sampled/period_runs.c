#include "engine/sampled/period_runs.h"

#include <stdlib.h>

#include "base/integer.h"
#include "engine/sampled/cta_shape.h"
#include "engine/sampled/ref_range.h"

enum {
  CONTIGUOUS = 2048,  // CTAs that are compared one by one; then a sample
  PROBES = 257,
  MOST_PERIODS = 1 << 18,  // of a grid that is looked at
  LEAST_PERIODS = 8,
  FLUSHING_L2S = 2,  // what touched so much since has displaced a line under any policy but random (l2/tags.c)
};

// How a tensor's tiles move from period to period. Their place is that of one access of one CTA of the period: any that
// is there.
typedef struct tensor_runs {
  bool is_used;
  int32_t segment;
  const ftl_segment_ref *ref;
  int64_t cta;             // of the period
  int64_t distance;        // from a period to the next in a run; 0: all periods touch the same
  ftl_byte_range touched;  // in the first period
  int64_t bytes;           // of that, without what lies between the tiles of a CTA and those of the next; or less
} tensor_runs;

typedef struct grid_runs {
  const ftl_segments *segments;
  const ftl_warp_program *program;
  int64_t period;
  int64_t flushing_periods;  // so many touch what flushes L2
  tensor_runs tensors[FTL_TILE_MAX_TENSORS];
} grid_runs;

static int64_t place_in(const grid_runs *runs, const tensor_runs *tensor, int64_t period) {
  int64_t cta = period * runs->period + tensor->cta;
  return ftl_ref_range_of(runs->segments, runs->program, tensor->segment, tensor->ref, cta).begin;
}

static void widen(tensor_runs *tensor, ftl_byte_range by) {
  ftl_byte_range *range = &tensor->touched;
  bool is_first = range->begin == range->end;
  if (is_first || by.begin < range->begin) range->begin = by.begin;
  if (!is_first && by.end <= range->end) return;
  tensor->bytes += by.end - (!is_first && by.begin < range->end ? range->end : by.begin);
  range->end = by.end;
}

static bool try_add_ref(grid_runs *runs, int32_t segment, const ftl_segment_ref *ref) {
  tensor_runs *tensor = &runs->tensors[ref->ref.tensor];
  if (!ftl_ref_moves_steadily(runs->segments->tile, ref)) return false;
  for (int64_t cta = 0; cta < runs->period; cta++) {
    ftl_byte_range range = ftl_ref_range_of(runs->segments, runs->program, segment, ref, cta);
    if (range.begin == range.end) continue;
    widen(tensor, range);
    if (tensor->is_used) continue;
    tensor->is_used = true;
    tensor->segment = segment;
    tensor->ref = ref;
    tensor->cta = cta;
  }
  return true;
}

// Bytes of the tensor that a period touches and the one before it did not: of rows that may lie apart.
static int64_t fresh_bytes(const tensor_runs *tensor, const ftl_tensor *shape) {
  int64_t bytes = tensor->bytes, distance = llabs(tensor->distance);
  int64_t row_bytes = tensor->ref->ref.columns * ftl_dtype_bytes(shape->dtype);
  int64_t stride_bytes = shape->row_stride * ftl_dtype_bytes(shape->dtype);
  if (distance < bytes) bytes = distance;
  return row_bytes < stride_bytes ? bytes / stride_bytes * row_bytes : bytes;
}

// Where each tensor's tiles lie in the first period and how they move to the second; false where what L2 keeps does not
// hang on how much was touched since.
static bool try_find_tensors(grid_runs *runs, int64_t l2_bytes) {
  const ftl_tile_program *tile = runs->segments->tile;
  for (int32_t s = 0; s < 2 * runs->segments->num_loops + 1; s++)
    for (int32_t i = 0; i < runs->segments->segments[s].num_refs; i++)
      if (!try_add_ref(runs, s, &runs->segments->segments[s].refs[i])) return false;
  int64_t fresh = 0;
  for (int32_t i = 0; i < tile->num_tensors; i++) {
    tensor_runs *tensor = &runs->tensors[i];
    if (!tensor->is_used) continue;
    if (tile->tensors[i].l2_priority != FTL_L2_EVICT_NORMAL) return false;
    tensor->distance = place_in(runs, tensor, 1) - place_in(runs, tensor, 0);
    fresh += fresh_bytes(tensor, &tile->tensors[i]);
  }
  if (fresh == 0) return false;
  runs->flushing_periods = ftl_divide_up(FLUSHING_L2S * l2_bytes, fresh);
  return true;
}

// Whether `place` lies apart from what was touched too late to be flushed: in the periods up to the one at `last`, but
// for those with the flushing ones behind them.
static bool is_flushed(const grid_runs *runs, const tensor_runs *tensor, int64_t last, int64_t place) {
  int64_t first = last - (runs->flushing_periods - 1) * tensor->distance,
          extent = tensor->touched.end - tensor->touched.begin;
  int64_t low = first < last ? first : last, high = first < last ? last : first;
  return place <= low - extent || place >= high + extent;
}

// Looks at one access of the tensor in every period.
static bool moves_in_runs(const grid_runs *runs, const tensor_runs *tensor) {
  int64_t num_periods = runs->segments->tile->num_ctas / runs->period, run_begin = 0;
  int64_t before = place_in(runs, tensor, 0);
  for (int64_t period = 1; period < num_periods; period++) {
    int64_t place = place_in(runs, tensor, period);
    if (place != before + tensor->distance) {
      if (tensor->distance == 0 || period - run_begin <= runs->flushing_periods) return false;
      if (!is_flushed(runs, tensor, before, place)) return false;
      run_begin = period;
    }
    before = place;
  }
  return true;
}

// A tensor that the first periods do not use has no distance.
static bool moves_by(const grid_runs *runs, int32_t tensor, const int64_t *distance, int64_t bytes) {
  return runs->tensors[tensor].is_used && distance[tensor] == bytes;
}

// Whether the CTA's tiles lie to those of the CTA one period on as its tensors' do.
static bool moves_with_period(const grid_runs *runs, int64_t cta) {
  ftl_cta_shape a, b;
  ftl_cta_shape_get(runs->segments, runs->program, cta, &a);
  ftl_cta_shape_get(runs->segments, runs->program, cta + runs->period, &b);
  if (!ftl_cta_shapes_alike(runs->segments, &a, &b)) return false;
  int64_t period = cta / runs->period, distance[FTL_TILE_MAX_TENSORS];
  for (int32_t i = 0; i < runs->segments->tile->num_tensors; i++) {
    const tensor_runs *tensor = &runs->tensors[i];
    if (tensor->is_used) distance[i] = place_in(runs, tensor, period + 1) - place_in(runs, tensor, period);
  }
  int32_t ref = 0;
  for (int32_t s = 0; s < 2 * runs->segments->num_loops + 1; s++)
    for (int32_t i = 0; i < runs->segments->segments[s].num_refs; i++, ref++)
      if (a.num_rows[ref] > 0 &&
          !moves_by(runs, runs->segments->segments[s].refs[i].ref.tensor, distance, b.address[ref] - a.address[ref]))
        return false;
  return true;
}

static bool come_in_runs(const ftl_segments *segments, const ftl_warp_program *program, int64_t l2_bytes,
                         int64_t period) {
  ftl_cta_shape first, next;
  ftl_cta_shape_get(segments, program, 0, &first);
  ftl_cta_shape_get(segments, program, period, &next);
  if (!ftl_cta_shapes_alike(segments, &first, &next)) return false;  // most
  grid_runs runs = {.segments = segments, .program = program, .period = period};
  if (!try_find_tensors(&runs, l2_bytes)) return false;
  for (int32_t i = 0; i < segments->tile->num_tensors; i++)  // first: it takes less
    if (runs.tensors[i].is_used && !moves_in_runs(&runs, &runs.tensors[i])) return false;
  int64_t last = segments->tile->num_ctas - period;
  int64_t stride = last > CONTIGUOUS + PROBES ? (last - CONTIGUOUS) / PROBES : 1;
  for (int64_t cta = 0; cta < last; cta += cta < CONTIGUOUS ? 1 : stride)
    if (!moves_with_period(&runs, cta)) return false;
  return true;
}

int64_t ftl_period_of_runs(const ftl_segments *segments, const ftl_warp_program *program, int64_t l2_bytes,
                           int64_t most_ctas) {
  int64_t num_ctas = segments->tile->num_ctas, least = ftl_divide_up(num_ctas, MOST_PERIODS);
  for (int64_t period = least; period < most_ctas && period * LEAST_PERIODS <= num_ctas; period++)
    if (num_ctas % period == 0 && come_in_runs(segments, program, l2_bytes, period)) return period;
  return 0;
}
