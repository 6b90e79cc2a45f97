// The part of a long launch that finds its clock.
#include "engine/probe.h"

#include <math.h>

#include "engine/sampled/sampled.h"
#include "fixture.h"

enum { SM_KHZ = 1700000 };

#define SHAPE "code=plain heads=16 head_dim=128 block_m=128 block_n=64 num_warps=8 "

static ftl_pipeline_launch launch_of(const lowered *l) {
  ftl_launch launch = {
      .arch = l->arch, .tile = l->tile, .warps = l->warps, .occupancy = ftl_occupancy_of(l->warps, l->arch)};
  return (ftl_pipeline_launch){.launch = launch, .work = ftl_static_work_of(l->warps, ftl_launch_num_ctas(&launch))};
}

static double insts_per_cycle(const ftl_pipeline_launch *one) {
  ftl_l2_tags *tags = NULL;
  ftl_totals totals;
  cr_assert_eq(ftl_sampled_run(&one->launch, one->plan, &one->work, SM_KHZ, &tags, &totals, NULL), FTL_OK);
  ftl_l2_tags_destroy(tags);
  return (double)totals.sm.warp_insts / (double)totals.cycles;
}

// 16 heads of 128 tiles are 7.8 waves of two CTAs on each of 132 SMs; the first three are alike and end as raggedly,
// which costs them up to a tenth of their last wave more: 3 %, and 2 % for walking in groups.
Test(unit_engine_probe, the_first_waves_of_a_long_launch_work_at_its_rate) {
  lowered l = lower_flash2("h200", SHAPE "seqlen=16384");
  ftl_pipeline_launch whole = launch_of(&l), part;
  ftl_probe probe;
  cr_assert(ftl_sampled_try_plan(&whole.launch, &whole.plan));
  cr_assert_gt(whole.plan.group, 1);
  cr_assert(ftl_probe_try_init(&probe, &whole, &part));
  cr_expect_eq(part.launch.tile->num_ctas, 3 * 132 * whole.launch.occupancy.ctas_per_sm);
  double of_part = insts_per_cycle(&part), of_whole = insts_per_cycle(&whole);
  cr_expect_lt(fabs(of_part / of_whole - 1), 0.05, "%.1f instructions a cycle, whole %.1f", of_part, of_whole);
  release_lowered(&l);
}

// 16 heads of 64 tiles are 3.9 waves of 128 iterations a CTA: 131072 steps and straight code. Walked in groups of 16
// they work at the same rate within 2 %.
Test(unit_engine_probe, a_launch_of_few_waves_is_probed_whole_in_larger_groups) {
  lowered l = lower_flash2("h200", SHAPE "seqlen=8192");
  ftl_pipeline_launch whole = launch_of(&l), part;
  ftl_probe probe;
  cr_assert(ftl_sampled_try_plan(&whole.launch, &whole.plan));
  cr_assert_eq(whole.plan.group, 1);
  cr_assert(ftl_probe_try_init(&probe, &whole, &part));
  cr_expect_eq(part.launch.tile->num_ctas, l.tile->num_ctas);
  cr_expect_geq(part.plan.group, 8);
  double of_part = insts_per_cycle(&part), of_whole = insts_per_cycle(&whole);
  cr_expect_lt(fabs(of_part / of_whole - 1), 0.02, "%.1f instructions a cycle, whole %.1f", of_part, of_whole);
  release_lowered(&l);
}

Test(unit_engine_probe, a_launch_that_is_soon_walked_has_no_probe) {
  lowered l = lower_flash2("h200", SHAPE "seqlen=4096");
  ftl_pipeline_launch whole = launch_of(&l), part;
  ftl_probe probe;
  cr_assert(ftl_sampled_try_plan(&whole.launch, &whole.plan));
  cr_expect_not(ftl_probe_try_init(&probe, &whole, &part));
  release_lowered(&l);
}

// 64 requests of 131072 keys, 8 heads of K and V: fewer than six waves, walked in groups, whose tiles in pages are
// asked for one by one. A probe of all of them in larger groups would take as long as the walk.
Test(unit_engine_probe, a_launch_whose_tiles_lie_in_pages_has_no_probe_as_long_as_itself) {
  lowered l = lower_flash2("h200", "paged_decode batch=64 seqlen_kv=131072 heads=32 kv_heads=8 head_dim=128");
  ftl_pipeline_launch whole = launch_of(&l), part;
  ftl_probe probe;
  cr_assert(ftl_sampled_try_plan(&whole.launch, &whole.plan));
  cr_assert_gt(whole.plan.group, 1);
  cr_expect_gt(whole.plan.asks, whole.plan.steps);
  cr_expect_not(ftl_probe_try_init(&probe, &whole, &part));
  release_lowered(&l);
}

// A causal head of 128 tiles takes 1 to 128 tiles of keys; three waves of two CTAs on each of 132 SMs are 792 CTAs,
// which 7 heads hold. The first three waves alone would end with most SMs idle.
Test(unit_engine_probe, of_ctas_that_differ_in_length_a_whole_period_is_probed) {
  lowered l = lower_flash2("h200", SHAPE "seqlen=16384 causal=true");
  ftl_pipeline_launch whole = launch_of(&l), part;
  ftl_probe probe;
  cr_assert(ftl_sampled_try_plan(&whole.launch, &whole.plan));
  cr_assert_not(whole.plan.is_even);
  cr_assert(ftl_probe_try_init(&probe, &whole, &part));
  cr_expect_eq(part.launch.tile->num_ctas, 7 * 128);
  // 896 of 2048 CTAs: 9000 cycles in which all SMs have work, and that share of the 1000 after them.
  part.totals = (ftl_totals){.cycles = 10000, .full_sm_cycles = 132 * 9000};
  cr_expect_eq(ftl_probe_cycles(&part), 9000 + 1000 * 896 / 2048);
  release_lowered(&l);
}

// 32 causal heads of 1024 tiles, walked in groups: three heads are the probe. In its last third most SMs hold one of
// two CTAs, or none, and the work of an SM that holds one is less than that of a full one.
Test(unit_engine_probe, of_a_long_walk_of_unlike_ctas_three_periods_are_probed) {
  lowered l = lower_flash2(
      "h200", "heads=32 head_dim=128 block_m=128 block_n=64 num_warps=8 seqlen=131072 causal=true code=plain");
  ftl_pipeline_launch whole = launch_of(&l), part;
  ftl_probe probe;
  cr_assert(ftl_sampled_try_plan(&whole.launch, &whole.plan));
  cr_assert_gt(whole.plan.group, 1);
  cr_assert(ftl_probe_try_init(&probe, &whole, &part));
  cr_expect_eq(part.launch.tile->num_ctas, 3 * 1024);
  cr_expect_eq(part.whole_ctas, 32 * 1024);
  ftl_l2_tags *tags = NULL;
  cr_assert_eq(ftl_sampled_run(&part.launch, part.plan, &part.work, SM_KHZ, &tags, &part.totals, NULL), FTL_OK);
  ftl_l2_tags_destroy(tags);
  cr_expect_lt(part.totals.full_sm_cycles, part.totals.sm.active_cycles);
  release_lowered(&l);
}

// One CTA on each SM. With three tiles each, some have three long ones.
Test(unit_engine_probe, of_persistent_ctas_whose_tiles_differ_each_takes_32) {
  lowered l =
      lower_flash2("h200", "flash3_fwd heads=64 seqlen=16384 head_dim=128 block_n=128 persistent=true causal=true");
  ftl_pipeline_launch whole = launch_of(&l), part;
  ftl_probe probe;
  cr_assert(ftl_sampled_try_plan(&whole.launch, &whole.plan));
  cr_assert(ftl_probe_try_init(&probe, &whole, &part));
  cr_expect_eq(part.launch.tile->num_ctas, 32 * whole.plan.stride);
  part.totals = (ftl_totals){.cycles = 10000, .full_sm_cycles = 132 * 9000};
  cr_expect_eq(ftl_probe_cycles(&part), 10000, "their launch ends as raggedly");
  release_lowered(&l);
}

// 4096 causal heads read 13 GB, a probe of 25 of them less than a hundredth of that.
Test(unit_engine_probe, a_part_need_not_read_what_the_whole_launch_does) {
  lowered l = lower_flash2("h200", "batch=128 heads=32 seqlen=4096 head_dim=128 block_n=64 causal=true");
  ftl_pipeline_launch whole = launch_of(&l), part;
  ftl_probe probe;
  whole.launch.least_read_bytes = INT64_C(13) << 30;
  cr_assert(ftl_sampled_try_plan(&whole.launch, &whole.plan));
  cr_assert(ftl_probe_try_init(&probe, &whole, &part));
  ftl_l2_tags *tags = NULL;
  cr_assert_eq(ftl_sampled_run(&part.launch, part.plan, &part.work, SM_KHZ, &tags, &part.totals, NULL), FTL_OK);
  ftl_l2_tags_destroy(tags);
  cr_expect_lt(part.totals.memory.dram_read_bytes, whole.launch.least_read_bytes / 100);
  release_lowered(&l);
}
