// Persistent kernels whose CTAs take tiles from a counter.
#include <math.h>

#include "fixture.h"

static const char problem[] = "flash3_fwd head_dim=64 block_n=128 causal=true persistent=true clock_mhz=1500 ";

static ftl_prediction predict_on(ftl_arch *arch, const char *more, int num_threads) {
  char text[512];
  snprintf(text, sizeof text, "%s%s", problem, more);
  arch->l2_coalescer_merges = 1;  // it merges reads by chance
  ftl_prediction prediction = prediction_of(arch, text, &(ftl_predict_options){.num_threads = num_threads});
  ftl_arch_destroy(arch);
  return prediction;
}

static ftl_prediction predict(const char *more, int num_threads) {
  return predict_on(shipped_arch("h200"), more, num_threads);
}

// L1 merges no stores, which it does for warps that are in time: stores are as many for every order.
static ftl_prediction predict_counts(const char *more, int num_threads) {
  ftl_arch *arch = shipped_arch("h200");
  arch->l1_store_merge_lines = 0;
  return predict_on(arch, more, num_threads);
}

// 192 tiles on 132 SMs.
#define SMALL "heads=4 batch=6 seqlen=1024 "
enum { SMALL_TILES = 192 };
// The last query tile of a head takes sixteen times as long as the first.
#define LONGEST_FIRST "heads=4 batch=8 seqlen=2048 tile_order=head_first tile_reverse=true "

Test(unit_engine_tile_scheduler, every_tile_is_taken_once_and_threads_change_nothing) {
  ftl_prediction by_stride = predict_counts(SMALL "detail=full", 1),
                 one = predict_counts(SMALL "tile_scheduler=dynamic detail=full", 1);
  ftl_prediction two = predict_counts(SMALL "tile_scheduler=dynamic detail=full", 2);
  for (int i = 0; i < FTL_METRIC_COUNT; i++)
    cr_expect_eq(one.metrics.value[i], two.metrics.value[i], "%s", ftl_metric_get((ftl_metric)i)->name);
  cr_expect_eq(one.metrics.value[FTL_METRIC_tensor_insts], by_stride.metrics.value[FTL_METRIC_tensor_insts]);
  // Each tile takes from the counter once: a sector each, beside those that a stride asks for too.
  cr_expect_eq(one.metrics.value[FTL_METRIC_l2_sectors], by_stride.metrics.value[FTL_METRIC_l2_sectors] + SMALL_TILES);
  ftl_prediction late = predict_counts(SMALL "tile_scheduler=dynamic_late detail=full", 1);
  cr_expect_eq(late.metrics.value[FTL_METRIC_tensor_insts], by_stride.metrics.value[FTL_METRIC_tensor_insts]);
  cr_expect_eq(late.metrics.value[FTL_METRIC_l2_sectors], by_stride.metrics.value[FTL_METRIC_l2_sectors] + SMALL_TILES);
}

Test(unit_engine_tile_scheduler, longest_first_from_a_counter_ends_sooner_than_by_a_stride) {
  static const char *const details[] = {"detail=sampled ", "detail=full "};
  double cycles[2][2];
  for (int d = 0; d < 2; d++)
    for (int dynamic = 0; dynamic < 2; dynamic++) {
      char more[128];
      snprintf(more, sizeof more, "%s%s%s", LONGEST_FIRST, details[d], dynamic ? "tile_scheduler=dynamic" : "");
      cycles[d][dynamic] = predict(more, 1).metrics.value[FTL_METRIC_cycles];
    }
  for (int d = 0; d < 2; d++)
    cr_expect_lt(cycles[d][1], 0.92 * cycles[d][0], "%s: %g against %g cycles", details[d], cycles[d][1], cycles[d][0]);
  cr_expect_lt(fabs(cycles[0][1] - cycles[1][1]), 0.1 * cycles[1][1], "sampled %g, full %g", cycles[0][1],
               cycles[1][1]);
}

// 160 tiles of 5 heads on 132 SMs, a head's shortest first. The last 28 have 5 to 32 of 32 key tiles. CTAs that ask as
// they begin a tile take those 28 before it is known whose first tile is short: some wait for a tile of 32 steps, and
// take up to 64. Asked late, the 28 go to CTAs whose first tile had 1 to 6 steps: at most some 38.
Test(unit_engine_tile_scheduler, a_counter_asked_late_gives_tiles_to_ctas_whose_first_was_short) {
#define FIVE_HEADS "heads=5 seqlen=4096 tile_scheduler="
  double ahead = predict(FIVE_HEADS "dynamic", 1).metrics.value[FTL_METRIC_cycles];
  double late = predict(FIVE_HEADS "dynamic_late", 1).metrics.value[FTL_METRIC_cycles];
  double in_full = predict(FIVE_HEADS "dynamic_late detail=full", 1).metrics.value[FTL_METRIC_cycles];
  cr_expect_lt(late, 0.75 * ahead, "%g against %g cycles", late, ahead);
  cr_expect_lt(fabs(late - in_full), 0.05 * in_full, "sampled %g, full %g", late, in_full);
}
