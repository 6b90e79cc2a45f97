// What sampled detail takes from the memory system: reads that the coalescer merges, the port of an SM, the time of
// stores.
#include "engine/sampled/dram_rate.h"
#include "fixture.h"

static ftl_metrics predict(const ftl_arch *arch, const char *parameters) {
  return prediction_of(arch, parameters, NULL).metrics;
}

// 132 CTAs, one an SM at least, of 64 query rows each walk the same 512 keys: a CTA reads Q and writes O in 4 sectors a
// row, writes 64 sums in 8 sectors, and reads K and V in 4 sectors a key each.
#define ONE_HEAD                                                                                                   \
  "heads=1 seqlen_q=8448 seqlen_kv=512 head_dim=64 block_m=64 block_n=64 num_warps=4 num_stages=2 clock_mhz=1200 " \
  "detail=sampled code=plain"
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

// Rows of 144 bytes begin within a sector every second time: of Q, K and V, of 64 rows each, the 288 sectors are asked
// of L2 once, though two loads want some of them. O has as many, the sums of rows 8.
Test(unit_engine_sampled_network, sectors_that_loads_of_a_tile_share_are_asked_for_once) {
  static const char *const chips[] = {"h200", "v100"};
  for (int i = 0; i < 2; i++) {
    ftl_arch *arch = shipped_arch(chips[i]);
    ftl_metrics m = predict(arch, "heads=1 seqlen=64 head_dim=72 block_m=64 copy=ldg mma=mma");
    cr_expect_eq(m.value[FTL_METRIC_l2_sectors], 4 * 288 + 8, "%s: %.0f", chips[i], m.value[FTL_METRIC_l2_sectors]);
    ftl_arch_destroy(arch);
  }
}

// dQ's sum in words: each sector is sent twice, as in full detail; in pairs once.
Test(unit_engine_sampled_network, sectors_that_atomics_add_to_are_sent_for_each_instruction) {
  static const char *const adds[] = {"pairs", "words"};
  char parameters[256];
  double sectors[2];
  ftl_arch *arch = shipped_arch("h200");
  for (int i = 0; i < 2; i++)
    for (int full = 0; full < 2; full++) {
      snprintf(parameters, sizeof parameters,
               "flash2_bwd dq=atomics mma=mma p_operand=registers heads=32 seqlen=256 head_dim=64 clock_mhz=1200 "
               "dq_adds=%s detail=%s",
               adds[i], full ? "full" : "sampled");
      double value = predict(arch, parameters).value[FTL_METRIC_l2_sectors];
      if (full)
        cr_expect_float_eq(sectors[i], value, 0.03 * value, "%s: %.0f, in full %.0f", adds[i], sectors[i], value);
      if (!full) sectors[i] = value;
    }
  // 256 x 64 words of each head, added to by the CTAs of two blocks of keys
  cr_expect_float_eq(sectors[1] - sectors[0], 2 * 32 * 256 * 64 * 4 / 32.0, 0.03 * sectors[0]);
  ftl_arch_destroy(arch);
}

// What L1 takes in binds loads as the port of the SM does, and no copies: these pass L1 (1200 MHz, 16 bytes a cycle;
// the loop alone takes K and V of 1024 rows in).
Test(unit_engine_sampled_network, copies_pass_the_port_of_l1) {
  ftl_arch *arch = shipped_arch("h200");
  double copies = predict(arch, ONE_HEAD " mma=mma copy=cp_async").value[FTL_METRIC_cycles];
  arch->l1_fill_bytes_per_cycle = 16;
  cr_expect_eq(predict(arch, ONE_HEAD " mma=mma copy=cp_async").value[FTL_METRIC_cycles], copies);
  cr_expect_geq(predict(arch, ONE_HEAD " mma=mma copy=ldg").value[FTL_METRIC_cycles], 2 * 512 * 128.0 / 16);
  ftl_arch_destroy(arch);
}

// C has 128 MiB, A and B half a MiB each, and there are 8 channels of DRAM instead of 188. CTAs do not wait for their
// stores; a sector read and one written take what two sectors of a copy take. In a stream, where what a launch leaves
// to be written back takes time of the next, as much as it has from the last one.
Test(unit_engine_sampled_network, a_launch_ends_when_its_stores_have_passed_dram) {
  ftl_arch *arch = shipped_arch("h200");
  arch->dram_num_channels = 8;
  ftl_metrics m = predict(arch,
                          "matmul_tiled m=8192 n=8192 k=32 block_m=128 block_n=64 num_warps=4 clock_mhz=1200 "
                          "conditions=stream");
  ftl_dram_rate rate;
  ftl_error error;
  cr_assert_eq(ftl_dram_rate_get(arch, &rate, &error), FTL_OK);
  double read_s = 1 / (double)rate.read_bytes_per_s, write_s = 2 / (double)rate.copy_bytes_per_s - read_s;
  double dram_s = m.value[FTL_METRIC_dram_read] * read_s + m.value[FTL_METRIC_dram_write] * write_s;
  cr_expect_gt(m.value[FTL_METRIC_dram_write], 100e6);
  cr_expect_geq(m.value[FTL_METRIC_time_ns], 0.999e9 * dram_s);
  ftl_arch_destroy(arch);
}

// 65536 rows of 1024 halves: of 128 MiB written, L2 can keep no more than its size of 50 MiB dirty. The first periods
// of the grid write nothing to DRAM and agree with each other; they may not stand for those that do.
Test(unit_engine_sampled_network, writes_of_a_long_grid_do_not_all_stay_in_l2) {
  ftl_arch *arch = shipped_arch("h200");
  double written = predict(arch,
                           "softmax_safe heads=1 seqlen_q=65536 seqlen_kv=1024 block_m=1 block_n=4096 num_warps=4 "
                           "schedule=registers detail=sampled")
                       .value[FTL_METRIC_dram_write];
  double all = 65536.0 * 1024 * 2;
  cr_expect_geq(written, all - (double)arch->l2_size_bytes, "%.0f", written);
  cr_expect_leq(written, all, "%.0f", written);
  ftl_arch_destroy(arch);
}

// Rows of 5000 halves, loaded, computed and stored without a loop, at a third of DRAM's rate: turns of its channels
// that take 253 ns longer leave the rate where it is far from needed, but a row is there with its latest chunk.
Test(unit_engine_sampled_network, rows_wait_for_channels_that_write_back_those_before) {
  static const char rows[] =
      "softmax_safe heads=1 seqlen_q=6000 seqlen_kv=5000 block_m=1 block_n=8192 num_warps=4 schedule=exponentials";
  ftl_arch *arch = shipped_arch("h200");
  double quick = predict(arch, rows).value[FTL_METRIC_cycles];
  arch->dram_twtr_cycles += 810;
  double slow = predict(arch, rows).value[FTL_METRIC_cycles];
  cr_expect_gt(slow, quick * 1.02, "%.0f and %.0f", quick, slow);
  ftl_arch_destroy(arch);
}

// All products have one, and it is what the channel model gives; a model has none with another key that the channels
// know, and the same with another one elsewhere.
Test(unit_engine_sampled_network, bandwidths_of_shipped_models_are_worked_out_beforehand) {
  ftl_arch_list list;
  ftl_error error;
  ftl_dram_rate shipped, measured;
  cr_assert_eq(ftl_arch_load_all(FTL_SOURCE_DIR "/arch_models", &list, &error), FTL_OK, "%s", error.message);
  for (int i = 0; i < list.num_archs; i++) {
    cr_assert(ftl_dram_rate_try_shipped(list.archs[i], &shipped), "%s", list.archs[i]->name);
    cr_assert_eq(ftl_dram_rate_measure(list.archs[i], &measured, &error), FTL_OK, "%s", error.message);
    cr_expect_eq(shipped.read_bytes_per_s, measured.read_bytes_per_s, "%s", list.archs[i]->name);
    cr_expect_eq(shipped.copy_bytes_per_s, measured.copy_bytes_per_s, "%s", list.archs[i]->name);
    list.archs[i]->chip_num_sms += 2;
    list.archs[i]->dram_controller_cycles++;
    cr_expect(ftl_dram_rate_try_shipped(list.archs[i], &shipped));
    cr_expect_eq(shipped.read_bytes_per_s, measured.read_bytes_per_s);
    list.archs[i]->dram_tcl_cycles++;
    cr_expect_not(ftl_dram_rate_try_shipped(list.archs[i], &shipped));
  }
  ftl_arch_list_fini(&list);
}

// One CTA an SM: O in words comes apart where a loop fetches ahead, not where it waits or O is stored whole.
#define O_STORED "code=plain heads=1 seqlen_q=33792 seqlen_kv=512 head_dim=128 block_m=128 block_n=64 clock_mhz=1200 "

Test(unit_engine_sampled_network, what_is_stored_in_parts_drives_ctas_apart) {
  ftl_arch *shipped = shipped_arch("h200"), spread = *shipped, none = *shipped;
  spread.sm_store_spread_permille = 400;
  none.sm_store_spread_permille = 0;
  const struct {
    const char *parameters;
    bool spreads;
  } cases[] = {{O_STORED "mma=wgmma copy=tma num_warps=8 num_stages=2", true},
               {O_STORED "mma=wgmma copy=tma num_warps=8 num_stages=1", false},
               {O_STORED "mma=mma num_warps=8 num_stages=2", false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    double with = predict(&spread, cases[i].parameters).value[FTL_METRIC_cycles];
    double without = predict(&none, cases[i].parameters).value[FTL_METRIC_cycles];
    cr_expect_eq(with > without, cases[i].spreads, "%s: %.0f, %.0f", cases[i].parameters, with, without);
    cr_expect(cases[i].spreads || with == without, "%s: %.0f, %.0f", cases[i].parameters, with, without);
  }
  ftl_arch_destroy(shipped);
}

// Four CTAs on 132 SMs, which store one part in 33 of what all would: of 40 %, they spread by (4 / 132)^2, 0.04 %. All
// of the 40 % would make the last of them later by a quarter of some 5000 cycles or more.
Test(unit_engine_sampled_network, ctas_that_store_alone_stay_together) {
  ftl_arch *shipped = shipped_arch("h200"), spread = *shipped, none = *shipped;
  spread.sm_store_spread_permille = 400;
  none.sm_store_spread_permille = 0;
  const char *few =
      "code=plain heads=1 seqlen_q=512 seqlen_kv=512 head_dim=128 block_m=128 block_n=64 clock_mhz=1200 "
      "mma=wgmma copy=tma num_warps=8 num_stages=2";
  double with = predict(&spread, few).value[FTL_METRIC_cycles], without = predict(&none, few).value[FTL_METRIC_cycles];
  cr_expect_float_eq(with, without, 10, "%.0f, %.0f", with, without);
  ftl_arch_destroy(shipped);
}

// Two CTAs an SM of 64 query rows: what drives them apart is one key's where loops fetch ahead and the other's where
// they wait for loads of their own iteration, and neither matters to CTAs that have their SMs alone.
#define TWO_AN_SM \
  "code=plain heads=1 seqlen_q=16896 seqlen_kv=512 head_dim=64 block_m=64 block_n=64 num_warps=4 clock_mhz=1200 "
#define ONE_AN_SM \
  "code=plain heads=1 seqlen_q=8448 seqlen_kv=512 head_dim=64 block_m=64 block_n=64 num_warps=4 clock_mhz=1200 "

Test(unit_engine_sampled_network, loops_that_wait_for_their_loads_have_a_drift_of_their_own) {
  ftl_arch *shipped = shipped_arch("h200"), ahead = *shipped, waiting = *shipped;
  ahead.sm_shared_drift_permille = 200;
  waiting.sm_waiting_drift_permille = 200;
  const char *fetches_ahead = TWO_AN_SM "num_stages=2", *waits = TWO_AN_SM "num_stages=1";
  double cycles = predict(shipped, fetches_ahead).value[FTL_METRIC_cycles];
  cr_expect_eq(predict(&waiting, fetches_ahead).value[FTL_METRIC_cycles], cycles);
  cr_expect_gt(predict(&ahead, fetches_ahead).value[FTL_METRIC_cycles], cycles);
  cycles = predict(shipped, waits).value[FTL_METRIC_cycles];
  cr_expect_eq(predict(&ahead, waits).value[FTL_METRIC_cycles], cycles);
  cr_expect_gt(predict(&waiting, waits).value[FTL_METRIC_cycles], cycles);
  cycles = predict(shipped, ONE_AN_SM "num_stages=2").value[FTL_METRIC_cycles];
  cr_expect_eq(predict(&ahead, ONE_AN_SM "num_stages=2").value[FTL_METRIC_cycles], cycles);
  ftl_arch_destroy(shipped);
}

// Three CTAs an SM that fetch ahead for wgmmas come apart as a loop begins: not two, not with mma.sync, not where they
// wait for loads of their own iteration. In 1024 iterations they hardly do.
Test(unit_engine_sampled_network, three_ctas_of_wgmmas_settle_at_any_phase) {
  ftl_arch *shipped = shipped_arch("h200"), never = *shipped;
  never.sm_settling_iterations = 1024;
#define OF_64_ROWS "code=plain heads=11 seqlen=2304 head_dim=64 block_m=64 num_warps=4 clock_mhz=1200 "
  static const char *const others[] = {OF_64_ROWS "block_n=128 mma=wgmma copy=cp_async num_stages=3",
                                       OF_64_ROWS "block_n=64 mma=mma copy=cp_async num_stages=2",
                                       OF_64_ROWS "block_n=64 mma=wgmma copy=tma num_stages=1"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    cr_expect_eq(predict(&never, others[i]).value[FTL_METRIC_cycles],
                 predict(shipped, others[i]).value[FTL_METRIC_cycles], "%s", others[i]);
  const char *three = OF_64_ROWS "block_n=128 mma=wgmma copy=tma num_stages=2";
  double apart = predict(shipped, three).value[FTL_METRIC_l2_sectors],
         together = predict(&never, three).value[FTL_METRIC_l2_sectors];
  cr_expect_gt(apart, 1.05 * together, "%.0f, %.0f", apart, together);
  ftl_arch_destroy(shipped);
}

// Eight products of 2048 x 1536 whose fragments are stored directly, halves of sectors with a mask each: four sectors
// of intake for one of C where none merge, two where all halves come without masks. With 8 bytes a slice, 1070.3 an SM
// cycle of 1200 MHz, that decides: C is 50331648 bytes, once 47024 cycles. The SM port alone would leave 67400 in all.
Test(unit_engine_sampled_network, sms_store_no_faster_than_l2_takes_in) {
  ftl_arch *arch = shipped_arch("h200");
  arch->l2_slice_intake_bytes_per_cycle = 8;
  double cycles = predict(arch,
                          "matmul_tiled batch=8 m=2048 n=1536 k=128 block_m=128 block_n=256 block_k=64 "
                          "num_warps=8 num_stages=2 mma=wgmma copy=tma persistent=1 store=direct code=plain "
                          "clock_mhz=1200")
                      .value[FTL_METRIC_cycles];
  double once = 50331648 / (94 * 8 * 1708.0 / 1200);
  cr_expect_geq(cycles, 2 * once, "%.0f", cycles);
  cr_expect_leq(cycles, 4 * once + 67400, "%.0f", cycles);
  ftl_arch_destroy(arch);
}
