// What L2's priorities do to a prediction: keys and values that do not fit in L2, swept by every wave of query tiles.
#include <math.h>

#include "fixture.h"

static const char problem[] = "heads=24 kv_heads=1 seqlen=2048 head_dim=128 block_m=128 block_n=64 num_warps=8 ";

// 1 MiB of keys and values, an L2 of 0.75 MiB of which 0.45 may persist.
static ftl_arch *small_l2(void) {
  ftl_arch *arch = shipped_arch("rtx3090");
  arch->l2_size_bytes /= 8;
  arch->l2_persisting_max_bytes = arch->l2_size_bytes * 6 / 10;
  return arch;
}

// Bytes read from DRAM beyond once each.
static double read_again(const ftl_arch *arch, const char *more) {
  char text[512];
  snprintf(text, sizeof text, "%s%s", problem, more);
  ftl_prediction prediction = prediction_of(arch, text, NULL);
  return prediction.metrics.value[FTL_METRIC_dram_read] - prediction.metrics.value[FTL_METRIC_compulsory_read];
}

Test(unit_engine_l2_priority, keys_that_persist_are_read_less_often_from_dram) {
  ftl_arch *arch = small_l2();
  double normal = read_again(arch, ""), persist = read_again(arch, "l2_persist=kv");
  cr_expect_lt(persist, 0.9 * normal, "%g against %g bytes", persist, normal);
  ftl_arch_destroy(arch);
}

Test(unit_engine_l2_priority, full_and_sampled_agree_on_what_persists) {
  ftl_arch *arch = small_l2();
  double sampled = read_again(arch, "l2_persist=kv"), full = read_again(arch, "l2_persist=kv detail=full");
  double once = 2.0 * (24 + 1) * 2048 * 128;  // bytes of Q, K and V
  cr_expect_lt(fabs(sampled - full), 0.05 * (once + full), "sampled %g, full %g bytes beyond %g", sampled, full, once);
  ftl_arch_destroy(arch);
}

Test(unit_engine_l2_priority, queries_that_are_evicted_first_leave_room_for_keys) {
  ftl_arch *arch = small_l2();
  arch->l2_size_bytes = arch->l2_size_bytes * 4 / 3;  // keys and values fit, and nothing beside them
  double normal = read_again(arch, ""), first = read_again(arch, "l2_evict_first=qo");
  cr_expect_lt(first, normal, "%g against %g bytes", first, normal);
  ftl_arch_destroy(arch);
}

Test(unit_engine_l2_priority, what_a_chip_lacks_is_infeasible) {
  static const char *const chips[] = {"v100", "t4"};
  for (int i = 0; i < 2; i++) {
    ftl_arch *arch = shipped_arch(chips[i]);
    ftl_spec spec = spec_of("heads=1 seqlen=256 head_dim=64 l2_persist=kv");
    ftl_prediction prediction;
    ftl_error error = {0};
    cr_assert_eq(ftl_predict(&spec, arch, NULL, &prediction, &error), FTL_OK, "%s", error.message);
    cr_expect_not(prediction.feasible, "%s", chips[i]);
    ftl_arch_destroy(arch);
  }
}
