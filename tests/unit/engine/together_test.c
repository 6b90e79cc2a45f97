// CTAs of an SM that start together may stay at the same place of their iterations, and then take longer.
#include "engine/sampled/step_times.h"
#include "engine/sampled/traffic.h"
#include "fixture.h"

enum { SM_KHZ = 1200000, NUM_ITERATIONS = 64 };

// Two CTAs an SM, 13 heads of 16 CTAs on 108 SMs: they all start at once, but for 8 SMs that have one.
static const char LOCKED[] =
    "heads=13 seqlen_q=1024 seqlen_kv=4096 head_dim=128 block_m=64 block_n=64 num_warps=4 clock_mhz=1200";

static void start(ftl_step_times *times, const lowered *l, ftl_launch *launch, ftl_segments *segments) {
  int64_t hit, far, miss;
  ftl_traffic_latencies(l->arch, SM_KHZ, &hit, &far, &miss);
  int64_t unloaded = hit + far + miss, latencies[] = {hit, unloaded, 2 * unloaded, 6 * unloaded};
  *launch = (ftl_launch){
      .arch = l->arch, .tile = l->tile, .warps = l->warps, .occupancy = ftl_occupancy_of(l->warps, l->arch)};
  cr_assert(ftl_segments_try_init(segments, l->warps));
  cr_assert_eq(ftl_step_times_init(times, launch, segments, SM_KHZ, latencies, NULL), FTL_OK);
}

// In step, both CTAs want the tensor pipes at once and both do softmax at once: on the A100 such an iteration takes a
// tenth longer than one beside a CTA that is half an iteration ahead. A lone CTA is never beside another.
Test(unit_engine_together, ctas_in_step_hinder_each_other) {
  lowered l = lower_flash2("a100_80", LOCKED);
  ftl_launch launch;
  ftl_segments segments;
  ftl_step_times times;
  start(&times, &l, &launch, &segments);
  int64_t hit = times.latency_cycles[0];
  cr_assert_eq(times.most_ctas, 2);
  cr_expect_gt(10 * ftl_step_times_get_together(&times, 1, 2, hit), 11 * ftl_step_times_get(&times, 1, 2, hit));
  cr_expect_eq(ftl_step_times_get_together(&times, 1, 1, hit), ftl_step_times_get(&times, 1, 1, hit));
  ftl_step_times_fini(&times);
  release_lowered(&l);
}

// The launch takes as long as its slower CTAs: as many iterations in step.
Test(unit_engine_together, a_wave_that_starts_at_once_stays_in_step) {
  lowered l = lower_flash2("a100_80", LOCKED);
  ftl_launch launch;
  ftl_segments segments;
  ftl_step_times times;
  ftl_prediction prediction;
  ftl_error error = {0};
  start(&times, &l, &launch, &segments);
  int64_t step = ftl_step_times_get_together(&times, 1, 2, times.latency_cycles[0]);
  cr_assert_eq(ftl_predict(&l.spec, l.arch, NULL, &prediction, &error), FTL_OK, "%s", error.message);
  cr_expect_gt((int64_t)prediction.metrics.value[FTL_METRIC_cycles], NUM_ITERATIONS * step / FTL_STEP_UNIT);
  ftl_step_times_fini(&times);
  release_lowered(&l);
}
