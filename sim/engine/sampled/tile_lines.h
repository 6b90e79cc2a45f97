// The lines of tiles that fall into the sample of L2 sets, remembered per tile: tiles of K and V are read many times.
#ifndef FTL_ENGINE_SAMPLED_TILE_LINES_H
#define FTL_ENGINE_SAMPLED_TILE_LINES_H

#include "engine/sampled/line_strips.h"
#include "lower/walk.h"
#include "machine/l2/tags.h"

typedef struct ftl_tile_entry {
  int64_t address_bytes;  // of the tile's first byte; with rows and their bytes, the key
  int32_t num_rows, row_bytes;
  uint64_t pages;       // of the key too, if it has pages: a hash of their numbers; else 0
  int32_t num_sampled;  // lines in the sample: lines[first_line ...]
  int64_t first_line;
  int64_t num_sectors;  // of the whole tile
  int64_t fill_ready;   // when the last DRAM fill of it is done (1/65536 cycle)
  int64_t fill_mark;    // until when that fill occupies DRAM
  bool was_loaded;
} ftl_tile_entry;

// Until when a request, and those before it, occupy what passes its data (1/65536 cycle); 0: it does not use that.
typedef struct ftl_tile_marks {
  int64_t l2, far, dram, gpc;
} ftl_tile_marks;

// Requests for a tile that the coalescer of a GPC is merging now.
typedef struct ftl_tile_group {
  int64_t closes;  // 1/65536 cycle: the last in which a request may join
  int64_t served;  // 1/65536 cycle: from when the access queues no more
  ftl_tile_marks marks;
  int64_t num_merged;
} ftl_tile_group;

// Of the table by which entries are found.
typedef struct ftl_tile_slot {
  int32_t entry;  // 1 + index into entries; 0: free
  uint32_t tag;   // the upper half of the entry's hash
} ftl_tile_slot;

// Entries for a stream, whose tiles are asked for by one CTA: enough for those that are at work. More would only take
// the host's memory, and time to get it.
enum { FTL_TILES_OF_STREAM = 1 << 14 };

typedef struct ftl_tile_lines {
  const ftl_l2_tags *tags;
  ftl_tile_entry *entries;  // in the order in which they were first seen
  ftl_tile_group *groups;   // [entry][GPC]; NULL where nothing is merged
  int32_t num_gpcs;         // 0: no groups
  int64_t num_entries, capacity_entries;
  int64_t max_entries;   // 2^17 unless set
  ftl_tile_slot *slots;  // open addressing, twice capacity_entries
  ftl_l2_known_line *lines;
  int64_t num_lines, capacity_lines;
  ftl_line_strips strips;
  int64_t sampled_sectors, total_sectors;  // over all tiles seen: their ratio is the sample's scale
} ftl_tile_lines;

// num_gpcs: of which the requests are grouped; 0 for none.
FTL_MUST_USE ftl_status ftl_tile_lines_init(ftl_tile_lines *tiles, const ftl_l2_tags *tags, int32_t num_gpcs,
                                            ftl_error *error);
void ftl_tile_lines_fini(ftl_tile_lines *tiles);
// The entry of a tile; made when it is new, or was forgotten: beyond max_entries tiles or 2^20 lines all are. NULL when
// memory is out. Valid until the next call.
ftl_tile_entry *ftl_tile_lines_find(ftl_tile_lines *tiles, const ftl_tile_place *place);

static inline ftl_tile_group *ftl_tile_lines_group(const ftl_tile_lines *tiles, const ftl_tile_entry *entry,
                                                   int32_t gpc) {
  return &tiles->groups[(entry - tiles->entries) * tiles->num_gpcs + gpc];
}

#endif
