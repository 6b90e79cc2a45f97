// What a chip cannot run is answered with the reason in the user's terms.
#include "fixture.h"

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

Test(unit_engine_feasibility, bf16_needs_ampere) {
  ftl_prediction p = predict("v100", "heads=1 seqlen=512 head_dim=64 dtype=bf16 num_stages=1");
  cr_assert_not(p.feasible);
  cr_assert(strstr(p.reason, "bf16"), "%s", p.reason);
}
