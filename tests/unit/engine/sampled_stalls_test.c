// `sampled`: reasons of stalls are those of as many CTAs as an SM holds in the launch.
#include "fixture.h"

static double not_selected(const char *splits) {
  char text[256];
  snprintf(text, sizeof text,
           "flash_decode batch=1 heads=16 kv_heads=2 seqlen_q=1 seqlen_kv=8192 head_dim=64 block_n=64 num_stages=3 "
           "clock_mhz=1500 splits=%s",
           splits);
  ftl_arch *arch = shipped_arch("h200");
  ftl_prediction prediction = prediction_of(arch, text, &(ftl_predict_options){.num_threads = 1});
  cr_assert_gt(prediction.metrics.value[FTL_METRIC_ctas_per_sm], 1);
  ftl_arch_destroy(arch);
  return prediction.metrics.value[FTL_METRIC_stall_not_selected];
}

// 32 CTAs of 4 warps have an SM each, and each warp a sub-core: no other can be selected, though more CTAs would fit.
Test(unit_engine_sampled_stalls, a_warp_alone_on_its_sub_core_is_always_selected) {
  cr_expect_eq(not_selected("16"), 0);
}
