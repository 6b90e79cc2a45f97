// Chunks of tiles at the channels of DRAM: which they meet there, and refreshes.
#include "engine/sampled/dram_channels.h"

#include <criterion/criterion.h>

// Four channels that read a sector in 4 cycles, all of them together one in 1; a channel refreshes for 100 of 10000
// cycles, channel c from 10000 - 2500 c on. Between refreshes a sector takes 4 x 0.99 cycles: 3.96, a chunk of
// 16 63.36.
enum { CHUNK_BYTES = 512, FAR = 3000 };
static const double chunk_cycles = 63.36;

static ftl_dram_channels make_channels_of(int32_t num_channels) {
  ftl_arch arch = {.l1_line_bytes = 128,
                   .dram_row_bytes = 1024,
                   .dram_chunk_bytes = 512,
                   .dram_num_channels = num_channels,
                   .dram_num_bank_groups = 1,
                   .dram_banks_per_group = 4,
                   .clock_dram_khz = 1000000,
                   .dram_tcl_cycles = 10,
                   .dram_trtw_cycles = 20,
                   .dram_twtr_cycles = 30,
                   .dram_queue_entries = 16,
                   .dram_most_bypasses = 32,
                   .dram_trefi_cycles = 10000,
                   .dram_trfc_cycles = 100};
  ftl_dram_channels channels;
  cr_assert_eq(ftl_dram_channels_init(&channels, &arch, 1000000, FTL_TICKS_PER_CYCLE, NULL), FTL_OK);
  return channels;
}

static ftl_dram_channels make_channels(void) { return make_channels_of(4); }

static uint32_t channel_of(const ftl_dram_channels *channels, int64_t chunk) {
  return ftl_dram_map_line(&channels->map, (uint64_t)(chunk * CHUNK_BYTES / 128)).channel;
}

// The first chunk from `from` on that lies in the channel.
static int64_t chunk_in(const ftl_dram_channels *channels, uint32_t channel, int64_t from) {
  while (channel_of(channels, from) != channel) from++;
  return from;
}

static ftl_tile_run tile_of(int64_t chunk, int32_t rows, int32_t row_bytes, int64_t stride) {
  ftl_tile_place place = {
      .address_bytes = chunk * CHUNK_BYTES, .row_stride_bytes = stride, .num_rows = rows, .row_bytes = row_bytes};
  return (ftl_tile_run){.place = place, .num_rows = rows, .num_tiles = 1};
}

// The tile is asked for from `now` on for `asking`, and there at `end`, in cycles.
static void expect_end(ftl_dram_channels *channels, const ftl_tile_run *tile, int64_t now, int64_t asking, double end) {
  double served =
      (double)ftl_dram_channels_serve(channels, tile, 1, 1, now * FTL_TICKS_PER_CYCLE, asking * FTL_TICKS_PER_CYCLE) /
      FTL_TICKS_PER_CYCLE;
  cr_expect_float_eq(served, end, 0.01, "%f, not %f", served, end);
}

Test(unit_engine_dram_channels, a_chunk_waits_for_those_asked_of_its_channel_before) {
  ftl_dram_channels channels = make_channels();
  int64_t first = chunk_in(&channels, 1, 0), other = chunk_in(&channels, 1, first + 1),
          apart = chunk_in(&channels, 2, 0);
  ftl_tile_run tiles[] = {tile_of(first, 2, 256, 256), tile_of(other, 2, 256, 256), tile_of(apart, 2, 256, 256)};
  expect_end(&channels, &tiles[0], FAR, 0, FAR + chunk_cycles);
  expect_end(&channels, &tiles[1], FAR + 10, 0, FAR + 2 * chunk_cycles);
  expect_end(&channels, &tiles[2], FAR + 10, 0, FAR + 10 + chunk_cycles);
  ftl_dram_channels_fini(&channels);
}

// Eight chunks that are asked for 10 cycles apart from FAR on lie in each channel twice, one behind the other or as
// late as they are asked for.
Test(unit_engine_dram_channels, a_tile_is_there_with_its_last_chunk) {
  ftl_dram_channels channels = make_channels();
  ftl_tile_run tile = tile_of(0, 16, 256, 256);
  double latest = 0, free[4] = {FAR, FAR, FAR, FAR};
  for (int64_t chunk = 0; chunk < 8; chunk++) {
    double *channel = &free[channel_of(&channels, chunk)], asked = FAR + 10.0 * (double)chunk;
    *channel += chunk_cycles;
    if (*channel > latest) latest = *channel;
    if (asked + chunk_cycles > latest) latest = asked + chunk_cycles;
  }
  expect_end(&channels, &tile, FAR, 80, latest);
  ftl_dram_channels_fini(&channels);
}

// A tile's last chunk is asked for 1000 cycles after its first: until then the channel serves what others ask for.
Test(unit_engine_dram_channels, a_chunk_to_come_holds_up_none_before_it) {
  ftl_dram_channels channels = make_channels();
  int64_t first = chunk_in(&channels, 1, 0), other = chunk_in(&channels, 1, first + 1);
  ftl_tile_run tile = tile_of(first, 2, 512, (other - first) * CHUNK_BYTES), one = tile_of(other, 2, 256, 256);
  expect_end(&channels, &tile, FAR, 2000, FAR + 1000 + chunk_cycles);
  expect_end(&channels, &one, FAR + 10, 0, FAR + 3 * chunk_cycles);
  ftl_dram_channels_fini(&channels);
}

// Rows of half a chunk that lie in chunks of their own take half of each.
Test(unit_engine_dram_channels, rows_apart_lie_in_chunks_of_their_own) {
  ftl_dram_channels channels = make_channels();
  int64_t first = chunk_in(&channels, 1, 0), other = chunk_in(&channels, 1, first + 1);
  ftl_tile_run tile = tile_of(first, 2, 256, (other - first) * CHUNK_BYTES);
  expect_end(&channels, &tile, FAR, 0, FAR + chunk_cycles);
  ftl_dram_channels_fini(&channels);
}

// Asked for at once, rows that lie in a chunk each, less than a turn of the four channels apart, a turn or more, are
// served as tiles of their own that are asked for one after the other.
Test(unit_engine_dram_channels, rows_evenly_apart_are_served_as_each_by_itself) {
  enum { NUM_ROWS = 40 };
  for (int64_t apart = 1; apart <= 11; apart++) {
    ftl_dram_channels together = make_channels(), one_by_one = make_channels();
    ftl_tile_run tile = tile_of(7, NUM_ROWS, 128, apart * CHUNK_BYTES);
    int64_t end = ftl_dram_channels_serve(&together, &tile, 3, 4, FAR * FTL_TICKS_PER_CYCLE, 0), last = 0;
    for (int64_t row = 0; row < NUM_ROWS; row++) {
      ftl_tile_run alone = tile_of(7 + row * apart, 1, 128, 128);
      int64_t of_row = ftl_dram_channels_serve(&one_by_one, &alone, 3, 4, FAR * FTL_TICKS_PER_CYCLE, 0);
      if (of_row > last) last = of_row;
    }
    cr_expect_eq(end, last);
    for (int c = 0; c < 4; c++) cr_expect_eq(together.channels[c].free_ticks, one_by_one.channels[c].free_ticks);
    ftl_dram_channels_fini(&together);
    ftl_dram_channels_fini(&one_by_one);
  }
}

// Of what L2 has in part, the rest is read.
Test(unit_engine_dram_channels, what_was_not_missed_is_not_read) {
  ftl_dram_channels channels = make_channels();
  ftl_tile_run tile = tile_of(0, 2, 256, 256);
  double served =
      (double)ftl_dram_channels_serve(&channels, &tile, 1, 4, FAR * FTL_TICKS_PER_CYCLE, 0) / FTL_TICKS_PER_CYCLE;
  cr_expect_float_eq(served, FAR + chunk_cycles / 4, 0.01);
  ftl_dram_channels_fini(&channels);
}

// Channel 0 refreshes from 10000 to 10100: what comes at 10030 waits for 70.
Test(unit_engine_dram_channels, a_channel_that_refreshes_serves_nothing) {
  ftl_dram_channels channels = make_channels();
  ftl_tile_run here = tile_of(chunk_in(&channels, 0, 0), 2, 256, 256);
  ftl_tile_run there = tile_of(chunk_in(&channels, 1, 0), 2, 256, 256);
  expect_end(&channels, &here, 10030, 0, 10100 + chunk_cycles);
  expect_end(&channels, &there, 10030, 0, 10030 + chunk_cycles);
  expect_end(&channels, &there, 7500, 0, 10030 + 2 * chunk_cycles);
  ftl_dram_channels_fini(&channels);
}

// A queue of 16 saves up 12 lines. Of four channels the first begins with none, the others with 3, 6 and 9: written
// lines go to channel 0 first, then to each in an order of their own. The twelfth line of a channel makes it turn, for
// 10 + 20 + 30 cycles, and write 48 sectors of 3.96.
Test(unit_engine_dram_channels, a_channel_writes_what_it_has_saved_up_and_holds_up_what_comes_behind) {
  ftl_dram_channels channels = make_channels();
  const int32_t saved[] = {0, 3, 6, 9};
  for (int c = 0; c < 4; c++) cr_expect_eq(channels.channels[c].num_saved, saved[c]);
  for (int lines = 0; channels.channels[3].num_saved != 0; lines++) {
    cr_assert_lt(lines, 30);
    ftl_dram_channels_write(&channels, 4, (int64_t)FAR * FTL_TICKS_PER_CYCLE);
  }
  ftl_tile_run there = tile_of(chunk_in(&channels, 3, 0), 2, 256, 256);
  ftl_tile_run here = tile_of(chunk_in(&channels, 0, 0), 2, 256, 256);
  expect_end(&channels, &there, FAR + 10, 0, FAR + 60 + 48 * 3.96 + chunk_cycles);
  expect_end(&channels, &here, FAR + 10, 0, FAR + 10 + chunk_cycles);
  ftl_dram_channels_fini(&channels);
}

// One channel, 0.99 cycles a sector, serves a chunk until FAR + 15.84; eleven lines do not matter to the next. The
// twelfth has one sector: the chunk behind it waits for 60 + 45 x 0.99 more.
Test(unit_engine_dram_channels, writes_wait_for_each_other) {
  ftl_dram_channels channels = make_channels_of(1);
  ftl_tile_run chunk = tile_of(0, 2, 256, 256);
  ftl_dram_channels_write(&channels, 11 * 4, (int64_t)FAR * FTL_TICKS_PER_CYCLE);
  expect_end(&channels, &chunk, FAR, 0, FAR + 15.84);
  ftl_dram_channels_write(&channels, 1, (FAR + 10) * (int64_t)FTL_TICKS_PER_CYCLE);
  expect_end(&channels, &chunk, FAR + 14, 0, FAR + 15.84 + 60 + 45 * 0.99 + 15.84);
  ftl_dram_channels_write(&channels, 1, (FAR + 1000) * (int64_t)FTL_TICKS_PER_CYCLE);
  expect_end(&channels, &chunk, FAR + 1000, 0, FAR + 1000 + 15.84);
  ftl_dram_channels_fini(&channels);
}

// Four channels look at 16 chunks at most.
Test(unit_engine_dram_channels, large_tiles_and_runs_of_tiles_have_their_share_of_all_channels) {
  ftl_dram_channels channels = make_channels();
  ftl_tile_run most = tile_of(0, 32, 256, 256), larger = tile_of(0, 34, 256, 256), apart = tile_of(0, 17, 256, 4096);
  cr_expect(ftl_dram_channels_take(&channels, &most));
  cr_expect_not(ftl_dram_channels_take(&channels, &larger));
  cr_expect_not(ftl_dram_channels_take(&channels, &apart));
  most.num_tiles = 2;
  cr_expect_not(ftl_dram_channels_take(&channels, &most));
  ftl_dram_channels_fini(&channels);
}
