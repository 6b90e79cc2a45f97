// Where a launch's time goes, what limits its CTAs, and its roofline: of an answer made by hand.
#include <math.h>

#include "explain/launch_view.h"
#include "tests/unit/engine/fixture.h"

// 2 SMs at 1 GHz with 500 multiply-adds a cycle: 2 TFLOP/s. HBM of 64 bytes a cycle of 1 GHz: 64 GB/s; L2 of 256.
static ftl_arch small_arch(void) {
  return (ftl_arch){.chip_num_sms = 2,
                    .launch_overhead_ns = 1000,
                    .clock_sm_max_khz = 1000000,
                    .clock_l2_khz = 1000000,
                    .clock_dram_khz = 1000000,
                    .tensor_peak_fma_per_cycle = 500,
                    .tensor_bf16_fma_per_cycle = 250,
                    .dram_num_channels = 2,
                    .dram_burst_bytes = 64,
                    .dram_burst_cycles = 2,
                    .l2_num_slices = 4,
                    .l2_slice_bytes_per_cycle = 64,
                    .l2_sustained_milli = 1000};
}

// 10 us: 1 us overhead, and of the 9000 cycles the SMs have work in 6000 on average.
static ftl_prediction answer(const char *parameters) {
  ftl_prediction p = {.feasible = true, .num_kernels = 1, .spec = spec_of(parameters)};
  double *value = p.kernels[0].metrics.value;
  value[FTL_METRIC_time_ns] = 10000;
  value[FTL_METRIC_stream_time_ns] = 12000;
  value[FTL_METRIC_sm_clock_mhz] = 1000;
  value[FTL_METRIC_cycles_active] = 6000;
  value[FTL_METRIC_model_flops] = 8e6;
  value[FTL_METRIC_dram_read] = 192000;
  value[FTL_METRIC_dram_write] = 0;
  value[FTL_METRIC_compulsory_read] = 128000;
  value[FTL_METRIC_compulsory_write] = 64000;
  value[FTL_METRIC_l2_sectors] = 10000;
  value[FTL_METRIC_waves] = 2;
  value[FTL_METRIC_limit_registers] = 4;
  value[FTL_METRIC_limit_shared] = 3;
  value[FTL_METRIC_limit_warps] = 8;
  value[FTL_METRIC_limit_barriers] = 16;
  value[FTL_METRIC_limit_blocks] = 32;
  return p;
}

static void expect(double value, double expected) { cr_expect_float_eq(value, expected, 1e-6, "%.9g", value); }

Test(unit_explain_launch_view, time_is_overhead_idle_sms_and_work) {
  ftl_arch arch = small_arch();
  ftl_prediction p = answer("heads=1 seqlen=64 head_dim=64");
  ftl_launch_view view = ftl_launch_view_of(&(ftl_row){&arch, &p}, 0);
  expect(view.time_ns, 10000);
  expect(view.overhead_ns, 1000);
  expect(view.work_ns, 6000);
  expect(view.idle_ns, 3000);
  p = answer("heads=1 seqlen=64 head_dim=64 conditions=stream");  // with a gap of 2 us before it
  view = ftl_launch_view_of(&(ftl_row){&arch, &p}, 0);
  expect(view.time_ns, 12000);
  expect(view.overhead_ns, 3000);
  expect(view.work_ns, 6000);
}

Test(unit_explain_launch_view, the_least_limit_is_named_and_the_grid_where_it_fills_no_wave) {
  ftl_arch arch = small_arch();
  ftl_prediction p = answer("heads=1 seqlen=64 head_dim=64");
  cr_expect_str_eq(ftl_launch_view_of(&(ftl_row){&arch, &p}, 0).limited_by, "shared memory");
  p.kernels[0].metrics.value[FTL_METRIC_limit_registers] = 2;
  cr_expect_str_eq(ftl_launch_view_of(&(ftl_row){&arch, &p}, 0).limited_by, "registers");
  p.kernels[0].metrics.value[FTL_METRIC_waves] = 0.9;
  cr_expect_str_eq(ftl_launch_view_of(&(ftl_row){&arch, &p}, 0).limited_by, "grid");
}

// 8 MFLOP at 2 TFLOP/s take 4 us; 192 kB at 64 GB/s 3 us: compute-bound. Of bf16, at half the rate, 8 us.
Test(unit_explain_launch_view, the_roofline_is_the_longer_of_flops_and_tensors_once) {
  ftl_arch arch = small_arch();
  ftl_prediction p = answer("heads=1 seqlen=64 head_dim=64");
  ftl_roofline r = ftl_launch_view_of(&(ftl_row){&arch, &p}, 0).roofline;
  expect(r.peak_tflops, 2);
  expect(r.peak_hbm_gbps, 64);
  expect(r.peak_l2_gbps, 256);
  expect(r.least_bytes, 192000);
  expect(r.hbm_bytes, 192000);
  expect(r.l2_bytes, 320000);
  expect(r.least_time_ns, 4000);
  cr_expect(r.is_compute_bound);
  p.kernels[0].metrics.value[FTL_METRIC_compulsory_write] = 256000;
  r = ftl_launch_view_of(&(ftl_row){&arch, &p}, 0).roofline;
  expect(r.least_time_ns, 6000);
  cr_expect_not(r.is_compute_bound);
  p = answer("heads=1 seqlen=64 head_dim=64 dtype=bf16");
  expect(ftl_launch_view_of(&(ftl_row){&arch, &p}, 0).roofline.least_time_ns, 8000);
}

// Tensors of which a part is read: 100 kB of 128.
Test(unit_explain_launch_view, bytes_that_are_not_read_are_not_compulsory) {
  ftl_arch arch = small_arch();
  ftl_prediction p = answer("heads=1 seqlen=64 head_dim=64");
  p.kernels[0].metrics.value[FTL_METRIC_dram_read] = 100000;
  expect(ftl_launch_view_of(&(ftl_row){&arch, &p}, 0).roofline.least_bytes, 164000);
}

// 10 us at 80 % and 30 us at 40 %: 50 %.
Test(unit_explain_launch_view, the_sum_adds_times_and_weighs_usage_by_them) {
  ftl_arch arch = small_arch();
  ftl_prediction p = answer("heads=1 seqlen=64 head_dim=64");
  p.num_kernels = 2;
  p.kernels[1] = p.kernels[0];
  p.kernels[1].metrics.value[FTL_METRIC_time_ns] = 30000;
  p.kernels[0].usage_pct[FTL_RESOURCE_l2] = 80;
  p.kernels[1].usage_pct[FTL_RESOURCE_l2] = 40;
  p.kernels[1].usage_pct[FTL_RESOURCE_hbm] = 60;
  ftl_launch_view sum = ftl_launch_view_of(&(ftl_row){&arch, &p}, -1);
  expect(sum.time_ns, 40000);
  expect(sum.overhead_ns, 2000);
  expect(sum.work_ns, 12000);
  expect(sum.idle_ns, 26000);
  expect(sum.usage_pct[FTL_RESOURCE_l2], 50);
  expect(sum.usage_pct[FTL_RESOURCE_hbm], 45);
  cr_expect_eq(ftl_resource_most_used(sum.usage_pct), FTL_RESOURCE_l2);
  cr_expect_null(sum.limited_by);
}

// Those that print as 0.00 are left out, and selected is no stall.
Test(unit_explain_launch_view, stalls_are_sorted_and_equal_ones_stay_in_order) {
  ftl_arch arch = small_arch();
  ftl_prediction p = answer("heads=1 seqlen=64 head_dim=64");
  double *value = p.kernels[0].metrics.value;
  value[FTL_METRIC_stall_selected] = 9;
  value[FTL_METRIC_stall_wait] = 1;
  value[FTL_METRIC_stall_barrier] = 2;
  value[FTL_METRIC_stall_long_scoreboard] = 1;
  value[FTL_METRIC_stall_drain] = 0.004;
  ftl_launch_view view = ftl_launch_view_of(&(ftl_row){&arch, &p}, 0);
  ftl_metric stalls[FTL_NUM_STALLS];
  cr_assert_eq(ftl_launch_view_stalls(&view, stalls), 3);
  cr_expect_eq(stalls[0], FTL_METRIC_stall_barrier);
  cr_expect_eq(stalls[1], FTL_METRIC_stall_wait);
  cr_expect_eq(stalls[2], FTL_METRIC_stall_long_scoreboard);
}

Test(unit_explain_launch_view, every_stall_reason_has_a_meaning_that_knows_copies_and_products) {
  ftl_spec spec = spec_of("heads=1 seqlen=64 head_dim=64");
  for (int i = FTL_METRIC_stall_selected + 1; i <= FTL_METRIC_stall_sleeping; i++)
    cr_expect_gt(strlen(ftl_stall_meaning((ftl_metric)i, &spec)), 10, "%s", ftl_metric_get((ftl_metric)i)->name);
  spec.value[FTL_PARAM_copy] = FTL_SPEC_COPY_TMA;
  spec.value[FTL_PARAM_mma] = FTL_SPEC_MMA_WGMMA;
  cr_expect_not_null(strstr(ftl_stall_meaning(FTL_METRIC_stall_long_scoreboard, &spec), "mbarrier"));
  cr_expect_not_null(strstr(ftl_stall_meaning(FTL_METRIC_stall_barrier, &spec), "wgmma"));
  spec.value[FTL_PARAM_copy] = FTL_SPEC_COPY_LDG;
  spec.value[FTL_PARAM_mma] = FTL_SPEC_MMA_MMA;
  cr_expect_not_null(strstr(ftl_stall_meaning(FTL_METRIC_stall_long_scoreboard, &spec), "LDG"));
  cr_expect_null(strstr(ftl_stall_meaning(FTL_METRIC_stall_barrier, &spec), "wgmma"));
}
