// What hides keys is lowered as the tile program says, on every generation: windows.
#include <criterion/criterion.h>

#include "lower/checker.h"
#include "programs.h"

static const char *const archs[] = {"v100", "t4", "a100_80", "rtx4090", "h200"};

// Every launch of a workload on every architecture that can run it; gives how many can.
static int prove(const char *workload, const char *parameters, int num_launches) {
  int feasible = 0;
  for (size_t a = 0; a < sizeof archs / sizeof *archs; a++)
    for (int launch = 0; launch < num_launches; launch++) {
      programs p;
      ftl_error error = {0};
      bool can = lower_launch(&p, archs[a], workload, parameters, launch, &error) == FTL_OK;
      feasible += can && launch == 0;
      for (int64_t i = 0; can && i < 5; i++) {
        int64_t cta = i * (p.tile->num_ctas - 1) / 4;
        cr_assert_eq(ftl_checker_prove(p.warps, cta, &error), FTL_OK, "%s %s %s CTA %d: %s", archs[a], workload,
                     parameters, (int)cta, error.message);
      }
      programs_fini(&p);
    }
  return feasible;
}

Test(unit_lower_checker_masks, windows_are_proved) {
  static const char shape[] = "heads=2 seqlen_q=300 seqlen_kv=410 head_dim=64 window=150 causal=1 ";
  static const struct {
    const char *workload, *how;
    int num_launches, least_feasible;
  } cases[] = {
      {"flash2_fwd", "block_m=64 block_n=32 num_warps=4 num_stages=2", 1, 5},
      {"flash2_fwd", "block_m=64 block_n=32 num_warps=4 schedule=interleaved", 1, 5},
      {"flash2_fwd", "block_m=64 block_n=32 num_warps=4 causal=0", 1, 5},
      {"flash2_bwd", "block_m=32 block_n=64 num_warps=4 num_stages=1", 3, 5},
      {"flash3_fwd", "block_n=64", 1, 1},
      {"flash_decode", "block_m=32 block_n=64 num_warps=4 seqlen_q=3 splits=2 mma=mma", 2, 5},
      {"standard_attention", "block_m=64 block_n=64 num_warps=4 mma=mma", 3, 5},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char parameters[256];
    snprintf(parameters, sizeof parameters, "%s%s", shape, cases[i].how);
    cr_expect_eq(prove(cases[i].workload, parameters, cases[i].num_launches), cases[i].least_feasible, "%s %s",
                 cases[i].workload, parameters);
  }
}
