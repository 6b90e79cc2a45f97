// What flash2_bwd takes where nothing is given. That it computes gradients is proved in tests/numeric/attention.
#include <criterion/criterion.h>

#include "arch/arch.h"
#include "tests/spec_words.h"

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
