// The clocks of GPCs.
#include <criterion/criterion.h>
#include <math.h>

#include "engine/gpc_clock.h"

Test(unit_engine_gpc_clock, clocks_of_gpcs_have_the_spread_of_the_model_and_its_mean) {
  for (int32_t n = 2; n <= 16; n++) {
    double sum = 0, squares = 0;
    for (int32_t gpc = 0; gpc < n; gpc++) {
      double slowness = ftl_gpc_clock_slowness(1600, gpc, n);
      sum += slowness;
      squares += slowness * slowness;
    }
    cr_expect_float_eq(sum, 0, 1e-12);
    cr_expect_float_eq(sqrt(squares / n), 0.0016, 1e-12, "%d GPCs: %g", (int)n, sqrt(squares / n));
  }
  cr_expect_eq(ftl_gpc_clock_slowness(1600, 0, 1), 0);
}

Test(unit_engine_gpc_clock, clocks_of_gpcs_are_further_apart_where_the_power_limit_holds_them_down) {
  // Steps of 15 MHz from 1980 down: tensor operations may have 1800, the first within 1810.
  ftl_arch arch = {.clock_sm_max_khz = 1980000,
                   .clock_sm_tensor_max_khz = 1810000,
                   .clock_sm_step_khz = 15000,
                   .clock_sm_min_khz = 345000,
                   .sm_gpc_clock_spread_ppm = 1600,
                   .sm_gpc_limited_clock_spread_ppm = 6000};
  cr_expect_eq(ftl_gpc_clock_spread_ppm(&arch, 1785000, 0), 6000);
  cr_expect_eq(ftl_gpc_clock_spread_ppm(&arch, 1785000, 1770000), 6000);
  cr_expect_eq(ftl_gpc_clock_spread_ppm(&arch, 1785000, 1785000), 1600, "nothing but the onset of its load does");
  cr_expect_eq(ftl_gpc_clock_spread_ppm(&arch, 1800000, 0), 1600);
  cr_expect_eq(ftl_gpc_clock_spread_ppm(&arch, 1980000, 0), 1600);
}

// Eight GPCs at 1.6 permille: 1600 ppm * 7 * sqrt(3 / 63) = 2444 ppm.
Test(unit_engine_gpc_clock, the_fastest_gpc_counts_more_cycles_than_the_mean) {
  cr_expect_float_eq(ftl_gpc_clock_fastest(1600, 8), 1.002444, 1e-6);
  cr_expect_float_eq(ftl_gpc_clock_fastest(1600, 8), 1 - ftl_gpc_clock_slowness(1600, 0, 8), 1e-12);
  cr_expect_eq(ftl_gpc_clock_fastest(1600, 1), 1);
}
