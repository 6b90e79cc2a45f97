#include <criterion/criterion.h>

#include "rig.h"

static rig *rig_with_parameters(int32_t num_warps) {
  rig *r = rig_create(num_warps);
  r->arch.constant_launch_miss_cycles = 100;
  r->arch.constant_line_miss_cycles = 50;
  r->arch.constant_cta_miss_cycles = 20;
  return r;
}

// Loads at 0 to 4 of 16 bytes each. The first comes at 100, its line's other three 20 after that line, at 120; the
// fifth is of another line: at 4 + 50. Who reads them issues at 100 and, in order, from 120 on. The warp waits from 5
// to 99 and from 101 to 119.
Test(timing_sm_parameters, the_launch_a_line_and_a_cta_each_miss_once) {
  rig *r = rig_with_parameters(1);
  for (int i = 0; i < 5; i++) rig_add(r, FTL_OP_LDC, i, -1);
  for (int i = 0; i < 5; i++) rig_add(r, FTL_OP_FFMA, 5 + i, i);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  for (int i = 0; i < 5; i++) cr_assert_eq(rig_cycle(r, 0, i, 0), i);
  cr_assert_eq(rig_cycle(r, 0, 5, 0), 100);
  for (int i = 1; i < 5; i++) cr_assert_eq(rig_cycle(r, 0, 5 + i, 0), 119 + i);
  cr_assert_eq(rig_counters(r)->stall_cycles[FTL_STALL_IMC_MISS], 95 + 19);
  rig_destroy(r);
}

// The fifth load alone is waited for: 4 + 50.
Test(timing_sm_parameters, another_line_comes_sooner_than_the_first) {
  rig *r = rig_with_parameters(1);
  for (int i = 0; i < 5; i++) rig_add(r, FTL_OP_LDC, i, -1);
  rig_add(r, FTL_OP_FFMA, 5, 4);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  cr_assert_eq(rig_cycle(r, 0, 5, 0), 54);
  rig_destroy(r);
}

// Warps of a CTA share what comes to it. A run of 4 is 16 bytes: asked for at 0, when its first load issues.
Test(timing_sm_parameters, warps_of_a_cta_wait_for_the_same) {
  rig *r = rig_with_parameters(2);
  rig_add(r, FTL_OP_LDC, 0, -1)->repeat = 4;
  rig_add(r, FTL_OP_FFMA, 1, 0);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  for (int warp = 0; warp < 2; warp++) cr_assert_eq(rig_cycle(r, warp, 1, 0), 100);
  rig_destroy(r);
}

// CTA 1 asks in the same cycle for what CTA 0 has asked for: when the SM has it, at 100, and 20 more. A tile of a
// persistent CTA finds what the one before has read: tile 2 begins by a taken branch (6) after EXIT at 101, and loads
// of 4 cycles are all it waits for.
Test(timing_sm_parameters, another_cta_misses_and_a_further_tile_does_not) {
  rig *r = rig_with_parameters(1);
  r->num_slots = 2;
  r->persistent_stride = 2;
  r->tile.num_ctas = 3;
  rig_add(r, FTL_OP_NEXT_TILE, -1, -1);
  r->program.roles[0].tile_inst = 0;
  rig_add(r, FTL_OP_LDC, 0, -1);
  rig_add(r, FTL_OP_FFMA, 1, 0);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 2);
  cr_assert_eq(rig_cycle(r, 0, 2, 0), 100);
  cr_assert_eq(r->end_cycle[1], 122);
  cr_assert_eq(rig_cycle(r, 0, 1, 1), 108);
  cr_assert_eq(rig_cycle(r, 0, 2, 1), 112);
  rig_destroy(r);
}
