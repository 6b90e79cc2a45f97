#include <criterion/criterion.h>

#include "rig.h"

static rig *rig_with_cache(int32_t num_warps, int64_t lines) {
  rig *r = rig_create(num_warps);
  r->arch.sm_code_cache_bytes = 128 * lines;
  r->arch.sm_code_miss_cycles = 9;
  return r;
}

// 8 instructions of 16 bytes a line. The first is there at 9; the warp comes to the second at 17, which is there at 26,
// and to the third, EXIT alone, at 34: 43.
Test(timing_sm_code_cache, a_line_comes_when_a_warp_needs_it) {
  rig *r = rig_with_cache(1, 4);
  for (int i = 0; i < 16; i++) rig_add(r, FTL_OP_FFMA, i, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  for (int i = 0; i < 8; i++) cr_assert_eq(rig_cycle(r, 0, i, 0), 9 + i);
  for (int i = 8; i < 16; i++) cr_assert_eq(rig_cycle(r, 0, i, 0), 26 + i - 8);
  cr_assert_eq(rig_cycle(r, 0, 16, 0), 43);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_NO_INSTRUCTION], 27);
  rig_destroy(r);
}

// Warps on sub-cores 0 and 1 wait for the same line, once.
Test(timing_sm_code_cache, warps_share_what_comes) {
  rig *r = rig_with_cache(2, 4);
  rig_add(r, FTL_OP_FFMA, 0, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  cr_assert_eq(rig_run(r, 1), 11);
  cr_assert_eq(rig_cycle(r, 0, 0, 0), 9);
  cr_assert_eq(rig_cycle(r, 1, 0, 0), 9);
  rig_destroy(r);
}

// A run of 20 takes three lines, all before it begins: 27.
Test(timing_sm_code_cache, a_run_is_as_long_as_its_instructions) {
  rig *r = rig_with_cache(1, 4);
  rig_add(r, FTL_OP_FFMA, 0, -1)->repeat = 20;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 0, 0), 27);
  rig_destroy(r);
}

static int64_t cycles_of_loop(int64_t lines) {
  rig *r = rig_with_cache(1, lines);
  int32_t loop = rig_loop(r, 0, 0, 10);
  for (int i = 0; i < 23; i++) rig_add(r, FTL_OP_FFMA, i, -1);
  rig_add(r, FTL_OP_BRA, -1, -1)->flags = FTL_INST_LOOP_BRANCH;
  rig_end_loop(r, loop);
  int64_t cycles = rig_run(r, 1);
  rig_destroy(r);
  return cycles;
}

// Three lines, ten times: 3 misses where they fit; where there is room for two, the least recently used is always the
// next one: 30 misses of 9 cycles.
Test(timing_sm_code_cache, a_loop_longer_than_the_cache_misses_every_line) {
  cr_assert_eq(cycles_of_loop(2) - cycles_of_loop(3), (30 - 3) * 9);
}
