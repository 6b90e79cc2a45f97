#include "engine/sampled/measured_ctas.h"

#include "engine/sampled/cursor.h"

enum {
  SEARCHED_CTAS = 4096,  // among which a CTA is sought
  COMPARED_CTAS = 128,   // of those with the same loops, by their bytes: a guess, each costs a look at all its tiles
};

static int64_t trips_of(const ftl_segments *segments, const ftl_warp_program *program, int32_t loop, int64_t cta) {
  int64_t first;
  return ftl_segments_trips(segments, program, loop, cta, &first);
}

// Bytes of the tiles that the CTA comes to first in each segment; where a tensor ends inside a tile the CTAs there have
// less than others of the same loops. `all`: of whole tiles.
static int64_t first_bytes(const ftl_segments *segments, const ftl_warp_program *program, int64_t cta, int64_t *all) {
  int64_t sum = 0;
  *all = 0;
  for (int32_t s = 0; s < 2 * segments->num_loops + 1; s++) {
    if (s % 2 == 1 && trips_of(segments, program, s / 2, cta) == 0) continue;
    const ftl_segment *segment = &segments->segments[s];
    for (int32_t i = 0; i < segment->num_refs; i++) {
      const ftl_segment_ref *ref = &segment->refs[i];
      ftl_ref_step step = ftl_ref_step_of(segments->tile, ref);
      ftl_ref_cursor cursor = {0};
      if (step.is_steady) cursor = ftl_ref_cursor_at(segments->tile, ref, cta, 0);
      ftl_tile_place place = ftl_ref_place(segments->tile, ref, &step, &cursor, &(ftl_cta_at){.cta = cta}, 0);
      sum += (int64_t)place.num_rows * place.row_bytes;
      *all += ftl_tile_ref_bytes(segments->tile, &ref->ref);
    }
  }
  return sum;
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

// CTAs that run a loop once, and those that run it more often, among those looked at.
typedef struct loop_use {
  int64_t num_once, num_repeating;
} loop_use;

static void count_uses(const ftl_segments *segments, const ftl_warp_program *program, cta_sample sample,
                       loop_use *uses) {
  for (int64_t cta = 0; cta < sample.end; cta += sample.stride)
    for (int32_t k = 0; k < segments->num_loops; k++) {
      int64_t trips = trips_of(segments, program, k, cta);
      uses[k].num_once += trips == 1;
      uses[k].num_repeating += trips > 1;
    }
}

// What a CTA has of what a representative should have, first things first. `repeated`: loops that it runs more than
// once and most that run them do, since once is no time of an iteration (the last part of the keys to decode may have
// one whole tile, where all others have several). `kinds`: loops that it runs at all. Both by the CTAs that run them
// so: where the last CTA alone has a loop of its own (its keys end inside a tile), the others stand for the grid.
// `trips`: iterations of all of them.
typedef struct candidate {
  int64_t cta, repeated, kinds, trips;
} candidate;

static candidate candidate_of(const ftl_segments *segments, const ftl_warp_program *program, const loop_use *uses,
                              int64_t cta) {
  candidate one = {.cta = cta};
  for (int32_t k = 0; k < segments->num_loops; k++) {
    int64_t trips = trips_of(segments, program, k, cta);
    bool is_repeated = uses[k].num_repeating > uses[k].num_once;
    one.repeated += is_repeated && trips > 1 ? uses[k].num_repeating : 0;
    one.kinds += trips > 0 ? uses[k].num_once + uses[k].num_repeating : 0;
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

// Among equals the one with most bytes, the last of those.
static candidate best_of(const ftl_segments *segments, const ftl_warp_program *program, const loop_use *uses,
                         cta_sample sample) {
  candidate best = {.repeated = -1};
  int64_t bytes = -1, all = 0, num_compared = 0, last = (sample.end - 1) / sample.stride * sample.stride;
  for (int64_t cta = last; sample.end > 0 && cta >= 0; cta -= sample.stride) {
    candidate one = candidate_of(segments, program, uses, cta);
    if (has_less(one, best, 1000)) continue;
    if (has_less(best, one, 1000)) {
      best = one;
      bytes = -1;
      num_compared = 0;
      continue;
    }
    if (bytes < 0) bytes = first_bytes(segments, program, best.cta, &all);
    if (bytes >= all || num_compared++ >= COMPARED_CTAS) continue;
    int64_t whole, of_one = first_bytes(segments, program, cta, &whole);
    if (of_one <= bytes) continue;
    best = one;
    bytes = of_one;
    all = whole;
  }
  return best;
}

// Of CTAs with the same loops, those with a few iterations more are measured alike: two thirds are a guess.
static candidate representative_of(const ftl_segments *segments, const ftl_warp_program *program,
                                   const loop_use *uses) {
  enum { FAR_LESS_PERMILLE = 667 };
  candidate spread = best_of(segments, program, uses, spread_over(program->tile->num_ctas));
  candidate first = best_of(segments, program, uses, first_of(program->tile->num_ctas));
  return has_less(spread, first, FAR_LESS_PERMILLE) ? first : spread;
}

int32_t ftl_measured_ctas_representatives(const ftl_segments *segments, const ftl_warp_program *program,
                                          int64_t ctas[FTL_MAX_REPRESENTATIVES]) {
  loop_use uses[FTL_MAX_SEGMENT_LOOPS] = {0};
  int32_t count = 0;
  count_uses(segments, program, spread_over(program->tile->num_ctas), uses);
  count_uses(segments, program, first_of(program->tile->num_ctas), uses);
  do {
    candidate best = representative_of(segments, program, uses);
    if (count > 0 && best.repeated == 0) break;
    ctas[count++] = best.cta;
    for (int32_t k = 0; k < segments->num_loops; k++)
      if (trips_of(segments, program, k, best.cta) > 0) uses[k] = (loop_use){0};
  } while (count < FTL_MAX_REPRESENTATIVES);
  return count;
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
  int64_t grid = launch->tile->num_ctas, all, wanted = first_bytes(segments, launch->warps, ctas[0], &all);
  int64_t alike = -1;  // the first with those loops
  for (int64_t d = 0, num_compared = 0; d < SEARCHED_CTAS && d < grid && num_compared < COMPARED_CTAS; d++) {
    int64_t cta = (from + grid - d) % grid;
    if (is_among(ctas, num_ctas, cta) || !same_trips(launch, segments, cta, ctas[0])) continue;
    if (8 * first_bytes(segments, launch->warps, cta, &all) >= 7 * wanted)
      return cta;  // an eighth less is alike: a guess
    if (alike < 0) alike = cta;
    num_compared++;
  }
  return alike >= 0 ? alike : from;
}

void ftl_measured_ctas_sharing(const ftl_launch *launch, const ftl_segments *segments, int64_t representative,
                               int32_t num_ctas, int64_t *ctas) {
  int64_t grid = launch->tile->num_ctas, round = launch->arch->chip_num_sms;
  int64_t distance = round * num_ctas <= grid ? round : grid > num_ctas ? grid / num_ctas : 1;
  ctas[0] = representative;
  for (int32_t i = 1; i < num_ctas; i++)
    ctas[i] = find_alike(launch, segments, (representative + (grid - distance % grid) * i) % grid, ctas, i);
}

static bool is_bare(const ftl_segments *segments, const ftl_warp_program *program, int64_t cta) {
  for (int32_t k = 0; k < segments->num_loops; k++)
    if (trips_of(segments, program, k, cta) > 0) return false;
  return true;
}

static bool has_loops_of_ctas(const ftl_segments *segments, const ftl_warp_program *program) {
  for (int32_t k = 0; k < segments->num_loops; k++) {
    if (segments->loops[k] < 0) continue;
    const ftl_warp_loop *loop = &program->loops[segments->loops[k]];
    if (ftl_expr_uses_cta(program->tile, loop->lo) || ftl_expr_uses_cta(program->tile, loop->hi)) return true;
  }
  return false;
}

int64_t ftl_measured_ctas_bare(const ftl_segments *segments, const ftl_warp_program *program, int64_t representative) {
  int64_t num_ctas = program->tile->num_ctas;
  if (!has_loops_of_ctas(segments, program) || is_bare(segments, program, representative)) return -1;
  const cta_sample samples[] = {spread_over(num_ctas), first_of(num_ctas)};
  for (int32_t i = 0; i < 2; i++)
    for (int64_t cta = 0; cta < samples[i].end; cta += samples[i].stride)
      if (is_bare(segments, program, cta)) return cta;
  return -1;
}

int64_t ftl_measured_ctas_distance(const ftl_launch *launch, const ftl_segments *segments, int64_t representative) {
  for (int64_t d = 1; d <= SEARCHED_CTAS && 2 * d <= representative; d++)
    if (same_trips(launch, segments, representative - d, representative) &&
        same_trips(launch, segments, representative - 2 * d, representative))
      return d;
  return 0;
}
