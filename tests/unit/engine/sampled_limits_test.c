// What no GPU can do, sampled detail must not predict: each of these did, or comes close.
#include "fixture.h"

static ftl_prediction predict(const char *arch_name, const char *parameters) {
  ftl_arch *arch = shipped_arch(arch_name);
  ftl_prediction prediction = prediction_of(arch, parameters, NULL);
  ftl_arch_destroy(arch);
  return prediction;
}

static void assert_possible(const char *arch_name, const char *parameters) {
  ftl_prediction prediction = predict(arch_name, parameters);
  for (int i = 0; i < FTL_METRIC_COUNT; i++) {
    double value = prediction.metrics.value[i];
    const ftl_metric_info *info = ftl_metric_get((ftl_metric)i);
    cr_assert(value >= 0, "%s: %s: %s = %g", arch_name, parameters, info->name, value);
    if (strstr(info->name, "pct")) cr_assert(value <= 100, "%s: %s: %s = %g", arch_name, parameters, info->name, value);
  }
}

Test(unit_engine_sampled_limits, tensor_pipes_work_no_longer_than_the_kernel) {
  assert_possible("rtx4090",
                  "batch=2 heads=7 kv_heads=1 head_dim=16 seqlen_q=3000 seqlen_kv=1500 block_m=64 block_n=48 "
                  "num_stages=1 layout=bshd tile_order=head_first max_registers=128");
}

Test(unit_engine_sampled_limits, a_sub_core_issues_once_a_cycle) {
  assert_possible("a100_80",
                  "batch=5 heads=6 kv_heads=3 head_dim=16 seqlen=3000 causal=true block_m=64 block_n=32 "
                  "tile_order=head_first conditions=stream");
}

// CTAs of rows of one lane and of rows of two: each took the mean of both, and the SM issued 101.4 %.
Test(unit_engine_sampled_limits, ctas_that_are_not_alike_issue_no_more_than_their_sub_cores_can) {
  assert_possible("t4", "softmax_safe heads=3 seqlen_q=2047 seqlen_kv=2048 schedule=registers block_n=16384");
}

// The launch that adds scores and a mask of bytes to them moved 104.8 % of what DRAM's bus carries.
Test(unit_engine_sampled_limits, launches_between_products_move_no_more_than_dram_carries) {
  ftl_prediction p = predict("rtx4090",
                             "standard_attention heads=16 batch=3 head_dim=40 seqlen=511 elementwise=eager_einsum "
                             "dropout_p=0.1 padding_mask=true");
  for (int i = 0; i < p.num_kernels; i++)
    cr_expect_leq(p.kernels[i].metrics.value[FTL_METRIC_dram_pct], 100, "%s", p.kernels[i].name);
}

Test(unit_engine_sampled_limits, dram_carries_no_more_than_its_bus_when_a_kernel_only_writes) {
  assert_possible("t4",
                  "batch=5 heads=4 kv_heads=1 head_dim=256 seqlen_q=3000 seqlen_kv=13 causal=true num_warps=1 "
                  "block_m=16 num_stages=1 layout=bshd tile_order=head_first max_registers=255 clock_mhz=1500");
}

Test(unit_engine_sampled_limits, what_hits_in_l1_is_not_merged_behind_it) {
  assert_possible("h200",
                  "batch=5 heads=21 kv_heads=3 head_dim=136 seqlen_q=7 seqlen_kv=300 causal=true block_m=64 "
                  "copy=ldg mma=mma tile_order=head_first conditions=stream cache=cold");
}

Test(unit_engine_sampled_limits, ctas_without_keys_take_time_for_their_instructions) {
  assert_possible(
      "h100_pcie",
      "batch=2 heads=8 kv_heads=2 head_dim=80 seqlen_q=9000 seqlen_kv=13 causal=true num_warps=2 block_m=32 "
      "block_n=128 num_stages=4 persistent=true tile_order=head_first max_registers=64");
}

// Rows of which a causal mask leaves at most one column: loops over columns that have the time of the code before them
// do not run in most CTAs, which execute that code all the same.
Test(unit_engine_sampled_limits, code_before_loops_that_do_not_run_takes_its_issue_slots) {
  ftl_prediction prediction =
      predict("h200", "standard_attention heads=8 seqlen_q=300 seqlen_kv=1 head_dim=128 causal=true");
  for (int i = 0; i < prediction.num_kernels; i++)
    cr_expect_leq(prediction.kernels[i].metrics.value[FTL_METRIC_issue_pct], 100, "%s", prediction.kernels[i].name);
}

// Copies of 12 CTAs an SM, each of one step: it takes 460 issue slots of each sub-core, and 11 others are beside it to
// its end. A CTA that counted as gone when its last step began left the twelfth alone on the SM: 132 % of its slots.
Test(unit_engine_sampled_limits, ctas_of_one_step_share_their_sm_until_they_end) {
  ftl_prediction prediction =
      predict("h200", "standard_attention heads=8 seqlen=777 head_dim=256 elementwise=eager_baddbmm clock_mhz=1800");
  for (int i = 0; i < prediction.num_kernels; i++) {
    const double *value = prediction.kernels[i].metrics.value;
    cr_expect_leq(value[FTL_METRIC_issue_pct], 100, "%s", prediction.kernels[i].name);
    cr_expect_leq(value[FTL_METRIC_warps_pct], 100, "%s", prediction.kernels[i].name);
  }
}

Test(unit_engine_sampled_limits, small_tensors_are_read_and_written_exactly_once) {
  ftl_prediction prediction =
      predict("rtx4090", "heads=1 head_dim=64 seqlen=128 block_m=128 block_n=32 num_stages=1 layout=bshd");
  const double *value = prediction.metrics.value;
  cr_assert_eq(value[FTL_METRIC_dram_read], value[FTL_METRIC_compulsory_read]);
  // Beside the output, what the profiler left: 2400000 B, which are whole lines of 128 B.
  double profiler = 2400000;
  cr_assert_eq(value[FTL_METRIC_dirty_bytes], value[FTL_METRIC_compulsory_write] + profiler);
}

Test(unit_engine_sampled_limits, very_long_sequences_are_answered) {
  // 16384 query tiles of up to 16384 iterations: 134 million steps.
  assert_possible("h200",
                  "heads=1 seqlen=1048576 head_dim=32 causal=true block_m=64 block_n=64 num_warps=4 clock_mhz=1200");
}

// Rows of 272 bytes in pieces of 128 share sectors, of which the sample may have too many; numbers a row, tables and
// tiles of few lines are a small part of what it has.
Test(unit_engine_sampled_limits, a_cold_launch_reads_every_byte_that_it_needs) {
  static const struct {
    const char *arch, *parameters;
  } cold[] = {
      {"h100_pcie", "heads=24 seqlen=512 head_dim=136"},
      {"h100_sxm", "sparq_decode heads=1 head_dim=128 seqlen_kv=8192"},
      {"a100_80", "tree_decode batch=2 heads=32 head_dim=128 seqlen_kv=100"},
      {"h200", "flash1_bwd heads=3 head_dim=64 seqlen=2048 causal=1"},
      {"rtx4090", "matmul_tiled m=4096 n=1000 k=200"},
  };
  for (size_t i = 0; i < sizeof cold / sizeof *cold; i++) {
    ftl_prediction p = predict(cold[i].arch, cold[i].parameters);
    for (int k = 0; k < p.num_kernels; k++) {
      const double *value = p.kernels[k].metrics.value;
      cr_expect_geq(value[FTL_METRIC_dram_read], value[FTL_METRIC_compulsory_read], "%s %s: %s reads %.0f of %.0f",
                    cold[i].arch, cold[i].parameters, p.kernels[k].name, value[FTL_METRIC_dram_read],
                    value[FTL_METRIC_compulsory_read]);
    }
  }
}

// Of 300 queries the last 15 see a key: the scores of the others are not worked out, and their rows of Q not read.
Test(unit_engine_sampled_limits, queries_that_see_no_key_need_not_be_read) {
  ftl_prediction p = predict("h200", "standard_attention heads=4 seqlen_q=300 seqlen_kv=15 head_dim=72 causal=true");
  const double *value = p.kernels[0].metrics.value, all_queries = 4 * 300 * 72 * 2;
  cr_expect_lt(value[FTL_METRIC_dram_read], all_queries, "%.0f", value[FTL_METRIC_dram_read]);
  cr_expect_geq(value[FTL_METRIC_dram_read], value[FTL_METRIC_compulsory_read]);
}

// A mask of bits whose first and last two rows of blocks see other keys than the ones between; rows may be empty.
Test(unit_engine_sampled_limits, rows_that_a_mask_leaves_empty_need_not_be_read) {
  const char *shape =
      "standard_attention heads=4 seqlen=512 head_dim=128 mask=bits mask_bits=1x4:0x12 max_registers=0 %s";
  char sampled_shape[160], full_shape[160];
  snprintf(sampled_shape, sizeof sampled_shape, shape, "detail=sampled");
  snprintf(full_shape, sizeof full_shape, shape, "detail=full");
  ftl_prediction p = predict("a100_80", sampled_shape), full = predict("a100_80", full_shape);
  double read = p.kernels[0].metrics.value[FTL_METRIC_dram_read];
  double of_full = full.kernels[0].metrics.value[FTL_METRIC_dram_read];
  cr_expect_lt(read, p.kernels[0].metrics.value[FTL_METRIC_compulsory_read]);
  cr_expect_float_eq(read, of_full, 0.01 * of_full, "%.0f, full %.0f", read, of_full);
}

// Q, K and V of 4 heads of 32768 tokens are 33.6 MB each, and an L2 of 36 MB is asked for K and V again: half of what
// is read beyond these three may go either way, and O, which is only stored, takes nothing from that.
Test(unit_engine_sampled_limits, the_bound_has_half_of_what_is_read_beyond_what_is_loaded) {
  ftl_arch *arch = shipped_arch("h200");
  arch->l2_size_bytes = 36096000;
  ftl_prediction p = prediction_of(arch,
                                   "heads=4 seqlen=32768 head_dim=128 block_m=128 block_n=64 num_warps=4 num_stages=2 "
                                   "mma=mma copy=cp_async code=plain",
                                   NULL);
  double tensor = 4.0 * 32768 * 128 * 2, read = p.metrics.value[FTL_METRIC_dram_read];
  double all = read + p.metrics.value[FTL_METRIC_dram_write];
  cr_assert_gt(read, 4 * tensor);
  cr_expect_geq(p.error_bound_hbm_bytes_pct, 1 + 50 * (read - 3 * tensor) / all);
  cr_expect_leq(p.error_bound_hbm_bytes_pct, 3 + 50 * (read - 3 * tensor) / all);
  ftl_arch_destroy(arch);
}

// One CTA of 128 threads on 132 SMs spills what one CTA has slots for.
Test(unit_engine_sampled_limits, a_small_launch_spills_no_more_than_its_ctas_hold) {
  ftl_prediction p = predict("h200", "heads=1 seqlen=128 head_dim=256 block_m=128 block_n=64");
  const double *value = p.metrics.value;
  double slots = 128 * 4 * value[FTL_METRIC_spill_registers], bytes = value[FTL_METRIC_dram_read];
  cr_assert_gt(slots, 0);
  cr_expect_leq(p.error_bound_hbm_bytes_pct, 1 + 100 * slots / bytes + 0.001);
}

// 8 CTAs of a combination share an SM and hide each other's latency: the last one may end by what it takes alone later,
// not by what 8 would.
Test(unit_engine_sampled_limits, ctas_that_end_one_by_one_cost_what_the_last_takes_alone) {
  const char *shape = "tree_decode batch=2 heads=32 head_dim=128 seqlen_kv=100";
  char full_shape[128];
  snprintf(full_shape, sizeof full_shape, "%s detail=full", shape);
  ftl_prediction p = predict("a100_80", shape), full = predict("a100_80", full_shape);
  cr_expect_gt(p.kernels[1].metrics.value[FTL_METRIC_waves], 1);
  cr_expect_lt(p.error_bound_cycles_pct, 100);
  double cycles = p.metrics.value[FTL_METRIC_cycles], of_full = full.metrics.value[FTL_METRIC_cycles];
  cr_expect_float_eq(cycles, of_full, of_full * p.error_bound_cycles_pct / 100);
}

// Tiles of 64 x 64 in steps of 64, three stages of which one is held: asked for amid a step, two steps ahead. 128 CTAs
// of 32 steps, one an SM, whose loop waits for DRAM or L2. Counted from the beginning of the step that asks, a tile had
// one step to come in, and they took 26 % more than in full.
Test(unit_engine_sampled_limits, tiles_asked_for_amid_a_step_come_with_the_loop) {
  const char *shape =
      "matmul_tiled m=512 n=1024 k=2048 block_m=64 block_n=64 block_k=64 num_warps=4 num_stages=3 code=lean "
      "copy=cp_async mma=wgmma clock_mhz=1600";
  char full_shape[256];
  snprintf(full_shape, sizeof full_shape, "%s detail=full", shape);
  double cycles = predict("h200", shape).metrics.value[FTL_METRIC_cycles];
  double of_full = predict("h200", full_shape).metrics.value[FTL_METRIC_cycles];
  cr_expect_float_eq(cycles, of_full, 0.03 * of_full, "%.0f, full %.0f", cycles, of_full);
}
