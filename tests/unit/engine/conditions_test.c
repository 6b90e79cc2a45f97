// The conditions of a launch: the clock that its power allows, what L2 holds before it, gaps between launches.
#include "fixture.h"

static ftl_metrics predict(const ftl_arch *arch, const char *parameters) {
  return prediction_of(arch, parameters, NULL).metrics;
}

static double held_power_w(const ftl_arch *arch, const char *parameters, double mhz) {
  char held[256];
  snprintf(held, sizeof held, "%s clock_mhz=%.0f", parameters, mhz);
  return predict(arch, held).value[FTL_METRIC_power_w];
}

#define LARGE "code=plain heads=32 seqlen=2048 head_dim=128 "

// The limit is set half-way between the static power and what the kernel draws without a limit.
Test(unit_engine_conditions, a_launch_holds_the_highest_clock_at_which_it_keeps_the_limit) {
  ftl_arch *arch = shipped_arch("h200");
  arch->power_burst_limit_mw = 4000000;
  arch->clock_onset_lost_ns_per_w = 0;
  ftl_metrics unlimited = predict(arch, LARGE);
  cr_expect_eq(unlimited.value[FTL_METRIC_sm_clock_mhz], 1800,
               "the highest of 1980 - n * 15 MHz that is not above 1810");
  arch->power_burst_limit_mw = (arch->power_static_mw + (int64_t)(unlimited.value[FTL_METRIC_power_w] * 1000)) / 2;
  double limit_w = (double)arch->power_burst_limit_mw / 1000;
  ftl_metrics limited = predict(arch, LARGE);
  double mhz = limited.value[FTL_METRIC_sm_clock_mhz];
  cr_expect_lt(mhz, 1800);
  cr_expect_leq(limited.value[FTL_METRIC_power_w], limit_w);
  cr_expect_eq(held_power_w(arch, LARGE, mhz), limited.value[FTL_METRIC_power_w], "it ran at the clock that it holds");
  cr_expect_gt(held_power_w(arch, LARGE, mhz + 15), limit_w, "a step of 15 MHz more is too much");
  ftl_arch_destroy(arch);
}

// Where the board draws for L2 and DRAM what a burst takes, a launch of more than 150 us loses 28 ns for each watt
// above 500 on its own, 690 in a stream: a mean of 1800 MHz * t / (t + lost).
static void expect_dip(const ftl_arch *arch, const char *conditions, double from_w) {
  char dipped[128], steady[256];
  snprintf(dipped, sizeof dipped, LARGE "batch=4 conditions=%s", conditions);
  snprintf(steady, sizeof steady, "%s clock_mhz=1800", dipped);
  ftl_metrics at_top = predict(arch, steady), m = predict(arch, dipped);
  double watts = at_top.value[FTL_METRIC_power_w];
  double ns = at_top.value[FTL_METRIC_time_ns] - (double)arch->launch_overhead_ns;
  cr_assert_gt(watts, from_w);
  cr_assert_gt(ns, 150000);
  double mhz = 1800 * ns / (ns + 28 * (watts - from_w));
  cr_expect_float_eq(m.value[FTL_METRIC_sm_clock_mhz], mhz, 0.01, "%s: %g MHz, not %g", conditions,
                     m.value[FTL_METRIC_sm_clock_mhz], mhz);
  double sm_ns = m.value[FTL_METRIC_time_ns] - (double)arch->launch_overhead_ns;
  cr_expect_gt(sm_ns, ns * 1.002, "%s: longer at the lower clock, %g ns and not %g", conditions, sm_ns, ns);
}

Test(unit_engine_conditions, the_clock_of_a_launch_that_no_limit_holds_dips_as_it_begins) {
  ftl_arch *arch = shipped_arch("h200");
  arch->power_burst_limit_mw = arch->power_limit_mw = 4000000;
  arch->power_board_l2_sector_fj = arch->power_l2_sector_fj;
  arch->power_board_dram_byte_fj = arch->power_dram_byte_fj;
  arch->power_tensor_mac_fj *= 2;
  cr_assert_eq(arch->clock_onset_lost_ns_per_w, 28);
  expect_dip(arch, "ncu", 500);
  expect_dip(arch, "stream", 690);
  ftl_arch_destroy(arch);
}

// One that waits for DRAM and L2, whose clocks stay, takes as long at a lower clock: each run allows it a clock that is
// still too high, of 1590 MHz first 1290, 1200 and 1170. Between two neighbours, 1365 and 1380 or 1395 and 1410, power
// may fall by so much that a run at the one allows the other.
Test(unit_engine_conditions, a_launch_that_settles_slowly_holds_the_highest_clock_at_which_it_keeps_the_limit) {
  static const struct {
    const char *chip, *parameters;
  } cases[] = {
      {"t4", "matmul_tiled m=4096 n=1024 k=1024 block_m=128 block_n=64 num_warps=4 store=direct"},
      {"t4", "matmul_tiled m=768 n=768 k=512 block_m=64 block_n=64 num_warps=4 store=direct"},
      {"a100_40",
       "matmul_tiled m=1024 n=4096 k=1024 block_m=128 block_n=64 num_warps=4 store=direct conditions=stream"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ftl_arch *arch = shipped_arch(cases[i].chip);
    cr_assert_eq(arch->power_limit_mw, arch->power_burst_limit_mw);
    double limit_w = (double)arch->power_limit_mw / 1000;
    ftl_metrics m = predict(arch, cases[i].parameters);
    double mhz = m.value[FTL_METRIC_sm_clock_mhz], power_w = m.value[FTL_METRIC_power_w];
    cr_expect_leq(power_w, limit_w, "%s: %.1f W at %.0f MHz", cases[i].chip, power_w, mhz);
    cr_expect_eq(held_power_w(arch, cases[i].parameters, mhz), power_w, "it ran at the clock that it holds");
    cr_expect_gt(held_power_w(arch, cases[i].parameters, mhz + 15), limit_w, "a step of 15 MHz more is too much");
    ftl_arch_destroy(arch);
  }
}

// Above some clock eleven in a row end before the sustained limit sets in, where they exceed that on bursts; below it
// they last, and draw more than is sustained down to a clock far lower.
Test(unit_engine_conditions, a_launch_between_the_clocks_of_two_limits_goes_below_both) {
  static const char parameters[] =
      "matmul_tiled m=2048 n=2048 k=8192 block_m=128 block_n=128 num_warps=8 num_stages=4 copy=tma mma=wgmma "
      "conditions=stream";
  ftl_arch *arch = shipped_arch("h200");
  arch->power_limit_mw = 600000;
  arch->power_limit_delay_us = 1180;
  ftl_metrics m = predict(arch, parameters);
  cr_expect_gt(11 * m.value[FTL_METRIC_time_ns], 1180e3);
  cr_expect_leq(m.value[FTL_METRIC_power_w], 600, "%.1f W", m.value[FTL_METRIC_power_w]);
  cr_expect_gt(held_power_w(arch, parameters, m.value[FTL_METRIC_sm_clock_mhz] + 15), 600);
  ftl_arch_destroy(arch);
}

// The median of 21 launches in a stream is the eleventh: eleven of them take the delay of the limit, ten do not.
Test(unit_engine_conditions, a_stream_meets_the_sustained_limit_once_it_has_lasted) {
  ftl_arch *arch = shipped_arch("h200");
  arch->power_burst_limit_mw = 4000000;
  arch->power_limit_mw = arch->power_static_mw + 1;
  arch->clock_onset_lost_ns_per_w = 0;
  double floor_mhz = (double)arch->clock_sm_min_khz / 1000, top_mhz = 1800;
  double us = predict(arch, LARGE "conditions=stream clock_mhz=1800").value[FTL_METRIC_time_ns] / 1000;
  // By the cycles that it takes at the clock it is held to, of which memory takes fewer there.
  char held[256];
  snprintf(held, sizeof held, LARGE "conditions=stream clock_mhz=%.0f", floor_mhz);
  double at_floor = predict(arch, held).value[FTL_METRIC_cycles] / top_mhz;
  arch->power_limit_delay_us = (int64_t)((10 * us + 11 * at_floor) / 2);
  cr_expect_eq(predict(arch, LARGE "conditions=stream").value[FTL_METRIC_sm_clock_mhz], floor_mhz);
  cr_expect_eq(predict(arch, LARGE).value[FTL_METRIC_sm_clock_mhz], top_mhz, "one launch ends before");
  // At the lowest clock ten launches take the delay too, but no clock above it has to be left.
  arch->power_limit_delay_us = (int64_t)(11.5 * us);
  cr_expect_eq(predict(arch, LARGE "conditions=stream").value[FTL_METRIC_sm_clock_mhz], top_mhz);
  ftl_arch_destroy(arch);
}

// flash_decode is two launches: one gap.
Test(unit_engine_conditions, a_stream_has_a_gap_between_launches) {
  static const char parameters[] =
      "flash_decode heads=8 kv_heads=2 seqlen_kv=1024 head_dim=64 splits=4 conditions=stream clock_mhz=1200";
  ftl_arch *arch = shipped_arch("h200");
  ftl_metrics m = predict(arch, parameters);
  cr_expect_float_eq(m.value[FTL_METRIC_stream_time_ns] - m.value[FTL_METRIC_time_ns], (double)arch->launch_gap_ns,
                     1e-6);
  ftl_arch_destroy(arch);
}

#define SMALL                                                                                             \
  "heads=6 kv_heads=2 seqlen_q=200 seqlen_kv=333 head_dim=64 causal=1 block_m=64 block_n=32 num_warps=4 " \
  "num_stages=1 clock_mhz=1200 "

// An RTX 4090 has 72 MiB of L2: Nsight Compute leaves 2400000 bytes of it dirty, whole lines of 128, a 256 MB fill all
// that may be dirty. The kernel adds what it writes: 6 heads of 200 rows of 64 numbers of 2 bytes and a sum of 4.
Test(unit_engine_conditions, l2_is_as_dirty_before_a_launch_as_its_conditions_leave_it) {
  ftl_arch *arch = shipped_arch("rtx4090");
  double own = 6 * 200 * (64 * 2 + 4);
  double profiled = predict(arch, SMALL "detail=full").value[FTL_METRIC_dirty_bytes];
  double stream = predict(arch, SMALL "detail=full conditions=stream").value[FTL_METRIC_dirty_bytes];
  cr_expect_float_eq(profiled - own, 2400000, 0.5, "%.0f", profiled - own);
  cr_expect_gt(stream - own, 4 * 2400000.0, "%.0f", stream - own);
  ftl_arch_destroy(arch);
}

// SparQ's five launches move little, some less than a line of the sample, and leave what a fill before them left.
Test(unit_engine_conditions, small_launches_of_a_stream_leave_l2_as_dirty_as_they_found_it) {
  static const char parameters[] = "sparq_decode heads=3 head_dim=192 seqlen_kv=2048 conditions=stream clock_mhz=1200";
  ftl_arch *arch = shipped_arch("a100_80");
  ftl_prediction sampled = prediction_of(arch, parameters, NULL);
  char full_detail[128];
  snprintf(full_detail, sizeof full_detail, "%s detail=full", parameters);
  ftl_prediction full = prediction_of(arch, full_detail, NULL);
  cr_assert_eq(sampled.num_kernels, 5);
  for (int i = 0; i < sampled.num_kernels; i++) {
    double is = sampled.kernels[i].metrics.value[FTL_METRIC_dirty_bytes];
    double exact = full.kernels[i].metrics.value[FTL_METRIC_dirty_bytes];
    cr_expect_float_eq(is, exact, 0.005 * exact, "%s: %.0f, in full %.0f", sampled.kernels[i].name, is, exact);
  }
  double is = sampled.metrics.value[FTL_METRIC_dram_write];
  double exact = full.metrics.value[FTL_METRIC_dram_write];
  cr_expect_float_eq(is, exact, 0.02 * exact, "written: %.0f, in full %.0f", is, exact);
  ftl_arch_destroy(arch);
}
