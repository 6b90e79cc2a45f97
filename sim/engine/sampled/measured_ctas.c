#include "engine/sampled/measured_ctas.h"

enum { SEARCHED_CTAS = 4096 };  // among which a CTA is sought

// A CTA with the loops that it runs at all, and the iterations of all of them.
typedef struct candidate {
  int64_t cta, kinds, trips;
} candidate;

static candidate candidate_of(const ftl_segments *segments, const ftl_warp_program *program, int64_t cta) {
  candidate one = {.cta = cta};
  for (int32_t k = 0; k < segments->num_loops; k++) {
    int64_t first, trips = ftl_segments_trips(segments, program, k, cta, &first);
    one.trips += trips * ftl_segments_visits(segments, program, 2 * k + 1, cta);
    one.kinds += trips > 0;
  }
  return one;
}

static bool has_less(candidate a, candidate b) { return a.kinds != b.kinds ? a.kinds < b.kinds : a.trips < b.trips; }

// Of CTAs with the same loops, those with a few iterations more are measured alike.
static bool has_far_less(candidate a, candidate b) {
  return a.kinds != b.kinds ? a.kinds < b.kinds : 3 * a.trips < 2 * b.trips;
}

// CTAs spread evenly over a long grid may all be the first of a causal head, where their distance is one of heads: the
// first of the grid, one by one, are looked at too.
int64_t ftl_measured_ctas_representative(const ftl_segments *segments, const ftl_warp_program *program) {
  int64_t num_ctas = program->tile->num_ctas, stride = num_ctas > SEARCHED_CTAS ? num_ctas / SEARCHED_CTAS : 1;
  candidate spread = {.kinds = -1}, first = spread;
  for (int64_t cta = 0; cta < num_ctas; cta += stride) {
    candidate one = candidate_of(segments, program, cta);
    if (!has_less(one, spread)) spread = one;
  }
  for (int64_t cta = 0; stride > 1 && cta < SEARCHED_CTAS; cta++) {
    candidate one = candidate_of(segments, program, cta);
    if (!has_less(one, first)) first = one;
  }
  return has_far_less(spread, first) ? first.cta : spread.cta;
}

static bool same_trips(const ftl_launch *launch, const ftl_segments *segments, int64_t cta, int64_t other) {
  int64_t first;
  for (int32_t k = 0; k < segments->num_loops; k++)
    if (ftl_segments_trips(segments, launch->warps, k, cta, &first) !=
        ftl_segments_trips(segments, launch->warps, k, other, &first))
      return false;
  return true;
}

static bool is_among(const int64_t *ctas, int32_t num_ctas, int64_t cta) {
  for (int32_t i = 0; i < num_ctas; i++)
    if (ctas[i] == cta) return true;
  return false;
}

// The first CTA from `from` backwards that has the loops of the first of `ctas` and is none of them; `from` itself
// where none is near.
static int64_t find_alike(const ftl_launch *launch, const ftl_segments *segments, int64_t from, const int64_t *ctas,
                          int32_t num_ctas) {
  int64_t grid = launch->tile->num_ctas;
  for (int64_t d = 0; d < SEARCHED_CTAS && d < grid; d++) {
    int64_t cta = (from + grid - d) % grid;
    if (!is_among(ctas, num_ctas, cta) && same_trips(launch, segments, cta, ctas[0])) return cta;
  }
  return from;
}

void ftl_measured_ctas_sharing(const ftl_launch *launch, const ftl_segments *segments, int64_t representative,
                               int32_t num_ctas, int64_t *ctas) {
  int64_t grid = launch->tile->num_ctas, round = launch->arch->chip_num_sms;
  int64_t distance = round * num_ctas <= grid ? round : grid > num_ctas ? grid / num_ctas : 1;
  ctas[0] = representative;
  for (int32_t i = 1; i < num_ctas; i++)
    ctas[i] = find_alike(launch, segments, (representative + (grid - distance % grid) * i) % grid, ctas, i);
}

int64_t ftl_measured_ctas_distance(const ftl_launch *launch, const ftl_segments *segments, int64_t representative) {
  for (int64_t d = 1; d <= SEARCHED_CTAS && 2 * d <= representative; d++)
    if (same_trips(launch, segments, representative - d, representative) &&
        same_trips(launch, segments, representative - 2 * d, representative))
      return d;
  return 0;
}
