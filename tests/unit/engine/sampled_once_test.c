// Loops that run once, in `sampled` and in `full`: they cannot be told from the code before them, which asks for their
// first tiles.
#include "fixture.h"

static double cycles_apart_pct(const char *arch_name, const char *parameters) {
  char sampled[512], full[512];
  snprintf(sampled, sizeof sampled, "%s detail=sampled", parameters);
  snprintf(full, sizeof full, "%s detail=full", parameters);
  ftl_arch *arch = shipped_arch(arch_name);
  double ratio = prediction_of(arch, sampled, NULL).metrics.value[FTL_METRIC_cycles] /
                 prediction_of(arch, full, NULL).metrics.value[FTL_METRIC_cycles];
  ftl_arch_destroy(arch);
  return 100 * (ratio - 1);
}

// Each CTA has one tile of keys, from DRAM by way of a table. (As long as tiles from L2: 9 % quicker, 8 with 17 keys.)
Test(unit_engine_sampled_once, they_wait_for_what_the_code_before_them_asks_for) {
  double split_pct = cycles_apart_pct("a100_80",
                                      "paged_decode batch=2 heads=2 head_dim=96 kv_heads=2 seqlen_q=1 seqlen_kv=512 "
                                      "code=plain clock_mhz=1200");
  double short_pct = cycles_apart_pct("h100_sxm",
                                      "paged_decode batch=1 heads=1 head_dim=192 kv_heads=1 seqlen_q=1 seqlen_kv=1 "
                                      "block_m=32 clock_mhz=1500");
  cr_expect_float_eq(split_pct, 0, 3, "%.1f %%", split_pct);
  cr_expect_float_eq(short_pct, 0, 3, "%.1f %%", short_pct);
}

// FlashAttention-1 with one query: a block of keys comes from DRAM, the query behind it from L2, again and again. (Both
// as from DRAM: 8 % slower.)
Test(unit_engine_sampled_once, loads_one_behind_the_other_have_half_of_the_wait_each) {
  double apart_pct = cycles_apart_pct("a100_80",
                                      "flash1_fwd batch=5 heads=16 head_dim=32 kv_heads=4 seqlen_q=1 seqlen_kv=2048 "
                                      "causal=true code=lean clock_mhz=1200");
  cr_expect_float_eq(apart_pct, 0, 6, "%.1f %%", apart_pct);
}

// CTAs of products of one K step begin together and come to their stores together, and halves of sectors that one
// stores are sent before the other halves come. (A quarter of an iteration apart they merge: a third fewer sectors.)
Test(unit_engine_sampled_once, stores_of_ctas_that_begin_together_merge_less) {
  double sectors[2];
  ftl_arch *arch = shipped_arch("h200");
  for (int i = 0; i < 2; i++) {
    char text[256];
    snprintf(text, sizeof text,
             "matmul_tiled m=3000 n=2048 k=32 block_m=128 block_n=64 num_warps=2 store=direct clock_mhz=1500 detail=%s",
             i == 0 ? "full" : "sampled");
    sectors[i] = prediction_of(arch, text, NULL).metrics.value[FTL_METRIC_l2_sectors];
  }
  cr_expect_float_eq(sectors[1] / sectors[0], 1, 0.06, "%.0f of %.0f", sectors[1], sectors[0]);
  ftl_arch_destroy(arch);
}

// Cycles in which SMs hold CTAs that have no keys: of one block of keys (or two, which 8 splits take) in so many splits
// more, each on an SM of its own.
static double empty_split_cycles(const char *arch_name, int32_t seqlen_kv, int32_t num_splits, int32_t num_empty,
                                 const char *detail) {
  ftl_arch *arch = shipped_arch(arch_name);
  double cycles[2];
  for (int i = 0; i < 2; i++) {
    char text[256];
    snprintf(text, sizeof text, "flash_decode heads=1 seqlen_kv=%d head_dim=128 splits=%d clock_mhz=1200 detail=%s",
             seqlen_kv, num_splits + i * num_empty, detail);
    cycles[i] = prediction_of(arch, text, NULL).kernels[0].metrics.value[FTL_METRIC_cycles_active];
  }
  double num_sms = (double)arch->chip_num_sms;
  ftl_arch_destroy(arch);
  return (cycles[1] - cycles[0]) * num_sms / num_empty;
}

// With the times of CTAs that have keys they took 2050 cycles of 2868 on an H200 where these have one block each, 3355
// of 2840 where these have two.
Test(unit_engine_sampled_once, ctas_that_run_no_loop_take_what_such_ones_take) {
  static const struct {
    const char *arch;
    int32_t seqlen_kv, num_splits, num_empty;
  } cases[] = {{"h200", 64, 1, 8}, {"h200", 1024, 8, 7}, {"a100_40", 64, 1, 8}, {"t4", 64, 1, 8}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    double is =
        empty_split_cycles(cases[i].arch, cases[i].seqlen_kv, cases[i].num_splits, cases[i].num_empty, "sampled");
    double exact =
        empty_split_cycles(cases[i].arch, cases[i].seqlen_kv, cases[i].num_splits, cases[i].num_empty, "full");
    cr_expect_float_eq(is / exact, 1, 0.06, "%s, %d keys: %.0f cycles, in full %.0f", cases[i].arch,
                       (int)cases[i].seqlen_kv, is, exact);
  }
}

// 16384 CTAs of which a quarter have keys, up to eight an SM. (Alone or by their issue slots: a quarter quicker.)
Test(unit_engine_sampled_once, ctas_that_run_no_loop_hold_each_other_up) {
  double apart_pct = cycles_apart_pct("a100_40",
                                      "flash_decode batch=16 heads=32 seqlen_kv=512 head_dim=128 splits=32 code=plain "
                                      "clock_mhz=1200");
  cr_expect_float_eq(apart_pct, 0, 5, "%.1f %%", apart_pct);
  // Stepped code, whose copies wait for the addresses before, is 5.5 % quick.
  apart_pct = cycles_apart_pct("a100_40",
                               "flash_decode batch=16 heads=32 seqlen_kv=512 head_dim=128 splits=32 code=stepped "
                               "clock_mhz=1200");
  cr_expect_float_eq(apart_pct, 0, 6, "%.1f %%", apart_pct);
}
