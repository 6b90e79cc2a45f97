// What TMA boxes that reach past a tensor's last column ask of L2.
#include "fixture.h"

// 2 heads of 8 query tiles of 96 columns in boxes for 128: a CTA loads a tile of Q (128 rows of 8 sectors), K and V (2
// x 1024 rows of 8), and stores O (128 rows of 6) and LSE (16). A copy by lanes loads 6 sectors a row.
enum { NUM_CTAS = 16, ROWS = 128 + 2 * 1024, O_SECTORS = 128 * 6 + 16 };

static double sectors_of(const ftl_arch *arch, const char *workload, const char *detail) {
  char text[256];
  snprintf(text, sizeof text, "%s heads=2 seqlen=1024 head_dim=96 head_dim_multiple=128 block_m=128 block_n=128 %s",
           workload, detail);
  return prediction_of(arch, text, &(ftl_predict_options){.num_threads = 1}).metrics.value[FTL_METRIC_l2_sectors];
}

Test(unit_engine_tma_box, a_box_is_asked_for_over_its_whole_width) {
  ftl_arch *arch = shipped_arch("h200");
  arch->l2_coalescer_merges = 1;      // the coalescer merges reads by chance,
  arch->l1_store_merge_cycles = 100;  // L1 stores where a warp waits between two for longer than its lines stay open
  static const char *const details[] = {"detail=full", "detail=sampled"};
  for (int i = 0; i < 2; i++) {
    cr_expect_eq(sectors_of(arch, "flash3_fwd", details[i]), NUM_CTAS * (ROWS * 8 + O_SECTORS), "%s", details[i]);
    cr_expect_eq(sectors_of(arch, "flash2_fwd mma=wgmma copy=cp_async num_warps=8", details[i]),
                 NUM_CTAS * (ROWS * 6 + O_SECTORS), "%s", details[i]);
  }
  ftl_arch_destroy(arch);
}

// A of a product with K 32 has rows of 64 bytes one behind the other, and boxes 128 bytes wide: a CTA loads 128 rows of
// 2 sectors, 2 more behind the last in `full`, and B, 32 rows of 4, and stores 128 rows of 4 in halves that do not
// merge.
Test(unit_engine_tma_box, rows_nearer_than_a_box_is_wide_are_read_once) {
  ftl_arch *arch = shipped_arch("h200");
  arch->l2_coalescer_merges = 1;
  double sectors[2];
  for (int i = 0; i < 2; i++) {
    char text[256];
    snprintf(text, sizeof text,
             "matmul_tiled m=128 n=64 k=32 block_m=128 block_n=64 num_warps=4 mma=wgmma clock_mhz=1500 detail=%s",
             i == 0 ? "full" : "sampled");
    sectors[i] =
        prediction_of(arch, text, &(ftl_predict_options){.num_threads = 1}).metrics.value[FTL_METRIC_l2_sectors];
  }
  cr_expect_eq(sectors[0], 128 * 2 + 2 + 32 * 4 + 2 * 128 * 4, "%.0f", sectors[0]);
  cr_expect_eq(sectors[1], 128 * 2 + 32 * 4 + 2 * 128 * 4, "%.0f", sectors[1]);
  ftl_arch_destroy(arch);
}

// Rows of 144 bytes in five boxes of 32, of which the last reaches past the row: every second row begins within a
// sector, and each of its boxes with it. 64 rows of Q, K and V each take 5 and 10 sectors in turn; O, whose last box
// has 16 bytes, 5 and 9; LSE 8.
Test(unit_engine_tma_box, a_sector_that_two_boxes_share_is_asked_for_by_both) {
  ftl_arch *arch = shipped_arch("h200");
  static const char *const details[] = {"full", "sampled"};
  for (int i = 0; i < 2; i++) {
    char text[128];
    snprintf(text, sizeof text, "heads=1 seqlen=64 head_dim=72 block_m=64 copy=tma clock_mhz=1500 detail=%s",
             details[i]);
    ftl_metrics m = prediction_of(arch, text, &(ftl_predict_options){.num_threads = 1}).metrics;
    cr_expect_eq(m.value[FTL_METRIC_l2_sectors], 3 * 32 * (5 + 10) + 32 * (5 + 9) + 8, "%s: %.0f", details[i],
                 m.value[FTL_METRIC_l2_sectors]);
    cr_expect_lt(m.value[FTL_METRIC_dram_read], 3.1 * 64 * 144, "%s: what comes twice is in L2", details[i]);
  }
  ftl_arch_destroy(arch);
}
