#include "engine/sampled/step_measurement.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "engine/sampled/begin_marks.h"
#include "engine/sampled/l1_tiles.h"
#include "engine/sampled/lone_sm.h"
#include "engine/sampled/loop_marks.h"
#include "engine/sampled/measured_ctas.h"
#include "engine/totals.h"
#include "machine/cta/cta_scheduler.h"

enum {
  NUM_PHASES = 4,  // runs of CTAs that share an SM, each from another beginning
};

// A copy of the programs whose loops end after FTL_KEPT_ITERATIONS, or more where that is too few.
typedef struct cut_program {
  ftl_tile_program tile;
  ftl_warp_program warps;
  ftl_expr *num_kept;  // of each loop
} cut_program;

static ftl_expr add_expr(ftl_tile_program *tile, ftl_expr_node node) {
  tile->exprs[tile->num_exprs] = node;
  return tile->num_exprs++;
}

static void cut_loop(cut_program *cut, int32_t i, int64_t num_kept) {
  ftl_warp_loop *loop = &cut->warps.loops[i];
  ftl_expr kept = cut->num_kept[i] = add_expr(&cut->tile, (ftl_expr_node){.kind = FTL_EXPR_CONST, .value = num_kept});
  ftl_expr end = add_expr(&cut->tile, (ftl_expr_node){.kind = FTL_EXPR_ADD, .a = loop->lo, .b = kept});
  loop->hi = add_expr(&cut->tile, (ftl_expr_node){.kind = FTL_EXPR_MIN, .a = loop->hi, .b = end});
}

static void release_cut(cut_program *cut) {
  free(cut->tile.exprs);
  free(cut->warps.loops);
  free(cut->num_kept);
}

static ftl_status cut_loops(cut_program *cut, const ftl_warp_program *program, int32_t outer_loop, ftl_error *error) {
  cut->tile = *program->tile;
  cut->warps = *program;
  cut->warps.tile = &cut->tile;
  size_t num_exprs = (size_t)cut->tile.num_exprs + 3 * (size_t)program->num_loops;
  cut->tile.exprs = malloc(num_exprs * sizeof *cut->tile.exprs);
  cut->warps.loops = malloc((size_t)(program->num_loops + 1) * sizeof *cut->warps.loops);
  cut->num_kept = malloc((size_t)(program->num_loops + 1) * sizeof *cut->num_kept);
  if (!cut->tile.exprs || !cut->warps.loops || !cut->num_kept) {
    release_cut(cut);
    return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for a shortened program");
  }
  memcpy(cut->tile.exprs, program->tile->exprs, (size_t)cut->tile.num_exprs * sizeof *cut->tile.exprs);
  memcpy(cut->warps.loops, program->loops, (size_t)program->num_loops * sizeof *cut->warps.loops);
  for (int32_t i = 0; i < program->num_loops; i++)
    cut_loop(cut, i, i == outer_loop ? FTL_KEPT_OUTER : FTL_KEPT_ITERATIONS);
  cut->tile.persistent = false;
  return FTL_OK;
}

struct ftl_step_measurement {
  const ftl_launch *launch;
  const ftl_segments *segments;
  cut_program cut;
  int64_t sm_khz, representative;  // the CTA that is run
  int64_t representatives[FTL_MAX_REPRESENTATIVES];
  int32_t num_representatives;
  int64_t bare;      // a CTA that runs no loop; -1: none
  int64_t distance;  // between a persistent CTA's tiles, where its later ones are measured; else 0
};

static ftl_loop_marks *marks_create(const ftl_step_measurement *m, int64_t tile_before, int64_t tile) {
  ftl_loop_marks *marks = calloc(1, sizeof *marks);
  if (!marks) return NULL;
  marks->program = &m->cut.warps;
  marks->segments = m->segments;
  marks->warp = m->cut.warps.roles[m->segments->leading_role].first_warp;
  marks->tile_before = tile_before;
  marks->tile = tile;
  return marks;
}

// Of a CTA without loops: its whole time.
static int64_t longest_iteration(const ftl_step_measurement *m, const ftl_step_point *point) {
  int64_t longest = m->segments->num_loops == 0 ? point->time_sixteenths[0] : 0;
  for (int32_t k = 0; k < m->segments->num_loops; k++)
    if (point->time_sixteenths[2 * k + 1] > longest) longest = point->time_sixteenths[2 * k + 1];
  return longest;
}

// CTAs of a long run have drifted apart, so that one computes while another waits: they start within an iteration of
// the longest loop of a lone CTA, one behind the other by an odd number of its (2 * NUM_PHASES)ths.
static void choose_starts(int32_t num_ctas, int64_t iteration_sixteenths, int32_t phase, int64_t *starts) {
  for (int32_t i = 0; i < num_ctas; i++)
    starts[i] =
        iteration_sixteenths * ((2 * phase + 1) * i % (2 * NUM_PHASES)) / (2 * NUM_PHASES * FTL_SIXTEENTHS_PER_CYCLE);
}

// Bytes that a CTA loads into registers in the loop that loads most of them: what lies between two passes over a row.
static int64_t pass_bytes(const ftl_step_measurement *m) {
  int64_t most = 0, first;
  for (int32_t k = 0; k < m->segments->num_loops; k++) {
    const ftl_segment *loop = &m->segments->segments[2 * k + 1];
    int64_t bytes = 0;
    for (int32_t i = 0; i < loop->num_refs; i++) {
      if (loop->refs[i].is_direct) bytes += ftl_tile_ref_bytes(m->launch->tile, &loop->refs[i].ref);
    }
    bytes *= ftl_segments_trips(m->segments, m->launch->warps, k, m->representative, &first);
    if (bytes > most) most = bytes;
  }
  return most;
}

// Shortened loops pass over so little that L1 would keep it for the next pass. Where it does not keep what whole loops
// load, the SM has none.
static ftl_arch arch_for(const ftl_step_measurement *m, int32_t num_ctas) {
  ftl_arch arch = *m->launch->arch;
  int64_t kept_bytes = ftl_l1_capacity_bytes(&arch, m->launch->warps, m->launch->occupancy.ctas_per_sm);
  if (pass_bytes(m) * num_ctas > kept_bytes) arch.l1_unified_bytes -= kept_bytes;
  return arch;
}

// The SM has its slots, and shared memory for all of them, whether CTAs run in them or not.
static ftl_sm_config config_for(const ftl_step_measurement *m, const ftl_arch *arch, bool is_warm) {
  return (ftl_sm_config){.arch = arch,
                         .program = &m->cut.warps,
                         .num_slots = m->launch->occupancy.ctas_per_sm,
                         .is_warm = is_warm,
                         .is_code_far = m->launch->l2_before == FTL_L2_PROFILED,
                         .ctas_alike = ftl_warp_program_has_ctas_alike(m->launch->warps),
                         .bulk = !m->launch->no_bulk};
}

// In all roles. Returns whether there is more of the loop than was kept.
static bool try_keep_more_of(ftl_step_measurement *m, int32_t k) {
  int64_t first, trips = ftl_segments_trips(m->segments, m->launch->warps, k, m->representative, &first);
  bool found = false;
  for (int32_t i = 0; i < m->cut.warps.num_loops; i++) {
    int64_t *kept = &m->cut.tile.exprs[m->cut.num_kept[i]].value;
    if (m->segments->place_of_loop[i] != k || *kept >= trips || *kept >= FTL_MOST_ITERATIONS) continue;
    *kept = FTL_MOST_ITERATIONS;
    found = true;
  }
  return found;
}

// Loops whose CTAs have ended what was kept before the last one has begun, as where a scheduler favours the older, keep
// more. Returns whether there was one.
static bool try_keep_more(ftl_step_measurement *m, const ftl_loop_marks *marks, int32_t num_ctas) {
  bool found = false;
  for (int32_t k = 0; num_ctas > 1 && k < m->segments->num_loops; k++)
    if (ftl_loop_marks_are_apart(marks, k, num_ctas)) found |= try_keep_more_of(m, k);
  return found;
}

// Where CTAs that share the SM do not run a loop together, it is made longer and they are run again.
static ftl_status measure_run(ftl_step_measurement *m, int32_t num_ctas, int64_t latency, bool is_warm,
                              const int64_t *starts, ftl_step_point *point, ftl_error *error) {
  ftl_loop_marks *marks = marks_create(m, -1, -1);
  if (!marks) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for step times");
  ftl_arch arch = arch_for(m, num_ctas);
  ftl_sm_config config = config_for(m, &arch, is_warm);
  int64_t ctas[FTL_MARKED_CTAS], ends[FTL_MARKED_CTAS] = {0};
  ftl_measured_ctas_sharing(m->launch, m->segments, m->representative, num_ctas, ctas);
  ftl_lone_ctas run = {.num_slots = num_ctas, .num_rounds = 1, .cta = ctas, .start = starts, .end = ends};
  ftl_status status = ftl_lone_sm_run(&config, m->sm_khz, ftl_lone_latency_of(m->launch->arch, m->sm_khz, latency),
                                      &run, ftl_loop_marks_mark, marks, &point->counters, error);
  bool again = status == FTL_OK && try_keep_more(m, marks, num_ctas);
  if (status == FTL_OK) ftl_loop_marks_times(marks, num_ctas, starts, ends, point->time_sixteenths);
  if (status == FTL_OK) ftl_loop_marks_age_cycles(marks, num_ctas, starts, ends, point->age_cycles);
  free(marks);
  return again ? measure_run(m, num_ctas, latency, is_warm, starts, point, error) : status;
}

static ftl_status measure_alone(ftl_step_measurement *m, int64_t latency, bool is_warm, ftl_step_point *point,
                                ftl_error *error) {
  int64_t start = 0;
  return measure_run(m, 1, latency, is_warm, &start, point, error);
}

// Whether the loops of two runs, or the code of CTAs without loops, take as long, to 1 %.
static bool agree(const ftl_step_measurement *m, const ftl_step_point *a, const ftl_step_point *b) {
  for (int32_t s = m->segments->num_loops > 0; s < 2 * m->segments->num_loops + 1; s += 2)
    if (100 * llabs(a->time_sixteenths[s] - b->time_sixteenths[s]) > a->time_sixteenths[s]) return false;
  return true;
}

// Warps with mma.sync issue by their age. Here two CTAs may settle half an iteration apart, whatever latencies do,
// so that none gets ahead; on hardware one does. Warpgroups take turns at the tensor cores.
static double least_age_cycles(const ftl_step_measurement *m, int64_t iteration_sixteenths) {
  if (m->launch->warps->mma != FTL_MMA_MMA) return 0;
  return (double)m->launch->arch->sm_age_spread_permille / 1000 * (double)iteration_sixteenths /
         FTL_SIXTEENTHS_PER_CYCLE;
}

// How CTAs fall into step hangs on how far apart they begin where they issue in a fixed order: two of 64 x 128 tiles
// with mma.sync at head_dim 64 end up side by side, in each other's way at every pipe, or half an iteration apart,
// which is a quarter quicker. On hardware they drift through all of that: the mean of several beginnings. Where the
// first two agree the CTAs have found their order by themselves, and the others are not run.
static ftl_status measure_shared(ftl_step_measurement *m, int32_t num_ctas, int64_t latency,
                                 const ftl_step_point *alone, ftl_step_point *point, ftl_error *error) {
  int64_t iteration_sixteenths = longest_iteration(m, alone), starts[FTL_MARKED_CTAS];
  int32_t wanted = iteration_sixteenths > 0 ? NUM_PHASES : 1, num_runs = 0;
  ftl_step_point first = {0};
  while (num_runs < wanted) {
    ftl_step_point run = {0};
    choose_starts(num_ctas, iteration_sixteenths, num_runs, starts);
    ftl_status status = measure_run(m, num_ctas, latency, true, starts, &run, error);
    if (status != FTL_OK) return status;
    for (int32_t s = 0; s < 2 * m->segments->num_loops + 1; s++) {
      point->time_sixteenths[s] += run.time_sixteenths[s];
      point->age_cycles[s] += run.age_cycles[s];
    }
    ftl_sm_counters_add(&point->counters, &run.counters);
    if (num_runs == 0) first = run;
    if (num_runs == 1 && agree(m, &first, &run)) wanted = 2;
    num_runs++;
  }
  for (int32_t s = 0; s < 2 * m->segments->num_loops + 1; s++) {
    point->time_sixteenths[s] /= num_runs;
    point->age_cycles[s] /= num_runs;
    if (s % 2 == 1) point->age_cycles[s] = fmax(point->age_cycles[s], least_age_cycles(m, point->time_sixteenths[s]));
  }
  return FTL_OK;
}

// A persistent CTA alone on its SM walks three tiles; the second begins while the first ends and ends while the third
// begins.
static ftl_status measure_later(ftl_step_measurement *m, int64_t latency, ftl_step_point *point, ftl_error *error) {
  int64_t first = m->representative - 2 * m->distance, start = 0, end = 0, num_ctas = m->cut.tile.num_ctas;
  ftl_loop_marks *marks = marks_create(m, first, first + m->distance);
  if (!marks) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for step times");
  m->cut.tile.num_ctas = m->representative + 1;
  ftl_sm_config config = config_for(m, m->launch->arch, true);
  config.num_slots = 1;
  config.persistent_stride = m->distance;
  ftl_sm_counters counters;
  ftl_lone_ctas run = {.num_slots = 1, .num_rounds = 1, .cta = &first, .start = &start, .end = &end};
  ftl_status status = ftl_lone_sm_run(&config, m->sm_khz, ftl_lone_latency_of(m->launch->arch, m->sm_khz, latency),
                                      &run, ftl_loop_marks_mark, marks, &counters, error);
  m->cut.tile.num_ctas = num_ctas;
  if (status == FTL_OK) {
    ftl_loop_marks_times(marks, 1, &marks->tile_start, &marks->tile_end, point->later_sixteenths);
    point->counters = counters;
  }
  free(marks);
  return status;
}

ftl_status ftl_step_measurement_create(ftl_step_measurement **out, const ftl_launch *launch,
                                       const ftl_segments *segments, int64_t sm_khz, ftl_error *error) {
  *out = NULL;
  ftl_step_measurement *m = malloc(sizeof *m);
  if (!m) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for step times");
  *m = (ftl_step_measurement){.launch = launch, .segments = segments, .sm_khz = sm_khz};
  m->num_representatives = ftl_measured_ctas_representatives(segments, launch->warps, m->representatives);
  m->representative = m->representatives[0];
  ftl_status status = cut_loops(&m->cut, launch->warps, segments->outer.loop, error);
  if (status != FTL_OK) {
    free(m);
    return status;
  }
  bool has_later = launch->tile->persistent && launch->occupancy.ctas_per_sm == 1 && segments->outer.loop < 0;
  if (has_later) m->distance = ftl_measured_ctas_distance(launch, segments, m->representative);
  bool starts_each_tile = !launch->tile->persistent && launch->tile->cluster_ctas == 1 && segments->outer.loop < 0;
  m->bare = starts_each_tile ? ftl_measured_ctas_bare(segments, launch->warps, m->representative) : -1;
  *out = m;
  return FTL_OK;
}

void ftl_step_measurement_destroy(ftl_step_measurement *m) {
  if (!m) return;
  release_cut(&m->cut);
  free(m);
}

int64_t ftl_step_measurement_representative(const ftl_step_measurement *m) { return m->representative; }

static ftl_status take_representative(ftl_step_measurement *m, int64_t latency_cycles, ftl_step_point *alone,
                                      ftl_step_point *shared, ftl_error *error) {
  int32_t most_ctas = ftl_launch_most_ctas_per_sm(m->launch);
  ftl_status status = measure_alone(m, latency_cycles, true, alone, error);
  if (status != FTL_OK) return status;
  memcpy(alone->later_sixteenths, alone->time_sixteenths, sizeof alone->later_sixteenths);
  if (m->distance > 0) status = measure_later(m, latency_cycles, alone, error);
  if (status != FTL_OK) return status;
  if (most_ctas > 1) return measure_shared(m, most_ctas, latency_cycles, alone, shared, error);
  *shared = *alone;
  return FTL_OK;
}

static int64_t trips_of(const ftl_step_measurement *m, int64_t cta, int32_t k) {
  int64_t first;
  return ftl_segments_trips(m->segments, m->launch->warps, k, cta, &first);
}

// The times of loops that the representative `of` repeats and none before it runs. The time of one that runs once is
// that of the code around it too.
static void add_times(const ftl_step_measurement *m, int32_t of, const ftl_step_point *from, ftl_step_point *to) {
  for (int32_t k = 0; k < m->segments->num_loops; k++) {
    bool is_known = trips_of(m, m->representatives[of], k) <= 1;
    for (int32_t i = 0; i < of; i++) is_known |= trips_of(m, m->representatives[i], k) > 0;
    if (is_known) continue;
    to->time_sixteenths[2 * k + 1] = from->time_sixteenths[2 * k + 1];
    to->later_sixteenths[2 * k + 1] = from->later_sixteenths[2 * k + 1];
    to->age_cycles[2 * k + 1] = from->age_cycles[2 * k + 1];
  }
}

// Counters are those of the first representative.
ftl_status ftl_step_measurement_take(ftl_step_measurement *m, int64_t latency_cycles, ftl_step_point *alone,
                                     ftl_step_point *shared, ftl_error *error) {
  ftl_status status = take_representative(m, latency_cycles, alone, shared, error);
  int64_t distance = m->distance;
  for (int32_t i = 1; status == FTL_OK && i < m->num_representatives; i++) {
    ftl_step_point other_alone = {0}, other_shared = {0};
    m->representative = m->representatives[i];
    m->distance = 0;
    status = take_representative(m, latency_cycles, &other_alone, &other_shared, error);
    add_times(m, i, &other_alone, alone);
    add_times(m, i, &other_shared, shared);
  }
  m->representative = m->representatives[0];
  m->distance = distance;
  return status;
}

ftl_status ftl_step_measurement_take_cold(ftl_step_measurement *m, int64_t latency_cycles, const ftl_step_point *alone,
                                          int64_t extra_sixteenths[FTL_MAX_SEGMENTS], ftl_error *error) {
  ftl_step_point cold = {0};
  ftl_status status = measure_alone(m, latency_cycles, false, &cold, error);
  for (int32_t s = 0; status == FTL_OK && s <= 2 * m->segments->num_loops; s++)
    extra_sixteenths[s] = s % 2 == 0 || trips_of(m, m->representative, s / 2) > 0
                              ? cold.time_sixteenths[s] - alone->time_sixteenths[s]
                              : 0;
  return status;
}

static void hear_nothing(void *context, int64_t cycle, int32_t slot, int32_t warp, int64_t cta,
                         const ftl_warp_inst *inst) {
  (void)context, (void)cycle, (void)slot, (void)warp, (void)cta, (void)inst;
}

bool ftl_step_measurement_has_bare(const ftl_step_measurement *m) { return m->bare >= 0; }

// The time of the representative, its loops cut as they are, of whose segments `point` has the times.
static int64_t cut_cta_time(const ftl_step_measurement *m, const ftl_step_point *point) {
  int64_t whole = 0;
  for (int32_t s = 0; s < 2 * m->segments->num_loops + 1; s++) {
    int64_t runs = s % 2 == 0 ? 1 : trips_of(m, m->representative, s / 2);
    int32_t loop = s % 2 == 0 ? -1 : m->segments->loops[s / 2];
    int64_t kept = loop >= 0 ? m->cut.tile.exprs[m->cut.num_kept[loop]].value : runs;
    whole += (runs < kept ? runs : kept) * point->time_sixteenths[s];
  }
  return whole;
}

// Of each slot the CTAs of the rounds between the first and the last, from one's end to the next one's.
static int64_t mean_time_between(const int64_t *ends, int32_t num_slots, int32_t num_rounds) {
  int64_t sum = 0;
  for (int32_t slot = 0; slot < num_slots; slot++) sum += ends[(num_rounds - 2) * num_slots + slot] - ends[slot];
  return sum * FTL_SIXTEENTHS_PER_CYCLE / (num_slots * (num_rounds - 2));
}

static ftl_status run_bare(const ftl_step_measurement *m, int64_t latency_cycles, bool is_warm,
                           const ftl_lone_ctas *ctas, ftl_sm_counters *counters, ftl_error *error) {
  ftl_arch arch = arch_for(m, ctas->num_slots);
  ftl_sm_config config = config_for(m, &arch, is_warm);
  return ftl_lone_sm_run(&config, m->sm_khz, ftl_lone_latency_of(m->launch->arch, m->sm_khz, latency_cycles), ctas,
                         hear_nothing, NULL, counters, error);
}

ftl_status ftl_step_measurement_take_bare(ftl_step_measurement *m, int64_t latency_cycles, bool is_warm,
                                          int64_t *sixteenths, ftl_error *error) {
  int64_t start = 0, end = 0;
  ftl_sm_counters counters;
  ftl_lone_ctas run = {.num_slots = 1, .num_rounds = 1, .cta = &m->bare, .start = &start, .end = &end};
  ftl_status status = run_bare(m, latency_cycles, is_warm, &run, &counters, error);
  *sixteenths = end * FTL_SIXTEENTHS_PER_CYCLE;
  return status;
}

ftl_status ftl_step_measurement_take_bare_shared(ftl_step_measurement *m, int64_t latency_cycles,
                                                 int64_t alone_sixteenths, int64_t *sixteenths, ftl_error *error) {
  enum { NUM_ROUNDS = 3 };
  int32_t num_ctas = ftl_launch_most_ctas_per_sm(m->launch);
  int64_t ctas[NUM_ROUNDS * FTL_MARKED_CTAS], ends[NUM_ROUNDS * FTL_MARKED_CTAS], starts[FTL_MARKED_CTAS];
  for (int32_t i = 0; i < NUM_ROUNDS * num_ctas; i++) ctas[i] = m->bare;
  for (int32_t i = 0; i < num_ctas; i++) starts[i] = alone_sixteenths * i / (num_ctas * FTL_SIXTEENTHS_PER_CYCLE);
  ftl_sm_counters counters;
  ftl_lone_ctas run = {.num_slots = num_ctas, .num_rounds = NUM_ROUNDS, .cta = ctas, .start = starts, .end = ends};
  ftl_status status = run_bare(m, latency_cycles, true, &run, &counters, error);
  *sixteenths = 0;
  if (status == FTL_OK)
    *sixteenths = mean_time_between(ends, num_ctas, NUM_ROUNDS) -
                  m->launch->arch->launch_cta_start_cycles * FTL_SIXTEENTHS_PER_CYCLE;
  return status;
}

ftl_status ftl_step_measurement_take_succession(ftl_step_measurement *m, int64_t latency_cycles,
                                                const ftl_step_point *shared, ftl_step_succession *out,
                                                ftl_error *error) {
  enum { NUM_ROUNDS = FTL_MARKED_ROUNDS };
  int32_t num_ctas = ftl_launch_most_ctas_per_sm(m->launch);
  int64_t ctas[NUM_ROUNDS * FTL_MARKED_CTAS], ends[NUM_ROUNDS * FTL_MARKED_CTAS], starts[FTL_MARKED_CTAS];
  int64_t whole_sixteenths = cut_cta_time(m, shared);
  ftl_measured_ctas_sharing(m->launch, m->segments, m->representative, num_ctas, ctas);
  for (int32_t i = num_ctas; i < NUM_ROUNDS * num_ctas; i++) ctas[i] = ctas[i - num_ctas];
  for (int32_t i = 0; i < num_ctas; i++) starts[i] = whole_sixteenths * i / (num_ctas * FTL_SIXTEENTHS_PER_CYCLE);
  ftl_arch arch = arch_for(m, num_ctas);
  ftl_sm_config config = config_for(m, &arch, true);
  config.bulk = false;  // loads are heard of
  ftl_lone_ctas run = {.num_slots = num_ctas, .num_rounds = NUM_ROUNDS, .cta = ctas, .start = starts, .end = ends};
  ftl_begin_marks marks = {.program = &m->cut.warps, .segments = m->segments};
  ftl_status status =
      ftl_lone_sm_run(&config, m->sm_khz, ftl_lone_latency_of(m->launch->arch, m->sm_khz, latency_cycles), &run,
                      ftl_begin_marks_mark, &marks, &out->counters, error);
  if (status != FTL_OK) return status;
  out->extra_sixteenths = mean_time_between(ends, num_ctas, NUM_ROUNDS) -
                          arch.launch_cta_start_cycles * FTL_SIXTEENTHS_PER_CYCLE - whole_sixteenths;
  out->asks_spread_cycles = ftl_begin_marks_spread(&marks, num_ctas, NUM_ROUNDS, ends);
  return FTL_OK;
}

// CTAs that the launch has for the SM with most.
static int32_t num_ctas_of_sm(const ftl_launch *launch, int32_t most) {
  int64_t num_sms = ftl_cta_num_resident(launch->arch, 1, launch->tile->cluster_ctas);
  return (int32_t)ftl_smaller(ftl_divide_up(ftl_launch_num_ctas(launch), num_sms), most);
}

ftl_status ftl_step_measurement_take_launch(ftl_step_measurement *m, int64_t latency_cycles, ftl_sm_counters *counters,
                                            ftl_error *error) {
  enum { MOST_ROUNDS = 3 };
  const ftl_arch *arch = m->launch->arch;
  int64_t ctas[MOST_ROUNDS * FTL_MARKED_CTAS], ends[MOST_ROUNDS * FTL_MARKED_CTAS], starts[FTL_MARKED_CTAS];
  int32_t num_slots = ftl_launch_most_ctas_per_sm(m->launch);
  int32_t count = num_ctas_of_sm(m->launch, MOST_ROUNDS * num_slots);
  int32_t num_rounds = ftl_divide_up32(count, num_slots);
  int64_t fill_cycles = arch->launch_cta_interval_cycles * arch->chip_num_sms / arch->chip_num_gpcs;
  ftl_measured_ctas_sharing(m->launch, m->segments, m->representative, num_slots, ctas);
  for (int32_t i = num_slots; i < num_rounds * num_slots; i++) ctas[i] = i < count ? ctas[i - num_slots] : FTL_NO_CTA;
  for (int32_t i = 0; i < num_slots; i++) starts[i] = i * fill_cycles;
  ftl_arch of_run = arch_for(m, num_slots);
  ftl_sm_config config = config_for(m, &of_run, false);
  ftl_lone_ctas run = {.num_slots = num_slots, .num_rounds = num_rounds, .cta = ctas, .start = starts, .end = ends};
  return ftl_lone_sm_run(&config, m->sm_khz, ftl_lone_latency_of(arch, m->sm_khz, latency_cycles), &run, hear_nothing,
                         NULL, counters, error);
}
