// The lines of tiles that fall into the sample of L2 sets, remembered per tile: tiles of K and V are read many times.
#ifndef FTL_ENGINE_SAMPLED_TILE_LINES_H
#define FTL_ENGINE_SAMPLED_TILE_LINES_H

#include "base/lines.h"
#include "engine/sampled/line_strips.h"
#include "lower/walk.h"
#include "machine/l2/tags.h"

// A line of the host's cache, as is a group below.
typedef struct ftl_tile_entry {
  int64_t address_bytes;  // of the tile's first byte; with rows and their bytes, the key
  int32_t num_rows, row_bytes;
  uint64_t pages;                   // of the key too, if it has pages: a hash of their numbers; else 0
  int32_t num_sampled, first_line;  // lines in the sample: lines[first_line ...]
  uint32_t num_sectors;             // of the whole tile
  int32_t fill_latency_cycles;      // of the last DRAM fill of it, beside what it queues
  int64_t fill_ready_ticks;         // when that is done
  int64_t fill_mark_ticks;          // until when that fill occupies DRAM
  int32_t next;                     // 1 + the entry that an access asked for after this one last; 0: none
  uint16_t gpcs;                    // that have asked for it, one bit each: the others have no group yet
  bool was_loaded;
} ftl_tile_entry;

// What an access asked for last. CTAs that walk the same tiles ask for them in the same order: what one asked for next
// is looked at before the table is, which lies all over memory.
typedef struct ftl_tile_trail {
  int32_t last;  // 1 + the entry; 0: none
} ftl_tile_trail;

// Until when a request, and those before it, occupy what passes its data; 0: it does not use that.
typedef struct ftl_tile_marks {
  int64_t l2_ticks, far_ticks, dram_ticks, gpc_ticks;
} ftl_tile_marks;

// Requests for a tile that the coalescer of a GPC is merging now.
typedef struct ftl_tile_group {
  _Alignas(FTL_HOST_LINE_BYTES) int64_t closes_ticks;  // the last in which a request may join
  int64_t served_ticks;                                // from when the access queues no more
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

enum { FTL_TILES_MOST = 1 << 17 };  // 72 MB with the groups of eight GPCs

typedef struct ftl_tile_lines {
  const ftl_l2_tags *tags;
  ftl_tile_entry *entries;                // in the order in which they were first seen
  ftl_tile_group *groups;                 // [entry][GPC]; NULL where nothing is merged
  int32_t num_gpcs;                       // 0: no groups
  int64_t num_entries, capacity_entries;  // capacity of the table
  int64_t max_entries;                    // 2^17 unless set to less
  ftl_tile_slot *slots;                   // open addressing, twice capacity_entries
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
// memory is out. Valid until the next call. `trail` is the access's own; NULL: it has none.
ftl_tile_entry *ftl_tile_lines_find(ftl_tile_lines *tiles, const ftl_tile_place *place, ftl_tile_trail *trail);

// Whether the next new tile makes it forget all.
bool ftl_tile_lines_are_full(const ftl_tile_lines *tiles);

// Most tiles are asked for by few GPCs: a group that none has used is made when one does.
static inline ftl_tile_group *ftl_tile_lines_group(const ftl_tile_lines *tiles, ftl_tile_entry *entry, int32_t gpc) {
  ftl_tile_group *group = &tiles->groups[(entry - tiles->entries) * tiles->num_gpcs + gpc];
  if (entry->gpcs >> gpc & 1) return group;
  entry->gpcs = (uint16_t)(entry->gpcs | 1u << gpc);
  *group = (ftl_tile_group){.closes_ticks = INT64_MIN};
  return group;
}

// Tells the host's cache that the access will soon ask for what followed the entry last, from that GPC; changes
// nothing.
static inline void ftl_tile_lines_prefetch_next(const ftl_tile_lines *tiles, const ftl_tile_entry *entry, int32_t gpc) {
  if (entry->next == 0) return;
  const ftl_tile_entry *next = &tiles->entries[entry->next - 1];
  __builtin_prefetch(next, 1);
  if (tiles->groups) __builtin_prefetch(&tiles->groups[(entry->next - 1) * tiles->num_gpcs + gpc], 1);
}

#endif
