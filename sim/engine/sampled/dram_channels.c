#include "engine/sampled/dram_channels.h"

#include <stdlib.h>

#include "base/integer.h"
#include "base/sectors.h"
#include "machine/dram/dram.h"

enum {
  MOST_TURNS = 4,  // chunks of a tile, by the channels: beyond, all have about as many (and the host would take long)
};

ftl_status ftl_dram_channels_init(ftl_dram_channels *channels, const ftl_arch *arch, int64_t sm_khz,
                                  int64_t sector_ticks, ftl_error *error) {
  ftl_dram_map map = ftl_dram_map_init(arch);
  double sm_cycles = (double)sm_khz / (double)arch->clock_dram_khz;
  double serving = 1 - (double)arch->dram_trfc_cycles / (double)arch->dram_trefi_cycles;
  *channels = (ftl_dram_channels){
      .map = map,
      .turn = ftl_divisor_of(map.num_channels),
      .chunk = ftl_divisor_of(map.lines_per_chunk * (uint32_t)arch->l1_line_bytes),
      .chunk_bytes = (int64_t)map.lines_per_chunk * arch->l1_line_bytes,
      .sector_ticks = (int64_t)((double)sector_ticks * map.num_channels * serving),
      .turning_ticks =
          (int64_t)(sm_cycles * (double)(arch->dram_tcl_cycles + arch->dram_trtw_cycles + arch->dram_twtr_cycles) *
                    FTL_TICKS_PER_CYCLE),
      .drain_lines = ftl_dram_drain_entries(arch),
      .interval_ticks = (int64_t)(sm_cycles * (double)arch->dram_trefi_cycles * FTL_TICKS_PER_CYCLE),
      .length_ticks = (int64_t)(sm_cycles * (double)arch->dram_trfc_cycles * FTL_TICKS_PER_CYCLE),
      .channels = calloc(map.num_channels, sizeof *channels->channels),
  };
  if (!channels->channels) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for DRAM channels");
  for (uint32_t i = 0; i < map.num_channels; i++) {
    ftl_dram_channel *channel = &channels->channels[i];
    channel->since_refresh_ticks = channels->interval_ticks * i / map.num_channels;
    channel->num_saved = (int32_t)(i * (uint32_t)channels->drain_lines / map.num_channels);
    channel->saved_sectors = (int64_t)channel->num_saved * FTL_LINE_SECTORS;
  }
  return FTL_OK;
}

void ftl_dram_channels_fini(ftl_dram_channels *channels) { free(channels->channels); }

// Rows that follow each other in memory are one.
static bool is_in_one_piece(const ftl_tile_place *place) {
  return !place->pages && place->row_stride_bytes == place->row_bytes;
}

bool ftl_dram_channels_take(const ftl_dram_channels *channels, const ftl_tile_run *run) {
  if (run->num_tiles != 1) return false;
  int64_t chunks = is_in_one_piece(&run->place) ? (int64_t)run->num_rows * run->place.row_bytes / channels->chunk_bytes
                                                : run->num_rows * (1 + run->place.row_bytes / channels->chunk_bytes);
  return chunks <= (int64_t)MOST_TURNS * channels->map.num_channels;
}

// A tile as it is asked for, and how long a part of a chunk takes: the first and the last row mostly have parts alike.
typedef struct tile_request {
  int64_t missed, asked, now_ticks;
  int64_t into_interval_ticks;  // now_ticks, as far as they exceed whole intervals of refreshes
  int64_t chunk_ticks;          // of a whole chunk
  int64_t part_bytes, part_ticks;
  double byte_ticks;
} tile_request;

static int64_t ticks_of(const ftl_dram_channels *channels, const tile_request *tile, int64_t bytes) {
  int64_t sectors = ftl_divide_up(bytes, FTL_SECTOR_BYTES);
  return sectors * channels->sector_ticks * tile->missed / tile->asked;
}

static tile_request request_of(const ftl_dram_channels *channels, int64_t missed, int64_t asked, int64_t now_ticks) {
  tile_request tile = {.missed = missed,
                       .asked = asked,
                       .now_ticks = now_ticks,
                       .into_interval_ticks = now_ticks % channels->interval_ticks};
  tile.chunk_ticks = ticks_of(channels, &tile, channels->chunk_bytes);
  return tile;
}

static int64_t ticks_of_part(const ftl_dram_channels *channels, tile_request *tile, int64_t bytes) {
  if (bytes == channels->chunk_bytes) return tile->chunk_ticks;
  if (bytes != tile->part_bytes) {
    tile->part_bytes = bytes;
    tile->part_ticks = ticks_of(channels, tile, bytes);
  }
  return tile->part_ticks;
}

// The chunk that a tile has come to, in the turn that the channels are dealt.
typedef struct dealt_chunk {
  uint64_t turn;
  uint32_t in_turn;
  uint32_t first_channel;  // of the turn
} dealt_chunk;

static dealt_chunk chunk_of(const ftl_dram_channels *channels, int64_t chunk) {
  ftl_quotient at = ftl_divide(channels->turn, (uint64_t)chunk);
  return (dealt_chunk){at.quotient, at.remainder, ftl_dram_map_first_channel(&channels->map, at.quotient)};
}

// So many chunks on, as turns and what is left of them.
static inline void move_on(const ftl_dram_channels *channels, ftl_quotient chunks, dealt_chunk *chunk) {
  uint64_t turns = chunks.quotient;
  chunk->in_turn += chunks.remainder;
  if (chunk->in_turn >= channels->map.num_channels) {
    chunk->in_turn -= channels->map.num_channels;
    turns++;
  }
  if (turns == 0) return;
  chunk->turn += turns;
  chunk->first_channel = ftl_dram_map_first_channel(&channels->map, chunk->turn);
}

static inline ftl_dram_channel *channel_of(const ftl_dram_channels *channels, const dealt_chunk *chunk) {
  uint32_t channel = chunk->first_channel + chunk->in_turn;
  return &channels->channels[channel < channels->map.num_channels ? channel : channel - channels->map.num_channels];
}

// time_ticks from the tile's beginning on, when a channel is into_ticks into its refreshes: the end of the one that it
// is in then, or that time.
static inline int64_t past_refresh(const ftl_dram_channels *channels, int64_t into_ticks, int64_t time_ticks) {
  int64_t since_ticks = into_ticks + time_ticks;
  if (since_ticks >= channels->interval_ticks) since_ticks -= channels->interval_ticks;  // seldom,
  if (since_ticks >= channels->interval_ticks) since_ticks %= channels->interval_ticks;  // and this even less
  return time_ticks + ftl_larger(channels->length_ticks - since_ticks, 0);
}

// When a chunk has been served that the tile has `before` bytes ahead of, from the tile's beginning on. A channel does
// what others have asked of it until a chunk is asked for: the chunk takes none of that time away.
static inline int64_t serve_chunk(const ftl_dram_channels *channels, const tile_request *tile,
                                  ftl_dram_channel *channel, int64_t cost_ticks, int64_t before) {
  int64_t into_ticks = tile->into_interval_ticks + channel->since_refresh_ticks,
          wrapped_ticks = into_ticks - channels->interval_ticks;
  if (wrapped_ticks >= 0) into_ticks = wrapped_ticks;
  int64_t begin_ticks = ftl_larger(channel->free_ticks, tile->now_ticks) - tile->now_ticks;
  int64_t asked_ticks = (int64_t)(tile->byte_ticks * (double)before);
  int64_t free_ticks = past_refresh(channels, into_ticks, begin_ticks) + cost_ticks,
          done_ticks = past_refresh(channels, into_ticks, asked_ticks) + cost_ticks;
  channel->free_ticks = tile->now_ticks + free_ticks;
  return free_ticks > done_ticks ? free_ticks : done_ticks;
}

// A piece of memory, of which the tile has `before` bytes ahead: when the last of its chunks has been served, from the
// tile's beginning on.
static int64_t serve_piece(const ftl_dram_channels *channels, tile_request *tile, int64_t from, int64_t bytes,
                           int64_t before) {
  const ftl_quotient one = ftl_divide(channels->turn, 1);
  int64_t first = (int64_t)ftl_divide(channels->chunk, (uint64_t)from).quotient, next = first * channels->chunk_bytes;
  int64_t end_ticks = 0;
  dealt_chunk chunk = chunk_of(channels, first);
  for (int64_t at = from; at < from + bytes; at = next) {
    next += channels->chunk_bytes;
    int64_t part = (next < from + bytes ? next : from + bytes) - at;
    int64_t cost_ticks = ticks_of_part(channels, tile, part);
    int64_t done_ticks = serve_chunk(channels, tile, channel_of(channels, &chunk), cost_ticks, before + at - from);
    if (done_ticks > end_ticks) end_ticks = done_ticks;
    if (next < from + bytes) move_on(channels, one, &chunk);
  }
  return end_ticks;
}

// Rows of which each lies in one chunk, evenly apart.
typedef struct lone_rows {
  int64_t first_chunk;
  int64_t chunks_apart;
  bool are;
} lone_rows;

static lone_rows lone_rows_of(const ftl_dram_channels *channels, const ftl_tile_run *tile) {
  const ftl_tile_place *place = &tile->place;
  if (place->pages || place->row_stride_bytes < 0) return (lone_rows){0};
  ftl_quotient first = ftl_divide(channels->chunk, (uint64_t)ftl_tile_place_row(place, tile->first_row));
  ftl_quotient apart = ftl_divide(channels->chunk, (uint64_t)place->row_stride_bytes);
  return (lone_rows){
      .first_chunk = (int64_t)first.quotient,
      .chunks_apart = (int64_t)apart.quotient,
      .are = apart.remainder == 0 && (int64_t)first.remainder + place->row_bytes <= channels->chunk_bytes};
}

static int64_t serve_lone_rows(const ftl_dram_channels *channels, tile_request *tile, const lone_rows *rows,
                               int32_t num_rows, int32_t row_bytes) {
  const ftl_quotient apart = ftl_divide(channels->turn, (uint64_t)rows->chunks_apart);
  int64_t cost_ticks = ticks_of_part(channels, tile, row_bytes), end_ticks = 0;
  dealt_chunk chunk = chunk_of(channels, rows->first_chunk);
  for (int32_t row = 0; row < num_rows; row++) {
    int64_t done_ticks =
        serve_chunk(channels, tile, channel_of(channels, &chunk), cost_ticks, (int64_t)row * row_bytes);
    if (done_ticks > end_ticks) end_ticks = done_ticks;
    move_on(channels, apart, &chunk);
  }
  return end_ticks;
}

int64_t ftl_dram_channels_serve(ftl_dram_channels *channels, const ftl_tile_run *tile, int64_t missed, int64_t asked,
                                int64_t now_ticks, int64_t asking_ticks) {
  const ftl_tile_place *place = &tile->place;
  int64_t bytes = (int64_t)tile->num_rows * place->row_bytes;
  if (bytes == 0) return now_ticks;
  tile_request request = request_of(channels, missed, asked, now_ticks);
  request.byte_ticks = (double)asking_ticks / (double)bytes;
  if (is_in_one_piece(place))
    return now_ticks + serve_piece(channels, &request, ftl_tile_place_row(place, tile->first_row), bytes, 0);
  lone_rows rows = lone_rows_of(channels, tile);
  if (rows.are) return now_ticks + serve_lone_rows(channels, &request, &rows, tile->num_rows, place->row_bytes);
  int64_t end_ticks = 0;
  for (int32_t row = 0; row < tile->num_rows; row++) {
    int64_t from = ftl_tile_place_row(place, tile->first_row + row);
    int64_t done_ticks = serve_piece(channels, &request, from, place->row_bytes, (int64_t)row * place->row_bytes);
    if (done_ticks > end_ticks) end_ticks = done_ticks;
  }
  return now_ticks + end_ticks;
}

// What L2 gives up was stored long before, in an order of its own: lines are scattered over the channels.
static ftl_dram_channel *next_written(ftl_dram_channels *channels) {
  uint64_t scattered = channels->num_written++ * UINT64_C(0x9E3779B97F4A7C15);
  return &channels->channels[(scattered >> 32) * channels->map.num_channels >> 32];
}

void ftl_dram_channels_write(ftl_dram_channels *channels, int64_t sectors, int64_t now_ticks) {
  for (int64_t left = sectors; left > 0; left -= FTL_LINE_SECTORS) {
    ftl_dram_channel *channel = next_written(channels);
    channel->saved_sectors += left < FTL_LINE_SECTORS ? left : FTL_LINE_SECTORS;
    if (++channel->num_saved < channels->drain_lines) continue;
    if (channel->free_ticks < now_ticks) channel->free_ticks = now_ticks;
    channel->free_ticks += channels->turning_ticks + channel->saved_sectors * channels->sector_ticks;
    channel->saved_sectors = channel->num_saved = 0;
  }
}
