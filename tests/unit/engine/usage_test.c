// Shares of a GPU's peaks and the bottleneck that they name: round numbers, so that every share can be worked out.
#include <criterion/criterion.h>
#include <string.h>

#include "engine/answer.h"

enum { KHZ = 2000000, CYCLES = 200000, ACTIVE = 100000 };  // 100 us of SM time; 2 SMs, each at work half of it

// 2 SMs of 4 sub-cores; L2 of 2 slices of 64 bytes and DRAM of 64 bytes, each a cycle of 1 GHz: 100000 cycles.
static ftl_arch small_arch(void) {
  return (ftl_arch){.chip_num_sms = 2,
                    .chip_num_gpcs = 1,
                    .sm_num_subcores = 4,
                    .fp32_interval_cycles = 1,
                    .alu_interval_cycles = 2,
                    .imad_interval_cycles = 2,
                    .imad_pipe = "fp32",
                    .half_interval_cycles = 1,
                    .cvt_interval_cycles = 4,
                    .cvt_pipe = "alu",
                    .sfu_interval_cycles = 8,
                    .mio_issue_interval_cycles = 2,
                    .mio_lsu_interval_cycles = 1,
                    .noc_sm_read_bytes_per_cycle = 64,
                    .noc_sm_write_bytes_per_cycle = 16,
                    .noc_gpc_read_bytes_per_cycle = 256,
                    .noc_far_bytes_per_cycle = 32,
                    .l2_num_slices = 2,
                    .l2_slice_bytes_per_cycle = 64,
                    .l2_sustained_milli = 1000,
                    .l2_slice_intake_bytes_per_cycle = 32,
                    .l2_read_request_bytes = 4,
                    .clock_l2_khz = 1000000,
                    .dram_num_channels = 4,
                    .dram_burst_bytes = 32,
                    .dram_burst_cycles = 2,
                    .clock_dram_khz = 1000000};
}

static ftl_totals half_busy(void) {
  ftl_totals totals = {.sm_khz = KHZ, .cycles = CYCLES};
  totals.sm.active_cycles = 2 * ACTIVE;
  return totals;
}

typedef struct usage {
  float pct[FTL_RESOURCE_COUNT];
  ftl_bottleneck bottleneck;
} usage;

static usage usage_of(const ftl_arch *arch, const ftl_totals *totals, const ftl_static_work *work) {
  ftl_launch launch = {.arch = arch};
  usage u = {0};
  ftl_answer_usage(&launch, totals, work, u.pct);
  u.bottleneck = ftl_answer_bottleneck(&launch, totals, u.pct);
  return u;
}

static void expect(const usage *u, ftl_resource resource, double pct) {
  cr_expect_float_eq(u->pct[resource], pct, 1e-5, "%s is %g, not %g", ftl_resource_get(resource)->id, u->pct[resource],
                     pct);
}

// 800000 sub-core cycles with a warp. FP32: 80000 + 2 * 40000 of IMAD; ALU: 2 * 20000 + 4 * 30000 of conversions.
Test(unit_engine_usage, pipes_are_busy_for_the_intervals_of_what_the_chip_sends_to_them) {
  ftl_arch arch = small_arch();
  ftl_totals totals = half_busy();
  totals.sm.tensor_busy_cycles = 400000;
  totals.sm.issue_active_cycles = 240000;
  ftl_static_work work = {.insts = {[FTL_WORK_FP32] = 80000,
                                    [FTL_WORK_IMAD] = 40000,
                                    [FTL_WORK_ALU] = 20000,
                                    [FTL_WORK_CVT] = 30000,
                                    [FTL_WORK_HALF] = 8000,
                                    [FTL_WORK_SFU] = 30000}};
  usage u = usage_of(&arch, &totals, &work);
  expect(&u, FTL_RESOURCE_tensor, 50);
  expect(&u, FTL_RESOURCE_issue, 30);
  expect(&u, FTL_RESOURCE_fp32, 20);
  expect(&u, FTL_RESOURCE_alu, 20);
  expect(&u, FTL_RESOURCE_half, 1);
  expect(&u, FTL_RESOURCE_sfu, 30);
}

// 60000 in 800000 sub-core cycles at 2 each: 15 %; in 200000 SM cycles at 1 each: 30 %, the more.
Test(unit_engine_usage, memory_instructions_are_held_by_the_slower_of_sub_core_and_sm) {
  ftl_arch arch = small_arch();
  ftl_totals totals = half_busy();
  totals.sm.shared_wavefronts = 50000;
  ftl_static_work work = {.insts = {[FTL_WORK_MIO] = 60000}};
  usage u = usage_of(&arch, &totals, &work);
  expect(&u, FTL_RESOURCE_mio, 30);
  expect(&u, FTL_RESOURCE_shared, 25);
  arch.mio_issue_interval_cycles = 8;
  u = usage_of(&arch, &totals, &work);
  expect(&u, FTL_RESOURCE_mio, 60);
}

// In 100000 cycles of L2: 200000 sectors read and 50000 joined are 8 MB of the SM ports' 12.8 and the GPC's 25.6; L2
// gives 6.4 of 12.8 MB and takes 0.64, and 0.2 of requests, of 6.4; DRAM 3.2 of 6.4 MB; the link between the sides 1.6
// of 6.4 both ways.
Test(unit_engine_usage, memory_is_used_by_bytes_over_all_cycles_of_the_launch) {
  ftl_arch arch = small_arch();
  ftl_totals totals = half_busy();
  totals.memory = (ftl_memory_counters){.dram_read_bytes = 3000000,
                                        .dram_write_bytes = 200000,
                                        .l2_sectors_from_sms = 220000,
                                        .l2_read_sectors = 200000,
                                        .l2_write_sectors = 20000,
                                        .coalesced_sectors = 50000,
                                        .l2_fabric_sectors = 50000};
  ftl_static_work work = {0};
  usage u = usage_of(&arch, &totals, &work);
  expect(&u, FTL_RESOURCE_ports, 62.5);
  expect(&u, FTL_RESOURCE_far, 25);
  expect(&u, FTL_RESOURCE_l2, 50);
  expect(&u, FTL_RESOURCE_hbm, 50);
  arch.noc_gpc_read_bytes_per_cycle = 100;
  u = usage_of(&arch, &totals, &work);
  expect(&u, FTL_RESOURCE_ports, 80);
  totals.memory.l2_write_sectors = 90000;  // 2.88 of 3.2 MB
  u = usage_of(&arch, &totals, &work);
  expect(&u, FTL_RESOURCE_ports, 90);
  expect(&u, FTL_RESOURCE_l2, 50);
  arch.l2_slice_intake_bytes_per_cycle = 16;  // 3.08 of 3.2 MB
  u = usage_of(&arch, &totals, &work);
  expect(&u, FTL_RESOURCE_l2, 96.25);
  arch.noc_far_bytes_per_cycle = 0;
  u = usage_of(&arch, &totals, &work);
  expect(&u, FTL_RESOURCE_far, 0);
}

// 70 % of a peak bounds; below it the longest wait does. 65 % of the SMs' 400000 cycles have a warp: 1040000 of
// sub-cores, of which 91000 instructions at 8 each are 70 %.
Test(unit_engine_usage, the_resource_used_most_is_the_bottleneck_from_seventy_percent_on) {
  ftl_arch arch = small_arch();
  ftl_totals totals = half_busy();
  totals.sm.active_cycles = 260000;
  totals.sm.stall_cycles[FTL_STALL_BARRIER] = 9;
  ftl_static_work work = {.insts = {[FTL_WORK_SFU] = 91000, [FTL_WORK_FP32] = 520000}};
  ftl_bottleneck bottleneck = usage_of(&arch, &totals, &work).bottleneck;
  cr_expect(bottleneck.bound == FTL_BOUND_RESOURCE && bottleneck.resource == FTL_RESOURCE_sfu);
  cr_expect_str_eq(ftl_bottleneck_name(bottleneck), "exponentials (SFU)");
  work.insts[FTL_WORK_SFU] = 90990;
  bottleneck = usage_of(&arch, &totals, &work).bottleneck;
  cr_expect(bottleneck.bound == FTL_BOUND_STALL && bottleneck.stall == FTL_METRIC_stall_barrier);
  cr_expect_str_eq(ftl_bottleneck_name(bottleneck), "barriers");
}

// One SM of two at work, full of special math: more CTAs would help, whatever that SM is full of. HBM is of both.
Test(unit_engine_usage, idle_sms_come_before_what_the_others_are_full_of) {
  ftl_arch arch = small_arch();
  ftl_totals totals = half_busy();
  ftl_static_work work = {.insts = {[FTL_WORK_SFU] = 95000}};
  usage u = usage_of(&arch, &totals, &work);
  expect(&u, FTL_RESOURCE_sfu, 95);
  cr_expect_eq(u.bottleneck.bound, FTL_BOUND_IDLE_SMS);
  cr_expect_str_eq(ftl_bottleneck_name(u.bottleneck), "idle SMs (too few CTAs)");
  totals.memory.dram_read_bytes = 6144000;  // of 6.4 MB
  u = usage_of(&arch, &totals, &work);
  expect(&u, FTL_RESOURCE_hbm, 96);
  cr_expect(u.bottleneck.bound == FTL_BOUND_RESOURCE && u.bottleneck.resource == FTL_RESOURCE_hbm);
}

// Warps that could issue and were not chosen are no bottleneck, however many; nor is a reason that the model lacks.
Test(unit_engine_usage, warps_that_are_not_selected_wait_for_nothing) {
  ftl_arch arch = small_arch();
  ftl_totals totals = half_busy();
  totals.sm.active_cycles = 260000;
  totals.sm.stall_cycles[FTL_STALL_NOT_SELECTED] = 9;
  totals.sm.stall_cycles[FTL_STALL_DRAIN] = 1;
  ftl_static_work work = {0};
  ftl_bottleneck bottleneck = usage_of(&arch, &totals, &work).bottleneck;
  cr_expect(bottleneck.bound == FTL_BOUND_STALL && bottleneck.stall == FTL_METRIC_stall_drain);
  cr_expect_str_eq(ftl_bottleneck_name(bottleneck), "stores at CTA ends");
}

Test(unit_engine_usage, resources_have_names_that_are_unique) {
  for (int i = 0; i < FTL_RESOURCE_COUNT; i++)
    for (int j = 0; j < i; j++) {
      const ftl_resource_info *a = ftl_resource_get((ftl_resource)i), *b = ftl_resource_get((ftl_resource)j);
      cr_expect(strcmp(a->id, b->id) != 0 && strcmp(a->name, b->name) != 0, "%s", a->id);
    }
}
