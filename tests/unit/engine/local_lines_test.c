// What local stores leave in L2: by slots of a thread's frame, and in which places.
#include <criterion/criterion.h>

#include "engine/sampled/local_lines.h"
#include "fixture.h"

enum { MOST_REGISTERS = 255, MOST_SLOTS = 4096 };

// Slots that some STL of the program's one role stores.
static int32_t num_stored_slots(const ftl_warp_program *program) {
  bool stored[MOST_SLOTS] = {0};
  int32_t count = 0;
  for (int32_t i = 0; i < program->num_insts; i++) {
    if (program->insts[i].opcode != FTL_OP_STL) continue;
    const ftl_access *access = &program->accesses[program->insts[i].access];
    for (int32_t slot = access->row; slot < access->row + access->num_rows; slot++) {
      cr_assert_lt(slot, MOST_SLOTS);
      count += !stored[slot];
      stored[slot] = true;
    }
  }
  return count;
}

// 32 registers for 128 accumulators of O and as many of S a thread, fragments and conversions beside them: each value
// that leaves has a slot of its own, so that there are more slots than a thread may have registers. A line of 128 bytes
// is a slot of a warp.
Test(unit_engine_local_lines, a_thread_may_have_more_slots_than_registers) {
  lowered l = lower_flash2("h200",
                           "heads=1 seqlen=512 head_dim=64 block_m=128 block_n=64 num_warps=2 mma=mma copy=cp_async "
                           "code=plain max_registers=32");
  ftl_launch launch = {.arch = l.arch, .warps = l.warps, .occupancy = {.ctas_per_sm = 1}};
  ftl_l2_tags *tags = NULL;
  ftl_error error = {0};
  cr_assert_eq(ftl_l2_tags_create(&tags, l.arch, 0, NULL), FTL_OK);
  ftl_local_lines local;
  cr_assert_eq(ftl_local_lines_init(&local, &launch, tags, &error), FTL_OK, "%s", error.message);
  int32_t num_slots = num_stored_slots(l.warps);
  cr_expect_gt(num_slots, MOST_REGISTERS);
  cr_expect_eq(local.first[1] - local.first[0], 2 * num_slots, "%d lines of 2 warps, %d slots", (int)local.first[1],
               (int)num_slots);
  ftl_local_lines_fini(&local);
  ftl_l2_tags_destroy(tags);
  release_lowered(&l);
}

// The store of segment 1 leaves a replica on the SM's side, so that what the SM loads is there; another segment stores
// nothing.
Test(unit_engine_local_lines, a_store_by_the_other_side_leaves_a_replica) {
  ftl_arch *arch = shipped_arch("h200");
  ftl_l2_tags *tags;
  ftl_error error;
  cr_assert_eq(ftl_l2_tags_create(&tags, arch, 0, &error), FTL_OK);
  uint64_t line = (uint64_t)1 << 39;
  ftl_l2_address at = ftl_l2_tags_address(tags, line);
  int32_t far = 1 - (int32_t)at.home_side;
  int64_t first[] = {0, 1};
  ftl_local_line stored = {.segments = 2};
  ftl_l2_tags_know(&stored.known, tags, at, line, 15);
  ftl_local_lines local = {.first = first, .lines = &stored};
  cr_expect_eq(ftl_local_lines_store(&local, 0, 0, far, tags), 0);
  cr_expect_eq(ftl_l2_tags_dirty_sectors(tags), 0);
  cr_expect_eq(ftl_local_lines_store(&local, 0, 1, far, tags), 0);
  cr_expect_eq(ftl_l2_tags_dirty_sectors(tags), 4);
  cr_expect_eq(ftl_l2_tags_read(tags, line, 15, far, FTL_L2_EVICT_NORMAL).hit_sectors, 15);
  ftl_l2_tags_destroy(tags);
  ftl_arch_destroy(arch);
}
