// What a chip cannot run is answered with the reason in the user's terms.
#include "fixture.h"
#include "tests/spec_words.h"

static ftl_prediction predict(const char *arch_name, const char *parameters) {
  ftl_arch *arch = shipped_arch(arch_name);
  ftl_spec spec = spec_of(parameters);
  ftl_prediction prediction;
  cr_assert_eq(ftl_predict(&spec, arch, NULL, &prediction, NULL), FTL_OK);
  ftl_arch_destroy(arch);
  return prediction;
}

Test(unit_engine_feasibility, too_much_shared_memory_is_named_with_the_parameters_and_the_limit) {
  ftl_prediction p =
      predict("a100_80", "heads=1 seqlen=512 head_dim=128 block_m=256 block_n=128 num_stages=3 num_warps=8");
  cr_assert_not(p.feasible);
  // Q 256x128, K and V 3 stages of 128x128 each, 2 bytes: 64 KiB + 192 KiB.
  cr_assert_str_eq(p.reason,
                   "block_m=256 block_n=128 num_stages=3 head_dim=128 needs 262144 bytes of shared memory a CTA, "
                   "a100_80 allows 166912");
}

Test(unit_engine_feasibility, wgmma_gives_way_to_mma_sync_where_the_rows_do_not_fit) {
  ftl_prediction p = predict("h200", "heads=1 seqlen=512 head_dim=64 block_m=32 block_n=32 num_warps=2");
  cr_assert(p.feasible, "%s", p.reason);
  cr_assert_eq(p.spec.value[FTL_PARAM_mma], FTL_MMA_MMA);
  cr_assert_eq(p.spec.value[FTL_PARAM_copy], FTL_COPY_CP_ASYNC);
}

// wgmma with cp_async would be Triton's code (workloads/code_form.h); nothing of it is left when wgmma has given way.
Test(unit_engine_feasibility, the_form_of_the_code_is_that_of_the_instructions_that_run) {
  ftl_prediction p = predict("h200", "heads=1 seqlen=512 head_dim=64 block_m=32 block_n=32 num_warps=2 copy=cp_async");
  cr_assert(p.feasible, "%s", p.reason);
  cr_expect_eq(p.spec.value[FTL_PARAM_mma], FTL_MMA_MMA);
  cr_expect_eq(p.spec.value[FTL_PARAM_code], FTL_CODE_PLAIN);
  cr_expect_eq(p.spec.value[FTL_PARAM_row_sums], FTL_ROW_SUMS_END);
}

// Q, K, V and O of 2^20 tokens in 32 heads of 128 are 8 GiB each, LSE is 128 MiB.
Test(unit_engine_feasibility, tensors_need_room_in_memory) {
  ftl_arch *arch = shipped_arch("h200");
  ftl_spec spec = spec_of("heads=32 seqlen=1048576 head_dim=128");
  int64_t bytes = 4 * (INT64_C(8) << 30) + (INT64_C(128) << 20);
  ftl_tile_program *tile;
  ftl_warp_program *warps;
  ftl_error error = {0};
  arch->dram_size_bytes = bytes;
  cr_assert_eq(ftl_predict_programs(&spec, arch, 0, &tile, &warps, &error), FTL_OK, "%s", error.message);
  ftl_warp_program_destroy(warps);
  ftl_tile_program_destroy(tile);
  arch->dram_size_bytes = bytes - 1;
  cr_expect_eq(ftl_predict_programs(&spec, arch, 0, &tile, &warps, &error), FTL_INFEASIBLE);
  cr_expect_str_eq(error.message, "flash2_fwd: tensors of 34493956096 bytes; h200 has 34493956095 bytes of memory");
  ftl_arch_destroy(arch);
}

Test(unit_engine_feasibility, bf16_needs_ampere) {
  ftl_prediction p = predict("v100", "heads=1 seqlen=512 head_dim=64 dtype=bf16 num_stages=1");
  cr_assert_not(p.feasible);
  cr_assert(strstr(p.reason, "bf16"), "%s", p.reason);
}

static void expect_reason(const char *workload, const char *parameters, const char *reason) {
  ftl_arch *arch = shipped_arch("h200");
  ftl_spec spec;
  ftl_prediction p;
  cr_assert_eq(spec_of_words(&spec, workload, parameters, "", NULL), FTL_OK);
  cr_assert_eq(ftl_predict(&spec, arch, NULL, &p, NULL), FTL_OK);
  cr_expect_not(p.feasible, "%s", parameters);
  cr_expect_not_null(strstr(p.reason, reason), "\"%s\" does not say \"%s\"", p.reason, reason);
  ftl_arch_destroy(arch);
}

// H200 has wgmma: that mma.sync cannot do it is no reason.
Test(unit_engine_feasibility, what_has_no_form_with_mma_sync_is_refused_for_what_wgmma_lacks) {
  expect_reason("flash3_fwd", "heads=1 seqlen=512 head_dim=256 block_n=256 num_stages=4", "bytes of shared memory");
  expect_reason("flash3_fwd", "heads=1 seqlen=512 head_dim=64 copy=cp_async", "needs copy=tma");
  expect_reason("matmul_tiled", "m=1024 n=1024 k=1024 block_m=256 block_n=256 num_warps=8 num_stages=8 store=staged",
                "bytes of shared memory");
}
