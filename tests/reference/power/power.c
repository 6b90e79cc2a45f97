// The H200's energies against the limits under which it was watched: kernels/measurements/micro_sm_clock.csv, kernels
// of 400 ms that multiply (wgmma on random operands) and read DRAM beside it. After 100 ms its 700 W hold.
#include <criterion/criterion.h>
#include <math.h>

#include "engine/power.h"
#include "script/arch_loader.h"

typedef struct load {
  double tensor_tflops, dram_gb_per_s, mhz;  // measured
  double watts, tolerance_pct;
} load;

// What the SMs, the tensor cores, L2 and DRAM do in a millisecond of it.
static double modelled_watts(const ftl_arch *arch, const load *l) {
  int64_t cycles = (int64_t)(l->mhz * 1000), bytes = (int64_t)(l->dram_gb_per_s * 1e6);
  ftl_totals totals = {.cycles = cycles,
                       .sm = {.active_cycles = cycles * arch->chip_num_sms},
                       .memory = {.l2_sectors_from_sms = bytes / 32, .dram_read_bytes = bytes}};
  return (double)ftl_power_mw(arch, &totals, (int64_t)(l->tensor_tflops * 1e9 / 2), cycles) / 1e3;
}

// tensor_pct 0 with memory0: spinning, at the highest clock, draws 131.65 W. tensor_pct 100 with memory0, memory50 and
// memory100: limited.
Test(reference_power, the_h200_draws_its_limit_at_the_clocks_that_it_fell_to) {
  static const load loads[] = {{0, 0, 1980, 131.65, 1},
                               {821.224, 0, 1502.46, 700, 5},
                               {703.977, 1812.77, 1304.64, 700, 5},
                               {638.876, 3151.83, 1199.28, 700, 5}};
  ftl_arch *arch = NULL;
  ftl_error error = {0};
  cr_assert_eq(ftl_arch_load(FTL_SOURCE_DIR "/arch_models", "h200", &arch, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(arch->power_limit_mw, 700000);
  for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
    double watts = modelled_watts(arch, &loads[i]), error_pct = 100 * (watts - loads[i].watts) / loads[i].watts;
    cr_expect_leq(fabs(error_pct), loads[i].tolerance_pct, "load %zu: %.1f W", i, watts);
  }
  ftl_arch_destroy(arch);
}
