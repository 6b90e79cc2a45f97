// Requests that meet: merging with a miss in flight, the coalescer, ports, write-back, the state between launches.
#include "drive.h"
#include "small_arch.h"

enum { GHZ = 1000000, NUM_REQUESTS = 10000 };

Test(timing_memory_sharing, a_hit_on_a_miss_in_flight_makes_one_dram_read) {
  ftl_arch arch = small_arch();
  ftl_memory *memory = create_memory(&arch, GHZ);
  uint64_t line = line_of_side(&arch, 0, 0, 0);
  ftl_mem_request requests[] = {read_of(0, 0, line, 1, 0), read_of(1, 2, line, 1, 1), read_of(50, 4, line, 1, 2)};
  int64_t replies[3];
  drive(memory, requests, 3, replies);
  ftl_memory_counters counters = ftl_memory_counters_get(memory);
  cr_expect_eq(counters.dram_read_bytes, 32);
  // All go on when the data come; 3 sectors pass the slice (128 B a cycle) and the GPC's port (1024) in one cycle.
  for (int i = 0; i < 3; i++) cr_expect_eq(replies[i], 60 + 40 + 12 + 14 + 2, "reply %d at %ld", i, (long)replies[i]);
  cr_expect_eq(counters.l2_miss_sectors, 1);
  cr_expect_eq(counters.l2_hit_sectors, 2);
  ftl_memory_destroy(memory);
}

Test(timing_memory_sharing, readers_of_both_sides_share_one_dram_read) {
  ftl_arch arch = small_arch();
  ftl_memory *memory = create_memory(&arch, GHZ);
  uint64_t line = line_of_side(&arch, 0, 0, 0);
  ftl_mem_request requests[] = {read_of(0, 0, line, 1, 0), read_of(0, 1, line, 1, 1)};
  int64_t replies[2];
  drive(memory, requests, 2, replies);
  cr_expect_eq(ftl_memory_counters_get(memory).dram_read_bytes, 32);
  cr_expect_eq(replies[0], 128);
  cr_expect_eq(replies[1], 128 + 7);  // the way to the home was over before the data came: one crossing more
  ftl_memory_destroy(memory);
}

static ftl_arch coalescing_arch(void) {
  ftl_arch arch = small_arch();
  arch.l2_num_sides = 1;
  arch.noc_far_gpcs = 0;
  arch.chip_num_gpcs = 1;
  arch.l2_coalescer_merges = 3;
  arch.l2_coalescer_window_cycles = 4;
  return arch;
}

Test(timing_memory_sharing, the_coalescer_serves_as_many_reads_with_one_access_as_it_may) {
  ftl_arch arch = coalescing_arch();
  ftl_memory *memory = create_memory(&arch, GHZ);
  ftl_mem_request requests[8];
  int64_t replies[8];
  requests[0] = read_of(0, 0, 5, 15, 0);
  int64_t from = drive(memory, requests, 1, replies);
  for (int i = 0; i < 7; i++) requests[i] = read_of(from, i, 5, 15, (uint32_t)i);
  int64_t before = ftl_memory_counters_get(memory).l2_sectors_from_sms;
  drive_from(memory, from, requests, 7, 0, replies, 8);
  ftl_memory_counters counters = ftl_memory_counters_get(memory);
  // Three accesses for 7 reads: 3 + 3 + 1.
  cr_expect_eq(counters.l2_sectors_from_sms - before, 3 * 4);
  cr_expect_eq(counters.coalesced_sectors, 4 * 4);
  // Accesses pass the slice one a cycle; the 128 bytes of each pass an SM's port in two.
  for (int i = 0; i < 7; i++) cr_expect_eq(replies[i] - from, 60 + 1 + i / 3, "read %d", i);
  ftl_memory_destroy(memory);
}

Test(timing_memory_sharing, the_coalescer_merges_only_in_its_window_and_other_sms) {
  ftl_arch arch = coalescing_arch();
  ftl_memory *memory = create_memory(&arch, GHZ);
  ftl_mem_request warm = read_of(0, 0, 5, 3, 0);
  int64_t replies[5], t = drive(memory, &warm, 1, replies);
  ftl_mem_request requests[] = {read_of(t, 0, 5, 1, 0),
                                read_of(t + 1, 0, 5, 1, 1),   // the same SM: an access of its own
                                read_of(t + 5, 1, 5, 1, 2),   // 4 cycles after it: joins
                                read_of(t + 6, 2, 5, 1, 3),   // 5 cycles after it: too late
                                read_of(t + 7, 3, 5, 3, 4)};  // sectors that nobody asked for
  drive_from(memory, t, requests, 5, 0, replies, 8);
  ftl_memory_counters counters = ftl_memory_counters_get(memory);
  cr_expect_eq(counters.coalesced_sectors, 1);
  cr_expect_eq(counters.l2_sectors_from_sms, 2 + 3 + 2);
  ftl_memory_destroy(memory);
}

// Of four reads of a line in one cycle, by four SMs, those of multicast copies make accesses of their own, and the
// other two, between which one of them comes, one together: three of four sectors each.
Test(timing_memory_sharing, reads_of_multicast_copies_join_none_and_are_joined_by_none) {
  ftl_arch arch = coalescing_arch();
  ftl_memory *memory = create_memory(&arch, GHZ);
  ftl_mem_request warm = read_of(0, 0, 5, 15, 0), requests[4];
  int64_t replies[4], from = drive(memory, &warm, 1, replies);
  const ftl_mem_peers peers = {.cluster = 8, .count = 1, .peers = {{.sm = 5, .slot = 0}}};
  for (int i = 0; i < 4; i++) {
    requests[i] = read_of(from, i, 5, 15, (uint32_t)i);
    if (i % 2 == 0) requests[i].peers = &peers;
  }
  int64_t before = ftl_memory_counters_get(memory).l2_sectors_from_sms;
  drive_from(memory, from, requests, 4, 0, replies, 8);
  ftl_memory_counters counters = ftl_memory_counters_get(memory);
  cr_expect_eq(counters.coalesced_sectors, 4);
  cr_expect_eq(counters.l2_sectors_from_sms - before, 3 * 4);
  ftl_memory_destroy(memory);
}

// A read of one sector is answered hit + reply = 20 + 30 cycles after its data came from DRAM, and a request takes 10
// cycles to the slice: one that is made `lag` cycles after the data came, less 10, finds them there for `lag` cycles.
static int64_t coalesced_after_miss(int64_t lag) {
  ftl_arch arch = coalescing_arch();
  ftl_memory *memory = create_memory(&arch, GHZ);
  ftl_mem_request first = read_of(0, 0, 5, 1, 0);
  int64_t replies[2];
  drive(memory, &first, 1, replies);
  int64_t came = replies[0] - 50;
  ftl_memory_destroy(memory);
  memory = create_memory(&arch, GHZ);
  ftl_mem_request requests[] = {first, read_of(came + lag - 10, 1, 5, 1, 1)};
  drive(memory, requests, 2, replies);
  int64_t coalesced = ftl_memory_counters_get(memory).coalesced_sectors;
  ftl_memory_destroy(memory);
  return coalesced;
}

Test(timing_memory_sharing, reads_join_an_access_while_its_data_are_on_their_way_and_in_the_window_after) {
  cr_expect_eq(coalesced_after_miss(-30), 1);
  cr_expect_eq(coalesced_after_miss(0), 1);
  cr_expect_eq(coalesced_after_miss(4), 1);
  cr_expect_eq(coalesced_after_miss(5), 0);
}

Test(timing_memory_sharing, each_gpc_has_a_coalescer_of_its_own) {
  ftl_arch arch = coalescing_arch();
  arch.chip_num_gpcs = 2;  // SMs 0, 2, 4 ... in one, 1, 3, 5 ... in the other
  ftl_memory *memory = create_memory(&arch, GHZ);
  ftl_mem_request requests[] = {read_of(0, 0, 5, 1, 0), read_of(0, 1, 5, 1, 1), read_of(1, 2, 5, 1, 2),
                                read_of(1, 3, 5, 1, 3)};
  int64_t replies[4];
  drive(memory, requests, 4, replies);
  ftl_memory_counters counters = ftl_memory_counters_get(memory);
  cr_expect_eq(counters.l2_sectors_from_sms, 2);  // one access a GPC, which its second SM joins
  cr_expect_eq(counters.coalesced_sectors, 2);
  cr_expect_eq(counters.dram_read_bytes, 32);
  ftl_memory_destroy(memory);
}

static int64_t last_reply(const int64_t *replies, int count) {
  int64_t last = 0;
  for (int i = 0; i < count; i++) last = replies[i] > last ? replies[i] : last;
  return last;
}

// 16 lines are brought in, then read again 10000 times by `num_sms` SMs of GPC 0, one whole line a cycle each.
static int64_t cycles_of_hits(const ftl_arch *arch, int num_sms) {
  static ftl_mem_request requests[NUM_REQUESTS];
  static int64_t replies[NUM_REQUESTS];
  ftl_memory *memory = create_memory(arch, GHZ);
  for (int i = 0; i < 16; i++) requests[i] = read_of(i, 0, line_of_side(arch, 0, 0, i), 15, (uint32_t)i);
  int64_t from = drive(memory, requests, 16, replies);
  uint64_t lines[16];
  for (int i = 0; i < 16; i++) lines[i] = requests[i].line;
  for (int i = 0; i < NUM_REQUESTS; i++) {
    requests[i] = read_of(from + i / num_sms, 2 * (i % num_sms), lines[i % 16], 15, (uint32_t)i);
  }
  drive_from(memory, from, requests, NUM_REQUESTS, 0, replies, 8);
  ftl_memory_destroy(memory);
  return last_reply(replies, NUM_REQUESTS) - from;
}

Test(timing_memory_sharing, an_sm_port_carries_its_bytes_a_cycle_and_no_more) {
  ftl_arch arch = small_arch();
  arch.l2_slice_bytes_per_cycle = 256;
  // 10000 lines of 128 bytes at 64 a cycle: 20000 cycles behind the 60 of the first.
  cr_expect_eq(cycles_of_hits(&arch, 1), 60 + 20000 - 1);
}

Test(timing_memory_sharing, a_gpc_port_is_shared_by_its_sms) {
  ftl_arch arch = small_arch();
  arch.l2_slice_bytes_per_cycle = 256;
  arch.noc_gpc_read_bytes_per_cycle = 160;
  // Four SMs could take 256 bytes a cycle; the GPC gives 160: 10000 * 128 / 160 = 8000 cycles. The last line begins at
  // byte 9999 * 128 = cycle 7999.2 and its 128 bytes need two cycles of its SM's port.
  cr_expect_eq(cycles_of_hits(&arch, 4), 60 + 7999 + 1);
}

Test(timing_memory_sharing, the_link_between_the_sides_limits_far_reads) {
  ftl_arch arch = small_arch();
  arch.noc_far_bytes_per_cycle = 32;
  arch.dram_num_channels = 1;
  ftl_memory *memory = create_memory(&arch, GHZ);
  static ftl_mem_request requests[64];
  static int64_t replies[64];
  for (int i = 0; i < 64; i++) requests[i] = read_of(i, 0, line_of_side(&arch, 0, 0, i), 15, (uint32_t)i);
  int64_t from = drive(memory, requests, 64, replies);
  for (int i = 0; i < 64; i++) requests[i] = read_of(from + i / 4, 1 + 2 * (i % 4), requests[i].line, 15, (uint32_t)i);
  drive_from(memory, from, requests, 64, 0, replies, 8);
  // 64 lines of 128 bytes at 32 a cycle: 256 cycles; the last line comes over in the last four and passes its SM's port
  // in two. The first byte is at the link at 10 + 7.
  cr_expect_eq(last_reply(replies, 64) - from, 10 + 7 + 255 + 7 + 20 + 30 + 1);
  ftl_memory_destroy(memory);
}

// A chip whose lines all lie in one slice, and whose SMs send a line in a cycle.
static ftl_arch one_slice_arch(void) {
  ftl_arch arch = small_arch();
  arch.l2_num_sides = 1;
  arch.l2_num_slices = 1;
  arch.noc_far_gpcs = 0;
  arch.noc_sm_write_bytes_per_cycle = 128;
  arch.l2_slice_intake_bytes_per_cycle = 32;
  return arch;
}

// Eight SMs write a line each, `sectors` of it, all of them or a part of each: the cycle of the last one's answer.
static int64_t cycle_of_writes(uint8_t sectors, bool in_part) {
  ftl_arch arch = one_slice_arch();
  ftl_memory *memory = create_memory(&arch, GHZ);
  ftl_mem_request requests[8];
  int64_t replies[8];
  for (int i = 0; i < 8; i++) {
    requests[i] = write_of(0, i, (uint64_t)i, sectors, (uint32_t)i);
    if (in_part) requests[i].full_sectors = 0;
  }
  drive(memory, requests, 8, replies);
  ftl_memory_destroy(memory);
  return last_reply(replies, 8);
}

// They come to the slice together, 10 cycles after they left; a sector takes it a cycle, and a request of parts one
// more. The answer to the last, which the slice has with the last of 8 n cycles, is 20 + 30 cycles under way.
Test(timing_memory_sharing, a_slice_takes_in_writes_at_its_rate_and_a_mask_of_bytes_with_parts) {
  cr_expect_eq(cycle_of_writes(15, false), 10 + 8 * 4 - 1 + 50);
  cr_expect_eq(cycle_of_writes(3, false), 10 + 8 * 2 - 1 + 50);
  cr_expect_eq(cycle_of_writes(15, true), 10 + 8 * 5 - 1 + 50);
  cr_expect_eq(cycle_of_writes(1, true), 10 + 8 * 2 - 1 + 50);
}

// A line in L2 is read when four others are written: by a request that comes ahead of them it is there 60 + 1 cycles
// after, by one that comes behind them when the slice has taken in their 16 sectors. Its own 16 bytes take half a
// cycle of the intake: as the 33rd half it is in with the 17th cycle.
Test(timing_memory_sharing, requests_to_read_wait_for_the_intake_of_their_slice) {
  ftl_arch arch = one_slice_arch();
  arch.l2_read_request_bytes = 16;
  for (int behind = 0; behind < 2; behind++) {
    ftl_memory *memory = create_memory(&arch, GHZ);
    ftl_mem_request warm = read_of(0, 0, 100, 15, 0), requests[5];
    int64_t replies[5], from = drive(memory, &warm, 1, replies);
    for (int i = 0; i < 5; i++) {
      bool reads = i == (behind ? 4 : 0);
      requests[i] = reads ? read_of(from, i, 100, 15, (uint32_t)i) : write_of(from, i, (uint64_t)i, 15, (uint32_t)i);
    }
    drive_from(memory, from, requests, 5, 0, replies, 8);
    cr_expect_eq(replies[behind ? 4 : 0] - from, 61 + (behind ? 16 : 0));
    ftl_memory_destroy(memory);
  }
}

// Four SMs read one line, a fifth another, all at once; a request takes the slice 4 cycles, and L2 hears of the four
// once. The first is in with cycle 13, those that joined it come out behind it in 14, the fifth is in with 17. A line
// is 20 + 30 cycles under way from there, and passes its SM's port in two.
Test(timing_memory_sharing, reads_that_join_another_take_nothing_of_the_intake) {
  ftl_arch arch = one_slice_arch();
  arch.chip_num_gpcs = 1;
  arch.l2_coalescer_merges = 4;
  arch.l2_coalescer_window_cycles = 4;
  arch.l2_read_request_bytes = 128;
  ftl_memory *memory = create_memory(&arch, GHZ);
  ftl_mem_request warm[2] = {read_of(0, 0, 100, 15, 0), read_of(1, 0, 101, 15, 1)}, requests[5];
  int64_t replies[5], from = drive(memory, warm, 2, replies);
  for (int i = 0; i < 5; i++) requests[i] = read_of(from, i, i < 4 ? 100 : 101, 15, (uint32_t)i);
  drive_from(memory, from, requests, 5, 0, replies, 8);
  cr_expect_eq(replies[0] - from, 13 + 50 + 1);
  for (int i = 1; i < 4; i++) cr_expect_eq(replies[i] - from, 14 + 50 + 1, "read %d", i);
  cr_expect_eq(replies[4] - from, 17 + 50 + 1);
  cr_expect_eq(ftl_memory_counters_get(memory).coalesced_sectors, 3 * 4);
  ftl_memory_destroy(memory);
}

// Side 0 has one slice, which takes four cycles for a line. SM 0 reads sixteen, so that they queue; SM 1, on the other
// side, reads a line of the same slice meanwhile and has it as soon as without them.
Test(timing_memory_sharing, what_crosses_sides_passes_the_port_to_the_sms_by) {
  ftl_arch arch = small_arch();
  arch.l2_num_slices = 2;
  arch.l2_slice_bytes_per_cycle = 32;
  ftl_memory *memory = create_memory(&arch, GHZ);
  ftl_mem_request requests[18];
  int64_t replies[18];
  for (int i = 0; i < 18; i++) requests[i] = read_of(i, 0, line_of_side(&arch, 0, 0, i), 15, (uint32_t)i);
  int64_t from = drive(memory, requests, 18, replies);
  ftl_mem_request alone = read_of(from, 1, requests[16].line, 15, 0);
  int64_t far;
  int64_t then = drive_from(memory, from, &alone, 1, 0, &far, 8);
  for (int i = 0; i < 16; i++) requests[i].time = then + i;
  requests[16] = read_of(then + 15, 1, requests[17].line, 15, 16);
  drive_from(memory, then, requests, 17, 0, replies, 8);
  cr_expect_eq(replies[16] - (then + 15), far - from);
  cr_expect_gt(replies[15] - (then + 15), 60 + 3 + 40, "the slice was not busy");
  ftl_memory_destroy(memory);
}

Test(timing_memory_sharing, dirty_lines_reach_dram_only_when_they_are_evicted) {
  ftl_arch arch = small_arch();
  arch.l2_num_sides = 1;
  arch.noc_far_gpcs = 0;
  ftl_memory *memory = create_memory(&arch, GHZ);
  static ftl_mem_request requests[8192];
  static int64_t replies[8192];
  int capacity_lines = (int)(arch.l2_size_bytes / 128);
  for (int i = 0; i < 4 * capacity_lines; i++) requests[i] = write_of(i, i % 8, (uint64_t)i, 15, (uint32_t)i);
  int64_t from = drive(memory, requests, capacity_lines / 2, replies);
  cr_expect_eq(ftl_memory_counters_get(memory).dram_write_bytes, 0);
  cr_expect_eq(ftl_memory_counters_get(memory).dirty_sectors, 2 * capacity_lines);
  for (int i = capacity_lines / 2; i < 4 * capacity_lines; i++) requests[i].time = from + i;
  drive_from(memory, from, requests + capacity_lines / 2, 7 * capacity_lines / 2, 0, replies, 8);
  ftl_memory_counters counters = ftl_memory_counters_get(memory);
  // Every line was written once: what is not in L2 has been written to DRAM.
  cr_expect_eq(counters.dirty_sectors, 4 * capacity_lines);
  cr_expect_eq(counters.dram_write_bytes + 32 * counters.dirty_sectors, 128 * 4 * (int64_t)capacity_lines);
  cr_expect_eq(counters.dram_read_bytes, 0);
  ftl_memory_destroy(memory);
}

Test(timing_memory_sharing, an_atomic_reads_what_it_changes_and_leaves_it_dirty) {
  ftl_arch arch = small_arch();
  ftl_memory *memory = create_memory(&arch, GHZ);
  ftl_mem_request requests[] = {read_of(0, 0, 3, 1, 0), read_of(500, 0, 3, 1, 1)};
  requests[0].kind = requests[1].kind = FTL_MEM_ATOMIC;
  int64_t replies[2];
  drive(memory, requests, 2, replies);
  cr_expect_eq(ftl_memory_counters_get(memory).dram_read_bytes, 32);
  cr_expect_eq(ftl_memory_counters_get(memory).dirty_sectors, 1);
  ftl_memory_destroy(memory);
}

Test(timing_memory_sharing, a_restart_keeps_the_contents) {
  ftl_arch arch = small_arch();
  ftl_memory *memory = create_memory(&arch, GHZ);
  ftl_mem_request request = read_of(0, 0, line_of_side(&arch, 0, 0, 0), 1, 0);
  int64_t cold, warm;
  drive(memory, &request, 1, &cold);
  ftl_memory_restart(memory);
  drive(memory, &request, 1, &warm);
  cr_expect_eq(ftl_memory_counters_get(memory).dram_read_bytes, 0);
  cr_expect_eq(cold, 128);
  cr_expect_eq(warm, 60);
  ftl_memory_destroy(memory);
}

// What was read late in a launch is in L2 when the next begins: who reads it first there waits for nobody.
Test(timing_memory_sharing, a_restart_forgets_what_reads_may_join) {
  ftl_arch arch = coalescing_arch();
  ftl_memory *memory = create_memory(&arch, GHZ);
  ftl_mem_request late = read_of(5000, 0, 5, 15, 0), first = read_of(0, 1, 5, 15, 0);
  int64_t replies[1];
  drive(memory, &late, 1, replies);
  ftl_memory_restart(memory);
  drive(memory, &first, 1, replies);
  cr_expect_eq(replies[0], 60 + 1);
  cr_expect_eq(ftl_memory_counters_get(memory).coalesced_sectors, 0);
  ftl_memory_destroy(memory);
}

Test(timing_memory_sharing, reads_after_a_foul_push_out_another_tensors_dirty_lines) {
  ftl_arch arch = small_arch();
  ftl_memory *memory = create_memory(&arch, GHZ);
  ftl_memory_foul(memory, 16 * arch.l2_size_bytes);
  int64_t dirty = ftl_memory_counters_get(memory).dirty_sectors;
  cr_expect_eq(dirty, arch.l2_size_bytes / 32);
  static ftl_mem_request requests[64];
  static int64_t replies[64];
  for (int i = 0; i < 64; i++) requests[i] = read_of(i, 0, line_of_side(&arch, 0, 0, i), 15, (uint32_t)i);
  drive(memory, requests, 64, replies);
  ftl_memory_counters counters = ftl_memory_counters_get(memory);
  cr_expect_eq(counters.dram_read_bytes, 64 * 128);
  cr_expect_eq(counters.dram_write_bytes, 64 * 128);
  cr_expect_eq(counters.dirty_sectors, dirty - 64 * 4);
  ftl_memory_destroy(memory);
}

// SMs 0, 2 and 4 share GPC 0. A line that is in L2 comes 60 + 1 cycles after it was asked for, to all three at once:
// one access of four sectors, where three reads of their own would make twelve.
Test(timing_memory_sharing, a_multicast_read_is_one_access_and_reaches_every_sm) {
  ftl_arch arch = small_arch();
  ftl_memory *memory = create_memory(&arch, GHZ);
  uint64_t line = line_of_side(&arch, 0, 0, 0);
  ftl_mem_request warm = read_of(0, 0, line, 15, 0);
  int64_t replies[1];
  int64_t from = drive(memory, &warm, 1, replies), before = ftl_memory_counters_get(memory).l2_sectors_from_sms;
  const ftl_mem_peers peers = {.cluster = 8, .count = 2, .peers = {{.sm = 2, .slot = 1}, {.sm = 4, .slot = 0}}};
  ftl_mem_request request = read_of(from, 0, line, 15, 0);
  request.peers = &peers;
  request.stage = 3;
  ftl_memory_submit(memory, &request, 1);
  int64_t count = 0;
  const ftl_mem_message *messages = NULL;
  for (int64_t until = from; count == 0; messages = ftl_memory_messages(memory, &count))
    ftl_memory_advance(memory, until += ftl_memory_max_window_cycles(memory));
  cr_assert_eq(count, 2);
  for (int i = 0; i < 2; i++) {
    cr_expect_eq(messages[i].time - from, 61);
    cr_expect(messages[i].to.sm == peers.peers[i].sm && messages[i].to.slot == peers.peers[i].slot);
    cr_expect(messages[i].stage == 3 && messages[i].cluster == 8 && messages[i].kind == FTL_MEM_PEER_LINE);
  }
  int64_t num_replies;
  const ftl_mem_reply *reply = ftl_memory_replies(memory, &num_replies);
  cr_assert_eq(num_replies, 1);
  cr_expect(reply->sm == 0 && reply->time - from == 61);
  cr_expect_eq(ftl_memory_counters_get(memory).l2_sectors_from_sms - before, 4);
  ftl_memory_destroy(memory);
}
