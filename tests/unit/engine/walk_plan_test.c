// What a walk leaves out, against the walk that leaves nothing out.
#include "engine/sampled/walk_plan.h"

#include <math.h>

#include "engine/sampled/gpu_steps.h"
#include "engine/sampled/sampled.h"
#include "fixture.h"

enum { SM_KHZ = 1200000 };

static ftl_launch launch_of(const lowered *l) {
  return (ftl_launch){
      .arch = l->arch, .tile = l->tile, .warps = l->warps, .occupancy = ftl_occupancy_of(l->warps, l->arch)};
}

typedef struct walked {
  double cycles, dram_sectors, written_sectors;
  int64_t skipped_ctas, loaded_sectors, stored_sectors;
  int64_t new_sectors;  // of tiles that were not loaded before
} walked;

static walked walk(const lowered *l, ftl_walk_plan plan) {
  ftl_launch launch = launch_of(l);
  ftl_segments segments;
  ftl_step_times times;
  ftl_l2_tags *tags;
  ftl_traffic traffic;
  ftl_gpu_steps steps;
  int64_t hit, far, miss;
  cr_assert(ftl_segments_try_init(&segments, l->warps));
  ftl_traffic_latencies(l->arch, SM_KHZ, &hit, &far, &miss);
  int64_t loaded = hit + far + miss;
  int64_t latencies[FTL_NUM_STEP_LATENCIES] = {hit, loaded, 5 * loaded / 4, 2 * loaded, 6 * loaded};
  cr_assert_eq(ftl_step_times_init(&times, &launch, &segments, SM_KHZ, latencies, NULL), FTL_OK);
  cr_assert_eq(ftl_traffic_create_tags(&tags, l->arch, 64, NULL), FTL_OK);
  cr_assert_eq(ftl_traffic_init(&traffic, &launch, SM_KHZ, tags, NULL), FTL_OK);
  cr_assert_eq(ftl_gpu_steps_run(&launch, &segments, &times, plan, &traffic, &steps, NULL), FTL_OK);
  walked result = {.cycles = (double)steps.end_cycle,
                   .dram_sectors = (double)ftl_traffic_scale(&traffic, steps.counts.dram_read_sectors),
                   .written_sectors = (double)ftl_traffic_scale(&traffic, steps.counts.dram_write_sectors),
                   .skipped_ctas = steps.skipped_ctas,
                   .loaded_sectors = steps.counts.asked_sectors + steps.counts.l1_hit_sectors,
                   .stored_sectors = steps.counts.store_sectors,
                   .new_sectors = steps.counts.new_sectors};
  ftl_traffic_fini(&traffic);
  ftl_l2_tags_destroy(tags);
  ftl_step_times_fini(&times);
  return result;
}

static double difference_pct(double a, double b) { return 100.0 * fabs(a - b) / b; }

static void assert_near(const char *name, walked part, walked whole, double cycles_pct, double sectors_pct) {
  double cycles = difference_pct(part.cycles, whole.cycles),
         sectors = difference_pct(part.dram_sectors, whole.dram_sectors);
  fprintf(stderr, "%s: cycles %.2f %%, DRAM reads %.2f %%\n", name, cycles, sectors);
  cr_expect(cycles <= cycles_pct, "%s: cycles differ by %.2f %%", name, cycles);
  cr_expect(sectors <= sectors_pct, "%s: DRAM reads differ by %.2f %%", name, sectors);
}

#define LONG "heads=2 seqlen=8192 head_dim=128 num_warps=4 "

// Loops that wait for tiles which were asked for late (two stages, refill=late) keep cycles less well.
Test(unit_engine_walk_plan, groups_of_iterations_keep_cycles_and_traffic) {
  static const struct {
    const char *arch, *parameters;
    double cycles_pct;
  } cases[] = {
      {"h200", LONG "block_m=128 block_n=64 code=plain", 2},
      {"h200", LONG "block_m=64 block_n=64 code=plain causal=1", 2},
      {"h200", LONG "block_m=64 block_n=64 num_stages=3", 2},
      {"h200", LONG "block_m=128 block_n=64 num_stages=2", 7},
      {"h200", LONG "block_m=128 block_n=64 num_stages=2 copy=cp_async", 7},
      {"a100_80", LONG "block_m=128 block_n=64", 2},
      {"a100_80", LONG "block_m=64 block_n=32 causal=1", 2},
      {"rtx4090", LONG "block_m=64 block_n=64", 2},
      {"t4", LONG "block_m=64 block_n=32", 2},
      {"v100", LONG "block_m=64 block_n=32 causal=1", 2},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    lowered l = lower_flash2(cases[i].arch, cases[i].parameters);
    char name[160];
    snprintf(name, sizeof name, "%s %s", cases[i].arch, cases[i].parameters);
    walked groups = walk(&l, (ftl_walk_plan){.group = 4}), apart = walk(&l, (ftl_walk_plan){.group = 1});
    assert_near(name, groups, apart, cases[i].cycles_pct, 1.5);
    release_lowered(&l);
  }
}

// 512 heads of 32 tiles of 64 iterations, in groups of two: 2^19 steps and straight code, of which 2^18 must be taken.
Test(unit_engine_walk_plan, periods_that_are_skipped_keep_cycles_and_traffic) {
  lowered l = lower_flash2("h200", "heads=512 seqlen=4096 head_dim=128 block_m=128 block_n=64 num_warps=8 code=plain");
  ftl_launch launch = launch_of(&l);
  ftl_segments segments;
  cr_assert(ftl_segments_try_init(&segments, l.warps));
  ftl_walk_plan plan = ftl_walk_plan_make(&launch, &segments), all = {.group = plan.group};
  walked part = walk(&l, plan);
  cr_expect_gt(part.skipped_ctas, 512 * 32 / 4);
  cr_expect_leq(part.skipped_ctas, 512 * 32 / 2);
  assert_near("h200 512 heads", part, walk(&l, all), 1.0, 1.5);
  release_lowered(&l);
}

Test(unit_engine_walk_plan, groups_of_tiles_side_by_side_keep_cycles_and_traffic) {
  static const char *const cases[] = {"matmul_tiled m=4096 n=4096 k=8192 block_n=128 num_warps=8 num_stages=4",
                                      "flash1_fwd heads=8 seqlen=4096 head_dim=64"};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    lowered l = lower_flash2("h200", cases[i]);
    assert_near(cases[i], walk(&l, (ftl_walk_plan){.group = 4}), walk(&l, (ftl_walk_plan){.group = 1}), 2.0, 1.5);
    release_lowered(&l);
  }
}

Test(unit_engine_walk_plan, short_kernels_are_walked_whole) {
  lowered l = lower_flash2("h200", "heads=8 seqlen=2048 head_dim=64 block_m=128 block_n=64 num_warps=4");
  ftl_launch launch = launch_of(&l);
  ftl_segments segments;
  cr_assert(ftl_segments_try_init(&segments, l.warps));
  cr_expect_eq(ftl_walk_plan_make(&launch, &segments).group, 1);
  release_lowered(&l);
}

// 65536 rows of 4 KiB, read in three passes and written: 1 GiB, of which a T4 with 4 MiB of L2 is to move 16 MiB before
// any are skipped, and at least nine waves of 40 SMs are walked, 16 CTAs each. Skipped or not, each
// row is loaded three times and stored once, 128 sectors, and so is one for what its sum is.
Test(unit_engine_walk_plan, streams_are_skipped_once_they_have_filled_l2) {
  lowered l = lower_flash2("t4", "softmax_safe heads=64 seqlen_q=1024 seqlen_kv=2048");
  ftl_launch launch = launch_of(&l);
  ftl_segments segments;
  cr_assert(ftl_segments_try_init(&segments, l.warps));
  ftl_walk_plan plan = ftl_walk_plan_make(&launch, &segments);
  cr_expect(plan.is_stream);
  walked part = walk(&l, plan), whole = walk(&l, (ftl_walk_plan){.group = 1});
  cr_expect_gt(part.skipped_ctas, 64 * 1024 / 2);
  assert_near("t4 softmax", part, whole, 1.0, 0.5);
  double written = difference_pct(part.written_sectors, whole.written_sectors);
  cr_expect_leq(written, 0.5, "DRAM writes differ by %.2f %%", written);
  cr_expect_eq(part.loaded_sectors, 3 * 65536 * 128);
  cr_expect_eq(part.stored_sectors, 65536 * 129);
  release_lowered(&l);
}

// K and V of an iteration are 32 KiB, 2 MiB in groups of 64, 4 MiB in twice that: a 16th of L2's 60 MB lies between.
// Five periods of three waves of two CTAs on 132 SMs are 3960 CTAs of 16384 iterations: 2 million groups of 32.
Test(unit_engine_walk_plan, the_longest_walks_let_a_16th_of_l2_to_a_group) {
  lowered l = lower_flash2("h200", "heads=1 seqlen=1048576 head_dim=128 block_m=128 block_n=64 num_warps=8 code=plain");
  ftl_launch launch = launch_of(&l);
  ftl_segments segments;
  cr_assert(ftl_segments_try_init(&segments, l.warps));
  cr_expect_eq(ftl_walk_plan_make(&launch, &segments).group, 64);
  release_lowered(&l);
}

// 8 CTAs of 512 blocks of keys, each around 512 tiles of queries, are 2^21 iterations: 2^16 groups of 32, and some
// straight code beyond, so 64. Of others that wait for their own loads 2^20 are walked. 8192 tokens are 2^17
// iterations, which are soon walked one by one.
Test(unit_engine_walk_plan, ctas_that_read_apart_are_walked_in_larger_groups) {
  static const struct {
    const char *parameters;
    int64_t group;
  } cases[] = {{"flash1_fwd heads=8 seqlen=32768 head_dim=64", 64}, {"flash1_fwd heads=8 seqlen=8192 head_dim=64", 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    lowered l = lower_flash2("h200", cases[i].parameters);
    ftl_launch launch = launch_of(&l);
    ftl_segments segments;
    cr_assert(ftl_segments_try_init(&segments, l.warps));
    cr_expect_eq(ftl_walk_plan_make(&launch, &segments).group, cases[i].group);
    release_lowered(&l);
  }
}

// A row of 32 KiB has 5 pieces of straight code and 14 iterations: 19 events are no more than four to a piece, but more
// than two, as 65536 rows may have, which are 2^20 events together. 4096 rows are 77824.
Test(unit_engine_walk_plan, long_streams_are_walked_in_larger_groups) {
  lowered l = lower_flash2("h200", "softmax_safe heads=64 seqlen_q=1024 seqlen_kv=16384");
  lowered few = lower_flash2("h200", "softmax_safe heads=4 seqlen_q=1024 seqlen_kv=16384");
  ftl_launch launch = launch_of(&l), few_ctas = launch_of(&few);
  ftl_segments segments;
  cr_assert(ftl_segments_try_init(&segments, l.warps));
  ftl_walk_plan of_long = ftl_walk_plan_make(&launch, &segments);
  cr_assert(ftl_segments_try_init(&segments, few.warps));
  ftl_walk_plan of_short = ftl_walk_plan_make(&few_ctas, &segments);
  cr_expect(of_long.is_stream && of_short.is_stream);
  cr_expect_eq(of_long.group, 2);
  cr_expect_eq(of_short.group, 1);
  release_lowered(&l);
  release_lowered(&few);
}

// Tiles of K and V are 64 rows of two lines, of which a group of 16 keeps four times as many in the sample as one: 512.
// The CTA in the middle of the grid begins a head: it stores as much as it loads in its only iteration, half of 128
// rows at a time.
Test(unit_engine_walk_plan, the_sample_suits_ctas_of_all_lengths) {
  lowered l = lower_flash2("h200", "heads=32 seqlen=131072 head_dim=128 block_m=128 block_n=64 num_warps=8 causal=1");
  ftl_launch launch = launch_of(&l);
  ftl_walk_plan plan;
  cr_assert(ftl_sampled_try_plan(&launch, &plan));
  cr_expect_eq(plan.group, 16);
  cr_expect_eq(plan.tile_lines, 512);
  release_lowered(&l);
}

static int64_t tile_lines_of(const char *parameters) {
  lowered l = lower_flash2("h200", parameters);
  ftl_launch launch = launch_of(&l);
  ftl_walk_plan plan;
  cr_assert(ftl_sampled_try_plan(&launch, &plan));
  cr_assert(plan.is_stream);
  release_lowered(&l);
  return plan.tile_lines;
}

// The first launch sums the products of O and its gradient, 16 rows of two lines at a time, and clears dQ: four such
// tiles share the lines that one would have. Of 16 heads of 4096 tokens 2^19 lines are moved, 256 bytes a row each
// of O and its gradient and 512 of dQ, and 2^15 of them stay if tiles of 64 have four. Softmaxes load rows
// again: their tiles, of 64 lines, share with none.
Test(unit_engine_walk_plan, tiles_that_come_once_share_the_lines_of_one) {
  cr_expect_eq(tile_lines_of("flash2_bwd heads=16 seqlen=65536 head_dim=128"), 128);
  cr_expect_eq(tile_lines_of("flash2_bwd heads=16 seqlen=4096 head_dim=128"), 64);
  cr_expect_eq(tile_lines_of("softmax_safe heads=64 seqlen_q=4096 seqlen_kv=4096 block_m=4 block_n=256"), 64);
}

// Of 10000 sequences of 64 tokens there are 640000 CTAs, more than a walk is to have events, however their loops are
// grouped: a group that holds a loop to its end is long enough.
Test(unit_engine_walk_plan, groups_are_no_longer_than_loops) {
  for (int i = 0; i < 3; i++) {
    lowered l = lower_launch("a100_80", "flash2_bwd heads=64 head_dim=64 lengths=64x10000", i);
    ftl_launch launch = launch_of(&l);
    ftl_segments segments;
    int64_t longest = 1, first;
    cr_assert(ftl_segments_try_init(&segments, l.warps));
    for (int32_t k = 0; k < segments.num_loops; k++) {
      int64_t trips = ftl_segments_trips(&segments, l.warps, k, 0, &first);
      if (trips > longest) longest = trips;
    }
    int64_t group = ftl_walk_plan_make(&launch, &segments).group;
    cr_expect(group >= 1 && group < 2 * longest, "%s: groups of %lld, loops of %lld", l.tile->name, (long long)group,
              (long long)longest);
    release_lowered(&l);
  }
}

// Rows of 4096 columns are loaded four steps of 1024 at a time, by 12 CTAs an SM. Of those that others' lines displace
// before the next pass some steps are there and some are not, and what is loaded again is new to nobody: a row has 256
// sectors.
Test(unit_engine_walk_plan, what_l1_has_lost_of_a_row_is_not_new) {
  lowered l = lower_flash2("h200", "softmax_online heads=4 seqlen_q=1024 seqlen_kv=4096 scaling=apart");
  walked whole = walk(&l, (ftl_walk_plan){.group = 1});
  cr_expect_eq(whole.new_sectors, 4096 * 256, "%lld", (long long)whole.new_sectors);
  release_lowered(&l);
}
