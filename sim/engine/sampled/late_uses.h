// Uses of L2's lines that are put off. Which line of a set was used last matters when the next victim is chosen, not
// before: CTAs that walk the same tiles use them again and again between two misses, and of all those uses of a tile
// the last one is enough, with how many there were.
//
// Nothing may be asked of L2's contents, but what is dirty, while uses are put off: whoever does settles them first.
#ifndef FTL_ENGINE_SAMPLED_LATE_USES_H
#define FTL_ENGINE_SAMPLED_LATE_USES_H

#include "engine/sampled/tile_lines.h"

// What is known of a tile's lines in the sample on one side of L2.
typedef struct ftl_tile_presence {
  uint32_t changes;     // of L2's contents up to the time when all were there; 0: not known
  int32_t place;        // among the late uses, if it has one there
  int64_t num_sectors;  // of its lines
} ftl_tile_presence;

typedef struct ftl_late_use {
  int32_t entry, side;
  uint32_t times;  // 0: the tile was used again since
} ftl_late_use;

enum { FTL_LATE_USES = 64 };

typedef struct ftl_late_uses {
  ftl_tile_presence *presence;       // [entry][side]
  ftl_late_use uses[FTL_LATE_USES];  // in the order of the tiles' last uses
  int32_t count;
} ftl_late_uses;

// False when memory is out.
FTL_MUST_USE bool ftl_late_uses_try_init(ftl_late_uses *late);
void ftl_late_uses_fini(ftl_late_uses *late);
// The entry is new: nothing is known of its lines.
void ftl_late_uses_begin(ftl_late_uses *late, const ftl_tile_lines *tiles, const ftl_tile_entry *entry);
// All lines of the entry were found on that side just now, num_sectors of them.
void ftl_late_uses_found(ftl_late_uses *late, const ftl_tile_lines *tiles, const ftl_tile_entry *entry, int32_t side,
                         int64_t num_sectors);
// A use of all lines of the entry, which is put off if they are known to be there: how many sectors they have. 0: they
// are not, and the use is still to be made.
int64_t ftl_late_uses_add(ftl_late_uses *late, ftl_l2_tags *tags, const ftl_tile_lines *tiles,
                          const ftl_tile_entry *entry, int32_t side);
// Makes the uses that were put off.
void ftl_late_uses_settle(ftl_late_uses *late, ftl_l2_tags *tags, const ftl_tile_lines *tiles);

#endif
