// How loads of tiles share L2 and DRAM, and which of them the request coalescer makes one.
#include "engine/sampled/traffic.h"

#include "fixture.h"

enum { SM_KHZ = 1200000, TILE_BYTES = 65536 };

typedef struct chip {
  lowered l;
  ftl_launch launch;
  ftl_l2_tags *tags;
  ftl_traffic traffic;
} chip;

static chip *make_chip(void) {
  chip *c = calloc(1, sizeof *c);
  c->l = lower_flash2("h200", "heads=2 seqlen=1024 head_dim=128 block_m=128 block_n=64 num_warps=8 copy=cp_async");
  c->launch = (ftl_launch){.arch = c->l.arch, .tile = c->l.tile, .warps = c->l.warps};
  cr_assert_eq(ftl_traffic_create_tags(&c->tags, c->l.arch, 64, NULL), FTL_OK);
  cr_assert_eq(ftl_traffic_init(&c->traffic, &c->launch, SM_KHZ, c->tags, NULL), FTL_OK);
  return c;
}

static void release_chip(chip *c) {
  ftl_traffic_fini(&c->traffic);
  ftl_l2_tags_destroy(c->tags);
  release_lowered(&c->l);
  free(c);
}

static ftl_tile_run tile_at(int64_t number) {
  ftl_tile_place place = {
      .address_bytes = number * TILE_BYTES, .row_stride_bytes = 256, .num_rows = TILE_BYTES / 256, .row_bytes = 256};
  return (ftl_tile_run){.place = place, .num_rows = place.num_rows, .num_tiles = 1};
}

static ftl_traffic_wait load(chip *c, int64_t tile, int32_t sm, int64_t cycle) {
  ftl_tile_run run = tile_at(tile);
  ftl_traffic_wait wait;
  cr_assert(ftl_traffic_try_load(&c->traffic, &run, 0, sm, cycle * FTL_TRAFFIC_UNIT, &wait));
  return wait;
}

Test(unit_engine_traffic, a_load_of_an_idle_chip_queues_for_nothing) {
  chip *c = make_chip();
  ftl_traffic_wait wait = load(c, 0, 0, 0);
  // 64 bytes a cycle into L1: far less than DRAM gives.
  cr_expect_eq(wait.intake / FTL_TRAFFIC_UNIT, TILE_BYTES / 64);
  cr_expect_eq(wait.queue, 0);
  release_chip(c);
}

Test(unit_engine_traffic, loads_that_are_made_together_are_done_together) {
  chip *c = make_chip();
  enum { SMS = 64 };
  ftl_traffic_wait waits[SMS];
  for (int32_t sm = 0; sm < SMS; sm++) waits[sm] = load(c, sm, sm, 0);
  // All of it through DRAM, at the rate of reads: more than the 1024 cycles that an SM needs for its own.
  int64_t cost = c->traffic.dram_read_cost * (TILE_BYTES / 32) * SMS;
  cr_assert_gt(cost, waits[0].intake);
  for (int32_t sm = 0; sm < SMS; sm++) {
    int64_t late = ftl_traffic_overtaken(&c->traffic, &waits[sm].marks, sm, 0, waits[sm].intake);
    double end = (double)(waits[sm].intake + waits[sm].queue + late) / FTL_TRAFFIC_UNIT;
    // A sample of the tile's lines decides what of it comes from DRAM: here all.
    cr_expect_float_eq(end, (double)cost / FTL_TRAFFIC_UNIT, 2, "SM %d ends at %.1f", (int)sm, end);
  }
  release_chip(c);
}

Test(unit_engine_traffic, four_loads_of_a_gpc_within_the_window_are_one_access) {
  chip *c = make_chip();
  int64_t sectors = TILE_BYTES / 32, window = c->traffic.coalescer_window / FTL_TRAFFIC_UNIT;
  load(c, 0, 0, 0);
  int64_t idle = 1000000;  // the fill is over: from here on hits
  int32_t sms_of_gpc[] = {0, 1, 16, 17, 32}, other_gpc = 2;
  for (int32_t i = 0; i < 5; i++) load(c, 0, sms_of_gpc[i], idle + i * (window - 1) / 4);
  cr_expect_eq(c->traffic.counts.coalesced_sectors, 3 * sectors);  // the fifth opens a new access
  load(c, 0, other_gpc, idle + window / 2);
  cr_expect_eq(c->traffic.counts.coalesced_sectors, 3 * sectors);
  load(c, 0, 33, idle + 2 * window + 1);  // too late for the fifth too
  cr_expect_eq(c->traffic.counts.coalesced_sectors, 3 * sectors);
  release_chip(c);
}
