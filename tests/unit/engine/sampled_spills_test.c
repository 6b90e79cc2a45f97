// Spilled registers in `sampled` and in `full`.
#include <math.h>

#include "fixture.h"

typedef struct spilling_case {
  const char *arch, *parameters;
} spilling_case;

static ftl_prediction predict(const spilling_case *c, const char *detail) {
  char parameters[512];
  snprintf(parameters, sizeof parameters, "%s clock_mhz=1200 detail=%s", c->parameters, detail);
  ftl_arch *arch = shipped_arch(c->arch);
  ftl_prediction prediction = prediction_of(arch, parameters, NULL);
  ftl_arch_destroy(arch);
  return prediction;
}

static double difference_pct(const ftl_prediction *a, const ftl_prediction *b, ftl_metric metric) {
  double x = a->metrics.value[metric], y = b->metrics.value[metric];
  return 100.0 * fabs(x - y) / y;
}

// One CTA an SM, of two that fit. On the H200 shared memory for both (97 KiB and 1 of the system each) leaves 60 KiB of
// L1, and the 179 words that each thread of four warps spills are 89.5 KiB; shared memory for one would leave 158, and
// the launch take half as long. What L1 does not keep comes from an idle L2, however late the first tiles are.
Test(unit_engine_sampled_spills, they_find_the_l1_that_shared_memory_of_all_slots_leaves) {
  static const spilling_case spilling[] = {
      {"h200",
       "heads=8 seqlen=512 head_dim=128 mma=mma block_m=128 block_n=64 num_warps=4 max_registers=64 refill=early"},
      {"a100_80", "heads=8 seqlen=512 head_dim=128 block_m=128 block_n=64 num_warps=4 max_registers=96"},
      {"l40s", "batch=2 heads=12 head_dim=192 seqlen=17 num_stages=1 causal=1 max_registers=128"},
  };
  for (int i = 0; i < 3; i++) {
    ftl_prediction sampled = predict(&spilling[i], "sampled"), full = predict(&spilling[i], "full");
    cr_assert_gt(full.metrics.value[FTL_METRIC_local_sectors], 100000);
    cr_expect_leq(difference_pct(&sampled, &full, FTL_METRIC_local_sectors), 1.0, "%s: %.0f sectors, in full %.0f",
                  spilling[i].arch, sampled.metrics.value[FTL_METRIC_local_sectors],
                  full.metrics.value[FTL_METRIC_local_sectors]);
    double apart_pct = difference_pct(&sampled, &full, FTL_METRIC_cycles);
    cr_expect_leq(apart_pct, 10.0, "%s: %.1f %% apart", spilling[i].arch, apart_pct);
    cr_expect_leq(apart_pct, sampled.error_bound_cycles_pct, "%s: the bound is %.1f", spilling[i].arch,
                  sampled.error_bound_cycles_pct);
  }
}

// Two CTAs an SM, on all SMs: under load lines of local memory come later than from an idle L2. The bound says so.
Test(unit_engine_sampled_spills, their_bound_has_what_they_wait_for_under_load) {
  spilling_case c = {"h200",
                     "heads=66 seqlen_q=512 seqlen_kv=64 head_dim=128 mma=mma block_m=128 block_n=64 num_warps=4 "
                     "max_registers=64"};
  ftl_prediction sampled = predict(&c, "sampled"), full = predict(&c, "full");
  double apart_pct = difference_pct(&sampled, &full, FTL_METRIC_cycles);
  cr_expect_geq(apart_pct, 10.0, "%.1f %% apart: nothing left for the bound to say", apart_pct);
  cr_expect_leq(apart_pct, sampled.error_bound_cycles_pct, "%.1f %% apart, the bound is %.1f", apart_pct,
                sampled.error_bound_cycles_pct);
}

// Loads of spilled registers hit in L1, up to 95 % of all loads here; tiles, which go through L1 too where there is no
// cp.async, are asked of L2 as often as without spills.
Test(unit_engine_sampled_spills, their_hits_in_l1_are_not_those_of_tiles) {
  static const spilling_case spilling[] = {
      {"v100", "heads=8 seqlen=512 head_dim=64 max_registers=64"},
      {"v100", "heads=8 seqlen=512 head_dim=64 max_registers=96"},
      {"t4", "heads=8 seqlen=512 head_dim=64 max_registers=96"},
  };
  for (int i = 0; i < 3; i++) {
    ftl_prediction sampled = predict(&spilling[i], "sampled"), full = predict(&spilling[i], "full");
    const double *value = sampled.metrics.value, *of_full = full.metrics.value;
    double tiles = value[FTL_METRIC_l2_sectors] - value[FTL_METRIC_local_sectors];
    double in_full = of_full[FTL_METRIC_l2_sectors] - of_full[FTL_METRIC_local_sectors];
    cr_expect_gt(value[FTL_METRIC_local_sectors], 100000, "%s", spilling[i].arch);
    cr_expect_leq(fabs(tiles - in_full) / in_full, 0.02, "%s: %.0f sectors of tiles, in full %.0f", spilling[i].arch,
                  tiles, in_full);
    cr_expect_geq(32 * tiles, value[FTL_METRIC_compulsory_read] + value[FTL_METRIC_compulsory_write], "%s",
                  spilling[i].arch);
  }
}

// Of spills `full` may have in DRAM what is not predicted there: at most all of its bytes. Where half of L2 holds the
// slots of all threads it has none.
Test(unit_engine_sampled_spills, their_bound_of_hbm_bytes_is_a_share_of_full) {
  spilling_case held = {"h200", "glu m=1024 n=136 k=32 block_m=128 block_n=128 num_stages=1 code=plain"};
  spilling_case gone = {"rtx3090",
                        "batch=2 heads=32 head_dim=96 kv_heads=1 seqlen_q=1 seqlen_kv=777 block_m=256 code=plain"};
  ftl_prediction held_here = predict(&held, "sampled");
  cr_assert_gt(held_here.metrics.value[FTL_METRIC_local_sectors], 100000);
  cr_expect_leq(held_here.error_bound_hbm_bytes_pct, 2, "%.1f", held_here.error_bound_hbm_bytes_pct);
  ftl_prediction sampled = predict(&gone, "sampled"), full = predict(&gone, "full");
  double apart_pct = difference_pct(&sampled, &full, FTL_METRIC_dram_read);
  cr_expect_geq(apart_pct, 20, "%.1f %% apart: nothing left for the bound to say", apart_pct);
  cr_expect_leq(apart_pct, sampled.error_bound_hbm_bytes_pct, "%.1f %% apart, the bound is %.1f", apart_pct,
                sampled.error_bound_hbm_bytes_pct);
  cr_expect_leq(sampled.error_bound_hbm_bytes_pct, 101, "%.1f", sampled.error_bound_hbm_bytes_pct);
}
