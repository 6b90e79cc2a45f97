#include <criterion/criterion.h>

#include "rig.h"

static int64_t dependent_after(ftl_opcode opcode, int wavefronts, int conflicts) {
  rig *r = rig_create(1);
  ftl_warp_inst *load = rig_add(r, opcode, 0, -1);
  load->wavefronts = (uint16_t)wavefronts;
  load->conflicts = (uint16_t)conflicts;
  rig_add(r, FTL_OP_FFMA, 1, 0);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  int64_t cycle = rig_cycle(r, 0, 1, 0);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_SHORT_SCOREBOARD], cycle - 1);
  cr_assert_eq(rig_counters(r)->bank_conflicts, conflicts);
  rig_destroy(r);
  return cycle;
}

// LDS latency 24, a cycle more for every wavefront after the first; ldmatrix.x4 28 with its four, more only by
// conflicts.
Test(timing_sm_shared, loads_take_their_latency_and_their_conflicts) {
  cr_assert_eq(dependent_after(FTL_OP_LDS, 1, 0), 24);
  cr_assert_eq(dependent_after(FTL_OP_LDS, 8, 7), 31);
  cr_assert_eq(dependent_after(FTL_OP_LDSM, 4, 0), 28);
  cr_assert_eq(dependent_after(FTL_OP_LDSM, 16, 12), 40);
  cr_assert_eq(dependent_after(FTL_OP_SHFL, 0, 0), 22);
}

// Two loads of 4 wavefronts: the second waits until the data pipe is free at 4; its result 24 + 3 cycles later.
Test(timing_sm_shared, loads_queue_for_the_data_pipe) {
  rig *r = rig_create(1);
  rig_add(r, FTL_OP_LDS, 0, -1)->wavefronts = 4;
  rig_add(r, FTL_OP_LDS, 1, -1)->wavefronts = 4;
  rig_add(r, FTL_OP_FFMA, 2, 1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 4 + 24 + 3);
  cr_assert_eq(rig_counters(r)->shared_wavefronts, 8);
  rig_destroy(r);
}

// One sub-core sends an instruction every 2 cycles; four sub-cores together one a cycle: warps 0..3 issue a load each
// at 0, taken at 0, 1, 2, 3. Within a sub-core the second load is taken at 2 at the earliest.
Test(timing_sm_shared, the_lsu_takes_subcores_in_turn) {
  rig *r = rig_create(4);
  rig_add(r, FTL_OP_LDS, 0, -1)->wavefronts = 1;
  rig_add(r, FTL_OP_FFMA, 1, 0);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  for (int w = 0; w < 4; w++) cr_assert_eq(rig_cycle(r, w, 1, 0), 24 + w);
  rig_destroy(r);
  r = rig_create(1);
  rig_add(r, FTL_OP_LDS, 0, -1)->wavefronts = 1;
  rig_add(r, FTL_OP_LDS, 1, -1)->wavefronts = 1;
  rig_add(r, FTL_OP_FFMA, 2, 1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 2 + 24);
  rig_destroy(r);
}

// Two loads each: at 2 sub-core 0 could send its second, but it is the turn of sub-core 2. First loads are taken at 0,
// 1, 2 and 3, second ones at 4, 5, 6 and 7.
Test(timing_sm_shared, no_subcore_sends_twice_before_the_others) {
  rig *r = rig_create(4);
  for (int i = 0; i < 2; i++) rig_add(r, FTL_OP_LDS, i, -1)->wavefronts = 1;
  for (int i = 0; i < 2; i++) rig_add(r, FTL_OP_FFMA, 2 + i, i);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  for (int w = 0; w < 4; w++) {
    cr_assert_eq(rig_cycle(r, w, 2, 0), 24 + w);
    cr_assert_eq(rig_cycle(r, w, 3, 0), 24 + 4 + w);
  }
  rig_destroy(r);
}

// SHFL: one every 2 cycles for the SM. Four sub-cores' at 0, 2, 4, 6.
Test(timing_sm_shared, shuffles_share_the_sm) {
  rig *r = rig_create(4);
  rig_add(r, FTL_OP_SHFL, 0, -1);
  rig_add(r, FTL_OP_FFMA, 1, 0);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  for (int w = 0; w < 4; w++) cr_assert_eq(rig_cycle(r, w, 1, 0), 22 + 2 * w);
  rig_destroy(r);
}

// Loads of 8 wavefronts into a queue of 4: issued at 0 (taken at 0), 1, 2, 3, 4; then the queue is full until the
// second is taken at 8, so the sixth issues at 9 and has waited 4 cycles; the seventh at 17.
Test(timing_sm_shared, a_full_queue_throttles) {
  rig *r = rig_create(1);
  for (int i = 0; i < 7; i++) rig_add(r, FTL_OP_LDS, i, -1)->wavefronts = 8;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  for (int i = 0; i < 5; i++) cr_assert_eq(rig_cycle(r, 0, i, 0), i);
  cr_assert_eq(rig_cycle(r, 0, 5, 0), 9);
  cr_assert_eq(rig_cycle(r, 0, 6, 0), 17);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_MIO_THROTTLE], 4 + 7);
  rig_destroy(r);
}

// The same with two places in the LSU: the first three are taken at 0, 2 and 4, and wait for the data pipe until 0, 8
// and 16; the fourth is taken when the second begins, at 8, the fifth at 16. So the queue is full with the seventh at
// 6; the eighth issues at 9 and has waited 2 cycles, the ninth at 17 and has waited 7. The second's result counts
// from 8.
Test(timing_sm_shared, the_lsu_holds_what_waits_for_data) {
  rig *r = rig_create(1);
  r->arch.mio_lsu_queue_entries = 2;
  for (int i = 0; i < 9; i++) rig_add(r, FTL_OP_LDS, i, -1)->wavefronts = 8;
  rig_add(r, FTL_OP_FFMA, 9, 1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  for (int i = 0; i < 7; i++) cr_assert_eq(rig_cycle(r, 0, i, 0), i);
  cr_assert_eq(rig_cycle(r, 0, 7, 0), 9);
  cr_assert_eq(rig_cycle(r, 0, 8, 0), 17);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_MIO_THROTTLE], 2 + 7);
  cr_assert_eq(rig_cycle(r, 0, 9, 0), 8 + 24 + 7);
  rig_destroy(r);
}

// 64 B a cycle: a wavefront takes 2 cycles.
Test(timing_sm_shared, a_narrow_shared_memory_takes_twice_as_long) {
  rig *r = rig_create(1);
  r->arch.shared_bytes_per_cycle = 64;
  rig_add(r, FTL_OP_LDS, 0, -1)->wavefronts = 4;
  rig_add(r, FTL_OP_FFMA, 1, 0);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 1, 0), 24 + 7);
  rig_destroy(r);
}
