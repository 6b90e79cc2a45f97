#include <criterion/criterion.h>

#include "rig.h"

// Role 0: a producer warp; role 1: consumer warps. `fills` tiles of `rows` lines through a ring of `stages`.
static rig *pipeline(int32_t fills, int32_t stages, int32_t rows, int32_t consumers) {
  rig *r = rig_create(1);
  uint16_t access = rig_access(r, 0, rows);
  rig_ring(r, stages, consumers);
  int32_t loop = rig_loop(r, 0, 0, fills);               // 0
  rig_add(r, FTL_OP_TILE, -1, -1)->access = 0;           // 1
  rig_add(r, FTL_OP_MBAR_ACQUIRE, -1, -1)->arg = 0;      // 2
  rig_add(r, FTL_OP_MBAR_EXPECT, -1, -1)->arg = 0;       // 3
  rig_add(r, FTL_OP_TMA_LOAD, -1, -1)->access = access;  // 4
  rig_add(r, FTL_OP_MBAR_ADVANCE, -1, -1)->arg = 0;      // 5
  rig_end_loop(r, loop);                                 // 6
  rig_add(r, FTL_OP_EXIT, -1, -1);                       // 7
  rig_role(r, consumers);
  loop = rig_loop(r, 1, 0, fills);                   // 0
  rig_add(r, FTL_OP_MBAR_WAIT, -1, -1)->arg = 0;     // 1
  rig_add(r, FTL_OP_FFMA, 0, -1);                    // 2
  rig_add(r, FTL_OP_MBAR_RELEASE, -1, -1)->arg = 0;  // 3
  rig_end_loop(r, loop);                             // 4
  rig_add(r, FTL_OP_EXIT, -1, -1);                   // 5
  return r;
}

// ACQUIRE at 0 passes, next issue at 10: EXPECT; TMA_LOAD at 11, its 4 lines at 51..54, back at 251..254 and written a
// cycle each, the last at 255: the phase completes, and the consumer that waits goes on 10 cycles later, at 265.
Test(timing_sm_tma, a_consumer_goes_on_when_all_lines_are_written) {
  rig *r = pipeline(1, 2, 4, 1);
  rig_run(r, 2 - 1);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 0);
  cr_assert_eq(rig_cycle(r, 0, 3, 0), 10);
  cr_assert_eq(rig_cycle(r, 0, 4, 0), 11);
  cr_assert_eq(r->num_requests, 4);
  for (int i = 0; i < 4; i++) {
    cr_assert_eq(r->requests[i].time, 51 + i);
    cr_assert_eq(r->requests[i].sectors, 15);
  }
  cr_assert_eq(rig_cycle(r, 1, 1, 0), 0);
  cr_assert_eq(rig_cycle(r, 1, 2, 0), 265);
  rig_destroy(r);
}

// Of each row the tensor has 96 bytes, three sectors; the box is 128 wide.
Test(timing_sm_tma, a_load_reads_the_whole_width_of_its_box) {
  for (int32_t box_bytes = 96; box_bytes <= 128; box_bytes += 32) {
    rig *r = pipeline(1, 2, 4, 1);
    r->accesses[0].bytes = 96;
    r->program.rings[0].box_bytes = box_bytes;
    rig_run(r, 2 - 1);
    cr_assert_eq(r->num_requests, 4);
    for (int i = 0; i < 4; i++) cr_expect_eq(r->requests[i].sectors, box_bytes == 128 ? 15 : 7);
    rig_destroy(r);
  }
}

// ACQUIRE at 0, EXPECT at 10, TMA_LOAD at 11, which has read its uniform registers 7 cycles later: what writes them
// again issues at 18, though the copy's first line goes at 51.
Test(timing_sm_tma, registers_of_a_copy_are_free_before_its_lines_go) {
  rig *r = rig_create(1);
  uint16_t access = rig_access(r, 0, 4);
  rig_ring(r, 2, 1);
  rig_add(r, FTL_OP_TILE, -1, -1)->access = 0;          // 0
  rig_add(r, FTL_OP_MBAR_ACQUIRE, -1, -1)->arg = 0;     // 1
  rig_add(r, FTL_OP_MBAR_EXPECT, -1, -1)->arg = 0;      // 2
  rig_add(r, FTL_OP_TMA_LOAD, 0, -1)->access = access;  // 3
  rig_add(r, FTL_OP_R2UR, 1, 0);                        // 4
  rig_add(r, FTL_OP_MBAR_ADVANCE, -1, -1)->arg = 0;     // 5
  rig_add(r, FTL_OP_EXIT, -1, -1);                      // 6
  rig_role(r, 1);
  rig_add(r, FTL_OP_MBAR_WAIT, -1, -1)->arg = 0;
  rig_add(r, FTL_OP_MBAR_RELEASE, -1, -1)->arg = 0;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 2 - 1);
  cr_expect_eq(rig_cycle(r, 0, 3, 0), 11);
  cr_expect_eq(rig_cycle(r, 0, 4, 0), 11 + 7);
  cr_expect_eq(r->requests[0].time, 51);
  rig_destroy(r);
}

// A phase that completes at 255 lets the warp go on at 265, tried before or not. One that comes to its wait at 290,
// when it has been complete for long, goes on 10 cycles later, or in the next cycle where it had tried before.
Test(timing_sm_tma, a_wait_that_was_tried_before_costs_its_branch) {
  for (int tried = 0; tried < 2; tried++)
    for (int late = 0; late < 2; late++) {
      rig *r = rig_create(1);
      uint16_t access = rig_access(r, 0, 4);
      rig_ring(r, 1, 1);
      rig_add(r, FTL_OP_TILE, -1, -1)->access = 0;           // 0
      rig_add(r, FTL_OP_MBAR_ACQUIRE, -1, -1)->arg = 0;      // 1
      rig_add(r, FTL_OP_MBAR_EXPECT, -1, -1)->arg = 0;       // 2
      rig_add(r, FTL_OP_TMA_LOAD, -1, -1)->access = access;  // 3
      rig_add(r, FTL_OP_MBAR_ADVANCE, -1, -1)->arg = 0;      // 4
      rig_add(r, FTL_OP_EXIT, -1, -1);                       // 5
      rig_role(r, 1);
      rig_add(r, FTL_OP_FFMA, 0, -1)->repeat = (uint8_t)(late ? 255 : 1);  // 0
      rig_add(r, FTL_OP_FFMA, 0, 0)->repeat = (uint8_t)(late ? 30 : 1);    // 1
      ftl_warp_inst *wait = rig_add(r, FTL_OP_MBAR_WAIT, -1, -1);          // 2
      wait->flags = tried ? FTL_INST_TRIED : 0;
      rig_add(r, FTL_OP_FFMA, 1, -1);  // 3
      rig_add(r, FTL_OP_EXIT, -1, -1);
      rig_run(r, 1);
      int64_t came = rig_cycle(r, 1, 2, 0), went_on = rig_cycle(r, 1, 3, 0);
      if (late)
        cr_expect_eq(went_on, came + (tried ? 1 : 10), "tried %d: %lld, %lld", tried, (long long)came,
                     (long long)went_on);
      else
        cr_expect_eq(went_on, 265, "tried %d: %lld", tried, (long long)went_on);
      if (late) cr_expect_gt(came, 265);
      rig_destroy(r);
    }
}

// Half a line a cycle: lines at 51, 53, 55, 57.
Test(timing_sm_tma, lines_go_at_the_rate_of_the_engine) {
  rig *r = pipeline(1, 2, 4, 1);
  r->arch.tma_lines_per_cycle_milli = 500;
  rig_run(r, 1);
  for (int i = 0; i < 4; i++) cr_assert_eq(r->requests[i].time, 51 + 2 * i);
  rig_destroy(r);
}

// One and a half lines a cycle: line n at 51 + floor(n / 1.5).
Test(timing_sm_tma, a_fractional_rate_does_not_drift) {
  rig *r = pipeline(1, 2, 12, 1);
  r->arch.tma_lines_per_cycle_milli = 1500;
  rig_run(r, 1);
  for (int i = 0; i < 12; i++) cr_assert_eq(r->requests[i].time, 51 + i * 2 / 3);
  rig_destroy(r);
}

// Two lines in flight: the third waits for the first reply, at 251.
Test(timing_sm_tma, lines_in_flight_are_limited) {
  rig *r = pipeline(1, 2, 4, 1);
  r->arch.tma_max_pending_lines = 2;
  rig_run(r, 1);
  cr_assert_eq(r->requests[1].time, 52);
  cr_assert_eq(r->requests[2].time, 251);
  cr_assert_eq(r->requests[3].time, 252);
  rig_destroy(r);
}

// A ring of one stage and two consumers: the second fill is acquired when both have released the first. The first fill
// is as above, one line: 51, 251, written 252, consumers at 262; FFMA 262, RELEASE 263, taken by the LSU at 263 and 264
// (one a cycle): complete at 264; the producer goes on at 274.
Test(timing_sm_tma, a_producer_waits_until_all_consumers_released_the_stage) {
  rig *r = pipeline(2, 1, 1, 2);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 4, 0), 11);
  cr_assert_eq(rig_cycle(r, 0, 2, 1), 12);
  cr_assert_eq(rig_cycle(r, 1, 2, 0), 262);
  cr_assert_eq(rig_cycle(r, 1, 3, 0), 263);
  cr_assert_eq(rig_cycle(r, 0, 3, 1), 274);
  rig_destroy(r);
}

// With as many stages as fills nobody waits for an empty one: the second TMA_LOAD issues 10 + 1 cycles after its
// ACQUIRE.
Test(timing_sm_tma, free_stages_are_filled_ahead) {
  rig *r = pipeline(2, 2, 1, 2);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 2, 1), 12);
  cr_assert_eq(rig_cycle(r, 0, 4, 1), 12 + 11);
  rig_destroy(r);
}

// A tile that is not there: the phase completes with the producer's arrival.
Test(timing_sm_tma, an_absent_tile_completes_without_traffic) {
  rig *r = pipeline(1, 1, 4, 1);
  r->refs[0].present = rig_const(r, 0);
  rig_run(r, 1);
  cr_assert_eq(r->num_requests, 0);
  // the copy is through when its first line would have gone, at 51
  cr_assert_eq(rig_cycle(r, 1, 2, 0), 61);
  rig_destroy(r);
}

// Two copies under way take turns: lines of access 0 (rows 0..) and access 1 (rows 100..) alternate.
Test(timing_sm_tma, copies_take_turns) {
  rig *r = rig_create(1);
  uint16_t first = rig_access(r, 0, 6), second = rig_access(r, 100, 6);
  rig_ring(r, 1, 1);
  rig_add(r, FTL_OP_TILE, -1, -1)->access = 0;
  rig_add(r, FTL_OP_MBAR_EXPECT, -1, -1)->arg = 0;
  rig_add(r, FTL_OP_TMA_LOAD, -1, -1)->access = first;
  rig_add(r, FTL_OP_TMA_LOAD, -1, -1)->access = second;
  rig_add(r, FTL_OP_MBAR_ADVANCE, -1, -1)->arg = 0;
  rig_add(r, FTL_OP_MBAR_WAIT, -1, -1)->arg = 0;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  // issued at 1 and 4 (issue cost 3): lines from 41 and 44 on
  static const int64_t lines[] = {0, 2, 4, 200, 6, 202, 8, 204, 10, 206, 208, 210};
  for (int i = 0; i < 12; i++) {
    cr_assert_eq(r->requests[i].time, 41 + i);
    cr_assert_eq(r->requests[i].line, (uint64_t)lines[i], "line %d is %llu", i,
                 (unsigned long long)r->requests[i].line);
  }
  rig_destroy(r);
}

// A store of 3 lines: issued 0, lines read at 40, 41, 42; the wait ends when the last is read (next issue 43), EXIT at
// 44: nothing waits until memory has accepted the last, at 242.
Test(timing_sm_tma, a_store_is_waited_for_until_it_is_read) {
  rig *r = rig_create(1);
  uint16_t access = rig_access(r, 0, 3);
  rig_add(r, FTL_OP_TILE, -1, -1)->access = 0;
  rig_add(r, FTL_OP_TMA_STORE, -1, -1)->access = access;
  rig_add(r, FTL_OP_TMA_STORE_WAIT, -1, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  cr_assert_eq(rig_run(r, 1), 45);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 43);
  for (int i = 0; i < 3; i++) {
    cr_assert_eq(r->requests[i].kind, FTL_MEM_WRITE);
    cr_assert_eq(r->requests[i].full_sectors, 15);
  }
  rig_destroy(r);
}

// Two stores of 2 lines, issued at 0 and 3 (issue cost 3): their lines are read at 40, 41 and 43, 44. The wait for both
// issues at 45, that for all but one of them at 42.
Test(timing_sm_tma, all_but_some_stores_are_waited_for) {
  for (int left = 0; left < 2; left++) {
    rig *r = rig_create(1);
    uint16_t access = rig_access(r, 0, 2);
    rig_add(r, FTL_OP_TILE, -1, -1)->access = 0;
    rig_add(r, FTL_OP_TMA_STORE, -1, -1)->access = access;
    rig_add(r, FTL_OP_TMA_STORE, -1, -1)->access = access;
    rig_add(r, FTL_OP_TMA_STORE_WAIT, -1, -1)->arg = (uint16_t)left;
    rig_add(r, FTL_OP_EXIT, -1, -1);
    rig_run(r, 1);
    cr_expect_eq(rig_cycle(r, 0, 3, 0), left == 0 ? 45 : 42, "%d left: %lld", left, (long long)rig_cycle(r, 0, 3, 0));
    rig_destroy(r);
  }
}

// Stores of 3 lines as above, by a port of 32 bytes a cycle, four cycles a line: read at 40, 44 and 48, and the wait
// issues at 49. A load of 3 lines, issued at 3, goes between them, at 43 (eligible), 45 and 46.
Test(timing_sm_tma, stored_lines_leave_by_the_store_port) {
  rig *r = rig_create(1);
  r->arch.l1_store_bytes_per_cycle = 32;
  uint16_t access = rig_access(r, 0, 3);
  rig_ring(r, 1, 1);
  rig_add(r, FTL_OP_TILE, -1, -1)->access = 0;
  rig_add(r, FTL_OP_TMA_STORE, -1, -1)->access = access;
  rig_add(r, FTL_OP_TMA_LOAD, -1, -1)->access = access;
  rig_add(r, FTL_OP_TMA_STORE_WAIT, -1, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  static const int64_t times[] = {40, 43, 44, 45, 46, 48};
  static const int kinds[] = {FTL_MEM_WRITE, FTL_MEM_READ, FTL_MEM_WRITE, FTL_MEM_READ, FTL_MEM_READ, FTL_MEM_WRITE};
  cr_assert_eq(r->num_requests, 6);
  for (int i = 0; i < 6; i++) {
    cr_expect_eq(r->requests[i].time, times[i], "%d: %lld", i, (long long)r->requests[i].time);
    cr_expect_eq((int)r->requests[i].kind, kinds[i], "%d", i);
  }
  cr_expect_eq(rig_cycle(r, 0, 3, 0), 49);
  rig_destroy(r);
}
