// Whose CTAs run every loop as often.
#include <criterion/criterion.h>

#include "../lower_checker/programs.h"

static bool are_alike(const char *workload, const char *parameters) {
  programs p;
  ftl_error error = {0};
  ftl_status status = lower_launch(&p, "h200", workload, parameters, 0, &error);
  cr_assert_eq(status, FTL_OK, "%s %s: %s", workload, parameters, error.message);
  bool alike = ftl_warp_program_has_ctas_alike(p.warps);
  programs_fini(&p);
  return alike;
}

Test(unit_lower_ctas_alike, are_those_of_sequences_as_long_without_a_mask) {
  cr_expect(are_alike("flash2_fwd", "heads=8 seqlen=1024 head_dim=64 batch=2"));
  cr_expect(are_alike("matmul_tiled", "m=1024 n=1024 k=512"));
}

Test(unit_lower_ctas_alike, are_not_those_of_masks_windows_and_lengths) {
  cr_expect_not(are_alike("flash2_fwd", "heads=8 seqlen=1024 head_dim=64 causal=true"));
  cr_expect_not(are_alike("flash2_fwd", "heads=8 seqlen=1024 head_dim=64 window=256 causal=true"));
  cr_expect_not(are_alike("flash2_fwd", "batch=2 heads=8 seqlen=1024 head_dim=64 lengths=1024:512"));
}
