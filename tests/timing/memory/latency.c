// Unloaded latencies of tests/timing/memory/small_arch.h, to the cycle.
#include "drive.h"
#include "small_arch.h"

enum { GHZ = 1000000 };

Test(timing_memory_latency, a_near_hit_takes_request_hit_and_reply) {
  ftl_arch arch = small_arch();
  ftl_memory *memory = create_memory(&arch, GHZ);
  uint64_t line = line_of_side(&arch, 0, 0, 0);
  ftl_mem_request requests[] = {read_of(0, 0, line, 1, 0), read_of(1000, 0, line, 1, 1)};
  int64_t replies[2];
  drive(memory, requests, 2, replies);
  cr_expect_eq(replies[1] - 1000, 10 + 20 + 30);
  ftl_memory_destroy(memory);
}

Test(timing_memory_latency, a_whole_line_ends_when_its_last_bytes_pass_the_sm_port) {
  ftl_arch arch = small_arch();
  ftl_memory *memory = create_memory(&arch, GHZ);
  uint64_t line = line_of_side(&arch, 0, 0, 0);
  ftl_mem_request requests[] = {read_of(0, 0, line, 15, 0), read_of(1000, 0, line, 15, 1)};
  int64_t replies[2];
  drive(memory, requests, 2, replies);
  // 128 bytes at 64 a cycle: the second half passes one cycle after the first.
  cr_expect_eq(replies[1] - 1000, 10 + 20 + 30 + 1);
  ftl_memory_destroy(memory);
}

Test(timing_memory_latency, a_far_hit_crosses_between_the_sides_twice) {
  ftl_arch arch = small_arch();
  ftl_memory *memory = create_memory(&arch, GHZ);
  uint64_t line = line_of_side(&arch, 0, 0, 0);
  // SM 0 brings the line to its home; SM 1 on the other side finds it there, and later in its own side.
  ftl_mem_request requests[] = {read_of(0, 0, line, 1, 0), read_of(1000, 1, line, 1, 1), read_of(2000, 1, line, 1, 2)};
  int64_t replies[3];
  drive(memory, requests, 3, replies);
  cr_expect_eq(replies[1] - 1000, 10 + 7 + 7 + 20 + 30);
  cr_expect_eq(replies[2] - 2000, 10 + 20 + 30);
  cr_expect_eq(ftl_memory_counters_get(memory).l2_fabric_sectors, 1);
  cr_expect_eq(ftl_memory_counters_get(memory).l2_fabric_hit_sectors, 1);
  ftl_memory_destroy(memory);
}

Test(timing_memory_latency, a_miss_adds_the_controller_and_a_row_opening) {
  ftl_arch arch = small_arch();
  ftl_memory *memory = create_memory(&arch, GHZ);
  uint64_t line = line_of_side(&arch, 0, 0, 0);
  ftl_mem_request requests[] = {read_of(0, 0, line, 1, 0), read_of(1000, 0, line, 2, 1)};
  int64_t replies[2];
  drive(memory, requests, 2, replies);
  // Hit latency 60, controller 40, ACT to column 12, column to data 14, data 2.
  cr_expect_eq(replies[0], 60 + 40 + 12 + 14 + 2);
  // Another sector of the line: its row is open.
  cr_expect_eq(replies[1] - 1000, 60 + 40 + 14 + 2);
  ftl_memory_counters counters = ftl_memory_counters_get(memory);
  cr_expect_eq(counters.dram_row_misses, 1);
  cr_expect_eq(counters.dram_row_hits, 1);
  cr_expect_eq(counters.dram_read_bytes, 64);
  ftl_memory_destroy(memory);
}

Test(timing_memory_latency, a_far_miss_adds_two_crossings_to_a_near_miss) {
  ftl_arch arch = small_arch();
  ftl_memory *memory = create_memory(&arch, GHZ);
  ftl_mem_request request = read_of(0, 1, line_of_side(&arch, 0, 0, 0), 1, 0);
  int64_t reply;
  drive(memory, &request, 1, &reply);
  cr_expect_eq(reply, 60 + 2 * 7 + 40 + 12 + 14 + 2);
  ftl_memory_destroy(memory);
}

Test(timing_memory_latency, a_write_is_accepted_after_its_data_have_left_the_sm) {
  ftl_arch arch = small_arch();
  ftl_memory *memory = create_memory(&arch, GHZ);
  uint64_t near = line_of_side(&arch, 0, 0, 0), far = line_of_side(&arch, 1, 0, 0);
  ftl_mem_request requests[] = {write_of(0, 0, near, 15, 0), write_of(1000, 0, far, 15, 1)};
  int64_t replies[2];
  drive(memory, requests, 2, replies);
  // 128 bytes leave at 32 a cycle: the last ones 3 cycles after the first.
  cr_expect_eq(replies[0], 3 + 60);
  cr_expect_eq(replies[1] - 1000, 3 + 60 + 2 * 7);
  cr_expect_eq(ftl_memory_counters_get(memory).dram_read_bytes, 0);
  ftl_memory_destroy(memory);
}

// Both lines are in L2; each request takes the SM's port for a cycle, all that they share.
Test(timing_memory_latency, a_request_without_data_takes_the_sm_port_for_a_cycle) {
  ftl_arch arch = small_arch();
  ftl_memory *memory = create_memory(&arch, GHZ);
  uint64_t lines[] = {line_of_side(&arch, 0, 0, 0), line_of_side(&arch, 0, 0, 1)};
  ftl_mem_request requests[] = {read_of(0, 0, lines[0], 1, 0), read_of(0, 0, lines[1], 1, 1),
                                read_of(1000, 0, lines[0], 1, 2), read_of(1000, 0, lines[1], 1, 3)};
  int64_t replies[4];
  drive(memory, requests, 4, replies);
  cr_expect_eq(replies[2] - 1000, 60);
  cr_expect_eq(replies[3] - 1000, 61);
  ftl_memory_destroy(memory);
}

Test(timing_memory_latency, clocks_convert_at_exact_edges) {
  ftl_arch arch = small_arch();
  arch.clock_l2_khz = 1600000;
  ftl_memory *memory = create_memory(&arch, 1755000);
  uint64_t line = line_of_side(&arch, 0, 0, 0);
  ftl_mem_request requests[] = {read_of(0, 0, line, 1, 0), read_of(1000, 0, line, 1, 1)};
  int64_t replies[2];
  drive(memory, requests, 2, replies);
  // SM edge 1000 at 569800 ps; L2 cycles of 625 ps: edge 912 (570000 ps) is the first at or after it; the reply is at
  // edge 972, 607500 ps; SM cycle 1067 is at 607977 ps, cycle 1066 at 607407 ps.
  cr_expect_eq(replies[1], 1067);
  ftl_memory_destroy(memory);
}

Test(timing_memory_latency, the_longest_window_is_the_round_trip_of_a_hit) {
  ftl_arch arch = small_arch();
  ftl_memory *memory = create_memory(&arch, 2 * GHZ);
  cr_expect_eq(ftl_memory_max_window_cycles(memory), 2 * 60);
  ftl_memory_destroy(memory);
}
