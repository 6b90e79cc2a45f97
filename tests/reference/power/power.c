// The H200's energies against the limits under which it was watched: kernels that multiply (wgmma on random operands)
// and do something else beside it. kernels/measurements/micro_sm_clock.csv: for 400 ms, after 100 of which its 700 W
// hold; micro_power_parts.csv: for 30 ms, in which the limit is that for bursts.
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

// What the SMs, the tensor cores, L2 and DRAM do in a millisecond of it.
static double modelled_watts(const ftl_arch *arch, const load *l) {
  const double per_ms = 1e6;  // of a rate in 10^9 a second
  int64_t cycles = (int64_t)(l->mhz * 1000);
  double insts = l->lane_gops_per_s / LANES + l->shared_gb_per_s / LDS_BYTES;
  ftl_totals totals = {
      .cycles = cycles,
      .sm = {.active_cycles = cycles * arch->chip_num_sms,
             .warp_insts = (int64_t)(insts * per_ms),
             .shared_wavefronts = (int64_t)(l->shared_gb_per_s / (double)arch->shared_bytes_per_cycle * per_ms),
             .l1_load_sectors = (int64_t)(l->l1_gb_per_s / SECTOR_BYTES * per_ms)},
      .memory = {.l2_sectors_from_sms = (int64_t)((l->l2_gb_per_s + l->dram_gb_per_s) / SECTOR_BYTES * per_ms),
                 .dram_read_bytes = (int64_t)(l->dram_gb_per_s * per_ms)}};
  return (double)ftl_power_mw(arch, &totals, (int64_t)(l->tensor_tflops * 1e9 / 2), cycles) / 1e3;
}

static ftl_arch *h200(void) {
  ftl_arch *arch = NULL;
  ftl_error error = {0};
  cr_assert_eq(ftl_arch_load(FTL_SOURCE_DIR "/arch_models", "h200", &arch, &error), FTL_OK, "%s", error.message);
  return arch;
}

static void expect_watts(const ftl_arch *arch, const load *l, double watts, double tolerance_pct) {
  double modelled = modelled_watts(arch, l), error_pct = 100 * (modelled - watts) / watts;
  cr_expect_leq(fabs(error_pct), tolerance_pct, "%.0f TFLOP/s at %.0f MHz: %.1f W, %+.1f %%", l->tensor_tflops, l->mhz,
                modelled, error_pct);
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
  ftl_arch *arch = h200();
  cr_assert_eq(arch->power_limit_mw, 700000);
  expect_watts(arch, &spinning, 131.65, 1);
  for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) expect_watts(arch, &loads[i], 700, 5);
  ftl_arch_destroy(arch);
}

// burst_*, the rows below the clock that any tensor work is held to. LDS beside come with two LOP3 each.
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
  ftl_arch *arch = h200();
  for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
    load l = loads[i];
    l.lane_gops_per_s += 2 * LANES * l.shared_gb_per_s / LDS_BYTES;
    expect_watts(arch, &l, (double)arch->power_burst_limit_mw / 1000, 8);
  }
  ftl_arch_destroy(arch);
}
