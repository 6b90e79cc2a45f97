// What makes a CTA's steps longer or shorter than those of others that do the same.
#include <math.h>

#include "base/sectors.h"
#include "engine/gpc_clock.h"
#include "engine/sampled/gpu_run.h"
#include "engine/sampled/latency_pool.h"
#include "engine/sampled/pace.h"
#include "engine/work.h"

enum {
  LEAST_SETTLING = 2,  // other CTAs on an SM: with one, loops differ by what a walk gives (cta_loop_spread.csv)
  DRAWS_A_STEP = 9,    // numbers by which drift is drawn; a segment beyond has one of the next step's
};

// Half the difference of how many CTAs of the slot's SM, in the same segment, came before its own and after it.
static double place_among(const ftl_gpu_run *run, int32_t slot) {
  const ftl_cta_state *state = &run->slots[slot];
  int32_t first = slot - slot % run->ctas_per_sm, ahead = 0;
  for (int32_t i = first; i < first + run->ctas_per_sm; i++) {
    const ftl_cta_state *other = &run->slots[i];
    if (i == slot || other->start_cycle == INT64_MAX || other->segment != state->segment) continue;
    bool is_older = other->start_cycle < state->start_cycle || (other->start_cycle == state->start_cycle && i < slot);
    ahead += is_older ? 1 : -1;
  }
  return (double)ahead / 2;
}

// What CTAs that share the SM add to the standard deviation of a step or group of steps.
static double drift_beside(const ftl_gpu_run *run, const ftl_cta_state *state, int32_t others, double cycles) {
  double drift = ftl_pace_shared_drift(run->shared_drift_permille[state->segment], others, state->count, cycles);
  if (run->settles[state->segment] && others >= LEAST_SETTLING)
    drift = hypot(drift,
                  ftl_pace_settling(run->launch->arch->sm_settling_iterations, state->iteration, state->count, cycles));
  return drift;
}

int64_t ftl_gpu_deviation(const ftl_gpu_run *run, int32_t slot, int64_t ticks) {
  const ftl_cta_state *state = &run->slots[slot];
  const ftl_arch *arch = run->launch->arch;
  int32_t sm = ftl_gpu_sm_of(run, slot), others = run->resident[sm] - 1;
  double cycles = (double)ticks / FTL_TICKS_PER_CYCLE;
  double drift = ftl_pace_drift(arch->sm_drift_ns, run->traffic->sm_khz, cycles);
  double steady = run->gpc_slowness[run->traffic->homes[sm].gpc] * cycles;
  if (others > 0) {
    drift = hypot(drift, drift_beside(run, state, others, cycles));
    steady += ftl_pace_of_age(run->age_cycles[state->segment] * (double)state->count, place_among(run, slot),
                              run->ctas_per_sm);
  }
  int64_t stores_permille = run->store_spread_permille[state->segment];
  if (stores_permille > 0) {
    double stores_spread = (double)stores_permille / 1000 * cycles;
    drift = hypot(drift, stores_spread * ftl_pace_stores_at_once(run->num_active_sms, (int32_t)arch->chip_num_sms));
  }
  int64_t step = (int64_t)state->step * DRAWS_A_STEP + state->segment;
  double deviation = ftl_pace_deviation(drift, state->cta, step, cycles) + steady;
  return (int64_t)((deviation > -cycles ? deviation : -cycles) * FTL_TICKS_PER_CYCLE);
}

int32_t ftl_gpu_num_elsewhere(const ftl_gpu_run *run, int32_t slot) {
  int32_t first = slot - slot % run->ctas_per_sm, elsewhere = 0;
  for (int32_t i = first; i < first + run->ctas_per_sm; i++)
    elsewhere += run->slots[i].start_cycle != INT64_MAX && run->slots[i].segment != run->slots[slot].segment;
  return elsewhere;
}

// From not at all to twice the mean.
int64_t ftl_gpu_hold_up(const ftl_gpu_run *run, int32_t slot, int64_t *mean_ticks) {
  int32_t others = run->times->most_ctas - 1;
  *mean_ticks = 0;
  if (others < 1 || run->slots[slot].is_bare) return 0;
  double spread = run->times->succession.asks_spread_cycles * ftl_gpu_num_elsewhere(run, slot) / others;
  double mean = spread * sqrt(3.0);
  *mean_ticks = (int64_t)(mean * FTL_TICKS_PER_CYCLE);
  return (int64_t)((mean + ftl_pace_deviation(spread, run->slots[slot].cta, -1, mean)) * FTL_TICKS_PER_CYCLE);
}

static void find_gpc_slowness(ftl_gpu_run *run) {
  const ftl_arch *arch = run->launch->arch;
  int64_t spread_ppm = ftl_gpc_clock_spread_ppm(arch, run->traffic->sm_khz, run->launch->onset_khz);
  for (int32_t gpc = 0; gpc < arch->chip_num_gpcs; gpc++)
    run->gpc_slowness[gpc] = ftl_gpc_clock_slowness(spread_ppm, gpc, (int32_t)arch->chip_num_gpcs);
}

// Whether CTAs load what others load too: twice what their tensors have (a guess; attention has many times that,
// decoding with a CTA a head once), and more.
static bool shares_tiles(const ftl_gpu_run *run) {
  ftl_compulsory_bytes needed = ftl_compulsory_bytes_of(run->launch->tile);
  return run->plan.moved_bytes >= 2 * (needed.read + needed.written);
}

static void find_shared_drift(ftl_gpu_run *run) {
  const ftl_arch *arch = run->launch->arch;
  run->begins_apart = run->num_segments > 1 && shares_tiles(run);
  for (int32_t loop = 1; loop < run->num_segments; loop += 2) {
    bool is_ahead = ftl_latency_lookahead(&run->segments->segments[loop]) > 0;
    bool waits = !is_ahead || ftl_step_times_show_latency(run->times, loop);
    run->shared_drift_permille[loop] = waits ? arch->sm_waiting_drift_permille : arch->sm_shared_drift_permille;
    run->begins_apart &= !waits;
    run->settles[loop] = is_ahead && run->launch->warps->mma == FTL_MMA_WGMMA;
  }
}

// Where stores are of parts of sectors, SMs that store at the same time get unequal shares of what L2 takes. CTAs that
// wait for loads of their own are pulled into step again by those that merge.
static void find_store_spread(ftl_gpu_run *run) {
  const ftl_sm_counters *sm = &ftl_step_times_point(run->times, 1, 0)->counters;
  bool waits = false;
  for (int32_t loop = 1; loop < run->num_segments; loop += 2)
    waits |= ftl_latency_lookahead(&run->segments->segments[loop]) == 0;
  if (waits) return;
  int64_t permille = ftl_pace_store_spread(run->launch->arch->sm_store_spread_permille,
                                           sm->global_store_sectors * FTL_SECTOR_BYTES, sm->global_store_bytes);
  for (int32_t s = 0; s < run->num_segments; s += 2)
    for (int32_t i = 0; i < run->segments->segments[s].num_refs; i++)
      if (run->segments->segments[s].refs[i].is_store) run->store_spread_permille[s] = permille;
}

void ftl_gpu_find_deviations(ftl_gpu_run *run) {
  find_gpc_slowness(run);
  find_shared_drift(run);
  run->age_cycles = ftl_step_times_point(run->times, 1, 0)->age_cycles;  // for loads that hit L2, which most do
  find_store_spread(run);
}
