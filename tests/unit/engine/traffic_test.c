// How loads of tiles share L2 and DRAM, and which of them the request coalescer makes one.
#include "engine/sampled/traffic.h"

#include "fixture.h"

// An SM takes in 144 bytes an L2 cycle of 1708 MHz, 204.96 an SM cycle of 1200: a tile in 319.7, 16 lines of 64 rows in
// 639.5.
enum { SM_KHZ = 1200000, TILE_BYTES = 65536, INTAKE_CYCLES = 319, INTAKE_OF_ROWS = 639 };

typedef struct chip {
  lowered l;
  ftl_launch launch;
  ftl_l2_tags *tags;
  ftl_traffic traffic;
} chip;

static chip *make_chip_of(int64_t smallest_tile_lines) {
  chip *c = calloc(1, sizeof *c);
  c->l = lower_flash2("h200", "heads=2 seqlen=1024 head_dim=128 block_m=128 block_n=64 num_warps=8 copy=cp_async");
  c->launch = (ftl_launch){.arch = c->l.arch, .tile = c->l.tile, .warps = c->l.warps};
  cr_assert_eq(ftl_traffic_create_tags(&c->tags, c->l.arch, smallest_tile_lines, NULL), FTL_OK);
  cr_assert_eq(ftl_traffic_init(&c->traffic, &c->launch, SM_KHZ, c->tags, NULL), FTL_OK);
  return c;
}

static chip *make_chip(void) { return make_chip_of(64); }

static void release_chip(chip *c) {
  ftl_traffic_fini(&c->traffic);
  ftl_l2_tags_destroy(c->tags);
  release_lowered(&c->l);
  free(c);
}

static ftl_tile_run tile_at(int64_t number) {
  ftl_tile_place place = {
      .address_bytes = number * TILE_BYTES, .row_stride_bytes = 256, .num_rows = TILE_BYTES / 256, .row_bytes = 256};
  return (ftl_tile_run){.place = place, .num_rows = place.num_rows, .num_tiles = 1, .waits_for_channels = true};
}

static ftl_traffic_wait load(chip *c, int64_t tile, int32_t sm, int64_t cycle) {
  ftl_tile_run run = tile_at(tile);
  ftl_traffic_wait wait;
  cr_assert(ftl_traffic_try_load(&c->traffic, &run, 0, sm, cycle * FTL_TICKS_PER_CYCLE, &wait));
  return wait;
}

Test(unit_engine_traffic, a_load_of_an_idle_chip_queues_for_nothing) {
  chip *c = make_chip();
  ftl_traffic_wait wait = load(c, 0, 0, 0);
  cr_expect_eq(wait.intake_ticks / FTL_TICKS_PER_CYCLE, INTAKE_CYCLES);
  cr_expect_eq(wait.queue_ticks, 0);
  release_chip(c);
}

// When the channels of DRAM have served the tile's last chunk, beyond when the SM could take it in (ticks), if
// it is asked for at 0.
static int64_t late_at_channels(ftl_traffic *traffic, int64_t tile) {
  ftl_tile_run run = tile_at(tile);
  int64_t sectors = TILE_BYTES / 32, asking = sectors * traffic->ask_sector_ticks;
  cr_assert_gt(asking, sectors * traffic->sm_sector_ticks);
  return ftl_dram_channels_serve(&traffic->channels, &run, 1, 1, 0, asking) - asking;
}

// A line that DRAM brings crosses to the reader's side and back where its home is the other one: half of them. Some of
// the tile's channels refresh at 0.
Test(unit_engine_traffic, the_last_lines_of_a_tile_from_dram_come_by_way_of_the_other_side) {
  chip *c = make_chip(), *idle = make_chip();
  int64_t hit, far, miss, late = late_at_channels(&idle->traffic, 0);
  ftl_traffic_latencies(c->l.arch, SM_KHZ, &hit, &far, &miss);
  cr_assert_gt(far, 0);
  cr_assert_gt(late, 0);
  cr_expect_eq(load(c, 0, 0, 0).latency_cycles, hit + miss + far + late / FTL_TICKS_PER_CYCLE);
  release_chip(idle);
  release_chip(c);
}

// H200: of 12484 cycles a channel refreshes for 577, of 3201 MHz: of 4680 for 216.3 of an SM's at 1200. The longest of
// n waits, of chunks asked for at once, is 216.3 - 4680 / n (1 - exp(-n 216.3 / 4680)):
// - 65536 bytes in a row, 128 chunks: 179.8, 180.05 by sixteen parts;
// - 256 rows of 256 bytes, 4096 apart, in as many chunks: 198.0;
// - two rows of 256 bytes in one chunk: 4.9.
// Asked for in 1024 cycles 128 chunks wait 216.3 - 242.5 erf(0.7905) = 37.7.
Test(unit_engine_traffic, the_last_of_a_tiles_chunks_waits_for_a_refresh) {
  chip *c = make_chip();
  ftl_dram_refresh *refresh = &c->traffic.refresh;
  ftl_tile_run whole = tile_at(0), apart = whole, one = whole;
  cr_expect_eq(ftl_dram_refresh_wait(refresh, &whole, 0), 180);
  cr_expect_eq(ftl_dram_refresh_wait(refresh, &whole, 1024), 37);
  apart.place.row_stride_bytes = 4096;
  cr_expect_eq(ftl_dram_refresh_wait(refresh, &apart, 0), 198);
  one.num_rows = one.place.num_rows = 2;
  cr_expect_eq(ftl_dram_refresh_wait(refresh, &one, 0), 4);
  release_chip(c);
}

// The same 256 rows as four tiles, one below the other or side by side: 64 rows of a chunk each wait for
// 216.3 - 4680 / 64 (1 - exp(-64 216.3 / 4680)) = 147.0.
Test(unit_engine_traffic, tiles_of_a_run_wait_for_their_own_chunks) {
  chip *c = make_chip();
  ftl_tile_run below = tile_at(0);
  below.place.row_stride_bytes = 4096;
  below.num_tiles = 4;
  cr_expect_eq(ftl_dram_refresh_wait(&c->traffic.refresh, &below, 0), 147);
  ftl_tile_run beside = below;
  beside.num_rows = beside.place.num_rows = 64;
  beside.place.row_bytes = 1024;
  beside.tile_row_bytes = 256;
  cr_expect_eq(ftl_dram_refresh_wait(&c->traffic.refresh, &beside, 0), 147);
  release_chip(c);
}

// Most lines of a tile find no refresh: who asks a window behind their arrival makes an access of its own, though the
// last line is still on its way.
Test(unit_engine_traffic, a_refresh_keeps_no_request_open) {
  chip *c = make_chip();
  int64_t window = c->traffic.coalescer_window_ticks / FTL_TICKS_PER_CYCLE, sectors = TILE_BYTES / 32;
  load(c, 0, 0, 0);
  load(c, 0, 1, c->traffic.miss_latency_cycles + window);
  cr_expect_eq(c->traffic.counts.coalesced_sectors, sectors);
  load(c, 0, 16, c->traffic.miss_latency_cycles + window + 2);
  cr_expect_eq(c->traffic.counts.coalesced_sectors, sectors);
  release_chip(c);
}

// The same tile of straight code: its last chunk waits as long as one does in the mean, however busy its channels are;
// it is in others' way.
Test(unit_engine_traffic, tiles_of_straight_code_wait_for_refreshes_alone) {
  chip *c = make_chip();
  ftl_tile_run run = tile_at(0);
  run.waits_for_channels = false;
  int64_t unloaded = c->traffic.hit_latency_cycles + c->traffic.miss_latency_cycles;
  int64_t refresh_wait = ftl_dram_refresh_wait(&c->traffic.refresh, &run, INTAKE_CYCLES);
  ftl_traffic_wait wait;
  cr_assert(ftl_traffic_try_load(&c->traffic, &run, 0, 0, 0, &wait));
  cr_expect_eq(wait.latency_cycles, unloaded + refresh_wait);
  chip *idle = make_chip();
  cr_expect_gt(ftl_dram_channels_serve(&c->traffic.channels, &run, 1, 1, 0, 0),
               ftl_dram_channels_serve(&idle->traffic.channels, &run, 1, 1, 0, 0), "it was in nobody's way");
  release_chip(idle);
  release_chip(c);
}

// Of 96 tiles that are asked for at once some are there when DRAM as a whole has got to them, others when the channel
// that has most to do for them has.
Test(unit_engine_traffic, a_tile_waits_for_the_channel_that_has_most_to_do) {
  chip *c = make_chip(), *idle = make_chip();
  int64_t unloaded = c->traffic.hit_latency_cycles + c->traffic.miss_latency_cycles;
  int32_t later = 0;
  for (int32_t sm = 0; sm < 96; sm++) {
    ftl_traffic_wait wait = load(c, sm, sm, 0);
    int64_t late = late_at_channels(&idle->traffic, sm) - wait.queue_ticks;
    later += late > 0;
    cr_expect_eq(wait.latency_cycles, unloaded + (late > 0 ? late / FTL_TICKS_PER_CYCLE : 0));
  }
  cr_expect(later > 0 && later < 96, "%d are later", later);
  release_chip(idle);
  release_chip(c);
}

// A tile of 2048 chunks has its share of all channels. Of 32 that are asked for at once DRAM has the last ready long
// after its SM could take it in: longer than any refresh, and those of that time are in DRAM's rate.
Test(unit_engine_traffic, a_large_tile_that_queues_waits_for_no_refresh_besides) {
  chip *c = make_chip();
  enum { ROWS = 4096 };
  ftl_tile_place place = {.row_stride_bytes = 256, .num_rows = ROWS, .row_bytes = 256};
  ftl_tile_run run = {.place = place, .num_rows = ROWS, .num_tiles = 1};
  int64_t unloaded = c->traffic.hit_latency_cycles + c->traffic.miss_latency_cycles;
  ftl_traffic_wait first, last;
  cr_assert(ftl_traffic_try_load(&c->traffic, &run, 0, 0, 0, &first));
  int64_t refresh_wait = ftl_dram_refresh_wait(&c->traffic.refresh, &run, first.intake_ticks / FTL_TICKS_PER_CYCLE);
  cr_assert_gt(refresh_wait, 0);
  cr_expect_eq(first.latency_cycles, unloaded + refresh_wait);
  for (int32_t sm = 1; sm < 32; sm++) {
    run.place.address_bytes += ROWS * 256;
    cr_assert(ftl_traffic_try_load(&c->traffic, &run, 0, sm, 0, &last));
  }
  cr_assert_gt(last.queue_ticks, refresh_wait * FTL_TICKS_PER_CYCLE);
  cr_expect_eq(last.latency_cycles, unloaded);
  release_chip(c);
}

// Four tiles of 16 lines a row, side by side in rows of 64 lines: one of them was read before, by an SM of the same
// side, so that three of four take DRAM's latency on top of a hit.
Test(unit_engine_traffic, the_latency_of_tiles_side_by_side_is_their_mean) {
  chip *c = make_chip();
  enum { TILE_ROW_BYTES = 2048, ROWS = 64, TILES = 4, READ = 2 };
  ftl_tile_place place = {.row_stride_bytes = TILES * TILE_ROW_BYTES, .num_rows = ROWS, .row_bytes = TILE_ROW_BYTES};
  ftl_tile_run one = {.place = place, .num_rows = ROWS, .num_tiles = 1}, all = one;
  one.place.address_bytes = READ * TILE_ROW_BYTES;
  all.place.row_bytes = TILES * TILE_ROW_BYTES;
  all.num_tiles = TILES;
  all.tile_row_bytes = TILE_ROW_BYTES;
  ftl_traffic_wait wait;
  cr_assert(ftl_traffic_try_load(&c->traffic, &one, 0, 0, 0, &wait));
  cr_assert(ftl_traffic_try_load(&c->traffic, &all, 0, 0, 1000000 * (int64_t)FTL_TICKS_PER_CYCLE, &wait));
  int64_t refresh_wait = ftl_dram_refresh_wait(&c->traffic.refresh, &all, INTAKE_OF_ROWS) * 3 / 4;
  cr_expect_eq(wait.latency_cycles,
               c->traffic.hit_latency_cycles + c->traffic.miss_latency_cycles * 3 / 4 + refresh_wait);
  release_chip(c);
}

// 48 tiles that L2 has are read at once, by SMs that see half of their lines at the other side, then one from DRAM:
// that one queues, and DRAM, which is idle, is not what it queues for. Who reads it a cycle later waits until it is
// there, a cycle less: as long a latency, and queueing; or, reading it for a later step, latency alone.
Test(unit_engine_traffic, who_finds_a_tile_on_its_way_queues_as_long) {
  enum { NUM_TILES = 48, LATE = 1000000 };
  for (int is_ahead = 0; is_ahead < 2; is_ahead++) {
    chip *c = make_chip();
    for (int64_t tile = 0; tile < NUM_TILES; tile++) load(c, tile, (int32_t)tile, 0);
    for (int64_t tile = 0; tile < NUM_TILES; tile++) load(c, tile, (int32_t)tile, LATE);
    ftl_tile_run run = tile_at(NUM_TILES);
    run.is_ahead = is_ahead == 1;
    ftl_traffic_wait first, second;
    cr_assert(ftl_traffic_try_load(&c->traffic, &run, 0, 60, LATE * (int64_t)FTL_TICKS_PER_CYCLE, &first));
    cr_assert(ftl_traffic_try_load(&c->traffic, &run, 0, 100, (LATE + 1) * (int64_t)FTL_TICKS_PER_CYCLE, &second));
    cr_assert_neq(c->traffic.homes[60].gpc, c->traffic.homes[100].gpc);
    cr_assert_gt(first.queue_ticks / FTL_TICKS_PER_CYCLE, 100);
    int64_t left = (first.latency_cycles - 1) * FTL_TICKS_PER_CYCLE + first.queue_ticks;
    cr_expect_eq(second.latency_cycles * FTL_TICKS_PER_CYCLE + second.queue_ticks, left);
    cr_expect_eq(second.latency_cycles, is_ahead ? left / FTL_TICKS_PER_CYCLE : first.latency_cycles);
    release_chip(c);
  }
}

// Of a load made in `cycle`, in cycles, when those that others have made by now are taken into account.
static double end_of(const chip *c, const ftl_traffic_wait *wait, int32_t sm, int64_t cycle) {
  int64_t made = cycle * FTL_TICKS_PER_CYCLE, due = made + wait->intake_ticks;
  ftl_traffic_waiting waiting = {.marks = wait->marks, .sm = sm, .made_ticks = made, .due_ticks = due};
  return (double)(due + wait->queue_ticks + ftl_traffic_overtaken(&c->traffic, &waiting)) / FTL_TICKS_PER_CYCLE;
}

Test(unit_engine_traffic, loads_that_are_made_together_are_done_together) {
  chip *c = make_chip();
  enum { SMS = 64 };
  ftl_traffic_wait waits[SMS];
  for (int32_t sm = 0; sm < SMS; sm++) waits[sm] = load(c, sm, sm, 0);
  // All of it through DRAM, at the rate of reads: more than the 1024 cycles that an SM needs for its own.
  int64_t cost = c->traffic.dram_read_ticks * (TILE_BYTES / 32) * SMS;
  cr_assert_gt(cost, waits[0].intake_ticks);
  for (int32_t sm = 0; sm < SMS; sm++) {
    double end = end_of(c, &waits[sm], sm, 0);
    // A sample of the tile's lines decides what of it comes from DRAM: here all.
    cr_expect_float_eq(end, (double)cost / FTL_TICKS_PER_CYCLE, 2, "SM %d ends at %.1f", (int)sm, end);
  }
  release_chip(c);
}

// Every 4 cycles an SM asks for a tile that DRAM passes in some 17: it never idles, and ends after the cost of all.
// What the SMs have of it they share, so that each ends as long before the last as it asked before it.
Test(unit_engine_traffic, loads_that_are_made_one_after_the_other_end_as_far_apart) {
  chip *c = make_chip();
  enum { SMS = 96, APART = 4 };
  ftl_traffic_wait waits[SMS];
  for (int32_t sm = 0; sm < SMS; sm++) waits[sm] = load(c, sm, sm, sm * APART);
  double cost = (double)(c->traffic.dram_read_ticks * (TILE_BYTES / 32) * SMS) / FTL_TICKS_PER_CYCLE;
  cr_assert_gt(cost, (SMS - 1) * APART + TILE_BYTES / 64);  // else the first would end by itself
  for (int32_t sm = 0; sm < SMS; sm++) {
    double end = end_of(c, &waits[sm], sm, sm * APART), expected = cost - (SMS - 1 - sm) * APART;
    cr_expect_float_eq(end, expected, 2, "SM %d ends at %.1f, not %.1f", (int)sm, end, expected);
  }
  release_chip(c);
}

// The port of the GPC is busy for 9000 cycles and DRAM for 8000: a tile passes both, and what passes the one waits for
// the other at the same time.
Test(unit_engine_traffic, what_is_late_at_several_servers_is_late_by_the_most) {
  chip *c = make_chip();
  ftl_traffic_server *port = &c->traffic.gpc[c->traffic.homes[0].gpc];
  port->free_ticks = 9000 * (int64_t)FTL_TICKS_PER_CYCLE;
  c->traffic.dram.free_ticks = 8000 * (int64_t)FTL_TICKS_PER_CYCLE;
  ftl_traffic_wait wait = load(c, 0, 0, 0);
  cr_assert_gt(port->free_ticks, c->traffic.dram.free_ticks);
  cr_expect_eq(wait.queue_ticks, port->free_ticks - wait.intake_ticks);
  release_chip(c);
}

Test(unit_engine_traffic, four_loads_of_a_gpc_within_the_window_are_one_access) {
  chip *c = make_chip();
  int64_t sectors = TILE_BYTES / 32, window = c->traffic.coalescer_window_ticks / FTL_TICKS_PER_CYCLE;
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

// Lanes ask for 128 bytes a cycle: a warp's copy for its 16 sectors in 4, and its next for the other parts of these
// lines.
Test(unit_engine_traffic, a_tile_copied_in_parts_of_lines_is_joined_while_one_copy_asks) {
  chip *c = make_chip();
  c->traffic.ask_sector_ticks = FTL_TICKS_PER_CYCLE / 4;
  ftl_tile_run run = tile_at(0);
  run.splits_lines = true;
  ftl_traffic_wait wait;
  static const struct {
    int32_t sm;
    int64_t cycle, joined;
  } loads[] = {{0, 0, 0}, {1, 4, 1}, {16, 5, 1}, {17, 9, 2}, {0, 1000, 2}};
  for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
    cr_assert(ftl_traffic_try_load(&c->traffic, &run, 0, loads[i].sm, loads[i].cycle * FTL_TICKS_PER_CYCLE, &wait));
    cr_expect_eq(c->traffic.counts.coalesced_sectors, loads[i].joined * TILE_BYTES / 32, "load %zu", i);
  }
  release_chip(c);
}

// Two pairs of CTAs that load a tile together ask for a half each, at the same time: four accesses.
Test(unit_engine_traffic, shares_of_a_multicast_tile_are_not_coalesced) {
  chip *c = make_chip();
  ftl_tile_run run = tile_at(0);
  ftl_multicast pairs = {.num_ctas = 2, .stride = 1};
  ftl_traffic_wait wait;
  for (int32_t cta = 0; cta < 4; cta++) {
    ftl_tile_run share = ftl_tile_run_share(&run, pairs, cta);
    cr_assert(ftl_traffic_try_load(&c->traffic, &share, 0, cta % 2, 0, &wait));
  }
  cr_expect_eq(c->traffic.counts.asked_sectors, 2 * TILE_BYTES / 32);
  cr_expect_eq(c->traffic.counts.coalesced_sectors, 0);
  release_chip(c);
}

// ---- tiles without a line in the sample ----
// Tiles of 256 lines, of which the sample has four on average: where it takes pairs of lines, of one tile in seven it
// has none (e^-2).
enum { SMALL_BYTES = 32768, SMALL_SECTORS = SMALL_BYTES / 32, SMALL_LINES = SMALL_BYTES / 128 };

static ftl_tile_run small_tile(int64_t number) {
  ftl_tile_run tile = tile_at(0);
  tile.place.address_bytes = number * SMALL_BYTES;
  tile.place.num_rows = tile.num_rows = SMALL_BYTES / 256;
  return tile;
}

static void load_small(chip *c, int64_t num_tiles, int64_t cycle) {
  ftl_traffic_wait wait;
  for (int64_t i = 0; i < num_tiles; i++) {
    ftl_tile_run tile = small_tile(i);
    cr_assert(ftl_traffic_try_load(&c->traffic, &tile, 0, 0, cycle * FTL_TICKS_PER_CYCLE, &wait));
  }
}

static int64_t num_without_sample(const chip *c) {
  int64_t count = 0;
  for (int64_t i = 0; i < c->traffic.tiles.num_entries; i++) count += c->traffic.tiles.entries[i].num_sampled == 0;
  return count;
}

// Read for the first time, all come from DRAM, which is busy for every sector; read again from L2, none.
Test(unit_engine_traffic, tiles_without_lines_in_the_sample_come_from_where_the_others_do) {
  chip *c = make_chip_of(SMALL_LINES);
  enum { TILES = 256 };
  load_small(c, TILES, 0);
  cr_assert_gt(c->traffic.tiles.entries[0].num_sampled, 0);  // the first has nothing to go by
  cr_assert_gt(num_without_sample(c), TILES / 10);
  int64_t cost = c->traffic.dram_read_ticks * SMALL_SECTORS * TILES;
  cr_expect_eq(c->traffic.dram.free_ticks, cost);
  // What crosses is drawn tile by tile: as the sample has it, to 3 %.
  double far = (double)(ftl_traffic_scale(&c->traffic, c->traffic.counts.far_sectors) * c->traffic.far_sector_ticks);
  cr_expect_float_eq((double)c->traffic.far.free_ticks, far, 0.03 * far);
  load_small(c, TILES, 1000000);
  cr_expect_eq(c->traffic.dram.free_ticks, cost);
  release_chip(c);
}

// A tile without a line in the sample waits for its fill as others do, also where the last one that was read again was
// in L2 no more.
Test(unit_engine_traffic, a_tile_without_lines_in_the_sample_waits_for_its_fill) {
  chip *c = make_chip_of(SMALL_LINES);
  load_small(c, 64, 0);
  int64_t i = 0;
  while (c->traffic.tiles.entries[i].num_sampled > 0) i++;
  ftl_tile_run tile = small_tile(i);
  ftl_traffic_wait wait;
  c->traffic.found[FTL_TRAFFIC_AGAIN] = (ftl_traffic_found){.asked = 16, .missed = 16};
  int64_t ready = c->traffic.tiles.entries[i].fill_ready_ticks, now = FTL_TICKS_PER_CYCLE,
          busy = c->traffic.dram.free_ticks;
  cr_assert(ftl_traffic_try_load(&c->traffic, &tile, 0, 40, now, &wait));
  cr_expect_eq(now + wait.latency_cycles * FTL_TICKS_PER_CYCLE + wait.queue_ticks, ready);
  cr_expect_eq(c->traffic.dram.free_ticks, busy);
  release_chip(c);
}

// 98 MB are stored, more than L2 holds: DRAM is busy for all that is written back, to what the share of the tiles that
// the sample knows varies by.
Test(unit_engine_traffic, stores_without_lines_in_the_sample_write_back_what_the_others_do) {
  chip *c = make_chip_of(SMALL_LINES);
  enum { TILES = 3000 };
  int64_t busy = c->traffic.dram.free_ticks;
  for (int64_t i = 0; i < TILES; i++) {
    ftl_tile_run tile = small_tile(i);
    ftl_store_intake intake = {0};
    cr_assert(ftl_traffic_try_store(&c->traffic, &tile, 0, false, 0, &intake));
    cr_expect_eq(c->traffic.dram.free_ticks, busy);  // not before the stores are handed on
    ftl_traffic_take_stores(&c->traffic, &intake, 0);
    busy = c->traffic.dram.free_ticks;
  }
  int64_t written = ftl_traffic_scale(&c->traffic, c->traffic.counts.dram_write_sectors);
  cr_assert_gt(written, SMALL_SECTORS * TILES / 4);
  double cost = (double)(written * c->traffic.dram_write_ticks);
  cr_expect_float_eq((double)c->traffic.dram.free_ticks, cost, 0.03 * cost);
  release_chip(c);
}

// 256 tiles are fetched once, whatever part of them the sample has, and of the 512 that are stored beside them; read
// again, they are there.
Test(unit_engine_traffic, tiles_read_for_the_first_time_are_fetched_to_the_sector) {
  chip *c = make_chip_of(SMALL_LINES);
  enum { TILES = 256, STORED = 512 };
  load_small(c, TILES, 0);
  for (int64_t i = TILES; i < TILES + STORED; i++) {
    ftl_tile_run tile = small_tile(i);
    ftl_store_intake intake = {0};
    cr_assert(ftl_traffic_try_store(&c->traffic, &tile, 0, false, 0, &intake));
  }
  load_small(c, TILES, 1000000);
  cr_assert_neq(ftl_traffic_scale(&c->traffic, c->traffic.counts.dram_read_sectors), SMALL_SECTORS * TILES);
  cr_expect_eq(ftl_traffic_dram_read_sectors(&c->traffic), SMALL_SECTORS * TILES);
  release_chip(c);
}

// H200: 94 slices of 31 bytes an L2 cycle of 1708 MHz take 4147.6 bytes an SM cycle of 1200, a tile of 65536 in 15.8;
// an SM's port of 32 bytes a cycle passes it in 2048. What 132 SMs have under way, 12288 bytes each, takes 391.1.
enum { L2_MILLI = 15801, SM_MILLI = 2048000, WAITING_MILLI = 391075 };

static int64_t milli(int64_t time) { return time * 1000 / FTL_TICKS_PER_CYCLE; }

static ftl_store_intake store(chip *c, int64_t tile) {
  ftl_tile_run run = tile_at(tile);
  ftl_store_intake intake = {0};
  cr_assert(ftl_traffic_try_store(&c->traffic, &run, 0, false, 0, &intake));
  return intake;
}

Test(unit_engine_traffic, stores_take_of_l2_and_of_their_sm_what_they_send) {
  chip *c = make_chip();
  ftl_store_intake whole = store(c, 0);
  cr_expect_float_eq((double)milli(whole.l2_ticks), L2_MILLI, 20);
  cr_expect_float_eq((double)milli(whole.sm_ticks), SM_MILLI, 200);
  // halves of sectors that do not merge: twice the sectors, each with a mask
  ftl_traffic_set_store_costs(&c->traffic, (ftl_stored_parts){256, 16, 16}, (ftl_stored_parts){0});
  ftl_store_intake halves = store(c, 1);
  cr_expect_float_eq((double)halves.l2_ticks, 4.0 * (double)whole.l2_ticks, 4096);
  cr_expect_float_eq((double)halves.sm_ticks, 4.0 * (double)whole.sm_ticks, 4096);
  release_chip(c);
}

// Lines of atomics: five sectors for four. In words each of 8 rows' sectors is sent twice, and with each a sector more.
Test(unit_engine_traffic, atomics_take_a_sector_more_for_each_request) {
  chip *c = make_chip();
  ftl_tile_run run = tile_at(0);
  const struct {
    ftl_stored_parts added;
    double times;
  } orders[] = {{{128, 4, 1}, 1.25}, {{256, 16, 16}, 4.0}};
  double whole = (double)store(c, 1).l2_ticks;
  for (int i = 0; i < 2; i++) {
    chip *d = make_chip();
    ftl_store_intake intake = {0};
    ftl_traffic_set_store_costs(&d->traffic, (ftl_stored_parts){0}, orders[i].added);
    cr_assert(ftl_traffic_try_store(&d->traffic, &run, 0, true, 0, &intake));
    cr_expect_float_eq((double)intake.l2_ticks, orders[i].times * whole, 4096);
    release_chip(d);
  }
  release_chip(c);
}

// 92 MB are stored, more than L2 holds, then others are loaded: what either displaces goes to the channels, 4 sectors a
// line. Walks in groups of iterations leave it in DRAM's rate alone.
Test(unit_engine_traffic, what_stores_and_loads_displace_is_in_the_way_at_the_channels) {
  enum { STORED = 1400, LOADED = 200, LINE_SECTORS = 4 };
  chip *c = make_chip();
  for (int64_t i = 0; i < STORED; i++) {
    ftl_tile_run tile = tile_at(i);
    ftl_store_intake intake = {0};
    cr_assert(ftl_traffic_try_store(&c->traffic, &tile, 0, false, 0, &intake));
    ftl_traffic_take_stores(&c->traffic, &intake, 0);
  }
  double stored = (double)ftl_traffic_scale(&c->traffic, c->traffic.counts.dram_write_sectors);
  cr_assert_gt(stored, TILE_BYTES / 32 * STORED / 4);
  cr_expect_float_eq((double)c->traffic.channels.num_written * LINE_SECTORS, stored, 0.03 * stored);
  for (int64_t i = 0; i < LOADED; i++) load(c, STORED + i, 0, 0);
  double both = (double)ftl_traffic_scale(&c->traffic, c->traffic.counts.dram_write_sectors);
  cr_assert_gt(both, stored * 1.05);
  cr_expect_float_eq((double)c->traffic.channels.num_written * LINE_SECTORS, both, 0.03 * both);
  uint64_t before = c->traffic.channels.num_written;
  c->traffic.is_in_groups = true;
  for (int64_t i = 0; i < LOADED; i++) load(c, STORED + LOADED + i, 0, 0);
  cr_expect_eq(c->traffic.channels.num_written, before);
  release_chip(c);
}

// 200 CTAs end their stores at cycle 5000. The SM's port has let them through since 5000 - 2048: L2 takes them one
// after the other from then on, and the last ones wait for what does not fit the network. Each ends with the last.
Test(unit_engine_traffic, stores_wait_for_what_others_store_side_by_side) {
  chip *c = make_chip();
  enum { CTAS = 200 };
  int64_t end = 5000 * (int64_t)FTL_TICKS_PER_CYCLE, first = 0, last = 0, made = 0;
  for (int64_t i = 0; i < CTAS; i++) {
    ftl_store_intake intake = store(c, i);
    made = end - intake.sm_ticks;
    last = ftl_traffic_take_stores(&c->traffic, &intake, end);
    if (i == 0) first = last;
  }
  cr_expect_eq(first, end);
  cr_expect_float_eq((double)milli(last), 5000000 - SM_MILLI + CTAS * (double)L2_MILLI - WAITING_MILLI, 6000);
  cr_expect_eq(ftl_traffic_stores_taken(&c->traffic, made, end), last);
  release_chip(c);
}

// A line that is asked for takes 20 of the 128 bytes of one that is stored, and waits for the stores that are in the
// network ahead of it; not for those that wait in their SMs.
Test(unit_engine_traffic, loads_take_of_the_intake_and_wait_for_stores_in_the_network) {
  chip *c = make_chip();
  load(c, 0, 0, 0);
  cr_expect_float_eq((double)milli(c->traffic.intake.free_ticks), L2_MILLI * 20.0 / 128, 20);
  c->traffic.intake.free_ticks = (100000 + INTAKE_CYCLES + 30) * (int64_t)FTL_TICKS_PER_CYCLE;
  double behind = (double)milli(load(c, 1, 0, 100000).queue_ticks);
  cr_expect_float_eq(behind, 30000, 1000, "%f", behind);
  c->traffic.intake.free_ticks = 1000000 * (int64_t)FTL_TICKS_PER_CYCLE;
  double most = (double)milli(load(c, 2, 0, 200000).queue_ticks);
  cr_expect_float_eq(most, WAITING_MILLI - INTAKE_CYCLES * 1000, 1000, "%f", most);
  release_chip(c);
}

// Stores that wait leave out what was asked for behind them. A request to read is no such store: of one at cycle 5500
// they notice what it takes of the intake alone, as in the test before.
Test(unit_engine_traffic, loads_do_not_stand_behind_stores) {
  enum { CTAS = 200 };
  chip *c = make_chip();
  int64_t end = 5000 * (int64_t)FTL_TICKS_PER_CYCLE, made = 0, taken = 0;
  for (int64_t i = 0; i < CTAS; i++) {
    ftl_store_intake intake = store(c, i);
    made = end - intake.sm_ticks;
    taken = ftl_traffic_take_stores(&c->traffic, &intake, end);
  }
  cr_assert_gt(taken, end);
  load(c, CTAS, 0, 5500);
  double moved = (double)milli(ftl_traffic_stores_taken(&c->traffic, made, end)) - (double)milli(taken);
  cr_expect_float_eq(moved, L2_MILLI * 20.0 / 128, 20, "%f", moved);
  release_chip(c);
}
