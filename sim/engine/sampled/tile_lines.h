// The lines of tiles that fall into the sample of L2 sets, remembered per tile: tiles of K and V are read many times.
#ifndef FTL_ENGINE_SAMPLED_TILE_LINES_H
#define FTL_ENGINE_SAMPLED_TILE_LINES_H

#include "lower/walk.h"
#include "machine/l2/tags.h"

enum { FTL_MAX_GPCS = 16 };  // the range of chip.num_gpcs

typedef struct ftl_tile_entry {
  int64_t address_bytes;  // of the tile's first byte; with rows and their bytes, the key
  int32_t num_rows, row_bytes;
  int32_t num_sampled;  // lines in the sample: lines[first_line ...]
  int64_t first_line;
  int64_t num_sectors;  // of the whole tile
  int64_t fill_ready;   // when the last DRAM fill of it is done (1/65536 cycle)
  // Per GPC, the group of requests that the coalescer is merging now.
  int64_t last_request[FTL_MAX_GPCS];  // when it began
  int8_t num_merged[FTL_MAX_GPCS];
} ftl_tile_entry;

typedef struct ftl_tile_lines {
  const ftl_l2_tags *tags;
  ftl_tile_entry *entries;  // in the order in which they were first seen
  int64_t num_entries, capacity_entries;
  int32_t *slots;  // open addressing, twice capacity_entries: 1 + index into entries, 0 where free
  ftl_line *lines;
  int64_t num_lines, capacity_lines;
  int64_t sampled_sectors, total_sectors;  // over all tiles seen: their ratio is the sample's scale
} ftl_tile_lines;

FTL_MUST_USE ftl_status ftl_tile_lines_init(ftl_tile_lines *tiles, const ftl_l2_tags *tags, ftl_error *error);
void ftl_tile_lines_fini(ftl_tile_lines *tiles);
// The entry of a tile; made when it is new. NULL when memory is out. Valid until the next call.
ftl_tile_entry *ftl_tile_lines_find(ftl_tile_lines *tiles, const ftl_tile_place *place);

#endif
