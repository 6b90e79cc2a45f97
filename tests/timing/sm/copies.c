// Copies to shared memory (cp.async): groups, the LSU, and the lines in flight.
#include <criterion/criterion.h>

#include "rig.h"

// Two groups of two lines each. Group 0: LDGSTS at 0, taken 0; commit 1; group 1: LDGSTS at 2, taken 4 (the sub-core
// sends every 2 cycles: 0, 2 for the commit, 4). Lines come at 200 and 204, two at a time, and pass the data pipe in a
// cycle each (2 wavefronts an instruction): group 0 is written at 202, group 1 at 206.
static void fill_two_groups(rig *r, int32_t left) {
  rig_add_tile(r);  // 0
  for (int i = 0; i < 2; i++) {
    ftl_warp_inst *copy = rig_add_access(r, FTL_OP_CP_ASYNC, -1, rig_access(r, 2 * i, 2));  // 1, 3
    copy->flags = FTL_INST_BYPASS_L1;
    copy->wavefronts = 2;
    rig_add(r, FTL_OP_CP_COMMIT, -1, -1);  // 2, 4
  }
  rig_add(r, FTL_OP_CP_WAIT, -1, -1)->arg = (uint16_t)left;  // 5
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
}

static rig *two_groups(int32_t left) {
  rig *r = rig_create(1);
  fill_two_groups(r, left);
  return r;
}

Test(timing_sm_copies, cp_wait_waits_for_all_but_the_youngest_groups) {
  rig *r = two_groups(0);
  cr_assert_eq(rig_cycle(r, 0, 5, 0), 206);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_LONG_SCOREBOARD], 206 - 4);
  cr_assert_eq(r->num_requests, 4);
  cr_assert_eq(r->requests[2].time, 4);
  cr_assert_eq(rig_counters(r)->shared_wavefronts, 4);
  rig_destroy(r);
  r = two_groups(1);
  cr_assert_eq(rig_cycle(r, 0, 5, 0), 202);
  rig_destroy(r);
  r = two_groups(2);
  cr_assert_eq(rig_cycle(r, 0, 5, 0), 4);
  rig_destroy(r);
}

// The same, with 10 cycles between a line's arrival and the end of a wait for it.
Test(timing_sm_copies, a_wait_for_copies_ends_later_than_they_arrive) {
  rig *r = rig_create(1);
  r->arch.l1_copy_latency_cycles = 10;
  fill_two_groups(r, 0);
  cr_assert_eq(rig_cycle(r, 0, 5, 0), 216);
  rig_destroy(r);
}

// Two warps of two sub-cores copy four lines each, an address a cycle: the second is taken at 4, not at 1.
Test(timing_sm_copies, the_lsu_takes_a_cycle_for_each_line_of_a_copy) {
  rig *r = rig_create(2);
  rig_add_tile(r);
  rig_add_access(r, FTL_OP_CP_ASYNC, -1, rig_access(r, 0, 4))->flags = FTL_INST_BYPASS_L1;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(r->num_requests, 8);
  cr_assert_eq(r->requests[3].time, 0);
  cr_assert_eq(r->requests[4].time, 4);
  rig_destroy(r);
}

// Warp 0's LDS takes the data pipe for 2 cycles. A copy, of another sub-core, is taken at 1 all the same, and its 4
// lines do not hold that sub-core's LDS: it is taken when the sub-core sends again, at 3, and done 24 cycles later.
Test(timing_sm_copies, copies_and_shared_memory_go_side_by_side) {
  rig *r = rig_create(1);
  rig_add(r, FTL_OP_LDS, 0, -1)->wavefronts = 2;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_role(r, 1);
  rig_add_tile(r);                                                                          // 0
  rig_add_access(r, FTL_OP_CP_ASYNC, -1, rig_access(r, 0, 4))->flags = FTL_INST_BYPASS_L1;  // 1
  rig_add(r, FTL_OP_LDS, 0, -1)->wavefronts = 1;                                            // 2
  rig_add(r, FTL_OP_FFMA, 1, 0);                                                            // 3
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(r->num_requests, 4);
  cr_assert_eq(r->requests[3].time, 1);
  cr_assert_eq(rig_cycle(r, 1, 3, 0), 3 + 24);
  rig_destroy(r);
}

// The same, of a copy with 4 wavefronts: they follow the 2 of warp 0's LDS, and the LDS behind the copy begins at 6.
Test(timing_sm_copies, a_copy_takes_the_data_pipe_as_it_is_issued) {
  rig *r = rig_create(1);
  rig_add(r, FTL_OP_LDS, 0, -1)->wavefronts = 2;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_role(r, 1);
  rig_add_tile(r);
  ftl_warp_inst *copy = rig_add_access(r, FTL_OP_CP_ASYNC, -1, rig_access(r, 0, 4));
  copy->flags = FTL_INST_BYPASS_L1;
  copy->wavefronts = 4;
  rig_add(r, FTL_OP_LDS, 0, -1)->wavefronts = 1;
  rig_add(r, FTL_OP_FFMA, 1, 0);  // 3
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 1, 3, 0), 2 + 4 + 24);
  rig_destroy(r);
}

// Two copies of 4 lines are taken at 0 and, when the addresses of the first have gone, at 4. The LDS behind them, which
// issues at 2, is taken when its sub-core sends again, at 6.
Test(timing_sm_copies, shared_memory_keeps_its_place_behind_copies) {
  rig *r = rig_create(1);
  rig_add_tile(r);
  for (int i = 0; i < 2; i++)
    rig_add_access(r, FTL_OP_CP_ASYNC, -1, rig_access(r, 4 * i, 4))->flags = FTL_INST_BYPASS_L1;
  rig_add(r, FTL_OP_LDS, 0, -1)->wavefronts = 1;
  rig_add(r, FTL_OP_FFMA, 1, 0);  // 4
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(r->requests[4].time, 4);
  cr_assert_eq(rig_cycle(r, 0, 4, 0), 4 + 2 + 24);
  rig_destroy(r);
}

// When an FFMA has what an LDS gives that begins while a copy's lines, of so many wavefronts, arrive.
static int64_t load_beside_arrivals(int wavefronts) {
  rig *r = rig_create(1);
  rig_add_tile(r);
  rig_add_access(r, FTL_OP_LDG, 0, rig_access(r, 0, 1));
  ftl_warp_inst *copy = rig_add_access(r, FTL_OP_CP_ASYNC, -1, rig_access(r, 1, 4));
  copy->flags = FTL_INST_BYPASS_L1;
  copy->wavefronts = (uint8_t)wavefronts;
  rig_add(r, FTL_OP_FFMA, 1, 0);
  rig_add(r, FTL_OP_LDS, 2, 1)->wavefronts = 1;
  rig_add(r, FTL_OP_FFMA, 3, 2);  // 5
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  int64_t cycle = rig_cycle(r, 0, 5, 0);
  rig_destroy(r);
  return cycle;
}

// The line of the LDG is there at 200, the FFMA's result 5 cycles later for the LDS. The copy's lines come at 202, 4 or
// 40 cycles' worth: they are written past the pipe.
Test(timing_sm_copies, arriving_lines_take_nothing_from_shared_memory) {
  cr_assert_eq(load_beside_arrivals(4), 205 + 24);
  cr_assert_eq(load_beside_arrivals(40), 205 + 24);
}

// Of one sub-core: the copy issues at 2, behind two LDS of 8 cycles. The second is taken at 8, and the copy when the
// sub-core sends again, 2 cycles later: it does not pass what waits for the data pipe.
Test(timing_sm_copies, a_copy_keeps_its_place_behind_shared_memory) {
  rig *r = rig_create(1);
  rig_add_tile(r);
  for (int i = 0; i < 2; i++) rig_add(r, FTL_OP_LDS, i, -1)->wavefronts = 8;
  rig_add_access(r, FTL_OP_CP_ASYNC, -1, rig_access(r, 0, 4))->flags = FTL_INST_BYPASS_L1;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(r->num_requests, 4);
  cr_assert_eq(r->requests[0].time, 8 + 2);
  rig_destroy(r);
}

// Taken at 0; 14 cycles later an instruction may write over its address.
Test(timing_sm_copies, a_copy_frees_its_address_registers_after_it_was_taken) {
  rig *r = rig_create(1);
  r->arch.l1_operand_release_cycles = 14;
  rig_add_tile(r);
  rig_add_access(r, FTL_OP_CP_ASYNC, 0, rig_access(r, 0, 4))->flags = FTL_INST_BYPASS_L1;
  rig_add(r, FTL_OP_FFMA, 1, 0);  // 2
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 14);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_LONG_SCOREBOARD], 13);
  rig_destroy(r);
}

// Copies past L1 do not take that port, which would be free for the second line of each group 4 cycles after the first.
Test(timing_sm_copies, copies_past_l1_come_in_beside_its_port) {
  rig *r = rig_create(1);
  r->arch.l1_fill_bytes_per_cycle = 32;
  fill_two_groups(r, 0);
  cr_assert_eq(rig_cycle(r, 0, 5, 0), 206);
  rig_destroy(r);
}

static void add_copies(rig *r, int count) {
  for (int i = 0; i < count; i++)
    rig_add_access(r, FTL_OP_CP_ASYNC, -1, rig_access(r, 2 * i, 2))->flags = FTL_INST_BYPASS_L1;
}

// At most 4 lines in flight, 2 an instruction: the copies at 0 and 1 (taken at 0 and 2) fill it. The third waits in the
// queue, which has room for one, from 3 on, when the second has left it; the lines of the first come at 200: the third
// is taken then, and the fourth issues at 201. It was throttled from 4 on, the third at 2.
Test(timing_sm_copies, lines_in_flight_are_limited) {
  rig *r = rig_create(1);
  r->arch.l1_max_pending_lines = 4;
  r->arch.mio_lg_queue_entries = 1;
  rig_add_tile(r);
  add_copies(r, 4);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 1, 0), 0);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 1);
  cr_assert_eq(rig_cycle(r, 0, 3, 0), 3);
  cr_assert_eq(rig_cycle(r, 0, 4, 0), 201);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_LG_THROTTLE], 1 + 197);
  rig_destroy(r);
}

// As many copies as the queue has entries, and the one that was taken at once, issue one a cycle although no line has
// come.
Test(timing_sm_copies, copies_wait_in_a_queue_of_their_own) {
  rig *r = rig_create(1);
  r->arch.l1_max_pending_lines = 2;
  r->arch.mio_lg_queue_entries = 3;
  rig_add_tile(r);
  add_copies(r, 5);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  for (int i = 0; i < 4; i++) cr_assert_eq(rig_cycle(r, 0, 1 + i, 0), i);
  cr_assert_eq(rig_cycle(r, 0, 5, 0), 201);
  rig_destroy(r);
}

// Copies that wait for lines leave the way to shared memory free: the load of cycle 3 is taken then, its result there
// 24 cycles later.
Test(timing_sm_copies, shared_memory_passes_copies_that_wait_for_lines) {
  rig *r = rig_create(1);
  r->arch.l1_max_pending_lines = 2;
  rig_add_tile(r);
  add_copies(r, 3);
  rig_add(r, FTL_OP_LDS, 0, -1)->wavefronts = 1;
  rig_add(r, FTL_OP_FFMA, 1, 0);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 4, 0), 3);
  cr_assert_eq(rig_cycle(r, 0, 5, 0), 3 + 24);
  rig_destroy(r);
}

// Rows 1022 and 1023 of the tensor exist of the four that are asked for.
Test(timing_sm_copies, rows_outside_the_tensor_make_no_lines) {
  rig *r = rig_create(1);
  int32_t row = rig_const(r, 1022);
  r->refs[0].row = row;
  rig_add_tile(r);
  rig_add_access(r, FTL_OP_CP_ASYNC, -1, rig_access(r, 0, 4))->flags = FTL_INST_BYPASS_L1;
  rig_add_access(r, FTL_OP_LDG, 0, rig_access(r, 2, 2));
  rig_add(r, FTL_OP_FFMA, 1, 0);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(r->num_requests, 2);
  cr_assert_eq(rig_cycle(r, 0, 3, 0), 2 + 32, "a load of nothing takes as long as a hit");
  rig_destroy(r);
}

// An absent tile: the instruction issues and makes nothing.
Test(timing_sm_copies, an_absent_tile_makes_no_lines) {
  rig *r = rig_create(1);
  r->refs[0].present = rig_const(r, 0);
  rig_add_tile(r);
  rig_add_access(r, FTL_OP_CP_ASYNC, -1, rig_access(r, 0, 4))->flags = FTL_INST_BYPASS_L1 | FTL_INST_IF_PRESENT;
  rig_add(r, FTL_OP_CP_COMMIT, -1, -1);
  rig_add(r, FTL_OP_CP_WAIT, -1, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  cr_assert_eq(rig_run(r, 1), 4);
  cr_assert_eq(r->num_requests, 0);
  rig_destroy(r);
}
