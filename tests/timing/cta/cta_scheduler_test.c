#include <criterion/criterion.h>

#include "machine/cta/cta_scheduler.h"

// 8 SMs in 2 GPCs: SMs 0 1 4 5 in GPC 0, 2 3 6 7 in GPC 1.
static ftl_arch small_arch(void) {
  return (ftl_arch){.chip_num_sms = 8,
                    .chip_num_gpcs = 2,
                    .chip_sms_per_tpc = 2,
                    .launch_cta_interval_cycles = 10,
                    .launch_cta_start_cycles = 300};
}

static ftl_cta_scheduler *scheduler_of(const ftl_arch *arch, int64_t num_ctas, int32_t ctas_per_sm) {
  ftl_cta_scheduler *scheduler;
  cr_assert_eq(ftl_cta_scheduler_create(&scheduler, arch, num_ctas, ctas_per_sm, NULL), FTL_OK);
  return scheduler;
}

Test(timing_cta, the_first_round_fills_one_gpc_after_another_and_the_second_follows_in_the_same_order) {
  ftl_arch arch = small_arch();
  ftl_cta_scheduler *scheduler = scheduler_of(&arch, 100, 2);
  int32_t order[] = {0, 1, 4, 5, 2, 3, 6, 7};
  for (int32_t i = 0; i < 16; i++) {
    ftl_cta_start start;
    cr_assert(ftl_cta_scheduler_try_fill(scheduler, &start));
    cr_assert_eq(start.cta, i);
    cr_assert_eq(start.sm, order[i % 8]);
    cr_assert_eq(start.slot, i / 8);
    // Every GPC starts one CTA in 10 cycles, from cycle 0: its k-th start (4 a round) is at 10 k.
    cr_assert_eq(start.cycle, 10 * (i % 4 + 4 * (i / 8)));
  }
  ftl_cta_start none;
  cr_assert_not(ftl_cta_scheduler_try_fill(scheduler, &none));
  cr_assert_eq(ftl_cta_scheduler_num_left(scheduler), 84);
  ftl_cta_scheduler_destroy(scheduler);
}

Test(timing_cta, a_grid_smaller_than_the_gpu_leaves_slots_empty) {
  ftl_arch arch = small_arch();
  ftl_cta_scheduler *scheduler = scheduler_of(&arch, 3, 2);
  ftl_cta_start start;
  for (int i = 0; i < 3; i++) cr_assert(ftl_cta_scheduler_try_fill(scheduler, &start));
  cr_assert_not(ftl_cta_scheduler_try_fill(scheduler, &start));
  cr_assert_not(ftl_cta_scheduler_try_refill(scheduler, 0, 0, 1000, &start));
  ftl_cta_scheduler_destroy(scheduler);
}

Test(timing_cta, a_refill_starts_the_next_cta_after_the_start_latency_and_no_cycle_earlier) {
  ftl_arch arch = small_arch();
  ftl_cta_scheduler *scheduler = scheduler_of(&arch, 20, 1);
  ftl_cta_start start;
  while (ftl_cta_scheduler_try_fill(scheduler, &start)) continue;
  cr_assert(ftl_cta_scheduler_try_refill(scheduler, 5, 0, 1000, &start));
  cr_assert_eq(start.cta, 8);
  cr_assert_eq(start.sm, 5);
  cr_assert_eq(start.cycle, 1300);  // 1000 + 300
  // In the same GPC one cycle later: the GPC is busy until 1300 + 10.
  cr_assert(ftl_cta_scheduler_try_refill(scheduler, 0, 0, 1001, &start));
  cr_assert_eq(start.cycle, 1310);
  // In the other GPC nothing is in the way.
  cr_assert(ftl_cta_scheduler_try_refill(scheduler, 2, 0, 1002, &start));
  cr_assert_eq(start.cycle, 1302);
  ftl_cta_scheduler_destroy(scheduler);
}

Test(timing_cta, skipped_ctas_are_never_started) {
  ftl_arch arch = small_arch();
  ftl_cta_scheduler *scheduler = scheduler_of(&arch, 30, 1);
  ftl_cta_start start;
  while (ftl_cta_scheduler_try_fill(scheduler, &start)) continue;
  ftl_cta_scheduler_skip(scheduler, 12);
  cr_assert(ftl_cta_scheduler_try_refill(scheduler, 0, 0, 1000, &start));
  cr_assert_eq(start.cta, 20);
  cr_assert_eq(ftl_cta_scheduler_num_left(scheduler), 9);
  ftl_cta_scheduler_destroy(scheduler);
}
