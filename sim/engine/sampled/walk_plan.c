#include "engine/sampled/walk_plan.h"

#include "base/integer.h"
#include "engine/sampled/period.h"
#include "engine/sampled/period_runs.h"
#include "engine/sampled/stream.h"

enum {
  PERIOD_WAVES = 3,              // CTAs of one wave start together: a period must span several to have a duration
  STREAM_PERIOD_WAVES = 1,       // of a stream, several of whose periods stand for those to come
  LEAST_PERIODS = 5,             // that run before any can be skipped, with those kept
  WANTED_EVENTS = 1 << 18,       // of a walk: a fifth of a second
  WAITING_EVENTS = 1 << 20,      // of one whose loops wait for their own loads
  MOST_EVENTS = 1 << 19,         // beyond these, a larger part of L2 is let to a group
  LONGEST_EVENTS = 1 << 20,      // beyond these, one that is larger still
  STREAM_EVENTS = 1 << 16,       // of a stream, where which CTA comes first decides nothing,
  STREAM_STRAIGHT = 4,           // or so many times its straight code, each piece of which is an event anyway;
  LONG_STREAM_EVENTS = 1 << 14,  // of one that is WANTED_EVENTS long, most of which are skipped,
  LONG_STREAM_STRAIGHT = 2,      // less
  LEAST_GROUPS = 16,             // of the longest loop; none of a stream
  L2_SHARE = 64,                 // a group's tiles take at most this part of L2
  MOST_L2_SHARE = 32,
  LONGEST_L2_SHARE = 16,
  PROBE_EVENTS = 1 << 14,  // of a launch of which only the rates matter
  PROBE_L2_SHARE = 8,
  PROBE_GROUPS = 4,  // of its longest loop
  LOOKED_AT_CTAS = 1 << 16,
  EVEN_PERMILLE = 50,  // by which CTAs that do alike iterate more often than their mean
};

typedef struct walk_size {
  int64_t straight, iterations;  // segments of straight code, iterations of loops
  int64_t longest;               // trips of a loop
  int64_t all_events;            // of the whole launch, in single iterations
  bool is_even;
} walk_size;

static int64_t num_pieces(const ftl_segments *segments) { return segments->num_loops + 1; }

static walk_size size_of(const ftl_launch *launch, const ftl_segments *segments, int64_t num_ctas) {
  walk_size size = {0};
  int64_t most = 0;  // iterations of a CTA
  int64_t stride = ftl_divide_up(num_ctas, LOOKED_AT_CTAS), looked_at = 0, first;
  for (int64_t cta = 0; cta < num_ctas; cta += stride, looked_at++) {
    int64_t before = size.iterations;
    for (int32_t k = 0; k < segments->num_loops; k++) {
      int64_t trips = ftl_segments_trips(segments, launch->warps, k, cta, &first);
      size.iterations += trips * ftl_segments_visits(segments, launch->warps, 2 * k + 1, cta);
      if (trips > size.longest) size.longest = trips;
    }
    if (size.iterations - before > most) most = size.iterations - before;
  }
  size.is_even = 1000 * most * looked_at <= (1000 + EVEN_PERMILLE) * size.iterations;
  if (looked_at > 0) size.iterations = (int64_t)((double)size.iterations * (double)num_ctas / (double)looked_at);
  size.straight = num_ctas * num_pieces(segments);
  return size;
}

// Bytes of the tiles that one iteration of a loop asks for, of the loop that asks for most.
static int64_t iteration_bytes(const ftl_segments *segments) {
  int64_t most = 0;
  for (int32_t k = 0; k < segments->num_loops; k++) {
    const ftl_segment *segment = &segments->segments[2 * k + 1];
    int64_t bytes = 0;
    for (int32_t i = 0; i < segment->num_refs; i++) {
      bytes += ftl_tile_ref_bytes(segments->tile, &segment->refs[i].ref);
    }
    if (bytes > most) most = bytes;
  }
  return most;
}

// Where an iteration waits for its own loads, what CTAs wait for decides, iteration by iteration, how they drift.
static bool loads_run_ahead(const ftl_segments *segments) {
  for (int32_t k = 0; k < segments->num_loops; k++) {
    const ftl_segment *segment = &segments->segments[2 * k + 1];
    for (int32_t i = 0; i < segment->num_refs; i++)
      if (!segment->refs[i].is_store && !segment->refs[i].is_lookup && segment->refs[i].lookahead == 0) return false;
  }
  return true;
}

static int64_t choose_group(const ftl_launch *launch, const ftl_segments *segments, walk_size size, bool is_stream) {
  int64_t bytes = iteration_bytes(segments), group = 1;
  bool ahead = loads_run_ahead(segments);
  int64_t wanted = ahead ? WANTED_EVENTS : WAITING_EVENTS, most = ahead ? MOST_EVENTS : WAITING_EVENTS;
  if (!ahead && size.straight + size.iterations > WANTED_EVENTS &&
      ftl_ctas_read_apart(segments, launch->warps, launch->arch, segments->tile->num_ctas))
    wanted = most = STREAM_EVENTS;
  int64_t l2_share = L2_SHARE, least_groups = LEAST_GROUPS;
  if (is_stream) {
    bool is_long = size.all_events > WANTED_EVENTS;
    int64_t events = is_long ? LONG_STREAM_EVENTS : STREAM_EVENTS;
    int64_t straight = (is_long ? LONG_STREAM_STRAIGHT : STREAM_STRAIGHT) * size.straight;
    wanted = most = straight > events ? straight : events;
    least_groups = 1;
  }
  if (launch->is_probe) {
    least_groups = PROBE_GROUPS;
    wanted = PROBE_EVENTS;
    l2_share = PROBE_L2_SHARE;
  }
  while (size.straight + size.iterations / group > wanted && size.longest / (2 * group) >= least_groups &&
         2 * group * bytes <= launch->arch->l2_size_bytes / l2_share)
    group *= 2;
  while (size.straight + size.iterations / group > most && group < size.longest &&
         2 * group * bytes <= launch->arch->l2_size_bytes / MOST_L2_SHARE)
    group *= 2;
  while (size.straight + size.iterations / group > LONGEST_EVENTS && size.longest / (2 * group) >= least_groups &&
         2 * group * bytes <= launch->arch->l2_size_bytes / LONGEST_L2_SHARE)
    group *= 2;
  return group;
}

static int64_t greatest_divisor(int64_t a, int64_t b) { return b == 0 ? a : greatest_divisor(b, a % b); }

// The least multiple of the grid's period that spans so many waves, made of whole clusters.
static int64_t long_period(const ftl_launch *launch, int64_t period, int64_t waves) {
  if (period == 0) return 0;
  int64_t least = waves * launch->arch->chip_num_sms * launch->occupancy.ctas_per_sm;
  period *= launch->tile->cluster_ctas / greatest_divisor(period, launch->tile->cluster_ctas);
  return ftl_round_up(least, period);
}

// The grid's period; that of its runs where this is longer than a walk needs, or the grid has none.
static int64_t find_period(const ftl_launch *launch, const ftl_segments *segments) {
  int64_t period = ftl_period_find(segments, launch->warps), enough = long_period(launch, 1, PERIOD_WAVES);
  if ((period > 0 && period <= enough) || ftl_tables_decide(segments, launch->warps)) return period;
  int64_t of_runs = ftl_period_of_runs(segments, launch->warps, launch->arch->l2_size_bytes,
                                       period > 0 ? period : segments->tile->num_ctas);
  return of_runs > 0 ? of_runs : period;
}

// The tiles of a group that lie in pages, each where a table has it, are asked for one by one.
static bool has_pages(const ftl_segments *segments) {
  for (int32_t k = 0; k < segments->num_loops; k++) {
    const ftl_segment *segment = &segments->segments[2 * k + 1];
    for (int32_t i = 0; i < segment->num_refs; i++)
      if (segment->refs[i].ref.pages.page_rows > 0) return true;
  }
  return false;
}

ftl_walk_plan ftl_walk_plan_make(const ftl_launch *launch, const ftl_segments *segments) {
  ftl_walk_plan plan = {.stride = launch->tile->persistent ? ftl_launch_num_ctas(launch) : 0};
  int64_t walked = launch->tile->num_ctas;
  // CTAs of a persistent kernel drift apart as long as it runs: its heads are not alike.
  if (plan.stride == 0) {
    int64_t period = find_period(launch, segments);
    plan.period = long_period(launch, period, STREAM_PERIOD_WAVES);
    plan.is_stream = ftl_is_stream(segments, launch->warps, launch->arch, plan.period);
    if (!plan.is_stream) plan.period = long_period(launch, period, PERIOD_WAVES);
  }
  if (plan.period > 0 && walked / plan.period > LEAST_PERIODS) walked = LEAST_PERIODS * plan.period;
  walk_size size = size_of(launch, segments, walked);
  size.all_events = (size.straight + size.iterations) / walked * launch->tile->num_ctas;
  plan.group = choose_group(launch, segments, size, plan.is_stream);
  plan.is_even = size.is_even;
  plan.steps = size.straight + size.iterations / plan.group;
  plan.pieces = num_pieces(segments);
  plan.asks = has_pages(segments) ? size.straight + size.iterations : plan.steps;
  return plan;
}
