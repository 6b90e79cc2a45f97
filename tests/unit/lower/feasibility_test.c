#include <criterion/criterion.h>
#include <string.h>

#include "../lower_checker/programs.h"

static void expect_reason(const char *arch, const char *parameters, const char *reason) {
  programs p;
  ftl_error error = {0};
  ftl_status status = lower_workload(&p, arch, "flash2_fwd", parameters, &error);
  cr_expect_eq(status, FTL_INFEASIBLE, "%s %s", arch, parameters);
  cr_expect_not_null(strstr(error.message, reason), "%s", error.message);
  programs_fini(&p);
}

Test(unit_lower_feasibility, shared_memory_over_the_limit_names_need_and_limit) {
  // Q 256 x 256 bytes and three stages of K and of V of 128 x 256 bytes
  expect_reason("h200",
                "heads=1 seqlen=1024 head_dim=128 block_m=256 block_n=128 num_stages=3 num_warps=8 copy=cp_async",
                "needs 262144 bytes of shared memory a CTA, h200 allows 232448");
}

Test(unit_lower_feasibility, what_the_chip_lacks_is_named) {
  expect_reason("v100", "heads=1 seqlen=256 head_dim=64 dtype=bf16", "dtype=bf16");
  expect_reason("t4", "heads=1 seqlen=256 head_dim=64 copy=cp_async", "copy=cp_async");
  expect_reason("a100_80", "heads=1 seqlen=256 head_dim=64 copy=tma", "copy=tma");
  expect_reason("rtx4090", "heads=1 seqlen=256 head_dim=64 mma=wgmma", "mma=wgmma");
}

Test(unit_lower_feasibility, threads_over_the_limit_are_named) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_workload(&p, "a100_80", "flash2_fwd",
                              "heads=1 seqlen=1024 head_dim=32 block_m=512 num_warps=32 mma=mma", &error),
               FTL_OK, "%s", error.message);
  p.arch->sm_max_threads_per_cta = 512;
  ftl_warp_program *warps = NULL;
  ftl_lower_options options = {.copy = FTL_COPY_CP_ASYNC, .mma = FTL_MMA_MMA};
  cr_expect_eq(ftl_lower(p.tile, p.arch, options, &warps, &error), FTL_INFEASIBLE);
  cr_expect_not_null(strstr(error.message, "needs 1024 threads a CTA, a100_80 allows 512"), "%s", error.message);
  cr_expect_null(warps);
  programs_fini(&p);
}

Test(unit_lower_feasibility, auto_takes_the_newest_that_the_chip_has) {
  const struct {
    const char *arch;
    ftl_copy copy;
    ftl_mma mma;
  } expected[] = {{"v100", FTL_COPY_LDG, FTL_MMA_MMA},
                  {"t4", FTL_COPY_LDG, FTL_MMA_MMA},
                  {"a100_80", FTL_COPY_CP_ASYNC, FTL_MMA_MMA},
                  {"h200", FTL_COPY_TMA, FTL_MMA_WGMMA}};
  for (int i = 0; i < 4; i++) {
    programs p;
    ftl_error error = {0};
    cr_assert_eq(
        lower_workload(&p, expected[i].arch, "flash2_fwd", "heads=1 seqlen=256 head_dim=64 block_m=64", &error),
        FTL_OK);
    cr_expect_eq(p.warps->copy, expected[i].copy);
    cr_expect_eq(p.warps->mma, expected[i].mma);
    programs_fini(&p);
  }
}

Test(unit_lower_feasibility, registers_over_the_cap_spill_and_are_feasible) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_workload(&p, "a100_80", "flash2_fwd",
                              "heads=1 seqlen=1024 head_dim=128 block_m=128 num_warps=4 max_registers=128", &error),
               FTL_OK);
  cr_expect_leq(p.warps->registers_per_thread, 128);
  cr_expect_gt(p.warps->spill_registers, 0);
  cr_expect_eq(p.warps->local_bytes_per_thread, 4 * p.warps->spill_registers);
  programs_fini(&p);
}

// An accumulator of 256 x 192 on 4 warps: one wgmma reads and writes more values than the order under register pressure
// follows, and keeps its place.
Test(unit_lower_feasibility, instructions_of_very_many_values_keep_their_place) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_workload(&p, "h100_pcie", "flash2_fwd", "heads=1 seqlen=4109 head_dim=192 block_m=256", &error),
               FTL_OK, "%s", error.message);
  cr_expect_gt(p.warps->spill_registers, 0);
  programs_fini(&p);
}

// One GPC of 8 SMs, 6 of them of single TPCs, which take no cluster: two are left.
Test(unit_lower_feasibility, a_cluster_needs_a_gpc_that_takes_it) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_workload(&p, "h200", "flash3_fwd", "heads=1 seqlen=1024 head_dim=64 cluster=4x1", &error), FTL_OK,
               "%s", error.message);
  p.arch->chip_num_gpcs = 1;
  p.arch->chip_num_sms = 8;
  p.arch->chip_num_single_tpcs = 3;
  ftl_warp_program *warps = NULL;
  ftl_lower_options options = {.copy = FTL_COPY_TMA, .mma = FTL_MMA_WGMMA};
  cr_expect_eq(ftl_lower(p.tile, p.arch, options, &warps, &error), FTL_INFEASIBLE);
  cr_expect_not_null(strstr(error.message, "cluster of 4 CTAs: no GPC of h200 has more than 2 SMs for one"), "%s",
                     error.message);
  cr_expect_null(warps);
  programs_fini(&p);
}
