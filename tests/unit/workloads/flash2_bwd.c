// What flash2_bwd takes where nothing is given. That it computes gradients is proved in tests/numeric/attention.
#include <criterion/criterion.h>

#include <string.h>

#include "arch/arch.h"
#include "tests/spec_words.h"
#include "tile/tile.h"
#include "workloads/code_form.h"

static ftl_spec spec_of(const char *params) {
  ftl_spec spec;
  ftl_error error = {0};
  cr_assert_eq(spec_of_words(&spec, "flash2_bwd", "heads=2 seqlen=256", params, &error), FTL_OK, "%s", error.message);
  return spec;
}

Test(unit_workloads_flash2_bwd, dq_is_added_up_unless_a_kernel_is_asked_for) {
  cr_expect_eq(spec_of("head_dim=64").value[FTL_PARAM_dq], FTL_DQ_ATOMICS);
  cr_expect_eq(spec_of("head_dim=64 dq=kernel").value[FTL_PARAM_dq], FTL_DQ_KERNEL);
}

// As run_mha_bwd_hdim128 and its neighbours: below 144 KB of shared memory a CTA 64 keys, of more than 96 columns.
Test(unit_workloads_flash2_bwd, tiles_are_narrow_where_shared_memory_is_small) {
  enum { KB = 1024 };
  static const struct {
    const char *params;
    int64_t shared_bytes, block_n;
  } cases[] = {{"head_dim=128", 144 * KB, 128},
               {"head_dim=128", 144 * KB - 1, 64},
               {"head_dim=104", 99 * KB, 64},
               {"head_dim=96", 99 * KB, 128},
               {"head_dim=128 block_n=128", 99 * KB, 128},
               {"head_dim=128 dq=kernel", 99 * KB, 128}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ftl_spec spec = spec_of(cases[i].params);
    ftl_arch arch = {.shared_max_bytes_per_cta = cases[i].shared_bytes};
    spec.workload->resolve(&spec, &arch);
    cr_expect_eq(spec.value[FTL_PARAM_block_n], cases[i].block_n, "%s", cases[i].params);
  }
}

// Triton's pipeliner refills what wgmmas read behind a step's last product; others, and dQ by atomics, do not.
Test(unit_workloads_flash2_bwd, steps_refill_late_where_triton_pipelines) {
  static const struct {
    const char *params;
    int64_t refill;
  } cases[] = {{"head_dim=64 dq=kernel mma=wgmma copy=cp_async num_stages=2", FTL_REFILL_LATE},
               {"head_dim=64 dq=kernel mma=wgmma copy=cp_async num_stages=1", FTL_REFILL_EARLY},
               {"head_dim=64 dq=kernel mma=wgmma copy=cp_async num_stages=2 code=plain", FTL_REFILL_EARLY},
               {"head_dim=64 dq=kernel mma=mma copy=cp_async num_stages=2 code=lean", FTL_REFILL_EARLY},
               {"head_dim=64 dq=kernel mma=wgmma copy=tma num_stages=2", FTL_REFILL_EARLY},
               {"head_dim=64 dq=kernel mma=mma copy=cp_async num_stages=2 refill=late", FTL_REFILL_LATE},
               {"head_dim=64 dq=atomics mma=mma copy=cp_async num_stages=2", FTL_REFILL_EARLY}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ftl_spec spec = spec_of(cases[i].params);
    resolve_code(&spec);
    cr_expect_eq(spec.value[FTL_PARAM_refill], cases[i].refill, "%s", cases[i].params);
  }
}

static ftl_status build(const char *params, ftl_error *error) {
  ftl_spec spec = spec_of(params);
  resolve_code(&spec);
  ftl_tile_program *launches[FTL_MAX_LAUNCHES];
  int num_launches = 0;
  ftl_status status = spec.workload->build(&spec, launches, &num_launches, error);
  for (int i = 0; i < num_launches; i++) ftl_tile_program_destroy(launches[i]);
  return status;
}

Test(unit_workloads_flash2_bwd, refills_that_no_backward_step_has_are_refused) {
  static const char *const refused[] = {"head_dim=64 dq=atomics mma=mma copy=cp_async refill=late",
                                        "head_dim=64 dq=kernel mma=mma copy=cp_async refill=behind",
                                        "head_dim=64 dq=kernel mma=mma copy=cp_async refill=when_free",
                                        "head_dim=64 dq=kernel mma=mma copy=ldg refill=late",
                                        "head_dim=64 dq=kernel mma=mma copy=cp_async num_stages=1 refill=late"};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    ftl_error error = {0};
    cr_expect_eq(build(refused[i], &error), FTL_INFEASIBLE, "%s", refused[i]);
    cr_expect(strstr(error.message, "refill") != NULL, "%s: %s", refused[i], error.message);
  }
  ftl_error error = {0};
  cr_expect_eq(build("head_dim=64 dq=kernel mma=mma copy=cp_async refill=late", &error), FTL_OK, "%s", error.message);
}

// LSE and delta of a step's queries come through shared memory with its tiles: a stage a tile ahead.
Test(unit_workloads_flash2_bwd, late_refills_have_rings_of_columns) {
  ftl_spec spec = spec_of("head_dim=64 dq=kernel mma=wgmma copy=cp_async num_stages=3 block_m=32");
  resolve_code(&spec);
  ftl_tile_program *launches[FTL_MAX_LAUNCHES];
  int num_launches = 0, num_rings = 0;
  ftl_error error = {0};
  cr_assert_eq(spec.workload->build(&spec, launches, &num_launches, &error), FTL_OK, "%s", error.message);
  for (int32_t r = 0; r < launches[1]->num_rings; r++) {
    const ftl_ring *ring = &launches[1]->rings[r];
    if (!ftl_ring_holds_columns(ring)) continue;
    num_rings++;
    cr_expect_eq(ring->rows, 32);
    cr_expect_eq(ring->num_stages, 2);
  }
  cr_expect_eq(num_rings, 2);
  for (int i = 0; i < num_launches; i++) ftl_tile_program_destroy(launches[i]);
}
