// Each launch of sparq_decode does what its tile program says on every generation, and reads of K and V what it chose.
#include <criterion/criterion.h>
#include <stdio.h>

#include "lower/checker.h"
#include "programs.h"

static const char *const archs[] = {"v100", "t4", "a100_80", "rtx4090", "h200"};
enum { NUM_ARCHS = sizeof archs / sizeof *archs, NUM_LAUNCHES = 5 };

static void prove(const char *parameters) {
  char text[256];
  for (int a = 0; a < NUM_ARCHS; a++) {
    snprintf(text, sizeof text, "%s mma=mma", parameters);
    for (int launch = 0; launch < NUM_LAUNCHES; launch++) {
      programs p;
      ftl_error error = {0};
      ftl_status status = lower_launch(&p, archs[a], "sparq_decode", text, launch, &error);
      cr_assert_eq(status, FTL_OK, "%s %s: %s", archs[a], text, error.message);
      for (int64_t cta = 0; cta < p.tile->num_ctas; cta += 1 + p.tile->num_ctas / 5)
        cr_assert_eq(ftl_checker_prove(p.warps, cta, &error), FTL_OK, "%s %s launch %d: %s", archs[a], text, launch,
                     error.message);
      programs_fini(&p);
    }
  }
}

Test(unit_lower_sparq_decode, every_launch_is_proved) {
  prove("batch=2 heads=4 seqlen_kv=1000 head_dim=128 num_warps=2");
  prove("heads=8 kv_heads=2 seqlen_kv=4096 head_dim=64 sparq_r=16 sparq_k=100 block_n=128");
  prove("heads=16 kv_heads=1 seqlen_kv=600 head_dim=72 sparq_r=48 sparq_k=300 num_warps=2 block_n=64");
  prove("heads=8 kv_heads=2 seqlen_kv=2000 head_dim=64 sparq_r=16 sparq_k=100 sparq_local=25 block_n=128");
}

static int64_t bytes_of(const char *parameters, int launch, int tensor) {
  programs p;
  ftl_error error = {0};
  int64_t sum = 0;
  cr_assert_eq(lower_launch(&p, "a100_80", "sparq_decode", parameters, launch, &error), FTL_OK, "%s", error.message);
  for (int64_t cta = 0; cta < p.tile->num_ctas; cta++) {
    ftl_work work;
    cr_assert_eq(ftl_work_of_warps(p.warps, cta, &work, &error), FTL_OK, "%s", error.message);
    sum += work.load_bytes[tensor];
  }
  programs_fini(&p);
  return sum;
}

Test(unit_lower_sparq_decode, the_chosen_part_of_the_cache_is_read) {
  enum { SCORES_LAUNCH = 1, ATTEND_LAUNCH = 3, K = 1, K_BY_COLUMN = 2, V = 3 };
  const char *parameters = "batch=2 heads=3 seqlen_kv=1000 head_dim=128 sparq_r=32 sparq_k=100";
  cr_expect_eq(bytes_of(parameters, SCORES_LAUNCH, K_BY_COLUMN), 2 * 3 * 32 * 1000 * 2);
  cr_expect_eq(bytes_of(parameters, ATTEND_LAUNCH, K), 2 * 3 * 100 * 128 * 2);
  cr_expect_eq(bytes_of(parameters, ATTEND_LAUNCH, V), 2 * 3 * 100 * 128 * 2);
}
