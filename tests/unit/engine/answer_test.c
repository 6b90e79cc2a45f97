// Metrics from counts, each by its definition: round numbers, so that every value can be worked out by hand.
#include <criterion/criterion.h>

#include "engine/answer.h"

enum { KHZ = 2000000, CYCLES = 200000 };

// 2 SMs of 4 sub-cores, 64 warps each; DRAM: 4 channels of 32 bytes a burst of 2 cycles at 1 GHz, 64 bytes a ns.
static ftl_arch small_arch(void) {
  return (ftl_arch){.chip_num_sms = 2,
                    .chip_num_gpcs = 1,
                    .chip_sms_per_tpc = 2,
                    .sm_num_subcores = 4,
                    .sm_max_warps = 64,
                    .launch_overhead_ns = 1500,
                    .shared_reserved_bytes_per_cta = 1024,
                    .dram_num_channels = 4,
                    .dram_burst_bytes = 32,
                    .dram_burst_cycles = 2,
                    .clock_dram_khz = 1000000,
                    .clock_sm_max_khz = KHZ,
                    .clock_sm_tensor_max_khz = KHZ,
                    .clock_sm_step_khz = 15000};
}

static ftl_metrics metrics_of(const ftl_arch *arch, const ftl_totals *totals, const ftl_static_work *work) {
  static const ftl_tile_program tile = {.num_ctas = 12, .model_flops = 1015000000};
  static const ftl_warp_program warps = {
      .num_warps = 8, .registers_per_thread = 96, .spill_registers = 3, .shared_bytes = 20000};
  ftl_launch launch = {.arch = arch, .tile = &tile, .warps = &warps, .occupancy = {.ctas_per_sm = 3}};
  ftl_metrics metrics;
  ftl_answer_metrics(&launch, totals, work, &metrics);
  return metrics;
}

static void expect(const ftl_metrics *metrics, ftl_metric metric, double value) {
  cr_expect_float_eq(metrics->value[metric], value, 1e-9 * value, "%s is %.12g, not %.12g",
                     ftl_metric_get(metric)->name, metrics->value[metric], value);
}

// 200000 cycles of 0.5 ns behind 1.5 us of overhead: 101.5 us, and the overhead is 3000 cycles.
Test(unit_engine_answer, time_is_cycles_at_the_clock_and_the_launch_overhead) {
  ftl_arch arch = small_arch();
  ftl_totals totals = {.sm_khz = KHZ, .cycles = CYCLES};
  totals.sm.active_cycles = 300000;
  ftl_static_work work = {.tensor_macs = 7000};
  ftl_metrics m = metrics_of(&arch, &totals, &work);
  expect(&m, FTL_METRIC_time_ns, 101500);
  expect(&m, FTL_METRIC_stream_time_ns, 101500);
  expect(&m, FTL_METRIC_cycles, 203000);
  expect(&m, FTL_METRIC_cycles_active, 150000);  // a mean of 2 SMs
  expect(&m, FTL_METRIC_sm_clock_mhz, 2000);
  expect(&m, FTL_METRIC_tflops, 10);  // 1.015 GFLOP in 101.5 us
  expect(&m, FTL_METRIC_model_flops, 1015000000);
  expect(&m, FTL_METRIC_executed_flops, 14000);  // a multiply-add is two
}

// Two GPCs at a distance of two standard deviations of 1.6 permille: the faster one counts 1.0016 cycles for each. Time
// is the launch's.
Test(unit_engine_answer, elapsed_cycles_are_those_of_the_fastest_gpc) {
  ftl_arch arch = small_arch();
  arch.chip_num_gpcs = 2, arch.chip_sms_per_tpc = 1, arch.sm_gpc_clock_spread_ppm = 1600;
  ftl_totals totals = {.sm_khz = KHZ, .cycles = CYCLES};
  ftl_static_work work = {0};
  ftl_metrics m = metrics_of(&arch, &totals, &work);
  expect(&m, FTL_METRIC_cycles, 203000 * 1.0016);
  expect(&m, FTL_METRIC_time_ns, 101500);
}

// Reads and writes, over 64 bytes in each of the 101500 ns: 6496000 bytes would be all.
Test(unit_engine_answer, dram_throughput_is_over_what_the_bus_carries) {
  ftl_arch arch = small_arch();
  ftl_totals totals = {.sm_khz = KHZ, .cycles = CYCLES};
  totals.memory = (ftl_memory_counters){.dram_read_bytes = 1200000, .dram_write_bytes = 424000, .dirty_sectors = 5};
  ftl_static_work work = {0};
  ftl_metrics m = metrics_of(&arch, &totals, &work);
  expect(&m, FTL_METRIC_dram_read, 1200000);
  expect(&m, FTL_METRIC_dram_write, 424000);
  expect(&m, FTL_METRIC_dram_pct, 25);
  expect(&m, FTL_METRIC_dirty_bytes, 160);
}

// 100 sectors from SMs of which 60 hit, and 20 lookups between the sides of which 12 do: 72 of 120. In L1 10 of 50 that
// are loaded and 6 of 30 that are stored.
Test(unit_engine_answer, the_hit_rate_of_l2_counts_lookups_between_the_sides) {
  ftl_arch arch = small_arch();
  ftl_totals totals = {.sm_khz = KHZ, .cycles = CYCLES};
  totals.memory = (ftl_memory_counters){.l2_sectors_from_sms = 100,
                                        .l2_hit_sectors = 60,
                                        .l2_miss_sectors = 40,
                                        .l2_fabric_sectors = 20,
                                        .l2_fabric_hit_sectors = 12};
  totals.sm.l1_load_sectors = 50;
  totals.sm.l1_load_hit_sectors = 10;
  totals.sm.l1_store_sectors = 30;
  totals.sm.l1_store_hit_sectors = 6;
  ftl_static_work work = {0};
  ftl_metrics m = metrics_of(&arch, &totals, &work);
  expect(&m, FTL_METRIC_l2_sectors, 100);
  expect(&m, FTL_METRIC_l2_hit_pct, 60);
  expect(&m, FTL_METRIC_l1_hit_pct, 20);
}

// 300000 active SM cycles are 1200000 of sub-cores and room for 19200000 warp cycles.
Test(unit_engine_answer, shares_of_time_are_over_active_cycles) {
  ftl_arch arch = small_arch();
  ftl_totals totals = {.sm_khz = KHZ, .cycles = CYCLES};
  totals.sm = (ftl_sm_counters){.active_cycles = 300000,
                                .tensor_busy_cycles = 600000,
                                .issue_active_cycles = 240000,
                                .resident_warp_cycles = 4800000};
  totals.sm.stall_cycles[FTL_STALL_SELECTED] = 240000;
  totals.sm.stall_cycles[FTL_STALL_LONG_SCOREBOARD] = 960000;
  totals.sm.stall_cycles[FTL_STALL_SLEEPING] = 480000;
  ftl_static_work work = {0};
  ftl_metrics m = metrics_of(&arch, &totals, &work);
  expect(&m, FTL_METRIC_tensor_pct, 50);
  expect(&m, FTL_METRIC_issue_pct, 20);
  expect(&m, FTL_METRIC_warps_pct, 25);
  expect(&m, FTL_METRIC_stall_selected, 1);
  expect(&m, FTL_METRIC_stall_long_scoreboard, 4);
  expect(&m, FTL_METRIC_stall_sleeping, 2);
}

// 12 CTAs of which 6 fit at once; the driver's kilobyte is part of a CTA's shared memory.
Test(unit_engine_answer, the_shape_is_that_of_the_launch) {
  ftl_arch arch = small_arch();
  ftl_totals totals = {.sm_khz = KHZ, .cycles = CYCLES};
  ftl_static_work work = {0};
  ftl_metrics m = metrics_of(&arch, &totals, &work);
  expect(&m, FTL_METRIC_grid, 12);
  expect(&m, FTL_METRIC_block, 256);
  expect(&m, FTL_METRIC_waves, 2);
  expect(&m, FTL_METRIC_registers, 96);
  expect(&m, FTL_METRIC_spill_registers, 3);
  expect(&m, FTL_METRIC_shared_bytes, 21024);
}
