// Every timing rule of a channel, to the cycle: illegal a cycle before.
#include <criterion/criterion.h>

#include "machine/dram/dram.h"
#include "machine/dram/map.h"

enum { MAX_REQUESTS = 64 };

// One channel, 2 groups of 2 banks, rows of 1024 bytes: 8 lines a row.
static ftl_arch channel_arch(void) {
  return (ftl_arch){.l1_line_bytes = 128,
                    .clock_dram_khz = 1000000,
                    .dram_num_channels = 1,
                    .dram_burst_bytes = 32,
                    .dram_burst_cycles = 2,
                    .dram_num_bank_groups = 2,
                    .dram_banks_per_group = 2,
                    .dram_row_bytes = 1024,
                    .dram_chunk_bytes = 512,
                    .dram_trcd_cycles = 12,
                    .dram_trp_cycles = 13,
                    .dram_tras_cycles = 40,
                    .dram_tcl_cycles = 14,
                    .dram_tccd_long_cycles = 5,
                    .dram_trrd_cycles = 7,
                    .dram_twtr_cycles = 6,
                    .dram_trtw_cycles = 3,
                    .dram_trefi_cycles = 100000,
                    .dram_trfc_cycles = 50,
                    .dram_queue_entries = 16,
                    .dram_most_bypasses = 32};
}

// The first line of the `skip`-th row of that bank.
static uint64_t line_in_bank(const ftl_arch *arch, uint32_t bank, int skip) {
  ftl_dram_map map = ftl_dram_map_init(arch);
  uint64_t line = 0;
  while (ftl_dram_map_line(&map, line).bank != bank || skip-- > 0) line += 8;
  return line;
}

static ftl_dram_request read_of(int64_t cycle, uint64_t line, uint32_t cookie) {
  return (ftl_dram_request){.arrival_cycle = cycle, .line = line, .cookie = cookie, .sectors = 1};
}

static ftl_dram_request write_of(int64_t cycle, uint64_t line) {
  return (ftl_dram_request){.arrival_cycle = cycle, .line = line, .sectors = 1, .is_write = true};
}

static ftl_dram *create_dram(const ftl_arch *arch) {
  ftl_dram *dram;
  ftl_error error;
  cr_assert_eq(ftl_dram_create(&dram, arch, &error), FTL_OK);
  return dram;
}

static void finish(ftl_dram *dram, int64_t *done_cycles) {
  int64_t count;
  const ftl_dram_done *done = ftl_dram_advance(dram, 1000000, &count);
  for (int64_t i = 0; i < count; i++) done_cycles[done[i].cookie] = done[i].cycle;
  cr_assert(ftl_dram_is_idle(dram));
}

static void run(const ftl_arch *arch, const ftl_dram_request *requests, int count, int64_t *done_cycles) {
  ftl_dram *dram = create_dram(arch);
  for (int i = 0; i < count; i++) ftl_dram_push(dram, &requests[i]);
  finish(dram, done_cycles);
  ftl_dram_destroy(dram);
}

Test(timing_dram_commands, a_closed_row_costs_the_activation) {
  ftl_arch arch = channel_arch();
  ftl_dram_request request = read_of(100, 0, 0);
  int64_t done;
  run(&arch, &request, 1, &done);
  cr_expect_eq(done, 100 + 12 + 14 + 2);
}

Test(timing_dram_commands, a_command_belongs_to_the_window_of_its_cycle) {
  ftl_arch arch = channel_arch();
  ftl_dram *dram = create_dram(&arch);
  ftl_dram_request request = read_of(100, 0, 0);
  ftl_dram_push(dram, &request);
  int64_t count;
  (void)ftl_dram_advance(dram, 112, &count);
  cr_expect_eq(count, 0, "the column access at cycle 112 is not before 112");
  (void)ftl_dram_advance(dram, 113, &count);
  cr_expect_eq(count, 1);
  ftl_dram_destroy(dram);
}

Test(timing_dram_commands, an_open_row_costs_the_column_only) {
  ftl_arch arch = channel_arch();
  ftl_dram_request requests[] = {read_of(0, 0, 0), read_of(200, 7, 1)};
  int64_t done[2];
  run(&arch, requests, 2, done);
  cr_expect_eq(done[1], 200 + 14 + 2);
}

Test(timing_dram_commands, another_row_of_the_bank_waits_for_tras_and_precharge) {
  ftl_arch arch = channel_arch();
  ftl_dram_request requests[] = {read_of(0, line_in_bank(&arch, 1, 0), 0), read_of(0, line_in_bank(&arch, 1, 1), 1),
                                 read_of(500, line_in_bank(&arch, 1, 2), 2)};
  int64_t done[3];
  run(&arch, requests, 3, done);
  // ACT 0, PRE at tRAS = 40, ACT 53, column 65.
  cr_expect_eq(done[1], 40 + 13 + 12 + 14 + 2);
  // Much later only the precharge is left.
  cr_expect_eq(done[2], 500 + 13 + 12 + 14 + 2);
}

Test(timing_dram_commands, activations_of_other_banks_are_trrd_apart) {
  ftl_arch arch = channel_arch();
  ftl_dram_request requests[] = {read_of(0, line_in_bank(&arch, 0, 0), 0), read_of(0, line_in_bank(&arch, 1, 0), 1)};
  int64_t done[2];
  run(&arch, requests, 2, done);
  cr_expect_eq(done[0], 12 + 14 + 2);
  cr_expect_eq(done[1], 7 + 12 + 14 + 2);
}

Test(timing_dram_commands, columns_of_one_group_are_tccd_long_apart_and_of_two_a_burst) {
  ftl_arch arch = channel_arch();
  // Banks 0 and 2 are in group 0, bank 1 in group 1. All rows are open at cycle 200.
  ftl_dram_request requests[] = {
      read_of(0, line_in_bank(&arch, 0, 0), 0),   read_of(0, line_in_bank(&arch, 1, 0), 1),
      read_of(0, line_in_bank(&arch, 2, 0), 2),   read_of(200, line_in_bank(&arch, 0, 0), 3),
      read_of(200, line_in_bank(&arch, 2, 0), 4), read_of(200, line_in_bank(&arch, 1, 0), 5)};
  int64_t done[6];
  run(&arch, requests, 6, done);
  cr_expect_eq(done[3], 200 + 16);
  cr_expect_eq(done[4], 205 + 16, "the same group waits for tCCD_L");
  cr_expect_eq(done[5], 202 + 16, "the other group waits for the bus only");
}

Test(timing_dram_commands, the_bursts_of_a_line_follow_each_other_in_its_row) {
  ftl_arch arch = channel_arch();
  ftl_dram_request request = read_of(0, 0, 0);
  request.sectors = 15;
  int64_t done;
  run(&arch, &request, 1, &done);
  cr_expect_eq(done, 12 + 3 * 5 + 14 + 2);
}

Test(timing_dram_commands, wide_bursts_carry_two_sectors) {
  ftl_arch arch = channel_arch();
  arch.dram_burst_bytes = 64;
  ftl_dram_request requests[] = {read_of(0, 0, 0), read_of(500, 0, 1)};
  requests[0].sectors = 3;
  requests[1].sectors = 6;  // halves of two bursts
  int64_t done[2];
  run(&arch, requests, 2, done);
  cr_expect_eq(done[0], 12 + 14 + 2);
  cr_expect_eq(done[1], 500 + 5 + 14 + 2);
}

// Banks 0 and 2 are of one group: 5 cycles between their column accesses. Bank 0 opens its second row at 53 (tRAS 40,
// tRP 13) for a request of cycle 0: RD from 65 on. Bank 2 opens its row at 46 for a line of 4 bursts: RD at 58 and 63.
// At 68 both may go, and the older request does, though its row was opened later: data at 68 + 14 + 2. Then the other
// two bursts at 73 and 78.
Test(timing_dram_commands, of_two_open_rows_the_older_request_goes_first) {
  ftl_arch arch = channel_arch();
  ftl_dram *dram = create_dram(&arch);
  ftl_dram_request first = read_of(0, line_in_bank(&arch, 0, 0), 0), older = read_of(0, line_in_bank(&arch, 0, 1), 1);
  ftl_dram_request newer = read_of(46, line_in_bank(&arch, 2, 0), 2);
  newer.sectors = 15;
  ftl_dram_push(dram, &first);
  ftl_dram_push(dram, &older);
  ftl_dram_push(dram, &newer);
  int64_t done_cycles[3];
  finish(dram, done_cycles);
  cr_expect_eq(done_cycles[0], 12 + 14 + 2);
  cr_expect_eq(done_cycles[1], 68 + 14 + 2);
  cr_expect_eq(done_cycles[2], 78 + 14 + 2);
  ftl_dram_destroy(dram);
}

Test(timing_dram_commands, a_row_hit_goes_before_an_older_miss_of_its_bank) {
  ftl_arch arch = channel_arch();
  uint64_t open = line_in_bank(&arch, 1, 0), other = line_in_bank(&arch, 1, 1);
  ftl_dram_request requests[] = {read_of(0, open, 0), read_of(10, other, 1), read_of(11, open + 1, 2)};
  int64_t done[3];
  run(&arch, requests, 3, done);
  cr_expect_eq(done[2], 17 + 14 + 2);            // a tCCD_L after the first
  cr_expect_eq(done[1], 40 + 13 + 12 + 14 + 2);  // tRAS was binding anyway
}

Test(timing_dram_commands, a_stream_of_hits_does_not_starve_a_miss) {
  ftl_arch arch = channel_arch();
  arch.dram_queue_entries = 64;
  uint64_t open = line_in_bank(&arch, 1, 0);
  ftl_dram_request requests[MAX_REQUESTS];
  int64_t done[MAX_REQUESTS];
  requests[0] = read_of(0, open, 0);
  requests[1] = read_of(10, line_in_bank(&arch, 1, 1), 1);
  for (uint32_t i = 2; i < MAX_REQUESTS; i++) requests[i] = read_of(10, open + i % 8, i);
  run(&arch, requests, MAX_REQUESTS, done);
  // 32 hits pass it, tCCD_L apart from cycle 17 on; the last ends its burst at 12 + 32 * 5 + 2; PRE, ACT, column, data.
  cr_expect_eq(done[1], 12 + 32 * 5 + 2 + 13 + 12 + 14 + 2);
}

// Of 16 entries 12 may be writes that wait for each other: eleven do while the reads at 202 and 300 are served at once
// in the open row. The twelfth comes at 400: columns from then on, tCCD_L apart, the last one's data end at
// 400 + 11 x 5 + 2; tWTR: the read that comes at 401 goes at 463.
Test(timing_dram_commands, writes_wait_until_they_are_three_quarters_of_the_queue) {
  ftl_arch arch = channel_arch();
  ftl_dram *dram = create_dram(&arch);
  ftl_dram_request reads[] = {read_of(0, 0, 0), read_of(202, 1, 1), read_of(300, 2, 2), read_of(401, 3, 3)};
  ftl_dram_request early = write_of(200, 0), late = write_of(400, 0);
  ftl_dram_push(dram, &reads[0]);
  for (int i = 0; i < 11; i++) ftl_dram_push(dram, &early);
  for (int i = 1; i < 3; i++) ftl_dram_push(dram, &reads[i]);
  int64_t count;
  const ftl_dram_done *done = ftl_dram_advance(dram, 400, &count);
  cr_assert_eq(count, 3);
  cr_expect_eq(done[1].cycle, 202 + 14 + 2);
  cr_expect_eq(done[2].cycle, 300 + 14 + 2);
  cr_expect_eq(ftl_dram_counters_get(dram).write_bytes, 0);
  ftl_dram_push(dram, &late);
  ftl_dram_push(dram, &reads[3]);
  done = ftl_dram_advance(dram, 1000, &count);
  cr_assert_eq(count, 1);
  cr_expect_eq(done[0].cycle, 463 + 14 + 2);
  cr_expect_eq(ftl_dram_counters_get(dram).write_bytes, 12 * 32);
  ftl_dram_destroy(dram);
}

// The refresh interval, 100000 cycles, after the first of two has come.
Test(timing_dram_commands, few_writes_wait_for_an_interval_of_refreshes) {
  ftl_arch arch = channel_arch();
  ftl_dram *dram = create_dram(&arch);
  ftl_dram_request requests[] = {write_of(50, 0), write_of(80000, 1)};
  for (int i = 0; i < 2; i++) ftl_dram_push(dram, &requests[i]);
  int64_t count;
  // ACT at 100050, just past a refresh that holds the bank until then; columns at 100062 and 100067.
  (void)ftl_dram_advance(dram, 100062, &count);
  cr_expect_eq(ftl_dram_counters_get(dram).write_bytes, 0);
  (void)ftl_dram_advance(dram, 100063, &count);
  cr_expect_eq(ftl_dram_counters_get(dram).write_bytes, 32);
  (void)ftl_dram_advance(dram, 100068, &count);
  cr_expect_eq(ftl_dram_counters_get(dram).write_bytes, 64);
  ftl_dram_destroy(dram);
}

// Twelve writes that come at 200 are served until 257; 16 more and six reads wait by then. Four of the reads, a quarter
// of the queue, go at 263, 268, 273 and 278, their data end at 294; tRTW: twelve writes from 297 until 354; the other
// two reads from 360 on.
Test(timing_dram_commands, a_quarter_of_the_queue_of_reads_goes_between_two_turns_of_writes) {
  ftl_arch arch = channel_arch();
  ftl_dram_request requests[MAX_REQUESTS];
  int64_t done[MAX_REQUESTS];
  int count = 0;
  requests[count++] = read_of(0, 0, 0);
  for (int i = 0; i < 28; i++) requests[count++] = write_of(200, 0);
  for (uint32_t i = 1; i <= 6; i++) requests[count++] = read_of(210, i, i);
  run(&arch, requests, count, done);
  cr_expect_eq(done[1], 263 + 14 + 2);
  cr_expect_eq(done[4], 278 + 14 + 2);
  cr_expect_eq(done[5], 360 + 14 + 2);
  cr_expect_eq(done[6], 365 + 14 + 2);
}

Test(timing_dram_commands, a_refresh_closes_the_rows_and_blocks_the_channel) {
  ftl_arch arch = channel_arch();
  arch.dram_trefi_cycles = 1000;
  ftl_dram_request requests[] = {read_of(900, 0, 0), read_of(1010, 1, 1), read_of(1900, 1, 2), read_of(1999, 2, 3)};
  int64_t done[4];
  run(&arch, requests, 4, done);
  cr_expect_eq(done[0], 900 + 12 + 14 + 2);
  cr_expect_eq(done[1], 1050 + 12 + 14 + 2, "the refresh at 1000 lasts 50 cycles and closes the row");
  cr_expect_eq(done[2], 1900 + 14 + 2);
  cr_expect_eq(done[3], 1999 + 14 + 2, "a cycle before the next refresh the row is open");
}

Test(timing_dram_commands, inline_ecc_takes_bus_time_and_bytes) {
  ftl_arch arch = channel_arch();
  arch.dram_ecc_inline_milli = 250;
  ftl_dram_request requests[] = {read_of(0, 0, 0), read_of(0, 1, 1)};
  requests[0].sectors = requests[1].sectors = 15;
  ftl_dram *dram = create_dram(&arch);
  int64_t done[2];
  for (int i = 0; i < 2; i++) ftl_dram_push(dram, &requests[i]);
  finish(dram, done);
  cr_expect_eq(ftl_dram_counters_get(dram).read_bytes, 2 * 128 + 2 * 32);
  cr_expect_eq(ftl_dram_counters_get(dram).busy_cycles, (8 + 2) * 2);
  ftl_dram_destroy(dram);
}

Test(timing_dram_commands, requests_beyond_the_queue_enter_as_places_become_free) {
  ftl_arch arch = channel_arch();
  arch.dram_queue_entries = 1;
  uint64_t open = line_in_bank(&arch, 1, 0);
  ftl_dram_request requests[] = {read_of(0, open, 0), read_of(10, line_in_bank(&arch, 1, 1), 1), read_of(11, open, 2)};
  int64_t done[3];
  run(&arch, requests, 3, done);
  // With one entry there is nothing to choose from: strictly in order.
  cr_expect_eq(done[1], 40 + 13 + 12 + 14 + 2);
  cr_expect_eq(done[2], (53 + 40) + 13 + 12 + 14 + 2);
}

// Two channels: the first refreshes half of tREFI before the second, at 500 and at 1000. Both rows were opened at 100.
Test(timing_dram_commands, channels_refresh_one_after_the_other) {
  ftl_arch arch = channel_arch();
  arch.dram_num_channels = 2;
  arch.dram_trefi_cycles = 1000;
  ftl_dram_map map = ftl_dram_map_init(&arch);
  int64_t done[2][2];
  for (uint32_t channel = 0; channel < 2; channel++) {
    uint64_t line = 0;
    while (ftl_dram_map_line(&map, line).channel != channel) line++;
    ftl_dram_request requests[] = {read_of(100, line, 0), read_of(510, line, 1)};
    run(&arch, requests, 2, done[channel]);
  }
  cr_expect_eq(done[0][1], 500 + 50 + 12 + 14 + 2);
  cr_expect_eq(done[1][1], 510 + 14 + 2);
}

// The last of twelve writes has its column at 255, its data end at 257, tWTR: PRE at 263, ACT at 276, column at 288.
Test(timing_dram_commands, a_row_that_was_written_stays_open_for_twtr_after_the_data) {
  ftl_arch arch = channel_arch();
  uint64_t open = line_in_bank(&arch, 1, 0), other = line_in_bank(&arch, 1, 1);
  ftl_dram_request requests[14] = {read_of(0, open, 0)};
  for (int i = 1; i <= 12; i++) requests[i] = write_of(200, open);
  requests[13] = read_of(201, other, 1);
  int64_t done[2];
  run(&arch, requests, 14, done);
  cr_expect_eq(done[1], 288 + 14 + 2);
}
