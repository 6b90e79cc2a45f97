// The die's energies, which an H200 gave, against the limits under which an H200 and an H100 were watched: kernels that
// multiply (wgmma on random operands) and do something else beside it. micro_sm_clock.csv of kernels/measurements and
// of its folder h100: for 400 ms, after 100 of which the 700 W hold; micro_power_parts.csv: for 30 ms, in which the
// limit is that for bursts. micro_clock_onset.csv: the first 200 us of a load.
#include <criterion/criterion.h>
#include <math.h>

#include "engine/power.h"
#include "script/arch_loader.h"

// Rates measured at `mhz`: products, bytes of one kind of copy or load, operations of a lane.
typedef struct load {
  double tensor_tflops, mhz;
  double l2_gb_per_s, l1_gb_per_s, dram_gb_per_s, shared_gb_per_s, lane_gops_per_s;
} load;

enum { LANES = 32, SECTOR_BYTES = 32, LDS_BYTES = 512 };

// What the SMs, L2 and DRAM do in a millisecond of it.
static ftl_totals totals_of(const ftl_arch *arch, const load *l) {
  const double per_ms = 1e6;  // of a rate in 10^9 a second
  int64_t cycles = (int64_t)(l->mhz * 1000);
  double insts = l->lane_gops_per_s / LANES + l->shared_gb_per_s / LDS_BYTES;
  return (ftl_totals){
      .cycles = cycles,
      .sm = {.active_cycles = cycles * arch->chip_num_sms,
             .warp_insts = (int64_t)(insts * per_ms),
             .shared_wavefronts = (int64_t)(l->shared_gb_per_s / (double)arch->shared_bytes_per_cycle * per_ms),
             .l1_load_sectors = (int64_t)(l->l1_gb_per_s / SECTOR_BYTES * per_ms)},
      .memory = {.l2_sectors_from_sms = (int64_t)((l->l2_gb_per_s + l->dram_gb_per_s) / SECTOR_BYTES * per_ms),
                 .dram_read_bytes = (int64_t)(l->dram_gb_per_s * per_ms)}};
}

static int64_t tensor_macs_of(const load *l) { return (int64_t)(l->tensor_tflops * 1e9 / 2); }

static double modelled_watts(const ftl_arch *arch, const load *l) {
  ftl_totals totals = totals_of(arch, l);
  return (double)ftl_power_mw(arch, &totals, tensor_macs_of(l), totals.cycles) / 1e3;
}

static ftl_arch *model_of(const char *name) {
  ftl_arch *arch = NULL;
  ftl_error error = {0};
  cr_assert_eq(ftl_arch_load(FTL_SOURCE_DIR "/arch_models", name, &arch, &error), FTL_OK, "%s", error.message);
  return arch;
}

static void expect_watts(const ftl_arch *arch, const load *l, double watts, double tolerance_pct) {
  double modelled = modelled_watts(arch, l), error_pct = 100 * (modelled - watts) / watts;
  cr_expect_leq(fabs(error_pct), tolerance_pct, "%.0f TFLOP/s at %.0f MHz: %.1f W, %+.1f %%", l->tensor_tflops, l->mhz,
                modelled, error_pct);
}

// LDS beside wgmma come with two LOP3 each.
static void expect_burst_limit(const char *name, const load *loads, size_t num_loads) {
  ftl_arch *arch = model_of(name);
  for (size_t i = 0; i < num_loads; i++) {
    load l = loads[i];
    l.lane_gops_per_s += 2 * LANES * l.shared_gb_per_s / LDS_BYTES;
    expect_watts(arch, &l, (double)arch->power_burst_limit_mw / 1000, 8);
  }
  ftl_arch_destroy(arch);
}

// tensor_pct 0 with memory0: spinning, at the highest clock, draws 131.65 W. tensor_pct 100 with memory0, memory50 and
// memory100, whose loads are LDGs: limited.
Test(reference_power, the_h200_draws_its_limit_at_the_clocks_that_it_fell_to) {
  static const load spinning = {.mhz = 1980};
  static const load loads[] = {
      {.tensor_tflops = 821.224, .mhz = 1502.46},
      {.tensor_tflops = 703.977, .mhz = 1304.64, .dram_gb_per_s = 1812.77, .l1_gb_per_s = 1812.77},
      {.tensor_tflops = 638.876, .mhz = 1199.28, .dram_gb_per_s = 3151.83, .l1_gb_per_s = 3151.83},
  };
  ftl_arch *arch = model_of("h200");
  cr_assert_eq(arch->power_limit_mw, 700000);
  expect_watts(arch, &spinning, 131.65, 1);
  for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) expect_watts(arch, &loads[i], 700, 5);
  ftl_arch_destroy(arch);
}

// burst_*, the rows below the clock that any tensor work is held to.
Test(reference_power, the_h200_draws_its_burst_limit_whatever_runs_beside_wgmma) {
  static const load loads[] = {
      {.tensor_tflops = 871.304, .mhz = 1640.68},
      {.tensor_tflops = 877.057, .mhz = 1647.49},
      {.tensor_tflops = 881.096, .mhz = 1652.83},
      {.tensor_tflops = 844.325, .mhz = 1609.92, .l2_gb_per_s = 1508.57, .l1_gb_per_s = 1508.57},
      {.tensor_tflops = 826.342, .mhz = 1592.33, .l2_gb_per_s = 2836.68, .l1_gb_per_s = 2836.68},
      {.tensor_tflops = 795.759, .mhz = 1565.05, .l2_gb_per_s = 5353.33, .l1_gb_per_s = 5353.33},
      {.tensor_tflops = 807.912, .mhz = 1580.78, .l2_gb_per_s = 5109.03, .l1_gb_per_s = 5109.03},
      {.tensor_tflops = 789.43, .mhz = 1570.69, .l2_gb_per_s = 7091.47, .l1_gb_per_s = 7091.47},
      {.tensor_tflops = 775.125, .mhz = 1550.72, .l2_gb_per_s = 9162.69, .l1_gb_per_s = 9162.69},
      {.tensor_tflops = 840.243, .mhz = 1613.62, .l2_gb_per_s = 3452.19},
      {.tensor_tflops = 815.227, .mhz = 1588.77, .l2_gb_per_s = 6272.94},
      {.tensor_tflops = 803.661, .mhz = 1566.1, .l2_gb_per_s = 9018.22},
      {.tensor_tflops = 760.949, .mhz = 1458.57, .dram_gb_per_s = 3139.53},
      {.tensor_tflops = 654.814, .mhz = 1273.28, .dram_gb_per_s = 4469.92},
      {.tensor_tflops = 651.549, .mhz = 1248.28, .dram_gb_per_s = 4570.87},
      {.tensor_tflops = 859.799, .mhz = 1638.58, .shared_gb_per_s = 4644.14},
      {.tensor_tflops = 848.775, .mhz = 1629.64, .shared_gb_per_s = 8089.27},
      {.tensor_tflops = 847.757, .mhz = 1591.22, .shared_gb_per_s = 13211.8},
      {.tensor_tflops = 807.496, .mhz = 1699.67, .lane_gops_per_s = 3153.13},
      {.tensor_tflops = 748.212, .mhz = 1731.4, .lane_gops_per_s = 6425.37},
      {.tensor_tflops = 860.609, .mhz = 1636.85, .lane_gops_per_s = 1484.46},
      {.tensor_tflops = 844.545, .mhz = 1625.4, .lane_gops_per_s = 2913.79},
      {.tensor_tflops = 838.869, .mhz = 1571.29, .lane_gops_per_s = 5734.04},
      {.tensor_tflops = 864.112, .mhz = 1651.55, .lane_gops_per_s = 603.033},
      {.tensor_tflops = 860.372, .mhz = 1650.64, .lane_gops_per_s = 1067.03},
      {.tensor_tflops = 861.397, .mhz = 1641.9, .lane_gops_per_s = 2427.53},
  };
  expect_burst_limit("h200", loads, sizeof loads / sizeof *loads);
}

// h100/micro_power_parts.csv, the same rows of another card of the die: nothing but its limit was set by it.
Test(reference_power, an_h100_draws_its_burst_limit_by_the_energies_of_an_h200) {
  static const load loads[] = {
      {.tensor_tflops = 878.937, .mhz = 1612.68},
      {.tensor_tflops = 883.868, .mhz = 1621.09},
      {.tensor_tflops = 886.299, .mhz = 1626.3},
      {.tensor_tflops = 851.918, .mhz = 1588.84, .l2_gb_per_s = 1516.91, .l1_gb_per_s = 1516.91},
      {.tensor_tflops = 832.755, .mhz = 1574.05, .l2_gb_per_s = 2848.49, .l1_gb_per_s = 2848.49},
      {.tensor_tflops = 803.31, .mhz = 1552.33, .l2_gb_per_s = 5366.86, .l1_gb_per_s = 5366.86},
      {.tensor_tflops = 821.328, .mhz = 1572.15, .l2_gb_per_s = 4608.13, .l1_gb_per_s = 4608.13},
      {.tensor_tflops = 805.682, .mhz = 1563.32, .l2_gb_per_s = 6162.97, .l1_gb_per_s = 6162.97},
      {.tensor_tflops = 786.955, .mhz = 1534.42, .l2_gb_per_s = 7981.96, .l1_gb_per_s = 7981.96},
      {.tensor_tflops = 847.537, .mhz = 1592.11, .l2_gb_per_s = 3493.41},
      {.tensor_tflops = 822.7, .mhz = 1575.63, .l2_gb_per_s = 6406.76},
      {.tensor_tflops = 812.947, .mhz = 1548.12, .l2_gb_per_s = 7773.59},
      {.tensor_tflops = 756.091, .mhz = 1416.45, .dram_gb_per_s = 3035.18},
      {.tensor_tflops = 747.594, .mhz = 1401.68, .dram_gb_per_s = 3118.86},
      {.tensor_tflops = 753.548, .mhz = 1401.02, .dram_gb_per_s = 3126.15},
      {.tensor_tflops = 865.389, .mhz = 1606.99, .shared_gb_per_s = 4672.23},
      {.tensor_tflops = 856.303, .mhz = 1602.77, .shared_gb_per_s = 8154.77},
      {.tensor_tflops = 849.338, .mhz = 1563.13, .shared_gb_per_s = 13234},
      {.tensor_tflops = 811.339, .mhz = 1674.5, .lane_gops_per_s = 3167.17},
      {.tensor_tflops = 754.507, .mhz = 1707.5, .lane_gops_per_s = 6417.8},
      {.tensor_tflops = 867.901, .mhz = 1609.18, .lane_gops_per_s = 1500.73},
      {.tensor_tflops = 851.333, .mhz = 1601.08, .lane_gops_per_s = 2958.06},
      {.tensor_tflops = 842.071, .mhz = 1549.3, .lane_gops_per_s = 5755.91},
      {.tensor_tflops = 870.814, .mhz = 1627.13, .lane_gops_per_s = 603.409},
      {.tensor_tflops = 864.895, .mhz = 1627.87, .lane_gops_per_s = 1094.57},
      {.tensor_tflops = 868.846, .mhz = 1613.24, .lane_gops_per_s = 2448.71},
  };
  expect_burst_limit("h100_sxm", loads, sizeof loads / sizeof *loads);
}

// h100/micro_sm_clock.csv: as for the H200, and spinning, at 133.57 W.
Test(reference_power, an_h100_draws_its_limit_at_the_clocks_that_it_fell_to) {
  static const load spinning = {.mhz = 1980};
  static const load loads[] = {
      {.tensor_tflops = 834.984, .mhz = 1538.73},
      {.tensor_tflops = 717.344, .mhz = 1328.25, .dram_gb_per_s = 1791.14, .l1_gb_per_s = 1791.14},
      {.tensor_tflops = 663.566, .mhz = 1240.22, .dram_gb_per_s = 2744.23, .l1_gb_per_s = 2744.23},
  };
  ftl_arch *arch = model_of("h100_sxm");
  cr_assert_eq(arch->power_limit_mw, 700000);
  expect_watts(arch, &spinning, 133.57, 1);
  for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) expect_watts(arch, &loads[i], 700, 5);
  ftl_arch_destroy(arch);
}

// What a launch of 1 ms at the highest clock loses to its dip, in us.
static double modelled_loss_us(const ftl_arch *arch, load l, int64_t num_in_a_row) {
  int64_t macs = tensor_macs_of(&l), top_khz = ftl_power_top_khz(arch, macs);
  l.mhz = (double)top_khz / 1000;
  ftl_totals totals = totals_of(arch, &l);
  int64_t mean_khz = ftl_power_onset_khz(arch, &totals, macs, num_in_a_row, top_khz);
  return 1000 * ((double)top_khz / (double)mean_khz - 1);
}

// From 40 to 200 us into a load, after a pause of 2 ms and in a train behind a fill: the time of each window times how
// far its clock is below that of 500 us to 1 ms. All loads that no limit holds (1760 MHz and more with tensor work),
// but wgmma20_memory0, whose clock wanders over 80 MHz from launch to launch.
Test(reference_power, the_h200_loses_what_the_power_of_a_load_says_as_it_begins) {
  static const struct {
    load load;
    double after_pause_us, in_train_us;
  } rows[] = {
      {{.tensor_tflops = 479.317}, 1.7, 0.2},
      {{.tensor_tflops = 615.858}, 4.5, 0.4},
      {{.tensor_tflops = 747.001}, 7.2, 1.9},
      {{.tensor_tflops = 167.6, .dram_gb_per_s = 2588.02, .l1_gb_per_s = 2588.02}, 3.2, 1.1},
      {{.tensor_tflops = 324.174, .dram_gb_per_s = 2531.59, .l1_gb_per_s = 2531.59}, 5.9, 0.7},
      {{.tensor_tflops = 469.028, .dram_gb_per_s = 2431.29, .l1_gb_per_s = 2431.29}, 10.3, 2.7},
      {{.tensor_tflops = 164.266, .dram_gb_per_s = 4097.9, .l1_gb_per_s = 4097.9}, 9.1, 3.1},
      {{.tensor_tflops = 317.484, .dram_gb_per_s = 4041.08, .l1_gb_per_s = 4041.08}, 12.8, 5.0},
      {{.tensor_tflops = 239.944}, 0, 0},
      {{.tensor_tflops = 432.261}, 2.0, 0},
      {{.tensor_tflops = 567.429}, 3.9, 0.1},
      {{.tensor_tflops = 623.817}, 4.4, 0.4},
      {{.tensor_tflops = 187.469, .dram_gb_per_s = 2992.96, .l1_gb_per_s = 2992.96}, 5.5, 0.3},
      {{.tensor_tflops = 356.405, .dram_gb_per_s = 2976.58, .l1_gb_per_s = 2976.58}, 9.7, 2.9},
      {{.dram_gb_per_s = 1583.09, .l1_gb_per_s = 1583.09}, 0, 0},
      {{.dram_gb_per_s = 2638.97, .l1_gb_per_s = 2638.97}, 1.1, 0},
      {{.dram_gb_per_s = 3140.49, .l1_gb_per_s = 3140.49}, 1.2, 0},
      {{.dram_gb_per_s = 3520, .l1_gb_per_s = 3520}, 2.9, 0},
      {{.dram_gb_per_s = 3795.19, .l1_gb_per_s = 3795.19}, 3.2, 0},
      {{.dram_gb_per_s = 4197.06, .l1_gb_per_s = 4197.06}, 4.7, 0},
      {{.lane_gops_per_s = 28000}, 0.1, 0.1},
      {{.l2_gb_per_s = 9236, .l1_gb_per_s = 9236}, 1.1, 0.1},
      {{.tensor_tflops = 184.247, .l2_gb_per_s = 7099, .l1_gb_per_s = 7099}, 3.5, 0.1},
  };
  ftl_arch *arch = model_of("h200");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    double paused_us = modelled_loss_us(arch, rows[i].load, 1), train_us = modelled_loss_us(arch, rows[i].load, 21);
    cr_expect_lt(fabs(paused_us - rows[i].after_pause_us), 2, "%d after a pause: %.1f us, not %.1f", (int)i, paused_us,
                 rows[i].after_pause_us);
    cr_expect_lt(fabs(train_us - rows[i].in_train_us), 2, "%d in a train: %.1f us, not %.1f", (int)i, train_us,
                 rows[i].in_train_us);
  }
  ftl_arch_destroy(arch);
}
