#include "engine/sampled/dram_channels.h"

#include <stdlib.h>

enum {
  SECTOR_BYTES = 32,
  UNIT = 65536,
  MOST_TURNS = 4,  // chunks of a tile, by the channels
};

ftl_status ftl_dram_channels_init(ftl_dram_channels *channels, const ftl_arch *arch, int64_t sm_khz,
                                  int64_t sector_cost, ftl_error *error) {
  ftl_dram_map map = ftl_dram_map_init(arch);
  double sm_cycles = (double)sm_khz / (double)arch->clock_dram_khz;
  double serving = 1 - (double)arch->dram_trfc_cycles / (double)arch->dram_trefi_cycles;
  *channels = (ftl_dram_channels){
      .map = map,
      .chunk_bytes = (int64_t)map.lines_per_chunk * arch->l1_line_bytes,
      .line_bytes = arch->l1_line_bytes,
      .sector_cost = (int64_t)((double)sector_cost * map.num_channels * serving),
      .interval = (int64_t)(sm_cycles * (double)arch->dram_trefi_cycles * UNIT),
      .length = (int64_t)(sm_cycles * (double)arch->dram_trfc_cycles * UNIT),
      .free = calloc(map.num_channels, sizeof *channels->free),
  };
  return channels->free ? FTL_OK : ftl_error_set(error, FTL_NO_MEMORY, "out of memory for DRAM channels");
}

void ftl_dram_channels_fini(ftl_dram_channels *channels) { free(channels->free); }

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

// The end of the refresh that the channel is in at `time`, or that.
static int64_t past_refresh(const ftl_dram_channels *channels, uint32_t channel, int64_t time) {
  int64_t offset = channels->interval * channel / channels->map.num_channels;
  int64_t since = (time + offset) % channels->interval;
  return since < channels->length ? time + channels->length - since : time;
}

// A tile as it is asked for.
typedef struct tile_request {
  int64_t missed, asked, now;
  double byte_time;  // 1/65536 SM cycle
} tile_request;

// A piece of memory, of which the tile has `before` bytes ahead: when the last of its chunks has been served, or `end`.
// A channel does what others have asked of it until a chunk is asked for: it takes none of the time before away.
static int64_t serve_piece(ftl_dram_channels *channels, const tile_request *tile, int64_t from, int64_t bytes,
                           int64_t before, int64_t end) {
  for (int64_t at = from, next; at < from + bytes; at = next) {
    next = (at / channels->chunk_bytes + 1) * channels->chunk_bytes;
    int64_t part = (next < from + bytes ? next : from + bytes) - at;
    uint32_t channel = ftl_dram_map_line(&channels->map, (uint64_t)(at / channels->line_bytes)).channel;
    int64_t sectors = (part + SECTOR_BYTES - 1) / SECTOR_BYTES;
    int64_t cost = sectors * channels->sector_cost * tile->missed / tile->asked;
    int64_t asked = tile->now + (int64_t)(tile->byte_time * (double)(before + at - from));
    int64_t *free = &channels->free[channel];
    *free = past_refresh(channels, channel, *free > tile->now ? *free : tile->now) + cost;
    int64_t done = past_refresh(channels, channel, asked) + cost;
    if (*free > done) done = *free;
    if (done > end) end = done;
  }
  return end;
}

int64_t ftl_dram_channels_serve(ftl_dram_channels *channels, const ftl_tile_run *tile, int64_t missed, int64_t asked,
                                int64_t now, int64_t asking) {
  const ftl_tile_place *place = &tile->place;
  int64_t bytes = (int64_t)tile->num_rows * place->row_bytes;
  if (bytes == 0) return now;
  tile_request request = {.missed = missed, .asked = asked, .now = now, .byte_time = (double)asking / (double)bytes};
  if (is_in_one_piece(place))
    return serve_piece(channels, &request, ftl_tile_place_row(place, tile->first_row), bytes, 0, now);
  int64_t end = now;
  for (int32_t row = 0; row < tile->num_rows; row++)
    end = serve_piece(channels, &request, ftl_tile_place_row(place, tile->first_row + row), place->row_bytes,
                      (int64_t)row * place->row_bytes, end);
  return end;
}
