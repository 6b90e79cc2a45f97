#include <criterion/criterion.h>

#include "arch/topology.h"
#include "machine/cta/cta_scheduler.h"

// 8 SMs in 2 GPCs: SMs 0 1 4 5 in GPC 0, 2 3 6 7 in GPC 1.
static ftl_arch small_arch(void) {
  return (ftl_arch){.chip_num_sms = 8,
                    .chip_num_gpcs = 2,
                    .chip_sms_per_tpc = 2,
                    .launch_cta_interval_cycles = 10,
                    .launch_cta_start_cycles = 300};
}

static ftl_cta_scheduler *clusters_of(const ftl_arch *arch, int64_t num_ctas, int32_t ctas_per_sm,
                                      int32_t cluster_ctas) {
  ftl_cta_scheduler *scheduler;
  cr_assert_eq(ftl_cta_scheduler_create(&scheduler, arch, num_ctas, ctas_per_sm, cluster_ctas, NULL), FTL_OK);
  return scheduler;
}

static ftl_cta_scheduler *scheduler_of(const ftl_arch *arch, int64_t num_ctas, int32_t ctas_per_sm) {
  return clusters_of(arch, num_ctas, ctas_per_sm, 1);
}

Test(timing_cta, the_first_round_fills_one_gpc_after_another_and_the_second_follows_in_the_same_order) {
  ftl_arch arch = small_arch();
  ftl_cta_scheduler *scheduler = scheduler_of(&arch, 100, 2);
  int32_t order[] = {0, 1, 4, 5, 2, 3, 6, 7};
  for (int32_t i = 0; i < 16; i++) {
    ftl_cta_start start[FTL_CTA_MAX_CLUSTER];
    cr_assert(ftl_cta_scheduler_fill(scheduler, start));
    cr_assert_eq(start->cta, i);
    cr_assert_eq(start->sm, order[i % 8]);
    cr_assert_eq(start->slot, i / 8);
    // Every GPC starts one CTA in 10 cycles, from cycle 0: its k-th start (4 a round) is at 10 k.
    cr_assert_eq(start->cycle, 10 * (i % 4 + 4 * (i / 8)));
  }
  ftl_cta_start none[FTL_CTA_MAX_CLUSTER];
  cr_assert_not(ftl_cta_scheduler_fill(scheduler, none));
  cr_assert_eq(ftl_cta_scheduler_num_left(scheduler), 84);
  ftl_cta_scheduler_destroy(scheduler);
}

Test(timing_cta, a_grid_smaller_than_the_gpu_leaves_slots_empty) {
  ftl_arch arch = small_arch();
  ftl_cta_scheduler *scheduler = scheduler_of(&arch, 3, 2);
  ftl_cta_start start[FTL_CTA_MAX_CLUSTER];
  for (int i = 0; i < 3; i++) cr_assert(ftl_cta_scheduler_fill(scheduler, start));
  cr_assert_not(ftl_cta_scheduler_fill(scheduler, start));
  cr_assert_not(ftl_cta_scheduler_refill(scheduler, 0, 0, 1000, start));
  ftl_cta_scheduler_destroy(scheduler);
}

static void expect_fill(const ftl_arch *arch, int64_t num_ctas, int32_t ctas_per_sm, const int32_t *sms) {
  ftl_cta_scheduler *scheduler = scheduler_of(arch, num_ctas, ctas_per_sm);
  ftl_cta_start start[FTL_CTA_MAX_CLUSTER];
  for (int32_t i = 0; i < num_ctas; i++) {
    cr_assert(ftl_cta_scheduler_fill(scheduler, start));
    cr_expect_eq(start->cta, i);
    cr_expect_eq(start->sm, sms[i], "CTA %d of %lld on SM %d, expected %d", i, (long long)num_ctas, start->sm, sms[i]);
  }
  cr_expect_not(ftl_cta_scheduler_fill(scheduler, start));
  ftl_cta_scheduler_destroy(scheduler);
}

// SMs 0 1 4 5 and 2 3 6 7: three CTAs have the first TPC of each GPC and the second of GPC 0; five all four TPCs and
// the other SM of GPC 0's first. Their indices go GPC after GPC. A round that is not the first is dealt the same way.
Test(timing_cta, a_round_that_is_not_full_takes_a_tpc_of_each_gpc_in_turn_and_second_sms_last) {
  ftl_arch arch = small_arch();
  expect_fill(&arch, 3, 2, (int32_t[]){0, 4, 2});
  expect_fill(&arch, 5, 2, (int32_t[]){0, 1, 4, 2, 6});
  expect_fill(&arch, 10, 2, (int32_t[]){0, 1, 4, 5, 2, 3, 6, 7, 0, 2});
}

// GPCs 0 1 4 5 8 9 12 13 and 2 3 6 7 10 11 14 15, the TPC of 14 and 15 single: both its SMs come before the first of
// any other, in index too, and so they do in a round that is full.
Test(timing_cta, a_round_that_is_not_full_takes_single_tpcs_first) {
  ftl_arch arch = small_arch();
  arch.chip_num_sms = 16;
  arch.chip_num_single_tpcs = 1;
  expect_fill(&arch, 5, 1, (int32_t[]){14, 15, 0, 4, 2});
  expect_fill(&arch, 16, 1, (int32_t[]){14, 15, 0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11});
}

// kernels/measurements/micro_grid_placement.csv: of 64 CTAs 8 are on the single TPCs, and the GPCs have 8, 8, 8, 7, 7,
// 7, 7 and, where four TPCs are single, 4.
Test(timing_cta, a_small_grid_has_as_many_ctas_in_each_gpc_as_measured_on_the_h200) {
  ftl_arch arch = {.chip_num_sms = 132, .chip_num_gpcs = 8, .chip_sms_per_tpc = 2, .chip_num_single_tpcs = 4};
  ftl_cta_scheduler *scheduler = scheduler_of(&arch, 64, 1);
  int32_t ctas_of_gpc[8] = {0};
  ftl_cta_start start[FTL_CTA_MAX_CLUSTER];
  while (ftl_cta_scheduler_fill(scheduler, start)) ctas_of_gpc[ftl_arch_gpc_of_sm(&arch, start->sm)]++;
  for (int32_t gpc = 0; gpc < 8; gpc++) cr_expect_eq(ctas_of_gpc[gpc], ((int32_t[]){8, 8, 8, 7, 7, 7, 7, 4 + 8})[gpc]);
  ftl_cta_scheduler_destroy(scheduler);
}

// Clusters of two are TPCs: {0 1} of GPC 0 and {2 3} of GPC 1.
Test(timing_cta, clusters_of_a_round_that_is_not_full_are_dealt_to_the_gpcs_in_turn) {
  ftl_arch arch = small_arch();
  ftl_cta_scheduler *scheduler = clusters_of(&arch, 4, 1, 2);
  ftl_cta_start starts[FTL_CTA_MAX_CLUSTER];
  cr_assert_eq(ftl_cta_scheduler_fill(scheduler, starts), 2);
  cr_expect(starts[0].sm == 0 && starts[1].sm == 1);
  cr_assert_eq(ftl_cta_scheduler_fill(scheduler, starts), 2);
  cr_expect(starts[0].sm == 2 && starts[1].sm == 3);
  cr_assert_eq(ftl_cta_scheduler_fill(scheduler, starts), 0);
  ftl_cta_scheduler_destroy(scheduler);
}

Test(timing_cta, a_refill_starts_the_next_cta_after_the_start_latency_and_no_cycle_earlier) {
  ftl_arch arch = small_arch();
  ftl_cta_scheduler *scheduler = scheduler_of(&arch, 20, 1);
  ftl_cta_start start[FTL_CTA_MAX_CLUSTER];
  while (ftl_cta_scheduler_fill(scheduler, start)) continue;
  cr_assert(ftl_cta_scheduler_refill(scheduler, 5, 0, 1000, start));
  cr_assert_eq(start->cta, 8);
  cr_assert_eq(start->sm, 5);
  cr_assert_eq(start->cycle, 1300);  // 1000 + 300
  // In the same GPC one cycle later: the GPC is busy until 1300 + 10.
  cr_assert(ftl_cta_scheduler_refill(scheduler, 0, 0, 1001, start));
  cr_assert_eq(start->cycle, 1310);
  // In the other GPC nothing is in the way.
  cr_assert(ftl_cta_scheduler_refill(scheduler, 2, 0, 1002, start));
  cr_assert_eq(start->cycle, 1302);
  ftl_cta_scheduler_destroy(scheduler);
}

Test(timing_cta, skipped_ctas_are_never_started) {
  ftl_arch arch = small_arch();
  ftl_cta_scheduler *scheduler = scheduler_of(&arch, 30, 1);
  ftl_cta_start start[FTL_CTA_MAX_CLUSTER];
  while (ftl_cta_scheduler_fill(scheduler, start)) continue;
  ftl_cta_scheduler_skip(scheduler, 12);
  cr_assert(ftl_cta_scheduler_refill(scheduler, 0, 0, 1000, start));
  cr_assert_eq(start->cta, 20);
  cr_assert_eq(ftl_cta_scheduler_num_left(scheduler), 9);
  ftl_cta_scheduler_destroy(scheduler);
}

// GPCs of four SMs, 0 1 4 5 and 2 3 6 7: each takes two clusters of two a round. A cluster begins with its last CTA, an
// interval of 10 after its first could.
Test(timing_cta, a_cluster_starts_on_neighbours_of_one_gpc_at_once) {
  ftl_arch arch = small_arch();
  ftl_cta_scheduler *scheduler = clusters_of(&arch, 100, 2, 2);
  static const int32_t order[] = {0, 1, 4, 5, 2, 3, 6, 7};
  static const int64_t cycles[] = {10, 30, 10, 30};
  ftl_cta_start starts[FTL_CTA_MAX_CLUSTER];
  for (int32_t i = 0; i < 8; i++) {
    cr_assert_eq(ftl_cta_scheduler_fill(scheduler, starts), 2);
    for (int32_t rank = 0; rank < 2; rank++) {
      cr_expect_eq(starts[rank].cta, 2 * i + rank);
      cr_expect_eq(starts[rank].sm, order[(2 * i + rank) % 8]);
      cr_expect_eq(starts[rank].slot, i / 4);
      cr_expect_eq(starts[rank].cycle, cycles[i % 4] + 40 * (i / 4));
    }
  }
  cr_assert_eq(ftl_cta_scheduler_fill(scheduler, starts), 0);
  ftl_cta_scheduler_destroy(scheduler);
}

// Three of a GPC's four SMs: the fourth stays empty.
Test(timing_cta, sms_of_a_gpc_that_make_no_cluster_stay_empty) {
  ftl_arch arch = small_arch();
  ftl_cta_scheduler *scheduler = clusters_of(&arch, 99, 1, 3);
  ftl_cta_start starts[FTL_CTA_MAX_CLUSTER];
  cr_assert_eq(ftl_cta_scheduler_fill(scheduler, starts), 3);
  cr_expect(starts[0].sm == 0 && starts[1].sm == 1 && starts[2].sm == 4);
  cr_assert_eq(ftl_cta_scheduler_fill(scheduler, starts), 3);
  cr_expect(starts[0].sm == 2 && starts[1].sm == 3 && starts[2].sm == 6);
  cr_assert_eq(ftl_cta_scheduler_fill(scheduler, starts), 0);
  ftl_cta_scheduler_destroy(scheduler);
}

// Full with clusters of two: {0 1} {4 5} {2 3} {6 7}. SM 0 ends alone: nothing starts. SM 2 is of the other GPC. SM 5
// makes two of the first GPC: a cluster starts on 0 and 5, 300 + 10 later.
Test(timing_cta, a_cluster_waits_until_as_many_sms_of_a_gpc_have_room) {
  ftl_arch arch = small_arch();
  ftl_cta_scheduler *scheduler = clusters_of(&arch, 20, 1, 2);
  ftl_cta_start starts[FTL_CTA_MAX_CLUSTER];
  while (ftl_cta_scheduler_fill(scheduler, starts)) continue;
  cr_assert_eq(ftl_cta_scheduler_refill(scheduler, 0, 0, 1000, starts), 0);
  cr_assert_eq(ftl_cta_scheduler_refill(scheduler, 2, 0, 1001, starts), 0);
  cr_assert_eq(ftl_cta_scheduler_refill(scheduler, 5, 0, 1100, starts), 2);
  cr_expect(starts[0].cta == 8 && starts[0].sm == 0 && starts[0].cycle == 1410);
  cr_expect(starts[1].cta == 9 && starts[1].sm == 5 && starts[1].cycle == 1410);
  ftl_cta_scheduler_destroy(scheduler);
}

// 16 SMs in 2 GPCs: 0 1 4 5 8 9 12 13 and 2 3 6 7 10 11 14 15. The last TPC of the last GPC, 14 and 15, is single: it
// takes a cluster of two, and none of four, for which it would make the second of GPC 1.
Test(timing_cta, a_single_tpc_takes_no_cluster_larger_than_itself) {
  ftl_arch arch = small_arch();
  arch.chip_num_sms = 16;
  arch.chip_num_single_tpcs = 1;
  ftl_cta_start starts[FTL_CTA_MAX_CLUSTER];
  ftl_cta_scheduler *scheduler = clusters_of(&arch, 100, 1, 4);
  static const int32_t first_sms[] = {0, 8, 2};
  for (int32_t i = 0; i < 3; i++) {
    cr_assert_eq(ftl_cta_scheduler_fill(scheduler, starts), 4);
    cr_expect_eq(starts[0].sm, first_sms[i]);
  }
  cr_expect_eq(ftl_cta_scheduler_fill(scheduler, starts), 0);
  ftl_cta_scheduler_destroy(scheduler);
  scheduler = clusters_of(&arch, 100, 1, 2);
  cr_assert_eq(ftl_cta_scheduler_fill(scheduler, starts), 2);
  cr_expect(starts[0].sm == 14 && starts[1].sm == 15);
  for (int32_t i = 1; i < 8; i++) cr_assert_eq(ftl_cta_scheduler_fill(scheduler, starts), 2);
  cr_expect_eq(ftl_cta_scheduler_fill(scheduler, starts), 0);
  ftl_cta_scheduler_destroy(scheduler);
  cr_expect_eq(ftl_cta_num_resident(&arch, 1, 4), 12);
  cr_expect_eq(ftl_cta_num_resident(&arch, 1, 2), 16);
}

// micro_launch.csv, clusters_that_fit: 66 of 2, 15 of 8 and 7 of 16 on an H200. GPCs of 18, 18 and six times 16 SMs, of
// the last of which four TPCs are single.
Test(timing_cta, an_h200_holds_as_many_clusters_as_measured) {
  ftl_arch arch = {.chip_num_sms = 132, .chip_num_gpcs = 8, .chip_sms_per_tpc = 2, .chip_num_single_tpcs = 4};
  cr_expect_eq(ftl_cta_num_resident(&arch, 1, 1), 132);
  cr_expect_eq(ftl_cta_num_resident(&arch, 1, 2), 2 * 66);
  cr_expect_eq(ftl_cta_num_resident(&arch, 1, 8), 8 * 15);
  cr_expect_eq(ftl_cta_num_resident(&arch, 1, 16), 16 * 7);
  // Two CTAs an SM: seven GPCs with four clusters of four each and one with two.
  cr_expect_eq(ftl_cta_num_resident(&arch, 2, 4), 2 * 4 * 30);
}
