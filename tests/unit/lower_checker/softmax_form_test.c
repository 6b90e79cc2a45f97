// The forms of the softmax are lowered as the tile program says, on every generation.
#include <criterion/criterion.h>

#include "lower/checker.h"
#include "programs.h"

static const char *const archs[] = {"v100", "t4", "a100_80", "rtx4090", "h200"};

static void prove(const char *arch, const char *workload, const char *parameters, int launch) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_launch(&p, arch, workload, parameters, launch, &error), FTL_OK, "%s", error.message);
  for (int64_t i = 0; i < 3; i++)
    cr_assert_eq(ftl_checker_prove(p.warps, i * (p.tile->num_ctas - 1) / 2, &error), FTL_OK, "%s %s %s launch %d: %s",
                 arch, workload, parameters, launch, error.message);
  programs_fini(&p);
}

#define SHAPE "heads=2 seqlen=200 head_dim=64 causal=1 block_m=64 block_n=64 num_warps=4 mma=mma exp2=ieee "

Test(unit_lower_checker_softmax_form, every_place_of_the_scale_is_proved_with_exponentials_that_keep_denormals) {
  static const char *const scalings[] = {"exponent", "scores", "twice"};
  for (size_t a = 0; a < sizeof archs / sizeof *archs; a++)
    for (size_t s = 0; s < sizeof scalings / sizeof *scalings; s++) {
      char parameters[256];
      snprintf(parameters, sizeof parameters, SHAPE "scaling=%s", scalings[s]);
      prove(archs[a], "flash2_fwd", parameters, 0);
      snprintf(parameters, sizeof parameters, SHAPE "row_sums=step scaling=%s", scalings[s]);
      prove(archs[a], "flash2_fwd", parameters, 0);
      snprintf(parameters, sizeof parameters, SHAPE "scaling=%s", scalings[s]);
      prove(archs[a], "flash2_bwd", parameters, 1);
      snprintf(parameters, sizeof parameters, SHAPE "splits=2 scaling=%s", scalings[s]);
      prove(archs[a], "flash_decode", parameters, 0);
    }
}
