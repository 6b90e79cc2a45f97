#include "engine/sampled/measured_ctas.h"

enum { SEARCHED_CTAS = 4096 };  // among which a CTA is sought

static int64_t trips_of(const ftl_segments *segments, const ftl_warp_program *program, int32_t loop, int64_t cta) {
  int64_t first;
  return ftl_segments_trips(segments, program, loop, cta, &first);
}

static int64_t stride_of(int64_t num_ctas) { return num_ctas > SEARCHED_CTAS ? num_ctas / SEARCHED_CTAS : 1; }

// Whether most CTAs that run the loop run it more than once.
static bool is_repeated(const ftl_segments *segments, const ftl_warp_program *program, int32_t loop) {
  int64_t num_ctas = program->tile->num_ctas, once = 0, more = 0;
  for (int64_t cta = 0; cta < num_ctas; cta += stride_of(num_ctas)) {
    int64_t trips = trips_of(segments, program, loop, cta);
    once += trips == 1;
    more += trips > 1;
  }
  return more > once;
}

// What a representative should have, first things first. `repeated`: loops that are, more than once, since once is no
// time of an iteration (the last part of the keys to decode may have one whole tile, where all others have several).
typedef struct merit {
  int64_t repeated, kinds, trips;
} merit;

static merit merit_of(const ftl_segments *segments, const ftl_warp_program *program, const bool *repeated,
                      int64_t cta) {
  merit m = {0};
  for (int32_t k = 0; k < segments->num_loops; k++) {
    int64_t trips = trips_of(segments, program, k, cta);
    m.repeated += repeated[k] && trips > 1;
    m.kinds += trips > 0;
    m.trips += trips * ftl_segments_visits(segments, program, 2 * k + 1, cta);
  }
  return m;
}

static bool is_less(merit a, merit b) {
  if (a.repeated != b.repeated) return a.repeated < b.repeated;
  return a.kinds != b.kinds ? a.kinds < b.kinds : a.trips < b.trips;
}

int64_t ftl_measured_ctas_representative(const ftl_segments *segments, const ftl_warp_program *program) {
  int64_t num_ctas = program->tile->num_ctas, best = 0;
  merit of_best = {.repeated = -1};
  bool repeated[FTL_MAX_SEGMENT_LOOPS];
  for (int32_t k = 0; k < segments->num_loops; k++) repeated[k] = is_repeated(segments, program, k);
  for (int64_t cta = 0; cta < num_ctas; cta += stride_of(num_ctas)) {
    merit m = merit_of(segments, program, repeated, cta);
    if (is_less(m, of_best)) continue;
    best = cta;
    of_best = m;
  }
  return best;
}

static bool same_trips(const ftl_launch *launch, const ftl_segments *segments, int64_t cta, int64_t other) {
  for (int32_t k = 0; k < segments->num_loops; k++)
    if (trips_of(segments, launch->warps, k, cta) != trips_of(segments, launch->warps, k, other)) return false;
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
