// Loads from global and local memory: L1, which lines stay in it, and the port that they come in through.
#include <criterion/criterion.h>

#include "lower/walk.h"
#include "machine/sm/l1.h"
#include "rig.h"

// The line leaves in the cycle in which the LSU takes the load (0); the reply is there at 200 and so is the result.
// A second load of the same line, when it is in L1: hit latency 32.
Test(timing_sm_loads, a_load_misses_and_then_hits_l1) {
  rig *r = rig_create(1);
  uint16_t line = rig_access(r, 0, 1);
  rig_add_tile(r);                         // 0
  rig_add_access(r, FTL_OP_LDG, 0, line);  // 1
  rig_add(r, FTL_OP_FFMA, 1, 0);           // 2
  rig_add_access(r, FTL_OP_LDG, 2, line);  // 3
  rig_add(r, FTL_OP_FFMA, 3, 2);           // 4
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
  cr_assert_eq(rig_counters(r)->l1_local_load_sectors, 0);
  rig_destroy(r);
}

// A row's first 16 bytes, its next 48 and its last 64: the second load wants the rest of a sector that the first one
// asked for. Two whole rows of 128 bytes in one load share none.
Test(timing_sm_loads, sectors_that_a_load_shares_with_one_before_are_counted) {
  static const int32_t begin[] = {0, 16, 64, 0}, bytes[] = {16, 48, 64, 128};
  rig *r = rig_create(1);
  rig_add_tile(r);
  for (int i = 0; i < 4; i++) {
    uint16_t access = rig_access(r, 0, i == 3 ? 2 : 1);
    r->accesses[access].column_byte = begin[i];
    r->accesses[access].bytes = bytes[i];
    rig_add_access(r, FTL_OP_LDG, i, access);
  }
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_counters(r)->l1_load_sectors, 1 + 2 + 2 + 8);
  cr_assert_eq(rig_counters(r)->l1_again_load_sectors, 1);
  rig_destroy(r);
}

// Times of results have 30 bits: beyond 2^30 cycles they are right because they are counted from a base that follows.
Test(timing_sm_loads, a_load_may_take_more_than_2_to_the_30_cycles) {
  rig *r = rig_create(1);
  r->latency = (INT64_C(1) << 30) + 1000;
  r->window = 1 << 27;
  rig_add_tile(r);                                        // 0
  rig_add_access(r, FTL_OP_LDG, 0, rig_access(r, 0, 1));  // 1
  rig_add(r, FTL_OP_FFMA, 1, 0);                          // 2
  rig_add(r, FTL_OP_FFMA, 2, 1);                          // 3
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), r->latency);
  cr_assert_eq(rig_cycle(r, 0, 3, 0), r->latency + 4);
  rig_destroy(r);
}

// Warp 1 loads the line that warp 0 asked for a cycle before: no second request, both results at 200.
Test(timing_sm_loads, a_miss_in_flight_is_merged) {
  rig *r = rig_create(2);
  uint16_t line = rig_access(r, 0, 1);
  r->accesses[line].warp_row_step = 0;
  rig_add_tile(r);
  rig_add_access(r, FTL_OP_LDG, 0, line);
  rig_add(r, FTL_OP_FFMA, 1, 0);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(r->num_requests, 1);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 200);
  cr_assert_eq(rig_cycle(r, 1, 2, 0), 200);
  cr_assert_eq(rig_counters(r)->l1_load_hit_sectors, 4);
  rig_destroy(r);
}

// L1 of 16 KiB holds 128 lines in 32 sets of 4 ways. Of the rows of 256 bytes, the first lines of which are 2 lines
// apart, those whose first lines are in the set of row 0.
static void find_rows_of_a_set(rig *r, int32_t *rows, int32_t num_rows) {
  ftl_arena arena = {0};
  sm_l1 l1;
  cr_assert(ftl_sm_l1_create(&l1, &r->arch, 16384, &arena));
  cr_assert_eq(l1.num_sets, 32);
  uint64_t first = (uint64_t)r->tile.tensors[0].base_bytes / 128;
  int32_t found = 0;
  for (int32_t row = 0; found < num_rows; row++)
    if (ftl_sm_l1_set(&l1, first + 2 * (uint64_t)row) == ftl_sm_l1_set(&l1, first)) rows[found++] = row;
  ftl_arena_fini(&arena);
}

// Five share a set: the fifth pushes out the first, which misses again.
Test(timing_sm_loads, the_least_recently_used_line_of_a_set_leaves) {
  rig *r = rig_create(1);
  int32_t rows[5];
  find_rows_of_a_set(r, rows, 5);
  rig_add_tile(r);
  for (int i = 0; i < 6; i++) {
    uint16_t line = rig_access(r, rows[i % 5], 1);
    r->accesses[line].column_byte = 0;
    rig_add_access(r, FTL_OP_LDG, i, line);
    rig_add(r, FTL_OP_FFMA, 10 + i, i)->sources[0] = (uint16_t)i;
    rig_add(r, FTL_OP_IADD, -1, 10 + i);
  }
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(r->num_requests, 6);
  cr_assert_eq(rig_counters(r)->l1_load_hit_sectors, 0);
  rig_destroy(r);
}

// Neighbours have sets of their own: of 128 lines that follow each other none is displaced, and all hit in the second
// of two passes over them.
Test(timing_sm_loads, lines_that_follow_each_other_fill_l1) {
  rig *r = rig_create(1);
  ftl_arena arena = {0};
  sm_l1 l1;
  int32_t in_set[32] = {0};
  cr_assert(ftl_sm_l1_create(&l1, &r->arch, 16384, &arena));
  for (uint64_t line = 32 * 1000; line < 32 * 1000 + 128; line++) in_set[ftl_sm_l1_set(&l1, line)]++;
  for (int i = 0; i < 32; i++) cr_expect_eq(in_set[i], 4, "set %d has %d lines", i, in_set[i]);
  ftl_arena_fini(&arena);
  rig_destroy(r);
}

// Eight warps with 16 lines of local memory each, 128 in all: no set is given more than one line beside its share of
// four.
Test(timing_sm_loads, local_memories_of_warps_fill_l1) {
  rig *r = rig_create(1);
  ftl_arena arena = {0};
  sm_l1 l1;
  int32_t in_set[32] = {0};
  cr_assert(ftl_sm_l1_create(&l1, &r->arch, 16384, &arena));
  for (int32_t warp = 0; warp < 8; warp++)
    for (uint64_t i = 0; i < 16; i++) in_set[ftl_sm_l1_set(&l1, ftl_local_address_bytes(3, warp) / 128 + i)]++;
  for (int i = 0; i < 32; i++) cr_expect(in_set[i] >= 3 && in_set[i] <= 5, "set %d has %d lines", i, in_set[i]);
  ftl_arena_fini(&arena);
  rig_destroy(r);
}

// A line that is asked for and then displaced, before it comes, comes for the load that waits for it, and is not there
// for the next: lines 0 to 4 of a set are asked for at once, and line 0 again when they are there.
Test(timing_sm_loads, a_line_has_its_place_from_when_it_is_asked_for) {
  rig *r = rig_create(1);
  int32_t rows[5];
  find_rows_of_a_set(r, rows, 5);
  uint16_t accesses[5];
  rig_add_tile(r);
  for (int i = 0; i < 5; i++) {
    accesses[i] = rig_access(r, rows[i], 1);
    r->accesses[accesses[i]].column_byte = 0;
    rig_add_access(r, FTL_OP_LDG, i, accesses[i]);
  }
  for (int i = 0; i < 5; i++) rig_add(r, FTL_OP_IADD, -1, i);
  rig_add_access(r, FTL_OP_LDG, 5, accesses[4]);
  rig_add_access(r, FTL_OP_LDG, 6, accesses[0]);
  for (int i = 5; i < 7; i++) rig_add(r, FTL_OP_IADD, -1, i);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(r->num_requests, 6);
  cr_assert_eq(rig_counters(r)->l1_load_hit_sectors, 4);
  rig_destroy(r);
}

// Loads of lines of a set, one after another.
static rig *loads_of_a_set(const int32_t *lines, int32_t num_loads) {
  rig *r = rig_create(1);
  uint16_t accesses[5];
  int32_t rows[5];
  find_rows_of_a_set(r, rows, 5);
  for (int32_t line = 0; line < 5; line++) {
    accesses[line] = rig_access(r, rows[line], 1);
    r->accesses[accesses[line]].column_byte = 0;
  }
  rig_add_tile(r);
  for (int32_t i = 0; i < num_loads; i++) {
    rig_add_access(r, FTL_OP_LDG, i, accesses[lines[i]]);
    rig_add(r, FTL_OP_IADD, -1, i);
  }
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  return r;
}

// Line 0 is used again; line 4 displaces line 1, the oldest that was not. Two hits of line 0, of 4 sectors each.
Test(timing_sm_loads, a_line_used_again_outlives_lines_used_once) {
  rig *r = loads_of_a_set((int32_t[]){0, 0, 1, 2, 3, 4, 0, 1}, 8);
  cr_assert_eq(r->num_requests, 6);
  cr_assert_eq(rig_counters(r)->l1_load_hit_sectors, 2 * 4);
  rig_destroy(r);
}

// Of 16 KiB half may be protected, 2 of 4 ways: with line 2 line 0 is one of the others again, and line 4 displaces it.
// Lines 1, 2 and 3 are left: hits are the second and third uses of 1 and 2, and the second of 0
// and 3. Asked for once more, line 0 would miss in place of line 2, were it protected for ever: as many hits.
Test(timing_sm_loads, the_oldest_protected_line_loses_its_protection) {
  rig *r = loads_of_a_set((int32_t[]){0, 0, 1, 1, 2, 2, 3, 4, 1, 2, 3}, 11);
  cr_assert_eq(r->num_requests, 5);
  cr_assert_eq(rig_counters(r)->l1_load_hit_sectors, 6 * 4);
  rig_destroy(r);
}

// With line 2 line 0 is no longer protected and the next to go: line 4 displaces it, though line 3 came before it was
// one of the others again, and line 3 hits.
Test(timing_sm_loads, a_line_that_loses_its_protection_is_the_next_to_go) {
  rig *r = loads_of_a_set((int32_t[]){0, 0, 1, 1, 3, 2, 2, 4, 3}, 9);
  cr_assert_eq(r->num_requests, 5);
  cr_assert_eq(rig_counters(r)->l1_load_hit_sectors, 4 * 4);
  rig_destroy(r);
}

// Lines used once need 16 KiB first, and 8 KiB at most are protected.
Test(timing_sm_loads, a_small_l1_protects_nothing) {
  rig *r = rig_create(1);
  r->arch.l1_once_used_bytes = 16384;
  cr_assert_eq(ftl_sm_l1_protected_bytes(&r->arch, 16384), 0);
  cr_assert_eq(ftl_sm_l1_protected_bytes(&r->arch, 16384 + 128), 128);
  cr_assert_eq(ftl_sm_l1_protected_bytes(&r->arch, 1 << 20), 8192);
  rig_destroy(r);
}

// What is stored goes to L2, and its load hits.
Test(timing_sm_loads, stored_lines_stay_in_l1) {
  rig *r = rig_create(1);
  uint16_t line = rig_access(r, 0, 1);
  rig_add_tile(r);
  rig_add_access(r, FTL_OP_STG, -1, line);
  rig_add_access(r, FTL_OP_LDG, 0, line);
  rig_add(r, FTL_OP_FFMA, 1, 0);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(r->num_requests, 1);
  cr_assert_eq(r->requests[0].kind, FTL_MEM_WRITE);
  cr_assert_eq(rig_counters(r)->l1_load_hit_sectors, 4);
  rig_destroy(r);
}

// 32 B a cycle into the SM: a line takes the fill port for 4 cycles, so the lines of a load come at 200, 204 and 208.
Test(timing_sm_loads, lines_come_in_through_one_port) {
  rig *r = rig_create(1);
  r->arch.l1_fill_bytes_per_cycle = 32;
  rig_add_tile(r);
  rig_add_access(r, FTL_OP_LDG, 0, rig_access(r, 0, 3));
  rig_add(r, FTL_OP_FFMA, 1, 0);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 208);
  rig_destroy(r);
}

// Three loads of a line each, the first two of less than 4 bytes a lane: they keep the LSU for 6 cycles each. Once L1
// has the lines they come as fast as the sub-core sends them, in mio.issue_interval_cycles: sent at 213, 215 and 217,
// ready 32 cycles later.
Test(timing_sm_loads, a_load_of_parts_of_words_takes_longer_where_it_misses) {
  rig *r = rig_create(1);
  r->arch.l1_subword_miss_cycles = 6;
  uint16_t lines[] = {rig_access(r, 0, 1), rig_access(r, 1, 1), rig_access(r, 2, 1)};
  r->accesses[lines[0]].in_subwords = r->accesses[lines[1]].in_subwords = true;
  rig_add_tile(r);
  for (int16_t i = 0; i < 3; i++) rig_add_access(r, FTL_OP_LDG, i, lines[i]);
  for (int16_t i = 0; i < 3; i++) rig_add(r, FTL_OP_FFMA, 10, i);
  for (int16_t i = 0; i < 3; i++) rig_add_access(r, FTL_OP_LDG, i, lines[i]);
  for (int16_t i = 0; i < 3; i++) rig_add(r, FTL_OP_FFMA, 10, i);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(r->num_requests, 3);
  for (int64_t i = 0; i < 3; i++) cr_expect_eq(r->requests[i].time, 6 * i);
  for (int32_t i = 0; i < 3; i++) cr_expect_eq(rig_cycle(r, 0, 10 + i, 0), 213 + 2 * i + 32);
  rig_destroy(r);
}

// Spills are written through and stay in L1: the store of a slot goes to L2, and its load hits.
Test(timing_sm_loads, spills_are_written_through_and_kept_in_l1) {
  rig *r = rig_create(2);
  uint16_t slot = rig_access(r, 3, 1);
  r->accesses[slot].is_local = true;
  rig_add_access(r, FTL_OP_STL, -1, slot);
  rig_add_access(r, FTL_OP_LDL, 0, slot);
  rig_add(r, FTL_OP_FFMA, 1, 0);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(r->num_requests, 2);  // one line of four sectors a warp
  cr_assert_eq(rig_counters(r)->local_sectors, 8);
  cr_assert_eq(rig_counters(r)->l1_load_sectors, 8);
  cr_assert_eq(rig_counters(r)->l1_local_load_sectors, 8);
  cr_assert_eq(rig_counters(r)->l1_local_load_hit_sectors, 8);
  // STL taken at 0 and 1 (two sub-cores), LDL of warp 0 at 2: ready at 34
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 34);
  rig_destroy(r);
}

// A slot that is stored again is found: four of eight sectors. It is sent again all the same.
Test(timing_sm_loads, a_spill_finds_the_slot_that_l1_holds) {
  rig *r = rig_create(1);
  uint16_t slot = rig_access(r, 3, 1);
  r->accesses[slot].is_local = true;
  rig_add_access(r, FTL_OP_STL, -1, slot);
  rig_add_access(r, FTL_OP_STL, -1, slot);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(r->num_requests, 2);
  cr_assert_eq(rig_counters(r)->l1_store_sectors, 8);
  cr_assert_eq(rig_counters(r)->l1_store_hit_sectors, 4);
  rig_destroy(r);
}

// Without any L1 left a local store goes to L2 and the load comes from there.
Test(timing_sm_loads, spills_go_to_l2_when_shared_memory_takes_all) {
  rig *r = rig_create(1);
  r->program.shared_bytes = 16384;
  uint16_t slot = rig_access(r, 3, 1);
  r->accesses[slot].is_local = true;
  rig_add_access(r, FTL_OP_STL, -1, slot);
  rig_add_access(r, FTL_OP_LDL, 0, slot);
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

static void add_loads(rig *r, int32_t num_loads) {
  for (int32_t i = 0; i < num_loads; i++) {
    uint16_t line = rig_access(r, i * 2, 1);
    r->accesses[line].column_byte = 0;
    rig_add_access(r, FTL_OP_LDG, i, line);  // 1 + i
  }
}

// A warp may have two loads on their way, whose places are free 10 cycles behind their data. The LSU takes the two at 0
// and 2, so that the third, which could issue at 2, does at 200 + 10, and the fourth at 202 + 10. They come 200 cycles
// later.
Test(timing_sm_loads, a_warp_has_so_many_loads_on_their_way) {
  rig *r = rig_create(1);
  r->arch.l1_max_warp_loads = 2;
  r->arch.l1_warp_load_release_cycles = 10;
  rig_add_tile(r);
  add_loads(r, 4);
  rig_add(r, FTL_OP_FFMA, 10, 3);  // 5
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 1, 0), 0);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 1);
  cr_assert_eq(rig_cycle(r, 0, 3, 0), 210);
  cr_assert_eq(rig_cycle(r, 0, 4, 0), 212);
  cr_assert_eq(rig_cycle(r, 0, 5, 0), 412);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_MISC], (210 - 2) + (212 - 211));
  rig_destroy(r);
}

// Code that has no more loads than a warp may have never waits, and other warps' do not count.
Test(timing_sm_loads, loads_of_other_warps_leave_a_warp_its_places) {
  rig *r = rig_create(2);
  r->arch.l1_max_warp_loads = 2;
  r->arch.l1_warp_load_release_cycles = 10;
  rig_add_tile(r);
  add_loads(r, 2);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  for (int32_t warp = 0; warp < 2; warp++) cr_assert_eq(rig_cycle(r, warp, 2, 0), 1);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_MISC], 0);
  rig_destroy(r);
}

// Three loads count on a scoreboard, taken at 0, 2 and 4: who reads the first waits for it until the last is there, at
// 204. A fourth, on another one, is there at 206.
Test(timing_sm_loads, a_scoreboard_is_waited_for_until_all_its_loads_have_come) {
  rig *r = rig_create(1);
  rig_add_tile(r);
  add_loads(r, 4);
  for (int32_t i = 0; i < 3; i++) r->insts[1 + i].scoreboard = 1;
  r->insts[4].scoreboard = 2;
  rig_add(r, FTL_OP_FFMA, 10, 0)->awaits = 1;  // 5
  rig_add(r, FTL_OP_FFMA, 11, 3);              // 6
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 5, 0), 204);
  cr_assert_eq(rig_cycle(r, 0, 6, 0), 206);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_LONG_SCOREBOARD], (204 - 4) + (206 - 205));
  rig_destroy(r);
}

// With four lines in flight, 1 an instruction, a store or copy waits; loads go on until there are six. The seventh is
// taken when the first is there, at 200.
Test(timing_sm_loads, loads_have_more_lines_in_flight_than_copies) {
  rig *r = rig_create(1);
  r->arch.l1_max_pending_lines = 4;
  r->arch.l1_max_pending_load_lines = 6;
  rig_add_tile(r);
  add_loads(r, 7);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(r->num_requests, 7);
  for (int32_t i = 0; i < 6; i++) cr_assert_eq(r->requests[i].time, 2 * i);
  cr_assert_eq(r->requests[6].time, 200);
  rig_destroy(r);
}
