#include "engine/sampled/measured_ctas.h"

enum { SEARCHED_CTAS = 4096 };  // among which a CTA is sought

static int64_t trips_of(const ftl_segments *segments, const ftl_warp_program *program, int32_t loop, int64_t cta) {
  int64_t first;
  return ftl_segments_trips(segments, program, loop, cta, &first);
}

// CTAs of a grid, `stride` apart. Spread evenly over a long grid they may all be the first of a causal head, where
// their distance is one of heads: the first of such a grid, one by one, are looked at too.
typedef struct cta_sample {
  int64_t end, stride;
} cta_sample;

static cta_sample spread_over(int64_t num_ctas) {
  return (cta_sample){.end = num_ctas, .stride = num_ctas > SEARCHED_CTAS ? num_ctas / SEARCHED_CTAS : 1};
}

static cta_sample first_of(int64_t num_ctas) {
  return (cta_sample){.end = num_ctas > SEARCHED_CTAS ? SEARCHED_CTAS : 0, .stride = 1};
}

// How many more CTAs run the loop several times than once.
static int64_t excess_of_repeats(const ftl_segments *segments, const ftl_warp_program *program, int32_t loop,
                                 cta_sample sample) {
  int64_t excess = 0;
  for (int64_t cta = 0; cta < sample.end; cta += sample.stride) {
    int64_t trips = trips_of(segments, program, loop, cta);
    excess += (trips > 1) - (trips == 1);
  }
  return excess;
}

// Whether most CTAs that run the loop run it more than once.
static bool is_repeated(const ftl_segments *segments, const ftl_warp_program *program, int32_t loop) {
  int64_t num_ctas = program->tile->num_ctas;
  return excess_of_repeats(segments, program, loop, spread_over(num_ctas)) +
             excess_of_repeats(segments, program, loop, first_of(num_ctas)) >
         0;
}

// What a CTA has of what a representative should have, first things first. `repeated`: loops that are, more than once,
// since once is no time of an iteration (the last part of the keys to decode may have one whole tile, where all others
// have several). `kinds`: loops that it runs at all. `trips`: iterations of all of them.
typedef struct candidate {
  int64_t cta, repeated, kinds, trips;
} candidate;

static candidate candidate_of(const ftl_segments *segments, const ftl_warp_program *program, const bool *repeated,
                              int64_t cta) {
  candidate one = {.cta = cta};
  for (int32_t k = 0; k < segments->num_loops; k++) {
    int64_t trips = trips_of(segments, program, k, cta);
    one.repeated += repeated[k] && trips > 1;
    one.kinds += trips > 0;
    one.trips += trips * ftl_segments_visits(segments, program, 2 * k + 1, cta);
  }
  return one;
}

// Whether b has more loops, or as many and `share_permille` of its iterations are more than those of a.
static bool has_less(candidate a, candidate b, int64_t share_permille) {
  if (a.repeated != b.repeated) return a.repeated < b.repeated;
  if (a.kinds != b.kinds) return a.kinds < b.kinds;
  return 1000 * a.trips < share_permille * b.trips;
}

// The last among equals.
static candidate best_of(const ftl_segments *segments, const ftl_warp_program *program, const bool *repeated,
                         cta_sample sample) {
  candidate best = {.repeated = -1};
  for (int64_t cta = 0; cta < sample.end; cta += sample.stride) {
    candidate one = candidate_of(segments, program, repeated, cta);
    if (!has_less(one, best, 1000)) best = one;
  }
  return best;
}

// Of CTAs with the same loops, those with a few iterations more are measured alike: two thirds are a guess.
int64_t ftl_measured_ctas_representative(const ftl_segments *segments, const ftl_warp_program *program) {
  enum { FAR_LESS_PERMILLE = 667 };
  bool repeated[FTL_MAX_SEGMENT_LOOPS];
  for (int32_t k = 0; k < segments->num_loops; k++) repeated[k] = is_repeated(segments, program, k);
  candidate spread = best_of(segments, program, repeated, spread_over(program->tile->num_ctas));
  candidate first = best_of(segments, program, repeated, first_of(program->tile->num_ctas));
  return has_less(spread, first, FAR_LESS_PERMILLE) ? first.cta : spread.cta;
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
