#include <criterion/criterion.h>

#include "engine/power.h"

// Round numbers: 1 GHz at most in steps of 100 MHz, down to 500 MHz; energy follows the clock linearly.
static ftl_arch power_arch(void) {
  return (ftl_arch){.clock_sm_max_khz = 1000000,
                    .clock_sm_min_khz = 500000,
                    .clock_sm_step_khz = 100000,
                    .clock_sm_tensor_max_khz = 1000000,
                    .power_limit_mw = 300000,
                    .power_burst_limit_mw = 400000,
                    .power_limit_delay_us = 2000,
                    .power_static_mw = 100000,
                    .power_tensor_mac_fj = 1000,
                    .power_voltage_exponent_milli = 1000};
}

// Of launches that take 1 ms at 1 GHz.
enum { ON_ITS_OWN = 1, LAST_OF_MANY = 2 };

static int64_t clock_khz(const ftl_arch *arch, const ftl_totals *totals, int64_t tensor_macs, int64_t num_in_a_row) {
  return ftl_power_clock_khz(arch, totals, tensor_macs, num_in_a_row, ftl_power_top_khz(arch, tensor_macs));
}

// 10^6 cycles in which 2 * 10^11 multiply-adds of 1 pJ are done: 0.2 J.
enum { CYCLES = 1000000 };
static const int64_t macs = 200000000000;

Test(unit_engine_power, power_is_static_plus_energy_over_time) {
  ftl_arch arch = power_arch();
  ftl_totals totals = {.cycles = CYCLES};
  // 0.2 J in 1 ms at 1 GHz: 200 W above the static 100 W.
  cr_assert_eq(ftl_power_mw(&arch, &totals, macs, 1000000), 300000);
  // At half the clock: half the energy in twice the time, 50 W.
  cr_assert_eq(ftl_power_mw(&arch, &totals, macs, 500000), 150000);
  cr_assert_eq(ftl_power_mw(&arch, &totals, 0, 1000000), 100000);
}

Test(unit_engine_power, the_clock_is_the_highest_step_within_the_limit) {
  ftl_arch arch = power_arch();
  ftl_totals totals = {.cycles = CYCLES};
  cr_assert_eq(clock_khz(&arch, &totals, macs, LAST_OF_MANY), 1000000);  // exactly at the limit
  // 1 W less: at 900 MHz 200 * 0.9 * 0.9 = 162 W above static.
  arch.power_limit_mw = 299000;
  cr_assert_eq(clock_khz(&arch, &totals, macs, LAST_OF_MANY), 900000);
  arch.power_limit_mw = 262001;
  cr_assert_eq(clock_khz(&arch, &totals, macs, LAST_OF_MANY), 900000);
  arch.power_limit_mw = 261000;  // below 262 W: 800 MHz needs 228 W
  cr_assert_eq(clock_khz(&arch, &totals, macs, LAST_OF_MANY), 800000);
}

Test(unit_engine_power, the_clock_never_goes_below_its_floor) {
  ftl_arch arch = power_arch();
  ftl_totals totals = {.cycles = CYCLES};
  arch.power_limit_mw = 1000;
  cr_assert_eq(clock_khz(&arch, &totals, macs, LAST_OF_MANY), 500000);
}

// Halved with the clock, the energy through L1 in twice the time: a quarter of its 50 W; that from L2: half.
Test(unit_engine_power, energy_through_l1_follows_the_core_voltage_and_that_from_l2_does_not) {
  ftl_arch arch = power_arch();
  arch.power_l1_sector_fj = arch.power_l2_sector_fj = 50000;
  ftl_totals l1 = {.cycles = CYCLES, .sm = {.l1_load_sectors = 1000000000}};
  ftl_totals l2 = {.cycles = CYCLES, .memory = {.l2_sectors_from_sms = 1000000000}};
  cr_expect_eq(ftl_power_mw(&arch, &l1, 0, 1000000), 150000);
  cr_expect_eq(ftl_power_mw(&arch, &l1, 0, 500000), 112500);
  cr_expect_eq(ftl_power_mw(&arch, &l2, 0, 500000), 125000);
}

Test(unit_engine_power, dram_energy_does_not_follow_the_core_voltage) {
  ftl_arch arch = power_arch();
  arch.power_dram_byte_fj = 100000;  // 0.1 nJ a byte
  ftl_totals totals = {.cycles = CYCLES, .memory = {.dram_read_bytes = 1000000000}};
  // 0.1 J in 1 ms: 100 W; at half the clock the same energy in 2 ms: 50 W.
  cr_assert_eq(ftl_power_mw(&arch, &totals, 0, 1000000), 200000);
  cr_assert_eq(ftl_power_mw(&arch, &totals, 0, 500000), 150000);
}

Test(unit_engine_power, a_fractional_exponent_lies_between_its_neighbours) {
  ftl_arch arch = power_arch();
  ftl_totals totals = {.cycles = CYCLES};
  arch.power_voltage_exponent_milli = 1500;
  // Interpolated between 0.5 and 0.25 at half the clock: 0.375 * 0.2 J in 2 ms = 37.5 W.
  cr_assert_eq(ftl_power_mw(&arch, &totals, macs, 500000), 137500);
}

Test(unit_engine_power, a_launch_on_its_own_may_draw_up_to_the_burst_limit) {
  ftl_arch arch = power_arch();
  ftl_totals totals = {.cycles = CYCLES};
  arch.power_limit_mw = 261000;
  cr_assert_eq(clock_khz(&arch, &totals, macs, ON_ITS_OWN), 1000000);  // 300 W of 400
  arch.power_burst_limit_mw = 299000;
  cr_assert_eq(clock_khz(&arch, &totals, macs, ON_ITS_OWN), 900000);
}

// 200 W above static at 1 GHz, 162 at 900 MHz, with a limit of 180 after a delay. Two launches take 2 ms at 1 GHz, 2.22
// at 900 MHz: a delay in between leaves the first no limit but that for bursts.
Test(unit_engine_power, the_sustained_limit_sets_in_after_its_delay) {
  ftl_arch arch = power_arch();
  ftl_totals totals = {.cycles = CYCLES};
  arch.power_limit_mw = 280000;
  arch.power_limit_delay_us = 2000;
  cr_expect_eq(clock_khz(&arch, &totals, macs, 2), 900000);
  arch.power_limit_delay_us = 2001;
  cr_expect_eq(clock_khz(&arch, &totals, macs, 2), 1000000);
  cr_expect_eq(clock_khz(&arch, &totals, macs, 3), 900000);
}

Test(unit_engine_power, tensor_operations_have_a_lower_top_clock) {
  ftl_arch arch = power_arch();
  ftl_totals totals = {.cycles = CYCLES};
  arch.clock_sm_tensor_max_khz = 850000;  // between steps: the step below counts
  cr_assert_eq(clock_khz(&arch, &totals, 1, LAST_OF_MANY), 800000);
  cr_assert_eq(clock_khz(&arch, &totals, 0, LAST_OF_MANY), 1000000);
  cr_assert_eq(ftl_power_top_khz(&arch, 1), 800000);  // whatever power allows
  cr_assert_eq(ftl_power_top_khz(&arch, 0), 1000000);
}

// Each kind of work draws 0.01 J in 1 ms, 10 W: 10^5 active SM cycles, instructions besides the tensor ones, wavefronts
// of 128 bytes, sectors through L1, from L2 and, at last, DRAM bytes read and written, of so many fJ each.
Test(unit_engine_power, every_kind_of_work_has_its_energy) {
  ftl_arch arch = power_arch();
  arch.shared_bytes_per_cycle = 128;
  arch.power_sm_cycle_fj = arch.power_inst_fj = arch.power_l1_sector_fj = arch.power_l2_sector_fj = 100000000;
  arch.power_shared_byte_fj = 781250;
  arch.power_dram_byte_fj = 50000000;
  static const ftl_totals works[] = {
      {.cycles = CYCLES, .sm = {.active_cycles = 100000}},
      {.cycles = CYCLES, .sm = {.warp_insts = 300000, .tensor_insts = 200000}},
      {.cycles = CYCLES, .sm = {.shared_wavefronts = 100000}},
      {.cycles = CYCLES, .sm = {.l1_load_sectors = 100000}},
      {.cycles = CYCLES, .memory = {.l2_sectors_from_sms = 100000}},
      {.cycles = CYCLES, .memory = {.dram_read_bytes = 150000, .dram_write_bytes = 50000}},
  };
  for (size_t i = 0; i < sizeof works / sizeof *works; i++)
    cr_expect_eq(ftl_power_mw(&arch, &works[i], 0, 1000000), 110000, "work %zu: %lld mW", i,
                 (long long)ftl_power_mw(&arch, &works[i], 0, 1000000));
}

// In steps of 100 MHz: after 600 MHz and then 200 another 67 would follow, more than half a step; after 600 and 100 or
// -100 another 17. As much twice goes on, and a first change (before it: none) says nothing.
Test(unit_engine_power, a_clock_converges_when_the_next_change_is_less_than_half_a_step) {
  ftl_arch arch = power_arch();
  cr_assert_eq(arch.clock_sm_step_khz, 100000);
  cr_expect_not(ftl_power_clock_converges(&arch, -600000, -200000));
  cr_expect(ftl_power_clock_converges(&arch, -600000, -100000));
  cr_expect(ftl_power_clock_converges(&arch, -600000, 100000));
  cr_expect_not(ftl_power_clock_converges(&arch, -100000, -100000));
  cr_expect_not(ftl_power_clock_converges(&arch, 0, -100000));
}

// 400 W by the board's energies, 100 of them static, at 1 GHz: 200 above those from which the clock dips, 10 ns for
// each.
static ftl_arch dipping_arch(void) {
  ftl_arch arch = power_arch();
  arch.power_board_dram_byte_fj = 100000;
  arch.power_dram_byte_fj = arch.power_l2_sector_fj = 1;
  arch.clock_onset_power_mw = 200000;
  arch.clock_onset_stream_power_mw = 300000;
  arch.clock_onset_lost_ns_per_w = 1000;
  arch.clock_onset_begin_us = 500;
  arch.clock_onset_end_us = 1500;
  return arch;
}

// `us` at 1 GHz with 3 GB/ms: 300 W above static.
static ftl_totals dipping_totals(int64_t us) {
  return (ftl_totals){.cycles = us * 1000,
                      .memory = {.dram_read_bytes = us * 2000000, .dram_write_bytes = us * 1000000}};
}

Test(unit_engine_power, the_board_draws_for_memory_by_energies_of_its_own) {
  ftl_arch arch = dipping_arch();
  ftl_totals totals = dipping_totals(1000);
  cr_expect_eq(ftl_power_board_mw(&arch, &totals, 0, 1000000), 400000);
  cr_expect_eq(ftl_power_mw(&arch, &totals, 0, 1000000), 100003);
  arch.power_board_l2_sector_fj = 50000;
  totals.memory.l2_sectors_from_sms = 1000000000;  // 50 W
  cr_expect_eq(ftl_power_board_mw(&arch, &totals, 0, 1000000), 450000);
  cr_expect_eq(ftl_power_board_mw(&arch, &(ftl_totals){0}, 0, 1000000), 100000);
}

// 200 W above 200 cost 200 us at 1 us for each: in full after 1.5 ms, half of them after 1 ms, nothing after 0.5.
Test(unit_engine_power, the_clock_dips_from_the_begin_to_the_end_of_a_loads_onset) {
  ftl_arch arch = dipping_arch();
  ftl_totals before = dipping_totals(500), half = dipping_totals(1000), whole = dipping_totals(1500),
             later = dipping_totals(3000);
  cr_expect_eq(ftl_power_onset_khz(&arch, &before, 0, ON_ITS_OWN, 1000000), 1000000);
  cr_expect_eq(ftl_power_onset_khz(&arch, &half, 0, ON_ITS_OWN, 1000000), 1000000 * 10 / 11);
  cr_expect_eq(ftl_power_onset_khz(&arch, &whole, 0, ON_ITS_OWN, 1000000), 1000000 * 15L / 17);
  cr_expect_eq(ftl_power_onset_khz(&arch, &later, 0, ON_ITS_OWN, 1000000), 1000000 * 30L / 32);
  cr_expect_eq(ftl_power_onset_khz(&arch, &later, 0, LAST_OF_MANY, 1000000), 1000000 * 30L / 31, "100 W above 300");
  arch.clock_onset_power_mw = 400000;
  cr_expect_eq(ftl_power_onset_khz(&arch, &later, 0, ON_ITS_OWN, 1000000), 1000000, "exactly where it begins");
  cr_expect_eq(ftl_power_onset_khz(&arch, &(ftl_totals){0}, 0, ON_ITS_OWN, 1000000), 1000000, "nothing ran");
}

// The dip is one from the highest clock, 1 GHz. 8.1 GB are 0.81 J: in 3 ms at 900 MHz 270 W above static, 170 above
// 200, which leave 946 MHz; in 2.84 ms at 950 MHz 285 W, 185 above 200, which leave 939.
Test(unit_engine_power, a_limit_below_the_clock_that_the_onset_leaves_stands) {
  ftl_arch arch = dipping_arch();
  ftl_totals totals = {.cycles = 2700000, .memory = {.dram_read_bytes = 8100000000}};
  cr_expect_eq(ftl_power_board_mw(&arch, &totals, 0, 900000), 370000);
  cr_expect_eq(ftl_power_onset_khz(&arch, &totals, 0, ON_ITS_OWN, 900000), 900000);
  cr_expect_eq(ftl_power_onset_khz(&arch, &totals, 0, ON_ITS_OWN, 950000), 1000000 * 2842105L / (2842105 + 185000));
}
