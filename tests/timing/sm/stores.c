// Stores to global memory: the port out of the SM, and the lines that stay open to gather parts of sectors.
#include <criterion/criterion.h>

#include "rig.h"

// Stores of a line at 0 and 1, EXIT at 2. The LSU takes the second when the first's 128 bytes have gone, at 4: the warp
// leaves at 5, after 2 cycles of drain (3 and 4), and not when memory has answered, at 204.
Test(timing_sm_stores, a_warp_leaves_when_the_lsu_has_its_stores) {
  rig *r = rig_create(1);
  r->arch.l1_store_bytes_per_cycle = 32;
  uint16_t line = rig_access(r, 0, 1);
  rig_add_tile(r);
  rig_add_access(r, FTL_OP_STG, -1, line);
  rig_add_access(r, FTL_OP_STG, -1, line);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  cr_assert_eq(rig_run(r, 1), 5);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_DRAIN], 2);
  cr_assert_eq(r->requests[0].kind, FTL_MEM_WRITE);
  cr_assert_eq(r->requests[0].full_sectors, 15);
  cr_assert_eq(rig_counters(r)->write_sectors, 8);
  rig_destroy(r);
}

// 32 B a cycle out of the SM: the data of a line take 4 cycles, so the LSU takes the stores at 0, 4 and 8; the sub-core
// would send them at 0, 2 and 4.
Test(timing_sm_stores, stores_are_handed_on_through_one_port) {
  rig *r = rig_create(1);
  r->arch.l1_store_bytes_per_cycle = 32;
  rig_add_tile(r);
  for (int i = 0; i < 3; i++) rig_add_access(r, FTL_OP_STG, -1, rig_access(r, i, 1));
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  for (int i = 0; i < 3; i++) cr_assert_eq(r->requests[i].time, 4 * i);
  rig_destroy(r);
}

// REDs of a line, and of 8 sectors in 8 lines: each request takes a sector more than its data, whether it has all words
// or some. 5 cycles a line, 16 for 8 requests.
Test(timing_sm_stores, each_request_of_an_atomic_takes_a_sector_more) {
  static const struct {
    int32_t bytes, rows, cycles;
    bool in_words;
  } cases[] = {{128, 1, 5, false}, {32, 8, 16, false}, {32, 8, 16, true}};
  for (int c = 0; c < 3; c++) {
    rig *r = rig_create(1);
    r->arch.l1_store_bytes_per_cycle = 32;
    r->arch.l1_byte_mask_sectors = 1;
    rig_add_tile(r);
    for (int i = 0; i < 3; i++) {
      uint16_t access = rig_access(r, i * cases[c].rows, cases[c].rows);
      r->accesses[access].bytes = cases[c].bytes;
      r->accesses[access].in_words = cases[c].in_words;
      rig_add_access(r, FTL_OP_RED, -1, access);
    }
    rig_add(r, FTL_OP_EXIT, -1, -1);
    rig_run(r, 1);
    for (int i = 0; i < 3; i++) cr_expect_eq(r->requests[i * cases[c].rows].time, cases[c].cycles * i);
    cr_expect_eq(r->requests[0].kind, FTL_MEM_ATOMIC);
    cr_expect_eq(r->requests[0].full_sectors, 0);
    cr_expect_eq(rig_counters(r)->added_bytes, 3 * cases[c].bytes * cases[c].rows / (cases[c].in_words ? 2 : 1));
    cr_expect_eq(rig_counters(r)->added_requests, 3 * cases[c].rows);
    rig_destroy(r);
  }
}

// The same of a store's data.
Test(timing_sm_stores, a_store_frees_its_registers_after_it_was_taken) {
  rig *r = rig_create(1);
  r->arch.l1_operand_release_cycles = 14;
  rig_add_tile(r);
  rig_add_access(r, FTL_OP_STG, 0, rig_access(r, 0, 4));
  rig_add(r, FTL_OP_FFMA, 1, 0);  // 2
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 14);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_LONG_SCOREBOARD], 13);
  rig_destroy(r);
}

// One warp stores 16 bytes at each of the columns, counted on from line to line of 128 bytes: halves of sectors.
static rig *stores_of_halves(const int32_t *columns, int32_t num_stores, int64_t open_lines, int64_t open_cycles) {
  rig *r = rig_create(1);
  r->arch.l1_store_merge_lines = open_lines;
  r->arch.l1_store_merge_cycles = open_cycles;
  rig_add_tile(r);
  for (int32_t i = 0; i < num_stores; i++) {
    uint16_t half = rig_access(r, columns[i] / 128, 1);
    r->accesses[half].column_byte = columns[i] % 128;
    r->accesses[half].bytes = 16;
    rig_add_access(r, FTL_OP_STG, -1, half);
  }
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  return r;
}

// Sectors 0 and 1 of line 0 in halves, at 0, 2, 4 and 6: the last has passed at 7, and the line closes when 100 cycles
// have gone by without a store. One request of two whole sectors.
Test(timing_sm_stores, a_sector_stored_in_parts_is_sent_once_while_its_line_is_open) {
  const int32_t columns[] = {0, 16, 32, 48};
  rig *r = stores_of_halves(columns, 4, 1, 100);
  cr_assert_eq(r->num_requests, 1);
  cr_assert_eq(r->requests[0].time, 7 + 100 + 1);
  cr_assert_eq(r->requests[0].sectors, 3);
  cr_assert_eq(r->requests[0].full_sectors, 3);
  cr_assert_eq(rig_counters(r)->global_store_sectors, 2);
  cr_assert_eq(rig_counters(r)->global_store_bytes, 64);
  cr_assert_eq(rig_counters(r)->l1_store_sectors, 4);
  cr_assert_eq(rig_counters(r)->l1_store_hit_sectors, 3, "all but the store that opens the line find it");
  rig_destroy(r);
}

// Eight halves are all of line 0: it goes with the last, which the sub-core sends at 14.
Test(timing_sm_stores, a_line_that_is_all_stored_closes) {
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
  rig_add_tile(r);
  for (int32_t i = 0; i < num_stores; i++) {
    uint16_t words = rig_access(r, lines[i], 1);
    r->accesses[words].bytes = 128;
    r->accesses[words].in_words = true;
    rig_add_access(r, FTL_OP_STG, -1, words);
  }
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  return r;
}

// Columns 16 to 63 of a line: of sector 0 the second half, of sector 1 both. What is stored in words of a half is no
// half.
Test(timing_sm_stores, what_is_sent_in_parts_says_which_halves_it_has) {
  const int32_t columns[] = {16, 32, 48}, line[] = {0, 0};
  rig *r = stores_of_halves(columns, 3, 1, 100);
  cr_assert_eq(r->num_requests, 1);
  cr_assert_eq(r->requests[0].sectors, 3);
  cr_assert_eq(r->requests[0].full_sectors, 2);
  cr_assert_eq(r->requests[0].part_halves & 0x11, 0x10);
  rig_destroy(r);
  r = stores_of_words(line, 2);
  cr_assert_eq(r->num_requests, 1);
  cr_assert_eq(r->requests[0].part_halves, 0);
  rig_destroy(r);
}

// Four in a row make the line whole: 16 sectors stored, 4 sent. Where line 1 closes line 0 after two of its words and
// line 0 closes line 1 again, line 0 goes twice in parts.
Test(timing_sm_stores, words_that_follow_each_other_are_one_request) {
  const int32_t together[] = {0, 0, 0, 0}, apart[] = {0, 0, 1, 0, 0};
  rig *r = stores_of_words(together, 4);
  cr_assert_eq(r->num_requests, 1);
  cr_assert_eq(r->requests[0].full_sectors, 15);
  cr_assert_eq(rig_counters(r)->l1_store_sectors, 16);
  cr_assert_eq(rig_counters(r)->l1_store_hit_sectors, 12);
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
  rig_add_tile(r);
  for (int32_t i = 0; i < 3; i++) {
    uint16_t part = rig_access(r, i, 1);
    r->accesses[part].column_byte = 16;
    r->accesses[part].bytes = bytes;
    rig_add_access(r, FTL_OP_STG, -1, part);
  }
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  return r;
}

// Half a sector takes the port as itself and a mask of two, at 32 B a cycle, so the LSU takes the stores at 0, 3 and 6;
// without a mask they would go as the sub-core sends them, at 0, 2 and 4. Halves of two sectors have one mask: 4 cycles
// a store.
Test(timing_sm_stores, a_mask_of_bytes_goes_with_parts_of_sectors_once_a_line) {
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
Test(timing_sm_stores, as_many_sectors_as_open_lines_wait_for_the_store_port) {
  rig *r = rig_create(1);
  r->arch.l1_store_bytes_per_cycle = 32;
  r->arch.l1_store_merge_lines = 2;
  rig_add_tile(r);
  for (int i = 0; i < 4; i++) rig_add_access(r, FTL_OP_STG, -1, rig_access(r, i, 1));
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  const int64_t times[] = {0, 2, 6, 10};
  for (int i = 0; i < 4; i++) cr_assert_eq(r->requests[i].time, times[i]);
  rig_destroy(r);
}

// Of local memory whole lines wait, as many as may be open: two, 8 cycles of the port. The sub-core sends a store every
// 2 cycles; the port is busy until 4, 8, 12, 16 and 20 after the first five, so that the sixth is taken at 20 - 8.
Test(timing_sm_stores, as_many_lines_of_local_memory_wait_for_the_store_port) {
  rig *r = rig_create(1);
  r->arch.l1_store_bytes_per_cycle = 32;
  r->arch.l1_store_merge_lines = 2;
  for (int i = 0; i < 6; i++) {
    uint16_t slot = rig_access(r, i, 1);
    r->accesses[slot].is_local = true;
    rig_add_access(r, FTL_OP_STL, -1, slot);
  }
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  const int64_t times[] = {0, 2, 4, 6, 8, 12};
  for (int i = 0; i < 6; i++) cr_assert_eq(r->requests[i].time, times[i]);
  rig_destroy(r);
}

// Lines 0, 1, 2 and 0 again. With two open, 2 took the place of 0; with three, 0 is still there.
Test(timing_sm_stores, the_line_stored_to_longest_ago_closes_for_another) {
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
Test(timing_sm_stores, a_line_is_stored_to_where_it_is_open) {
  const int32_t columns[] = {0, 128, 128 + 16};
  rig *r = stores_of_halves(columns, 3, 2, 100);
  cr_assert_eq(r->num_requests, 2);
  cr_assert_eq(r->requests[0].full_sectors, 0);
  cr_assert_eq(r->requests[1].full_sectors, 1);
  rig_destroy(r);
}

// Stores at 0 and 2, of lines 0 and 1, which have passed at 1 and 3. With 4 cycles without a store both lines close at
// 3 + 4 + 1; with none the first closes at 2, before the second is stored to, which closes at 4.
Test(timing_sm_stores, open_lines_close_when_no_store_has_come_for_a_while) {
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
