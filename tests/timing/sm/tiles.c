// Persistent CTAs that take their tiles from a counter, with a memory that answers after 200 cycles.
#include <criterion/criterion.h>

#include "rig.h"

enum { TILE_ASK, WORK, TILE_WAIT, LEAVE };  // instructions

// A warp that asks for its next tile, works for `cycles`, and waits for the answer.
static rig *create(int32_t num_warps, uint8_t cycles) {
  rig *r = rig_create(num_warps);
  r->tile.num_ctas = 50;
  r->persistent_stride = 20;
  r->dynamic_tiles = true;
  rig_add(r, FTL_OP_TILE_ASK, -1, -1)->flags = FTL_INST_WARP0;
  rig_add(r, FTL_OP_FFMA, 0, -1)->repeat = cycles;
  rig_add(r, FTL_OP_TILE_WAIT, -1, -1);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  return r;
}

// Asked for at 0, answered at 200: the warp that waits since 2 knows the number after a barrier (16) and a load from
// shared memory (24), at 240, and begins the tile a taken branch later, at 240 + 1 + 6. Tile 50 is beyond the grid: the
// CTA ends with the EXIT of its third tile, at 734.
Test(timing_sm_tiles, a_cta_goes_on_with_the_tiles_that_the_counter_gives_it) {
  rig *r = create(1, 1);
  r->next_tile = 48;
  cr_assert_eq(rig_run(r, 1), 735);
  for (int i = 0; i < 3; i++) {
    cr_expect_eq(rig_cycle(r, 0, TILE_ASK, i), 247 * i);
    cr_expect_eq(rig_cycle(r, 0, LEAVE, i), 247 * i + 240);
    cr_expect_eq(r->log[4 * i].cta, i == 0 ? 0 : 47 + i);
  }
  cr_assert_eq(r->num_requests, 3);
  for (int i = 0; i < 3; i++) {
    cr_expect_eq(r->requests[i].kind, FTL_MEM_ATOMIC);
    cr_expect_eq(r->requests[i].time, 247 * i);
    cr_expect_eq(r->requests[i].line, FTL_MEM_COUNTER_LINE);
  }
  rig_destroy(r);
}

// 250 cycles of work hide the trip: TILE_WAIT issues at 251 and takes its own 40.
Test(timing_sm_tiles, work_on_a_tile_hides_the_trip_to_the_counter) {
  rig *r = create(1, 250);
  r->next_tile = 50;
  cr_assert_eq(rig_run(r, 1), 251 + 40 + 1);
  cr_expect_eq(rig_cycle(r, 0, TILE_WAIT, 0), 251);
  rig_destroy(r);
}

// Only the first warp asks; all go on with the same tile.
Test(timing_sm_tiles, all_warps_of_a_cta_get_the_tile_that_one_asked_for) {
  rig *r = create(3, 1);
  r->next_tile = 49;
  rig_run(r, 1);
  cr_assert_eq(r->num_requests, 2);
  int seen[3] = {0};
  for (int i = 0; i < r->num_issues; i++)
    if (r->log[i].inst == LEAVE && r->log[i].cta == 49) seen[r->log[i].warp]++;
  for (int warp = 0; warp < 3; warp++) cr_expect_eq(seen[warp], 1, "warp %d", warp);
  rig_destroy(r);
}

// Without an engine that hands out tiles the SM goes on by its stride, at the same times: what sampled detail measures.
Test(timing_sm_tiles, a_stride_takes_the_place_of_the_counter_on_an_sm_alone) {
  rig *r = create(1, 1);
  r->dynamic_tiles = false;
  r->next_tile = 1000;
  cr_assert_eq(rig_run(r, 1), 735);
  for (int i = 0; i < 3; i++) cr_expect_eq(r->log[4 * i].cta, 20 * i);
  rig_destroy(r);
}
