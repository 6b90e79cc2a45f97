// What clusters do to a prediction: each tile that CTAs share is asked of L2 once.
#include "fixture.h"

// 2 heads of 8 query tiles; a CTA loads a tile of Q (1024 sectors), K and V (16384), and stores O (1024) and LSE (16).
static const char problem[] = "flash3_fwd heads=2 seqlen=1024 head_dim=128 block_m=128 block_n=128 ";
enum { NUM_CTAS = 16, Q_SECTORS = 1024, KV_SECTORS = 16384, O_SECTORS = 1024 + 16 };

// Without the coalescer, which merges reads by chance, and with L1's open lines waiting until they are full: a warp
// that comes late to a store (to its code, say) has the sector that it is in sent twice.
static ftl_arch *h200_that_counts_alike(void) {
  ftl_arch *arch = shipped_arch("h200");
  arch->l2_coalescer_merges = 1;
  arch->l1_store_merge_cycles = 10000;
  return arch;
}

static ftl_prediction predict(const ftl_arch *arch, const char *more, int num_threads) {
  char text[512];
  snprintf(text, sizeof text, "%s%s", problem, more);
  return prediction_of(arch, text, &(ftl_predict_options){.num_threads = num_threads});
}

Test(unit_engine_cluster, shared_tiles_are_asked_of_l2_once_a_cluster) {
  static const int sizes[] = {1, 2, 4, 8};
  static const char *const details[] = {"sampled", "full"};
  ftl_arch *arch = h200_that_counts_alike();
  for (int i = 0; i < 4; i++)
    for (int d = 0; d < 2; d++) {
      char more[64];
      snprintf(more, sizeof more, "cluster=%dx1 detail=%s", sizes[i], details[d]);
      double sectors = predict(arch, more, 1).metrics.value[FTL_METRIC_l2_sectors];
      cr_expect_eq(sectors, NUM_CTAS * (Q_SECTORS + KV_SECTORS / sizes[i] + O_SECTORS), "%s: %g", more, sectors);
    }
  ftl_arch_destroy(arch);
}

Test(unit_engine_cluster, bytes_and_instructions_stay_and_threads_change_nothing) {
  ftl_arch *arch = shipped_arch("h200");
  ftl_prediction alone = predict(arch, "detail=full", 1), one = predict(arch, "cluster=4x1 detail=full", 1);
  ftl_prediction two = predict(arch, "cluster=4x1 detail=full", 2);
  for (int i = 0; i < FTL_METRIC_COUNT; i++)
    cr_expect_eq(one.metrics.value[i], two.metrics.value[i], "%s", ftl_metric_get((ftl_metric)i)->name);
  cr_expect_eq(one.metrics.value[FTL_METRIC_dram_read], alone.metrics.value[FTL_METRIC_dram_read]);
  cr_expect_eq(one.metrics.value[FTL_METRIC_insts], alone.metrics.value[FTL_METRIC_insts]);
  ftl_arch_destroy(arch);
}

// Eight SMs ask for their shares of a tile at a time, and take stores in so: products of two steps, whose tiles are
// asked for while the tile before ends, take as long in both. (Eight times the time to ask was 17 % more.)
Test(unit_engine_cluster, ctas_of_a_cluster_ask_side_by_side) {
  ftl_arch *arch = shipped_arch("h200");
  static const char *const details[] = {"sampled", "full"};
  double cycles[2];
  for (int d = 0; d < 2; d++) {
    char text[512];
    snprintf(text, sizeof text,
             "matmul_tiled batch=2 m=1408 n=1408 k=128 block_m=128 block_n=128 block_k=64 num_warps=8 num_stages=6 "
             "mma=wgmma copy=tma code=lean store=staged persistent=true cluster=4x2 tile_order=m_first detail=%s",
             details[d]);
    cycles[d] = prediction_of(arch, text, &(ftl_predict_options){.num_threads = 2}).metrics.value[FTL_METRIC_cycles];
  }
  cr_expect(cycles[0] > 0.9 * cycles[1] && cycles[0] < 1.1 * cycles[1], "%g sampled, %g full", cycles[0], cycles[1]);
  ftl_arch_destroy(arch);
}

// Clusters of eight leave two SMs of each large GPC empty, and eight of the last one, whose TPCs are single: 120
// persistent CTAs on 132 SMs, as measured (kernels/measurements/micro_launch.csv, clusters_that_fit: 15 of 8).
Test(unit_engine_cluster, as_many_persistent_ctas_run_as_clusters_fit) {
  ftl_arch *arch = shipped_arch("h200");
  ftl_prediction prediction = predict(arch, "batch=16 cluster=8x1 persistent=true", 1);
  cr_expect_eq(prediction.metrics.value[FTL_METRIC_grid], 120);
  ftl_arch_destroy(arch);
}
