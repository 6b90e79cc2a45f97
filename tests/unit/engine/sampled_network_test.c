// What sampled detail takes from the network: reads that the coalescer merges, and the port of an SM.
#include "fixture.h"

static ftl_metrics predict(const ftl_arch *arch, const char *parameters) {
  ftl_spec spec = spec_of(parameters);
  ftl_prediction prediction;
  ftl_error error = {0};
  cr_assert_eq(ftl_predict(&spec, arch, NULL, &prediction, &error), FTL_OK, "%s", error.message);
  cr_assert(prediction.feasible, "%s", prediction.reason);
  return prediction.metrics;
}

// 132 CTAs, one an SM at least, of 64 query rows each walk the same 512 keys: a CTA reads Q and writes O in 4 sectors a
// row, writes 64 sums in 8 sectors, and reads K and V in 4 sectors a key each.
#define ONE_HEAD                                                                                                   \
  "heads=1 seqlen_q=8448 seqlen_kv=512 head_dim=64 block_m=64 block_n=64 num_warps=4 num_stages=2 clock_mhz=1200 " \
  "detail=sampled"
enum { NUM_CTAS = 132, OWN_SECTORS = 64 * 4 + 64 * 4 + 8, SHARED_SECTORS = 512 * 4 * 2 };

// Reads of K and V by CTAs that walk in step are merged, up to l2.coalescer_merges of a GPC at once.
Test(unit_engine_sampled_network, reads_in_step_are_merged_where_there_is_a_coalescer) {
  ftl_arch *arch = shipped_arch("h200");
  double merged = predict(arch, ONE_HEAD).value[FTL_METRIC_l2_sectors];
  double most = NUM_CTAS * (OWN_SECTORS + SHARED_SECTORS);
  double least = NUM_CTAS * (OWN_SECTORS + SHARED_SECTORS / (double)arch->l2_coalescer_merges);
  arch->l2_coalescer_merges = 1;
  cr_expect_eq(predict(arch, ONE_HEAD).value[FTL_METRIC_l2_sectors], most);
  cr_expect_geq(merged, least);
  cr_expect_lt(merged, 0.6 * most, "%.0f of %.0f", merged, most);
  ftl_arch_destroy(arch);
}

// With 8 bytes an L2 cycle into an SM nothing else binds: an SM's CTA reads 64 rows of Q and 1024 of K and V, of 128
// bytes each, in 17408 L2 cycles. The clocks of SMs and L2 are set alike.
Test(unit_engine_sampled_network, an_sm_takes_in_what_its_port_carries) {
  ftl_arch *arch = shipped_arch("h200");
  arch->clock_l2_khz = 1200000;
  arch->noc_sm_read_bytes_per_cycle = 8;
  double cycles = predict(arch, ONE_HEAD).value[FTL_METRIC_cycles];
  double port = (64 + 2 * 512) * 128.0 / 8;
  cr_expect_geq(cycles, port, "%.0f", cycles);
  cr_expect_lt(cycles, port + 6000, "%.0f: latencies, and the launch overhead of some 2100 cycles", cycles);
  ftl_arch_destroy(arch);
}
