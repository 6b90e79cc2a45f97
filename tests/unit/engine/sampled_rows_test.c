// Rows that a softmax reads again, in `sampled` and in `full`, on a chip whose L2 keeps them in part.
#include <math.h>

#include "fixture.h"

static ftl_prediction predict(const char *workload, const char *detail) {
  char parameters[256];
  snprintf(parameters, sizeof parameters, "%s heads=1 seqlen_q=2048 seqlen_kv=4096 clock_mhz=1200 detail=%s", workload,
           detail);
  ftl_arch *arch = shipped_arch("rtx2080ti");
  ftl_prediction prediction = prediction_of(arch, parameters, NULL);
  ftl_arch_destroy(arch);
  return prediction;
}

static double hbm_bytes(const ftl_prediction *p) {
  return p->metrics.value[FTL_METRIC_dram_read] + p->metrics.value[FTL_METRIC_dram_write];
}

// A CTA waits for a row from DRAM for most of its time, and for all of that time others ask for theirs: of two passes
// that follow L1 has a fifth of the sectors, of one that follows, which computes for longer and asks for parts of the
// row one behind the other, a twentieth. (A row that took its place when it comes would be there: half of all sectors.)
static void expect_l1_as_in_full(const char *workload, double most_pct) {
  ftl_prediction sampled = predict(workload, "sampled"), full = predict(workload, "full");
  double found_pct = sampled.metrics.value[FTL_METRIC_l1_hit_pct],
         in_full_pct = full.metrics.value[FTL_METRIC_l1_hit_pct];
  cr_expect_float_eq(found_pct, in_full_pct, 4, "%s: %.1f %%, in full %.1f", workload, found_pct, in_full_pct);
  cr_expect_leq(found_pct, most_pct, "%s: %.1f %%", workload, found_pct);
  double apart_pct = 100.0 * fabs(hbm_bytes(&sampled) / hbm_bytes(&full) - 1);
  cr_expect_leq(apart_pct, sampled.error_bound_hbm_bytes_pct, "%s: %.1f %% apart, the bound is %.1f", workload,
                apart_pct, sampled.error_bound_hbm_bytes_pct);
}

Test(unit_engine_sampled_rows, a_row_has_its_place_in_l1_from_when_it_is_asked_for) {
  expect_l1_as_in_full("softmax_safe", 30);
  expect_l1_as_in_full("softmax_online", 15);
}

// 16.8 MB are read once; `full` reads 22, sampled 24, which the bound allows for, as all that is read again may be
// found in L2.
Test(unit_engine_sampled_rows, their_bound_has_what_l2_may_keep) {
  ftl_prediction sampled = predict("softmax_online", "sampled"), full = predict("softmax_online", "full");
  double apart_pct = 100.0 * fabs(hbm_bytes(&sampled) / hbm_bytes(&full) - 1);
  cr_expect_gt(apart_pct, 2.0, "%.1f %% apart: nothing is left for the bound to say", apart_pct);
  cr_expect_leq(apart_pct, sampled.error_bound_hbm_bytes_pct, "%.1f %% apart, the bound is %.1f", apart_pct,
                sampled.error_bound_hbm_bytes_pct);
}

// Of 3584 columns two of four warps have four steps and two have three: the row takes hardly longer than one of 4096,
// whose steps all stand in rounds. (With the steps of both kinds on the same warps it took a third longer.)
Test(unit_engine_sampled_rows, warps_with_a_step_more_have_no_others) {
  static const char *const details[] = {"full", "sampled"};
  ftl_arch *arch = shipped_arch("h200");
  for (int i = 0; i < 2; i++) {
    double cycles[2];
    for (int j = 0; j < 2; j++) {
      char parameters[128];
      snprintf(parameters, sizeof parameters, "softmax_online heads=1 seqlen_q=2048 seqlen_kv=%d detail=%s",
               j == 0 ? 3584 : 4096, details[i]);
      cycles[j] = prediction_of(arch, parameters, NULL).metrics.value[FTL_METRIC_cycles];
    }
    cr_expect_leq(cycles[0], 1.125 * cycles[1], "%s: %.0f, %.0f", details[i], cycles[0], cycles[1]);
  }
  ftl_arch_destroy(arch);
}

// One of three launches asks DRAM for nothing: its bound, a share of no bytes, must not spoil the others'.
Test(unit_engine_sampled_rows, the_bound_of_a_launch_that_finds_all_in_l2_is_a_number) {
  ftl_arch *arch = shipped_arch("h200");
  ftl_prediction p = prediction_of(
      arch, "flash2_bwd heads=1 seqlen=40960 head_dim=32 block_m=32 block_n=32 num_warps=4 cache=warm", NULL);
  ftl_arch_destroy(arch);
  cr_assert(p.error_bound_hbm_bytes_pct >= 0 && p.error_bound_hbm_bytes_pct < 1000, "%f", p.error_bound_hbm_bytes_pct);
}
