// `sampled`: the first CTAs of an SM find no code in its instruction cache, those that come after them all that fits.
#include "engine/sampled/step_times.h"

#include "fixture.h"

static const int64_t LATENCIES[FTL_NUM_STEP_LATENCIES] = {300, 1000, 1300, 2000, 6000};

static int64_t code_bytes(const ftl_warp_program *warps) {
  int64_t bytes = 0;
  for (int32_t i = 0; i < warps->num_insts; i++) bytes += 16 * warps->insts[i].repeat;
  return bytes;
}

// Code comes line by line, ahead of a warp that issues slower than it comes: more than a tenth of what the lines take,
// and less than half.
Test(unit_engine_cold_code, takes_what_its_lines_take) {
  lowered l = lower_flash2("h200", "heads=8 seqlen=1024 head_dim=64 block_m=64 block_n=64 num_warps=4 mma=mma");
  ftl_launch launch = {
      .arch = l.arch, .tile = l.tile, .warps = l.warps, .occupancy = ftl_occupancy_of(l.warps, l.arch)};
  ftl_segments segments;
  ftl_step_times times;
  cr_assert(ftl_segments_try_init(&segments, l.warps));
  cr_assert_eq(ftl_step_times_init(&times, &launch, &segments, 1200000, LATENCIES, NULL), FTL_OK);
  int64_t bytes = code_bytes(l.warps), all = FTL_SIXTEENTHS_PER_CYCLE * l.arch->sm_code_miss_cycles * bytes / 128,
          sum = 0;
  cr_assert_lt(bytes, l.arch->sm_code_cache_bytes);
  for (int32_t s = 0; s < times.num_segments; s++) sum += times.cold_sixteenths[s];
  cr_expect_gt(sum, all / 10, "%lld of %lld", (long long)sum, (long long)all);
  cr_expect_lt(sum, all / 2, "%lld of %lld", (long long)sum, (long long)all);
  ftl_step_times_fini(&times);
  release_lowered(&l);
}

static double cycles(int64_t heads, int64_t miss_cycles) {
  char text[256];
  snprintf(text, sizeof text,
           "heads=%lld seqlen=512 head_dim=64 block_m=64 block_n=64 num_warps=4 mma=mma clock_mhz=1500",
           (long long)heads);
  ftl_arch *arch = shipped_arch("h200");
  arch->sm_code_miss_cycles = miss_cycles;
  arch->l2_coalescer_merges = 1;  // it merges reads by chance
  ftl_prediction prediction = prediction_of(arch, text, &(ftl_predict_options){.num_threads = 1});
  ftl_arch_destroy(arch);
  return prediction.metrics.value[FTL_METRIC_cycles];
}

// 128 CTAs are at most one on each SM, 4096 are six waves and more, of which the first alone waits: about as long as
// the one wave does, where all waiting would be six times that. Ten times the H200's miss, as waves end raggedly.
Test(unit_engine_cold_code, later_ctas_find_it) {
  double one_wave = cycles(16, 190) - cycles(16, 0), waves = cycles(512, 190) - cycles(512, 0);
  cr_expect_gt(one_wave, 5000, "%g", one_wave);
  cr_expect_gt(waves, 0.5 * one_wave, "%g against %g", waves, one_wave);
  cr_expect_lt(waves, 2 * one_wave, "%g against %g", waves, one_wave);
}

static double waits_for_code(const char *detail, const char *more) {
  char text[320];
  snprintf(text, sizeof text,
           "batch=4 heads=33 seqlen=512 head_dim=64 block_m=128 block_n=128 num_warps=4 num_stages=1 mma=mma "
           "copy=cp_async schedule=interleaved code=buffered detail=%s %s",
           detail, more);
  ftl_arch *arch = shipped_arch("h200");
  ftl_prediction p = prediction_of(arch, text, &(ftl_predict_options){.num_threads = 1});
  ftl_arch_destroy(arch);
  return p.metrics.value[FTL_METRIC_stall_no_instruction];
}

// Code of 60 KiB, walked by every CTA. Where all have as many keys SMs stay in step and share what they fetch; with a
// causal mask, or sequences of several lengths, they do not (measured: 0.19 and 1.4).
Test(unit_engine_cold_code, sms_whose_ctas_are_alike_fetch_together) {
  static const char *const details[] = {"sampled", "full"};
  for (int i = 0; i < 2; i++) {
    double alike = waits_for_code(details[i], ""), causal = waits_for_code(details[i], "causal=true"),
           packed = waits_for_code(details[i], "lengths=512:384:512:256");
    cr_expect_lt(alike, 0.25, "%s: %.3f", details[i], alike);
    cr_expect_gt(causal, 2 * alike, "%s: %.3f, %.3f", details[i], causal, alike);
    cr_expect_gt(packed, 2 * alike, "%s: %.3f, %.3f", details[i], packed, alike);
  }
}
