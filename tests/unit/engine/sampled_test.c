// `sampled` against `full`: the bounds that an answer states.
#include <math.h>
#include <string.h>

#include "fixture.h"

typedef struct pair_case {
  const char *arch, *parameters;
} pair_case;

#define D128 "heads=16 seqlen=512 head_dim=128 "
#define D64C "heads=8 seqlen=1024 head_dim=64 causal=1 "
#define GQA "heads=16 kv_heads=4 seqlen_q=700 seqlen_kv=900 head_dim=128 causal=1 "
#define PAGED "paged_decode heads=16 kv_heads=4 seqlen_q=1 lengths=4096:300:1500x3 head_dim=128 "
#define DECODE "flash_decode batch=2 heads=16 kv_heads=4 seqlen_q=1 seqlen_kv=4096 head_dim=128 "

static const pair_case cases[] = {
    {"v100", D128 "block_m=64 block_n=64 num_warps=4 num_stages=1"},
    {"v100", D64C "block_m=128 block_n=32 num_warps=8"},
    {"t4", D128 "block_m=64 block_n=32 num_warps=4 num_stages=1"},
    {"t4", D64C "block_m=64 block_n=64 num_warps=4 num_stages=1 code=plain"},
    {"t4", D64C "block_m=64 block_n=64 num_warps=4 num_stages=1"},
    {"t4", D128 "block_m=64 block_n=32 num_warps=4 num_stages=1 code=plain"},
    {"a100_80", D128 "block_m=128 block_n=64 num_warps=8"},
    {"a100_80", D64C "block_m=128 block_n=64 num_warps=4 schedule=interleaved"},
    {"a100_80", GQA "block_m=64 block_n=64 num_warps=4"},
    {"rtx3090", D128 "block_m=128 block_n=32 num_warps=4"},
    {"rtx4090", D128 "block_m=64 block_n=32 num_warps=4 num_stages=1"},
    {"rtx4090", D64C "block_m=128 block_n=64 num_warps=8"},
    {"rtx4090", GQA "block_m=128 block_n=64 num_warps=4 num_stages=1"},
    {"l40s", D64C "block_m=64 block_n=64 num_warps=4"},
    {"h100_sxm", D128 "block_m=128 block_n=64 num_warps=8"},
    {"h200", D128 "block_m=128 block_n=128 num_warps=8"},
    {"h200", D64C "block_m=64 block_n=64 num_warps=4"},
    {"h200", GQA "block_m=128 block_n=64 num_warps=4"},
    {"h200", D128 "block_m=128 block_n=64 num_warps=4 mma=mma"},
    {"h200", D64C "block_m=128 block_n=64 num_warps=8 copy=cp_async"},
    {"h200", GQA "block_m=64 block_n=128 num_warps=4 persistent=1"},
    {"h200", D64C "block_m=64 block_n=32 num_warps=4 mma=mma layout=bshd"},
    {"h200", "flash3_fwd " D128 "block_n=128"},
    {"h200", "flash3_fwd heads=50 seqlen=512 head_dim=64 block_n=128 persistent=1"},
    {"a100_80", D64C "block_m=64 block_n=64 num_warps=4 window=300 dropout_p=0.1"},
    {"h200", "flash3_fwd heads=16 seqlen=1024 head_dim=64 window=300 causal=1 block_n=64"},
    {"h200", "flash3_fwd heads=16 seqlen=1024 head_dim=64 mask=strided mask_width=3 block_n=64"},
    {"a100_80", D64C "block_m=64 block_n=64 num_warps=4 mask=butterfly"},
    {"a100_80", "flash2_bwd dq=atomics heads=16 seqlen=512 head_dim=128"},
    {"h200", "flash2_bwd dq=atomics mma=mma heads=16 seqlen=512 head_dim=64 causal=1"},
    {"h200", "flash2_bwd heads=16 seqlen=1024 head_dim=64 causal=1 dropout_p=0.1"},
    {"a100_80", "flash2_bwd heads=16 seqlen=1024 head_dim=64 mask=strided mask_width=3"},
    {"a100_80", "flash2_bwd dq=atomics heads=16 seqlen=1024 head_dim=64 causal=1 mask=local_global mask_width=2"},
    {"h200", "flash2_bwd dq=atomics mma=mma heads=16 kv_heads=4 lengths=1000:300:37:512x3 head_dim=128 causal=1"},
    {"a100_80", "flash1_fwd heads=8 seqlen=1200 head_dim=64 block_n=128 causal=1"},
    {"h200", "flash1_fwd heads=8 seqlen=1200 head_dim=128 block_n=128"},
    {"a100_80", "flash1_bwd heads=8 seqlen=1200 head_dim=64 block_n=128"},
    {"rtx4090", "flash1_bwd heads=8 seqlen=640 head_dim=64 block_n=64 num_warps=4 causal=1"},
    {"v100", DECODE "splits=4"},
    {"a100_80", DECODE "splits=16 num_stages=3"},
    {"rtx4090", DECODE "splits=8"},
    {"h200", DECODE "splits=1 num_stages=3"},
    {"h200", DECODE "splits=24 block_n=128"},
    {"a100_80", "heads=16 lengths=1000:300:37:512x3 head_dim=128 causal=1 block_m=128 block_n=64 num_warps=8"},
    {"h200",
     "heads=16 kv_heads=4 lengths=900:300x4:64 head_dim=128 block_m=64 block_n=64 num_warps=4 layout=bshd "
     "code=plain"},
    {"h200", D128 "block_m=64 block_n=64 num_warps=4 num_stages=3 copy=tma code=lean causal=1"},
    {"a100_80", PAGED "splits=8 page_layout=scattered"},
    {"h200", PAGED "splits=4 page_size=1 page_layout=scattered num_stages=3"},
    {"rtx4090", PAGED "splits=8 page_size=64 page_layout=shared_prefix prefix=290"},
};
enum { NUM_CASES = sizeof cases / sizeof *cases };

// Those of the cases whose HBM bytes lie outside the stated bound, and how far off they may be: the T4 writes 2.87 MB
// where it writes 2.77 in `full`; under the mask `full` reads 7.0 MB of tensors that have 6.3. Why is not known yet.
typedef struct known_miss {
  const char *arch, *parameters;
  double hbm_pct;
} known_miss;

static const known_miss known_misses[] = {
    {"t4", D128 "block_m=64 block_n=32 num_warps=4 num_stages=1 code=plain", 1.1},
    {"h200", "flash3_fwd heads=16 seqlen=1024 head_dim=64 mask=strided mask_width=3 block_n=64", 10.3},
};

// A stated bound of cycles that is always wide enough says nothing; this case's is wider, for cycles that are 0.8 %
// off.
enum { MOST_BOUND_PCT = 25, MOST_WIDE_BOUND_PCT = 30 };
static const pair_case wide_bound = {"t4", D64C "block_m=64 block_n=64 num_warps=4 num_stages=1"};

static bool is_same_case(const pair_case *a, const pair_case *b) {
  return strcmp(a->arch, b->arch) == 0 && strcmp(a->parameters, b->parameters) == 0;
}

// 0: the case must hold.
static double known_hbm_pct(const pair_case *c) {
  for (size_t i = 0; i < sizeof known_misses / sizeof *known_misses; i++)
    if (strcmp(c->arch, known_misses[i].arch) == 0 && strcmp(c->parameters, known_misses[i].parameters) == 0)
      return known_misses[i].hbm_pct;
  return 0;
}

static ftl_prediction predict_with(const pair_case *c, const char *detail, int64_t store_merge_lines) {
  char parameters[512];
  snprintf(parameters, sizeof parameters, "%s clock_mhz=1200 detail=%s", c->parameters, detail);
  ftl_arch *arch = shipped_arch(c->arch);
  if (store_merge_lines < arch->l1_store_merge_lines) arch->l1_store_merge_lines = store_merge_lines;
  ftl_prediction prediction = prediction_of(arch, parameters, NULL);
  ftl_arch_destroy(arch);
  return prediction;
}

static ftl_prediction predict(const pair_case *c, const char *detail) { return predict_with(c, detail, INT64_MAX); }

static double difference_pct(const ftl_prediction *a, const ftl_prediction *b, ftl_metric metric) {
  double x = a->metrics.value[metric], y = b->metrics.value[metric];
  return y > 0 ? 100.0 * fabs(x - y) / y : 0;
}

static double hbm_difference_pct(const ftl_prediction *a, const ftl_prediction *b) {
  double x = a->metrics.value[FTL_METRIC_dram_read] + a->metrics.value[FTL_METRIC_dram_write];
  double y = b->metrics.value[FTL_METRIC_dram_read] + b->metrics.value[FTL_METRIC_dram_write];
  return y > 0 ? 100.0 * fabs(x - y) / y : 0;
}

Test(unit_engine_sampled, cycles_and_hbm_bytes_lie_within_the_stated_bounds_of_full) {
  for (int i = 0; i < NUM_CASES; i++) {
    ftl_prediction sampled = predict(&cases[i], "sampled"), full = predict(&cases[i], "full");
    double cycles = difference_pct(&sampled, &full, FTL_METRIC_cycles);
    double bytes = hbm_difference_pct(&sampled, &full);
    bool holds = bytes <= sampled.error_bound_hbm_bytes_pct;
    double known_pct = known_hbm_pct(&cases[i]);
    cr_expect_leq(cycles, sampled.error_bound_cycles_pct, "%s %s", cases[i].arch, cases[i].parameters);
    cr_expect(known_pct > 0 ? !holds && bytes <= known_pct : holds, "%s %s: HBM bytes %.2f %% off, the bound is %.1f",
              cases[i].arch, cases[i].parameters, bytes, sampled.error_bound_hbm_bytes_pct);
    int most_pct = is_same_case(&cases[i], &wide_bound) ? MOST_WIDE_BOUND_PCT : MOST_BOUND_PCT;
    cr_expect_leq(sampled.error_bound_cycles_pct, most_pct, "%s %s", cases[i].arch, cases[i].parameters);
    cr_expect_leq(sampled.error_bound_hbm_bytes_pct, 15, "%s %s", cases[i].arch, cases[i].parameters);
    fprintf(stderr, "%s %s %s: cycles %.1f %% of %.1f, HBM bytes %.2f %% of %.1f\n", holds ? "within" : "OUTSIDE",
            cases[i].arch, cases[i].parameters, cycles, sampled.error_bound_cycles_pct, bytes,
            sampled.error_bound_hbm_bytes_pct);
  }
}

// The last of several parts of the keys may have one whole tile and one that ends inside it, where the others have four
// whole ones: alone among them it runs both loops, and one iteration of the first, with its loads not hidden, was taken
// for what each of the others' four takes (20 to 43 % more cycles than `full`).
Test(unit_engine_sampled, parts_that_run_a_loop_once_do_not_say_what_an_iteration_takes) {
  const pair_case last_part_is_short[] = {
      {"h200", "paged_decode batch=2 heads=32 kv_heads=8 seqlen_kv=608 head_dim=128 splits=3"},
      {"h200", "paged_decode batch=2 heads=32 kv_heads=8 seqlen_kv=3424 head_dim=128"},
      {"v100", "paged_decode batch=2 heads=32 kv_heads=8 seqlen_kv=2656 head_dim=128"},
      {"t4", "flash_decode heads=8 seqlen_kv=3000 head_dim=128 causal=1"},
  };
  for (size_t i = 0; i < sizeof last_part_is_short / sizeof *last_part_is_short; i++) {
    const pair_case *c = &last_part_is_short[i];
    ftl_prediction sampled = predict(c, "sampled"), full = predict(c, "full");
    double cycles = difference_pct(&sampled, &full, FTL_METRIC_cycles);
    cr_expect_leq(cycles, 15, "%s %s: cycles %.1f %%", c->arch, c->parameters, cycles);
  }
}

// Of three CTAs that fit an SM the grid has two for each, with nothing behind them: what three in each other's way
// take, interpolated to two, was 35 % more cycles than `full`.
Test(unit_engine_sampled, slots_that_the_grid_leaves_empty_are_not_measured_full) {
  const pair_case two_of_three = {"h200",
                                  "matmul_tiled m=2048 n=1024 k=4096 block_m=64 block_n=128 block_k=64 num_warps=8 "
                                  "warps_n=2 num_stages=3 mma=wgmma copy=cp_async code=lean"};
  ftl_prediction sampled = predict(&two_of_three, "sampled"), full = predict(&two_of_three, "full");
  cr_assert_eq(sampled.metrics.value[FTL_METRIC_ctas_per_sm], 3);
  double cycles = difference_pct(&sampled, &full, FTL_METRIC_cycles);
  cr_expect_leq(cycles, 8, "cycles %.1f %%", cycles);
}

// CTAs that start together ask for the same tiles. Who comes while one is on its way from DRAM waits as long as the one
// who asked first: a latency, and a queue for L2. All of it was a latency, at which an SM's lines in flight let a third
// of the requests pass (the scores took three times as long as in `full`).
Test(unit_engine_sampled, who_finds_a_tile_on_its_way_queues_as_the_first) {
  const pair_case scores = {"a100_80", "standard_attention heads=4 seqlen=1024 head_dim=64"};
  ftl_prediction sampled = predict(&scores, "sampled"), full = predict(&scores, "full");
  cr_assert_str_eq(sampled.kernels[0].name, "scores");
  double of_sampled = sampled.kernels[0].metrics.value[FTL_METRIC_cycles];
  double of_full = full.kernels[0].metrics.value[FTL_METRIC_cycles];
  cr_expect_leq(fabs(of_sampled / of_full - 1), 0.12, "%f for %f", of_sampled, of_full);
}

// A stream of 33.5 MB: 4096 rows of 8 KB, of which the SMs hold some ten megabytes that are read and not written yet.
// L2's latest lines at the end are what came of these, so that the launch writes 9.2 MB in `full` on an H200 at 1980
// MHz; stored when they were read they wrote 15.3, and took 8 % longer.
Test(unit_engine_sampled, what_ctas_hold_at_the_end_stays_in_l2) {
  const pair_case rows[] = {
      {"h200", "softmax_safe heads=1 seqlen_q=4096 seqlen_kv=4096 block_n=4096 schedule=registers"},
      {"h100_sxm", "softmax_safe heads=1 seqlen_q=4096 seqlen_kv=4096 block_n=4096 schedule=registers"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    ftl_prediction sampled = predict(&rows[i], "sampled"), full = predict(&rows[i], "full");
    double written = difference_pct(&sampled, &full, FTL_METRIC_dram_write);
    double cycles = difference_pct(&sampled, &full, FTL_METRIC_cycles);
    cr_expect_leq(written, 7, "%s: HBM writes %.1f %%", rows[i].arch, written);
    cr_expect_leq(cycles, 5, "%s: cycles %.1f %%", rows[i].arch, cycles);
  }
}

// Whole tiles and masked ones have loops of their own, and where nothing but the last keys is masked no CTA runs both:
// the loop that nearly all run had no time once the last CTA stood for all (36 to 60 % fewer cycles than `full`, tensor
// pipes in use to 712 %).
Test(unit_engine_sampled, loops_of_which_no_cta_runs_all_have_their_times) {
  const pair_case last_keys_end_inside_a_tile[] = {
      {"h200", "flash2_bwd heads=16 head_dim=64 seqlen=1000"},
      {"t4", "flash2_bwd heads=8 head_dim=64 seqlen=1000"},
      {"h200", "flash_decode heads=32 batch=6 head_dim=32 seqlen_kv=1000 kv_dtype=int4 splits=16 block_m=64"},
  };
  for (size_t i = 0; i < sizeof last_keys_end_inside_a_tile / sizeof *last_keys_end_inside_a_tile; i++) {
    const pair_case *c = &last_keys_end_inside_a_tile[i];
    ftl_prediction sampled = predict(c, "sampled"), full = predict(c, "full");
    double cycles = difference_pct(&sampled, &full, FTL_METRIC_cycles);
    cr_expect_leq(cycles, 12, "%s %s: cycles %.1f %%", c->arch, c->parameters, cycles);
    for (int k = 0; k < sampled.num_kernels; k++)
      cr_expect_leq(sampled.kernels[k].metrics.value[FTL_METRIC_tensor_pct], 100, "%s %s: launch %d", c->arch,
                    c->parameters, k);
  }
}

Test(unit_engine_sampled, what_is_counted_from_the_program_equals_full) {
  for (int i = 0; i < NUM_CASES; i += 3) {
    ftl_prediction sampled = predict(&cases[i], "sampled"), full = predict(&cases[i], "full");
    ftl_metric exact[] = {FTL_METRIC_insts, FTL_METRIC_tensor_insts, FTL_METRIC_bank_conflicts};
    for (size_t k = 0; k < sizeof exact / sizeof *exact; k++)
      cr_assert_eq(sampled.metrics.value[exact[k]], full.metrics.value[exact[k]], "%s %s: %s", cases[i].arch,
                   cases[i].parameters, ftl_metric_get(exact[k])->name);
  }
}

// L2's sectors of the launch that stores in both levels: to the count where L1 merges nothing. What it merges hangs on
// how far apart warps store, which `sampled` has from the SM that ran in detail, one CTA or a few for all.
static void compare_l2_sectors(const pair_case *c, double most_by_merging_pct) {
  ftl_prediction sampled = predict_with(c, "sampled", 0), full = predict_with(c, "full", 0);
  cr_assert_eq(sampled.kernels[0].metrics.value[FTL_METRIC_l2_sectors],
               full.kernels[0].metrics.value[FTL_METRIC_l2_sectors]);
  sampled = predict(c, "sampled");
  full = predict(c, "full");
  double of_sampled = sampled.kernels[0].metrics.value[FTL_METRIC_l2_sectors],
         of_full = full.kernels[0].metrics.value[FTL_METRIC_l2_sectors];
  cr_assert_leq(100 * fabs(of_sampled - of_full) / of_full, most_by_merging_pct, "%f against %f", of_sampled, of_full);
}

// Unfused attention stores S as fragments, half a sector of 8 rows an instruction. Of eight heads, with which SMs hold
// all CTAs that fit, S has 524288 sectors beside as many of Q and K: twice as many where all are sent twice.
Test(unit_engine_sampled, sectors_stored_in_parts_are_sent_as_often_as_in_full) {
  compare_l2_sectors(
      &(pair_case){"a100_80", "standard_attention heads=8 seqlen=1024 head_dim=64 block_m=128 block_n=128 num_warps=8"},
      0.5);
}

// Rows of 1000 numbers begin at every sixteenth byte, so that half of the rows of a tile of 64 columns (128 bytes)
// touch five sectors instead of four. The tile knows it, and so does the SM that ran in detail, but it is counted once:
// multiplied, the sum would be 9.7 % above that of `full`; from the tile alone, which knows no sectors that are sent
// twice, 12 % below. That SM ran one CTA, whose rows may be worse than others', and whose warps store alone.
Test(unit_engine_sampled, sectors_that_rows_touch_in_part_are_counted_once) {
  compare_l2_sectors(&(pair_case){"a100_80", "matmul_tiled m=1024 n=1000 k=64"}, 7.0);
}

// The scores alone: Q and K are 262144 sectors (4 heads, 64 tiles of 8192 bytes each twice), S as many again where it
// is sent once, as lean code sends it whatever merges.
Test(unit_engine_sampled, lean_code_stores_whole_sectors) {
  pair_case c = {"a100_80",
                 "standard_attention heads=4 seqlen=1024 head_dim=64 block_m=128 block_n=128 num_warps=8 code=lean"};
  ftl_prediction sampled = predict(&c, "sampled"), full = predict(&c, "full");
  cr_assert_eq(sampled.kernels[0].metrics.value[FTL_METRIC_l2_sectors], 2 * 262144);
  cr_assert_eq(full.kernels[0].metrics.value[FTL_METRIC_l2_sectors], 2 * 262144);
}

Test(unit_engine_sampled, skipped_heads_change_time_and_bytes_by_less_than_their_bound) {
  // 64 heads of 16 tiles on 108 SMs: most heads are skipped; per head it must cost what 16 heads cost per head.
  pair_case few = {"a100_80", "heads=128 seqlen=1024 head_dim=64 block_m=64 block_n=64 num_warps=4"};
  pair_case many = {"a100_80", "heads=1024 seqlen=1024 head_dim=64 block_m=64 block_n=64 num_warps=4"};
  ftl_prediction a = predict(&few, "sampled"), b = predict(&many, "sampled");
  double cycles = b.metrics.value[FTL_METRIC_cycles] / a.metrics.value[FTL_METRIC_cycles];
  double bytes = b.metrics.value[FTL_METRIC_dram_read] / a.metrics.value[FTL_METRIC_dram_read];
  cr_assert_float_eq(bytes, 8.0, 0.05, "%f", bytes);
  // Eight times the work in less than eight times the time: of the smaller launch's five waves (2048 CTAs, 432 at a
  // time) the last is 0.74 full, which costs 5 %, and it ends raggedly, by some percent more; the larger shares that
  // by 38.
  cr_assert(cycles > 7.3 && cycles < 8.1, "%f", cycles);
}
