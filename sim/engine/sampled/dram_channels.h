// How late a tile from DRAM is because its chunks meet those of others, and refreshes, at their channels.
// Models: each channel as a server of its share of the bandwidth, which refreshes in its turn; a tile's chunks where
//   they lie (machine/dram/map.h), asked for one after the other; the tile is there when the last of them is; writes
//   that a channel saves up and serves together.
// Does not model: the order in which a channel serves what waits, its banks; where written lines lie.
// Numbers: dram.* keys, the sustained rate of dram_rate.h.
#ifndef FTL_ENGINE_SAMPLED_DRAM_CHANNELS_H
#define FTL_ENGINE_SAMPLED_DRAM_CHANNELS_H

#include "base/divisor.h"
#include "engine/sampled/cursor.h"
#include "engine/sampled/time_units.h"
#include "machine/dram/map.h"

// A channel.
typedef struct ftl_dram_channel {
  int64_t free_ticks;           // when it has served all that was asked of it
  int64_t since_refresh_ticks;  // at 0: the time since one began
  int64_t saved_sectors;        // to be written
  int32_t num_saved;            // lines of them
} ftl_dram_channel;

typedef struct ftl_dram_channels {
  ftl_dram_map map;
  ftl_divisor turn;   // by the channels: chunks are dealt to each of them once a turn
  ftl_divisor chunk;  // by its bytes
  int64_t chunk_bytes;
  int64_t sector_ticks;                  // of a channel, between refreshes
  int64_t turning_ticks;                 // of a channel from reads to writes and back
  int32_t drain_lines;                   // that a channel saves up
  uint64_t num_written;                  // lines
  int64_t interval_ticks, length_ticks;  // of refreshes; those of the channels are spread over an interval
  ftl_dram_channel *channels;
} ftl_dram_channels;

// sector_ticks: of all channels together, refreshes included.
FTL_MUST_USE ftl_status ftl_dram_channels_init(ftl_dram_channels *channels, const ftl_arch *arch, int64_t sm_khz,
                                               int64_t sector_ticks, ftl_error *error);
void ftl_dram_channels_fini(ftl_dram_channels *channels);

// Whether the run is a tile by itself that lies in few enough chunks to look at each: what has more has its share of
// all channels.
bool ftl_dram_channels_take(const ftl_dram_channels *channels, const ftl_tile_run *run);

// Of a tile that is asked for from now_ticks on, for asking_ticks: when its last chunk has been served (ticks). Of
// each chunk `missed` sectors of `asked` are read.
int64_t ftl_dram_channels_serve(ftl_dram_channels *channels, const ftl_tile_run *tile, int64_t missed, int64_t asked,
                                int64_t now_ticks, int64_t asking_ticks);

// Sectors that L2 gives up at now_ticks, whole lines of which each may lie anywhere. A channel that has
// saved up enough of them serves them together, behind what it was asked for before; at first the channels have saved
// up, evenly from none to all but one, lines that launches before have left.
void ftl_dram_channels_write(ftl_dram_channels *channels, int64_t sectors, int64_t now_ticks);

#endif
