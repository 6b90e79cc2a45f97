#include <criterion/criterion.h>

#include "machine/sm/l1.h"
#include "rig.h"

static ftl_warp_inst *add_access(rig *r, ftl_opcode opcode, int32_t token, uint16_t access) {
  ftl_warp_inst *inst = rig_add(r, opcode, token, -1);
  inst->access = access;
  inst->wavefronts = 1;
  return inst;
}

static void add_tile(rig *r) { rig_add(r, FTL_OP_TILE, -1, -1)->access = 0; }

// The line leaves in the cycle in which the LSU takes the load (0); the reply is there at 200 and so is the result.
// A second load of the same line, when it is in L1: hit latency 32.
Test(timing_sm_global, a_load_misses_and_then_hits_l1) {
  rig *r = rig_create(1);
  uint16_t line = rig_access(r, 0, 1);
  add_tile(r);                         // 0
  add_access(r, FTL_OP_LDG, 0, line);  // 1
  rig_add(r, FTL_OP_FFMA, 1, 0);       // 2
  add_access(r, FTL_OP_LDG, 2, line);  // 3
  rig_add(r, FTL_OP_FFMA, 3, 2);       // 4
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 200);
  cr_assert_eq(rig_cycle(r, 0, 3, 0), 201);
  cr_assert_eq(rig_cycle(r, 0, 4, 0), 201 + 32);
  cr_assert_eq(r->num_requests, 1);
  cr_assert_eq(r->requests[0].time, 0);
  cr_assert_eq(r->requests[0].sectors, 15);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_LONG_SCOREBOARD], 199 + 31);
  cr_assert_eq(rig_counters(r)->l1_load_sectors, 8);
  cr_assert_eq(rig_counters(r)->l1_load_hit_sectors, 4);
  rig_destroy(r);
}

// Times of results have 30 bits: beyond 2^30 cycles they are right because they are counted from a base that follows.
Test(timing_sm_global, a_load_may_take_more_than_2_to_the_30_cycles) {
  rig *r = rig_create(1);
  r->latency = (INT64_C(1) << 30) + 1000;
  r->window = 1 << 27;
  add_tile(r);                                        // 0
  add_access(r, FTL_OP_LDG, 0, rig_access(r, 0, 1));  // 1
  rig_add(r, FTL_OP_FFMA, 1, 0);                      // 2
  rig_add(r, FTL_OP_FFMA, 2, 1);                      // 3
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), r->latency);
  cr_assert_eq(rig_cycle(r, 0, 3, 0), r->latency + 4);
  rig_destroy(r);
}

// Warp 1 loads the line that warp 0 asked for a cycle before: no second request, both results at 200.
Test(timing_sm_global, a_miss_in_flight_is_merged) {
  rig *r = rig_create(2);
  uint16_t line = rig_access(r, 0, 1);
  r->accesses[line].warp_row_step = 0;
  add_tile(r);
  add_access(r, FTL_OP_LDG, 0, line);
  rig_add(r, FTL_OP_FFMA, 1, 0);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(r->num_requests, 1);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 200);
  cr_assert_eq(rig_cycle(r, 1, 2, 0), 200);
  cr_assert_eq(rig_counters(r)->l1_load_hit_sectors, 4);
  rig_destroy(r);
}

// L1 of 16 KiB holds 128 lines in 32 sets of 4 ways. Lines 0, 64, 128, 192, 256 (rows of 256 bytes are 2 lines apart)
// share set 0: the fifth pushes out the first, which misses again.
Test(timing_sm_global, the_least_recently_used_line_of_a_set_leaves) {
  rig *r = rig_create(1);
  add_tile(r);
  for (int i = 0; i < 6; i++) {
    uint16_t line = rig_access(r, i % 5 * 32, 1);
    r->accesses[line].column_byte = 0;
    add_access(r, FTL_OP_LDG, i, line);
    rig_add(r, FTL_OP_FFMA, 10 + i, i)->sources[0] = (uint16_t)i;
    rig_add(r, FTL_OP_IADD, -1, 10 + i);
  }
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(r->num_requests, 6);
  cr_assert_eq(rig_counters(r)->l1_load_hit_sectors, 0);
  rig_destroy(r);
}

// Loads of lines of set 0, one after another.
static rig *loads_of_a_set(const int32_t *lines, int32_t num_loads) {
  rig *r = rig_create(1);
  uint16_t accesses[5];
  for (int32_t line = 0; line < 5; line++) {
    accesses[line] = rig_access(r, line * 32, 1);
    r->accesses[accesses[line]].column_byte = 0;
  }
  add_tile(r);
  for (int32_t i = 0; i < num_loads; i++) {
    add_access(r, FTL_OP_LDG, i, accesses[lines[i]]);
    rig_add(r, FTL_OP_IADD, -1, i);
  }
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  return r;
}

// Line 0 is used again; line 4 displaces line 1, the oldest that was not. Two hits of line 0, of 4 sectors each.
Test(timing_sm_global, a_line_used_again_outlives_lines_used_once) {
  rig *r = loads_of_a_set((int32_t[]){0, 0, 1, 2, 3, 4, 0, 1}, 8);
  cr_assert_eq(r->num_requests, 6);
  cr_assert_eq(rig_counters(r)->l1_load_hit_sectors, 2 * 4);
  rig_destroy(r);
}

// Of 16 KiB half may be protected, 2 of 4 ways: with line 2 line 0 is one of the others again, and line 4 displaces it
// since line 3 is newer. Lines 1, 2 and 3 are left: hits are the second and third uses of 1 and 2, and the second of 0
// and 3. Asked for once more, line 0 would miss in place of line 2, were it protected for ever: as many hits.
Test(timing_sm_global, the_oldest_protected_line_loses_its_protection) {
  rig *r = loads_of_a_set((int32_t[]){0, 0, 1, 1, 2, 2, 3, 4, 1, 2, 3}, 11);
  cr_assert_eq(r->num_requests, 5);
  cr_assert_eq(rig_counters(r)->l1_load_hit_sectors, 6 * 4);
  rig_destroy(r);
}

// Lines used once need 16 KiB first, and 8 KiB at most are protected.
Test(timing_sm_global, a_small_l1_protects_nothing) {
  rig *r = rig_create(1);
  r->arch.l1_once_used_bytes = 16384;
  cr_assert_eq(ftl_sm_l1_protected_bytes(&r->arch, 16384), 0);
  cr_assert_eq(ftl_sm_l1_protected_bytes(&r->arch, 16384 + 128), 128);
  cr_assert_eq(ftl_sm_l1_protected_bytes(&r->arch, 1 << 20), 8192);
  rig_destroy(r);
}

// What is stored goes to L2, and its load hits.
Test(timing_sm_global, stored_lines_stay_in_l1) {
  rig *r = rig_create(1);
  uint16_t line = rig_access(r, 0, 1);
  add_tile(r);
  add_access(r, FTL_OP_STG, -1, line);
  add_access(r, FTL_OP_LDG, 0, line);
  rig_add(r, FTL_OP_FFMA, 1, 0);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(r->num_requests, 1);
  cr_assert_eq(r->requests[0].kind, FTL_MEM_WRITE);
  cr_assert_eq(rig_counters(r)->l1_load_hit_sectors, 4);
  rig_destroy(r);
}

// Stores of a line at 0 and 1, EXIT at 2. The LSU takes the second when the first's 128 bytes have gone, at 4: the warp
// leaves at 5, after 2 cycles of drain (3 and 4), and not when memory has answered, at 204.
Test(timing_sm_global, a_warp_leaves_when_the_lsu_has_its_stores) {
  rig *r = rig_create(1);
  r->arch.l1_store_bytes_per_cycle = 32;
  uint16_t line = rig_access(r, 0, 1);
  add_tile(r);
  add_access(r, FTL_OP_STG, -1, line);
  add_access(r, FTL_OP_STG, -1, line);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  cr_assert_eq(rig_run(r, 1), 5);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_DRAIN], 2);
  cr_assert_eq(r->requests[0].kind, FTL_MEM_WRITE);
  cr_assert_eq(r->requests[0].full_sectors, 15);
  cr_assert_eq(rig_counters(r)->write_sectors, 8);
  rig_destroy(r);
}

// Two groups of two lines each. Group 0: LDGSTS at 0, taken 0; commit 1; group 1: LDGSTS at 2, taken 4 (the sub-core
// sends every 2 cycles: 0, 2 for the commit, 4). Lines come at 200 and 204, two at a time, and pass the data pipe in a
// cycle each (2 wavefronts an instruction): group 0 is written at 202, group 1 at 206.
static void fill_two_groups(rig *r, int32_t left) {
  add_tile(r);  // 0
  for (int i = 0; i < 2; i++) {
    ftl_warp_inst *copy = add_access(r, FTL_OP_CP_ASYNC, -1, rig_access(r, 2 * i, 2));  // 1, 3
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

Test(timing_sm_global, cp_wait_waits_for_all_but_the_youngest_groups) {
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
Test(timing_sm_global, a_wait_for_copies_ends_later_than_they_arrive) {
  rig *r = rig_create(1);
  r->arch.l1_copy_latency_cycles = 10;
  fill_two_groups(r, 0);
  cr_assert_eq(rig_cycle(r, 0, 5, 0), 216);
  rig_destroy(r);
}

// 32 B a cycle out of the SM: the data of a line take 4 cycles, so the LSU takes the stores at 0, 4 and 8; the sub-core
// would send them at 0, 2 and 4.
Test(timing_sm_global, stores_are_handed_on_through_one_port) {
  rig *r = rig_create(1);
  r->arch.l1_store_bytes_per_cycle = 32;
  add_tile(r);
  for (int i = 0; i < 3; i++) add_access(r, FTL_OP_STG, -1, rig_access(r, i, 1));
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  for (int i = 0; i < 3; i++) cr_assert_eq(r->requests[i].time, 4 * i);
  rig_destroy(r);
}

// Two warps of two sub-cores copy four lines each, an address a cycle: the second is taken at 4, not at 1.
Test(timing_sm_global, the_lsu_takes_a_cycle_for_each_line_of_a_copy) {
  rig *r = rig_create(2);
  add_tile(r);
  add_access(r, FTL_OP_CP_ASYNC, -1, rig_access(r, 0, 4))->flags = FTL_INST_BYPASS_L1;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(r->num_requests, 8);
  cr_assert_eq(r->requests[3].time, 0);
  cr_assert_eq(r->requests[4].time, 4);
  rig_destroy(r);
}

// Warp 0's LDS takes the data pipe for 2 cycles. A copy, of another sub-core, is taken at 1 all the same, and its 4
// lines do not hold that sub-core's LDS: it is taken when the sub-core sends again, at 3, and done 24 cycles later.
Test(timing_sm_global, copies_and_shared_memory_go_side_by_side) {
  rig *r = rig_create(1);
  rig_add(r, FTL_OP_LDS, 0, -1)->wavefronts = 2;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_role(r, 1);
  add_tile(r);                                                                          // 0
  add_access(r, FTL_OP_CP_ASYNC, -1, rig_access(r, 0, 4))->flags = FTL_INST_BYPASS_L1;  // 1
  rig_add(r, FTL_OP_LDS, 0, -1)->wavefronts = 1;                                        // 2
  rig_add(r, FTL_OP_FFMA, 1, 0);                                                        // 3
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(r->num_requests, 4);
  cr_assert_eq(r->requests[3].time, 1);
  cr_assert_eq(rig_cycle(r, 1, 3, 0), 3 + 24);
  rig_destroy(r);
}

// Of one sub-core: the copy issues at 2, behind two LDS of 8 cycles. The second is taken at 8, and the copy when the
// sub-core sends again, 2 cycles later: it does not pass what waits for the data pipe.
Test(timing_sm_global, a_copy_keeps_its_place_behind_shared_memory) {
  rig *r = rig_create(1);
  add_tile(r);
  for (int i = 0; i < 2; i++) rig_add(r, FTL_OP_LDS, i, -1)->wavefronts = 8;
  add_access(r, FTL_OP_CP_ASYNC, -1, rig_access(r, 0, 4))->flags = FTL_INST_BYPASS_L1;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(r->num_requests, 4);
  cr_assert_eq(r->requests[0].time, 8 + 2);
  rig_destroy(r);
}

// Taken at 0; 14 cycles later an instruction may write over its address.
Test(timing_sm_global, a_copy_frees_its_address_registers_after_it_was_taken) {
  rig *r = rig_create(1);
  r->arch.l1_operand_release_cycles = 14;
  add_tile(r);
  add_access(r, FTL_OP_CP_ASYNC, 0, rig_access(r, 0, 4))->flags = FTL_INST_BYPASS_L1;
  rig_add(r, FTL_OP_FFMA, 1, 0);  // 2
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 14);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_LONG_SCOREBOARD], 13);
  rig_destroy(r);
}

// The same of a store's data.
Test(timing_sm_global, a_store_frees_its_registers_after_it_was_taken) {
  rig *r = rig_create(1);
  r->arch.l1_operand_release_cycles = 14;
  add_tile(r);
  add_access(r, FTL_OP_STG, 0, rig_access(r, 0, 4));
  rig_add(r, FTL_OP_FFMA, 1, 0);  // 2
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 14);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_LONG_SCOREBOARD], 13);
  rig_destroy(r);
}

// 32 B a cycle into the SM: a line takes the fill port for 4 cycles, so the lines of a load come at 200, 204 and 208.
Test(timing_sm_global, lines_come_in_through_one_port) {
  rig *r = rig_create(1);
  r->arch.l1_fill_bytes_per_cycle = 32;
  add_tile(r);
  add_access(r, FTL_OP_LDG, 0, rig_access(r, 0, 3));
  rig_add(r, FTL_OP_FFMA, 1, 0);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 208);
  rig_destroy(r);
}

// Copies past L1 do not take that port, which would be free for the second line of each group 4 cycles after the first.
Test(timing_sm_global, copies_past_l1_come_in_beside_its_port) {
  rig *r = rig_create(1);
  r->arch.l1_fill_bytes_per_cycle = 32;
  fill_two_groups(r, 0);
  cr_assert_eq(rig_cycle(r, 0, 5, 0), 206);
  rig_destroy(r);
}

static void add_copies(rig *r, int count) {
  for (int i = 0; i < count; i++)
    add_access(r, FTL_OP_CP_ASYNC, -1, rig_access(r, 2 * i, 2))->flags = FTL_INST_BYPASS_L1;
}

// At most 4 lines in flight, 2 an instruction: the copies at 0 and 1 (taken at 0 and 2) fill it. The third waits in the
// queue, which has room for one, from 3 on, when the second has left it; the lines of the first come at 200: the third
// is taken then, and the fourth issues at 201. It was throttled from 4 on, the third at 2.
Test(timing_sm_global, lines_in_flight_are_limited) {
  rig *r = rig_create(1);
  r->arch.l1_max_pending_lines = 4;
  r->arch.mio_lg_queue_entries = 1;
  add_tile(r);
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
Test(timing_sm_global, copies_wait_in_a_queue_of_their_own) {
  rig *r = rig_create(1);
  r->arch.l1_max_pending_lines = 2;
  r->arch.mio_lg_queue_entries = 3;
  add_tile(r);
  add_copies(r, 5);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  for (int i = 0; i < 4; i++) cr_assert_eq(rig_cycle(r, 0, 1 + i, 0), i);
  cr_assert_eq(rig_cycle(r, 0, 5, 0), 201);
  rig_destroy(r);
}

// Copies that wait for lines leave the way to shared memory free: the load of cycle 3 is taken then, its result there
// 24 cycles later.
Test(timing_sm_global, shared_memory_passes_copies_that_wait_for_lines) {
  rig *r = rig_create(1);
  r->arch.l1_max_pending_lines = 2;
  add_tile(r);
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
Test(timing_sm_global, rows_outside_the_tensor_make_no_lines) {
  rig *r = rig_create(1);
  int32_t row = rig_const(r, 1022);
  r->refs[0].row = row;
  add_tile(r);
  add_access(r, FTL_OP_CP_ASYNC, -1, rig_access(r, 0, 4))->flags = FTL_INST_BYPASS_L1;
  add_access(r, FTL_OP_LDG, 0, rig_access(r, 2, 2));
  rig_add(r, FTL_OP_FFMA, 1, 0);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(r->num_requests, 2);
  cr_assert_eq(rig_cycle(r, 0, 3, 0), 2 + 32, "a load of nothing takes as long as a hit");
  rig_destroy(r);
}

// An absent tile: the instruction issues and makes nothing.
Test(timing_sm_global, an_absent_tile_makes_no_lines) {
  rig *r = rig_create(1);
  r->refs[0].present = rig_const(r, 0);
  add_tile(r);
  add_access(r, FTL_OP_CP_ASYNC, -1, rig_access(r, 0, 4))->flags = FTL_INST_BYPASS_L1 | FTL_INST_IF_PRESENT;
  rig_add(r, FTL_OP_CP_COMMIT, -1, -1);
  rig_add(r, FTL_OP_CP_WAIT, -1, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  cr_assert_eq(rig_run(r, 1), 4);
  cr_assert_eq(r->num_requests, 0);
  rig_destroy(r);
}

// Spills are written through and stay in L1: the store of a slot goes to L2, and its load hits.
Test(timing_sm_global, spills_are_written_through_and_kept_in_l1) {
  rig *r = rig_create(2);
  uint16_t slot = rig_access(r, 3, 1);
  r->accesses[slot].is_local = true;
  add_access(r, FTL_OP_STL, -1, slot);
  add_access(r, FTL_OP_LDL, 0, slot);
  rig_add(r, FTL_OP_FFMA, 1, 0);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(r->num_requests, 2);  // one line of four sectors a warp
  cr_assert_eq(rig_counters(r)->local_sectors, 8);
  // STL taken at 0 and 1 (two sub-cores), LDL of warp 0 at 2: ready at 34
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 34);
  rig_destroy(r);
}

// Without any L1 left a local store goes to L2 and the load comes from there.
Test(timing_sm_global, spills_go_to_l2_when_shared_memory_takes_all) {
  rig *r = rig_create(1);
  r->program.shared_bytes = 16384;
  uint16_t slot = rig_access(r, 3, 1);
  r->accesses[slot].is_local = true;
  add_access(r, FTL_OP_STL, -1, slot);
  add_access(r, FTL_OP_LDL, 0, slot);
  rig_add(r, FTL_OP_FFMA, 1, 0);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(r->num_requests, 2);
  cr_assert_eq(r->requests[0].kind, FTL_MEM_WRITE);
  cr_assert_eq(r->requests[1].kind, FTL_MEM_READ);
  cr_assert(r->requests[0].is_local && r->requests[1].is_local);
  cr_assert_eq(r->requests[0].line, r->requests[1].line);
  cr_assert(r->requests[0].line >> (46 - 7) & 1);
  cr_assert_eq(rig_counters(r)->local_sectors, 8);
  rig_destroy(r);
}

// One warp stores 16 bytes at each of the columns, counted on from line to line of 128 bytes: halves of sectors.
static rig *stores_of_halves(const int32_t *columns, int32_t num_stores, int64_t open_lines, int64_t open_cycles) {
  rig *r = rig_create(1);
  r->arch.l1_store_merge_lines = open_lines;
  r->arch.l1_store_merge_cycles = open_cycles;
  add_tile(r);
  for (int32_t i = 0; i < num_stores; i++) {
    uint16_t half = rig_access(r, columns[i] / 128, 1);
    r->accesses[half].column_byte = columns[i] % 128;
    r->accesses[half].bytes = 16;
    add_access(r, FTL_OP_STG, -1, half);
  }
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  return r;
}

// Sectors 0 and 1 of line 0 in halves, at 0, 2, 4 and 6: the last has passed at 7, and the line closes when 100 cycles
// have gone by without a store. One request of two whole sectors.
Test(timing_sm_global, a_sector_stored_in_parts_is_sent_once_while_its_line_is_open) {
  const int32_t columns[] = {0, 16, 32, 48};
  rig *r = stores_of_halves(columns, 4, 1, 100);
  cr_assert_eq(r->num_requests, 1);
  cr_assert_eq(r->requests[0].time, 7 + 100 + 1);
  cr_assert_eq(r->requests[0].sectors, 3);
  cr_assert_eq(r->requests[0].full_sectors, 3);
  cr_assert_eq(rig_counters(r)->global_store_sectors, 2);
  cr_assert_eq(rig_counters(r)->global_store_bytes, 64);
  cr_assert_eq(rig_counters(r)->l1_store_sectors, 4);
  rig_destroy(r);
}

// Eight halves are all of line 0: it goes with the last, which the sub-core sends at 14.
Test(timing_sm_global, a_line_that_is_all_stored_closes) {
  const int32_t columns[] = {0, 16, 32, 48, 64, 80, 96, 112};
  rig *r = stores_of_halves(columns, 8, 1, 100);
  cr_assert_eq(r->num_requests, 1);
  cr_assert_eq(r->requests[0].time, 14);
  cr_assert_eq(r->requests[0].full_sectors, 15);
  rig_destroy(r);
}

// One warp stores the lines whole, in words: each of the four instructions has the next word of every 16 bytes.
static rig *stores_of_words(const int32_t *lines, int32_t num_stores) {
  rig *r = rig_create(1);
  r->arch.l1_store_merge_lines = 1;
  r->arch.l1_store_merge_cycles = 100;
  add_tile(r);
  for (int32_t i = 0; i < num_stores; i++) {
    uint16_t words = rig_access(r, lines[i], 1);
    r->accesses[words].bytes = 128;
    r->accesses[words].in_words = true;
    add_access(r, FTL_OP_STG, -1, words);
  }
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  return r;
}

// Four in a row make the line whole: 16 sectors stored, 4 sent. Where line 1 closes line 0 after two of its words and
// line 0 closes line 1 again, line 0 goes twice in parts.
Test(timing_sm_global, words_that_follow_each_other_are_one_request) {
  const int32_t together[] = {0, 0, 0, 0}, apart[] = {0, 0, 1, 0, 0};
  rig *r = stores_of_words(together, 4);
  cr_assert_eq(r->num_requests, 1);
  cr_assert_eq(r->requests[0].full_sectors, 15);
  cr_assert_eq(rig_counters(r)->l1_store_sectors, 16);
  cr_assert_eq(rig_counters(r)->global_store_sectors, 4);
  cr_assert_eq(rig_counters(r)->global_store_bytes, 128);
  rig_destroy(r);
  r = stores_of_words(apart, 5);
  cr_assert_eq(r->num_requests, 3);
  for (int i = 0; i < 3; i++) {
    cr_assert_eq(r->requests[i].sectors, 15);
    cr_assert_eq(r->requests[i].full_sectors, 0);
  }
  cr_assert_eq(rig_counters(r)->global_store_sectors, 12);
  rig_destroy(r);
}

// Three stores of as many bytes of lines 0, 1 and 2 each, from byte 16 on.
static rig *stores_of_parts(int32_t bytes) {
  rig *r = rig_create(1);
  r->arch.l1_store_bytes_per_cycle = 32;
  r->arch.l1_byte_mask_sectors = 2;
  add_tile(r);
  for (int32_t i = 0; i < 3; i++) {
    uint16_t part = rig_access(r, i, 1);
    r->accesses[part].column_byte = 16;
    r->accesses[part].bytes = bytes;
    add_access(r, FTL_OP_STG, -1, part);
  }
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  return r;
}

// Half a sector takes the port as itself and a mask of two, at 32 B a cycle, so the LSU takes the stores at 0, 3 and 6;
// without a mask they would go as the sub-core sends them, at 0, 2 and 4. Halves of two sectors have one mask: 4 cycles
// a store.
Test(timing_sm_global, a_mask_of_bytes_goes_with_parts_of_sectors_once_a_line) {
  rig *r = stores_of_parts(16);
  for (int i = 0; i < 3; i++) cr_assert_eq(r->requests[i].time, 3 * i);
  rig_destroy(r);
  r = stores_of_parts(32);
  for (int i = 0; i < 3; i++) {
    cr_assert_eq(r->requests[i].sectors, 3);
    cr_assert_eq(r->requests[i].time, 4 * i);
  }
  rig_destroy(r);
}

// Stores of four lines, which close with them and take the port 4 cycles each. As two lines may be open, two sectors
// may wait for it: the second store is taken at 4 - 2, when the sub-core sends it, the third at 8 - 2 and the fourth at
// 12 - 2.
Test(timing_sm_global, as_many_sectors_as_open_lines_wait_for_the_store_port) {
  rig *r = rig_create(1);
  r->arch.l1_store_bytes_per_cycle = 32;
  r->arch.l1_store_merge_lines = 2;
  add_tile(r);
  for (int i = 0; i < 4; i++) add_access(r, FTL_OP_STG, -1, rig_access(r, i, 1));
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  const int64_t times[] = {0, 2, 6, 10};
  for (int i = 0; i < 4; i++) cr_assert_eq(r->requests[i].time, times[i]);
  rig_destroy(r);
}

// Lines 0, 1, 2 and 0 again. With two open, 2 took the place of 0; with three, 0 is still there.
Test(timing_sm_global, the_line_stored_to_longest_ago_closes_for_another) {
  const int32_t columns[] = {0, 128, 256, 16};
  rig *r = stores_of_halves(columns, 4, 2, 100);
  cr_assert_eq(r->num_requests, 4);
  rig_destroy(r);
  r = stores_of_halves(columns, 4, 3, 100);
  cr_assert_eq(r->num_requests, 3);
  rig_destroy(r);
}

// Lines 0 and 1, and 1 again: it goes on where it is open, not in the place of 0. Both close together, line 1 with the
// whole of its first sector.
Test(timing_sm_global, a_line_is_stored_to_where_it_is_open) {
  const int32_t columns[] = {0, 128, 128 + 16};
  rig *r = stores_of_halves(columns, 3, 2, 100);
  cr_assert_eq(r->num_requests, 2);
  cr_assert_eq(r->requests[0].full_sectors, 0);
  cr_assert_eq(r->requests[1].full_sectors, 1);
  rig_destroy(r);
}

// Stores at 0 and 2, of lines 0 and 1, which have passed at 1 and 3. With 4 cycles without a store both lines close at
// 3 + 4 + 1; with none the first closes at 2, before the second is stored to, which closes at 4.
Test(timing_sm_global, open_lines_close_when_no_store_has_come_for_a_while) {
  const int32_t columns[] = {0, 128};
  rig *r = stores_of_halves(columns, 2, 4, 4);
  cr_assert_eq(r->num_requests, 2);
  cr_assert_eq(r->requests[0].time, 8);
  cr_assert_eq(r->requests[1].time, 8);
  rig_destroy(r);
  r = stores_of_halves(columns, 2, 4, 0);
  cr_assert_eq(r->num_requests, 2);
  cr_assert_eq(r->requests[0].time, 2);
  cr_assert_eq(r->requests[1].time, 4);
  rig_destroy(r);
}
