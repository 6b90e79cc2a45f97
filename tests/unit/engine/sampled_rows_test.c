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

// A CTA waits for a row from DRAM for most of its time, and passes over it again as soon as it is there: of two passes
// that follow L1 has nearly all. (As if the row had been there since it was asked for: 13 % of all sectors.)
Test(unit_engine_sampled_rows, a_row_is_in_l1_from_when_it_comes) {
  ftl_prediction sampled = predict("softmax_safe", "sampled"), full = predict("softmax_safe", "full");
  double found_pct = sampled.metrics.value[FTL_METRIC_l1_hit_pct],
         in_full_pct = full.metrics.value[FTL_METRIC_l1_hit_pct];
  cr_expect_float_eq(found_pct, in_full_pct, 4, "%.1f %%, in full %.1f", found_pct, in_full_pct);
  cr_expect_float_eq(hbm_bytes(&sampled) / hbm_bytes(&full), 1, 0.06);
}

// Online the row's parts come one after the other, as a pass asks for some behind what it computes with others, and it
// computes for longer: half of the row is gone when the next pass begins.
Test(unit_engine_sampled_rows, parts_of_a_row_come_one_after_the_other) {
  ftl_prediction sampled = predict("softmax_online", "sampled"), full = predict("softmax_online", "full");
  double found_pct = sampled.metrics.value[FTL_METRIC_l1_hit_pct],
         in_full_pct = full.metrics.value[FTL_METRIC_l1_hit_pct];
  cr_expect_float_eq(found_pct, in_full_pct, 4, "%.1f %%, in full %.1f", found_pct, in_full_pct);
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
