// `full` on the whole GPU: what must not change a counter.
#include "fixture.h"

static ftl_metrics run_on(const ftl_arch *arch, const char *parameters, int num_threads, bool no_bulk) {
  ftl_predict_options options = {.num_threads = num_threads, .no_bulk = no_bulk};
  return prediction_of(arch, parameters, &options).metrics;
}

static ftl_metrics run_full(const char *arch_name, const char *parameters, int num_threads, bool no_bulk) {
  ftl_arch *arch = shipped_arch(arch_name);
  ftl_metrics metrics = run_on(arch, parameters, num_threads, no_bulk);
  ftl_arch_destroy(arch);
  return metrics;
}

static void assert_same(const ftl_metrics *a, const ftl_metrics *b) {
  for (int i = 0; i < FTL_METRIC_COUNT; i++)
    cr_assert_eq(a->value[i], b->value[i], "%s: %.17g and %.17g", ftl_metric_get((ftl_metric)i)->name, a->value[i],
                 b->value[i]);
}

static const char *const gpus[] = {"v100", "t4", "a100_80", "rtx4090", "h200"};
#define SMALL                                                                                             \
  "heads=6 kv_heads=2 seqlen_q=200 seqlen_kv=333 head_dim=64 causal=1 block_m=64 block_n=32 num_warps=4 " \
  "num_stages=1 clock_mhz=1200 detail=full"

Test(unit_engine_full, the_number_of_host_threads_changes_no_metric) {
  for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) {
    ftl_metrics one = run_full(gpus[i], SMALL, 1, false), three = run_full(gpus[i], SMALL, 3, false);
    assert_same(&one, &three);
  }
}

// Of 3 L2 cycles at 1410 MHz, less than one at 150 MHz: the memory system cannot work a window behind the SMs.
Test(unit_engine_full, a_trip_to_l2_of_one_sm_cycle_is_enough) {
  ftl_arch *arch = shipped_arch("a100_80");
  arch->noc_request_cycles = arch->noc_reply_cycles = arch->l2_hit_cycles = 1;
  const char *slow = "heads=1 seqlen=128 head_dim=64 block_m=64 block_n=32 num_warps=4 clock_mhz=150 detail=full";
  ftl_metrics one = run_on(arch, slow, 1, false), three = run_on(arch, slow, 3, false);
  assert_same(&one, &three);
  // Q, K and V of 128 rows and 64 columns, two bytes each
  cr_assert_eq(one.value[FTL_METRIC_dram_read], 3 * 128 * 64 * 2);
  ftl_arch_destroy(arch);
}

Test(unit_engine_full, issuing_runs_as_one_event_changes_no_metric) {
  for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) {
    ftl_metrics bulk = run_full(gpus[i], SMALL, 1, false), each = run_full(gpus[i], SMALL, 1, true);
    assert_same(&bulk, &each);
  }
}

Test(unit_engine_full, every_warp_cycle_has_one_stall_reason) {
  for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) {
    ftl_arch *arch = shipped_arch(gpus[i]);
    ftl_metrics m = run_full(gpus[i], SMALL, 1, false);
    double stalls = 0;
    for (int s = FTL_METRIC_stall_selected; s <= FTL_METRIC_stall_sleeping; s++) stalls += m.value[s];
    // Ratios are per issue: their sum is resident warps over issues, both per sub-core cycle.
    double warps = m.value[FTL_METRIC_warps_pct] * (double)arch->sm_max_warps / (double)arch->sm_num_subcores;
    cr_assert_float_eq(stalls * m.value[FTL_METRIC_issue_pct], warps, 1e-6 * warps, "%s", gpus[i]);
    ftl_arch_destroy(arch);
  }
}

Test(unit_engine_full, a_warm_cache_reads_nothing_from_dram_and_a_fouled_one_writes_back_what_was_there) {
  // 400 kB of tensors fit in every L2.
  ftl_metrics cold = run_full("a100_80", SMALL, 1, false), warm = run_full("a100_80", SMALL " cache=warm", 1, false);
  cr_assert_gt(cold.value[FTL_METRIC_dram_read], 0);
  cr_assert_eq(warm.value[FTL_METRIC_dram_read], 0);
  cr_assert_lt(warm.value[FTL_METRIC_cycles], cold.value[FTL_METRIC_cycles]);
  ftl_metrics stream = run_full("a100_80", SMALL " conditions=stream", 1, false);
  cr_assert_eq(cold.value[FTL_METRIC_dram_write], 0);
  cr_assert_gt(stream.value[FTL_METRIC_dram_write], 0);
}

// The launch before has left L2 full of what is to be written: DRAM would carry 165 % of what its bus can if the launch
// ended with its CTAs.
Test(unit_engine_full, a_launch_ends_when_dram_has_written_what_was_there) {
  ftl_metrics m =
      run_full("l40s", "softmax_safe heads=3 seqlen_q=512 seqlen_kv=1024 conditions=stream detail=full", 1, false);
  cr_expect_leq(m.value[FTL_METRIC_dram_pct], 100);
}

Test(unit_engine_full, a_persistent_kernel_does_the_same_work) {
  ftl_metrics plain = run_full("a100_80", SMALL, 1, false),
              persistent = run_full("a100_80", SMALL " persistent=1", 1, false);
  cr_assert_eq(plain.value[FTL_METRIC_tensor_insts], persistent.value[FTL_METRIC_tensor_insts]);
  cr_assert_eq(plain.value[FTL_METRIC_dram_read], persistent.value[FTL_METRIC_dram_read]);
}
