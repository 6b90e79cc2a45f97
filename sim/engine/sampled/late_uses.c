#include "engine/sampled/late_uses.h"

#include <stdlib.h>

enum { SIDES = 2 };

bool ftl_late_uses_try_init(ftl_late_uses *late) {
  // As many as there may be: what is not touched takes none of the host's memory.
  *late = (ftl_late_uses){.presence = calloc((size_t)FTL_TILES_MOST * SIDES, sizeof *late->presence)};
  return late->presence != NULL;
}

void ftl_late_uses_fini(ftl_late_uses *late) { free(late->presence); }

static ftl_tile_presence *presence_of(const ftl_late_uses *late, const ftl_tile_lines *tiles,
                                      const ftl_tile_entry *entry, int32_t side) {
  return &late->presence[(entry - tiles->entries) * SIDES + side];
}

void ftl_late_uses_begin(ftl_late_uses *late, const ftl_tile_lines *tiles, const ftl_tile_entry *entry) {
  for (int32_t side = 0; side < SIDES; side++) presence_of(late, tiles, entry, side)->changes = 0;
}

void ftl_late_uses_found(ftl_late_uses *late, const ftl_tile_lines *tiles, const ftl_tile_entry *entry, int32_t side,
                         int64_t num_sectors) {
  ftl_tile_presence *presence = presence_of(late, tiles, entry, side);
  presence->changes = ftl_l2_tags_changes(tiles->tags);
  presence->num_sectors = num_sectors;
}

int64_t ftl_late_uses_add(ftl_late_uses *late, ftl_l2_tags *tags, const ftl_tile_lines *tiles,
                          const ftl_tile_entry *entry, int32_t side) {
  ftl_tile_presence *presence = presence_of(late, tiles, entry, side);
  if (presence->changes != ftl_l2_tags_changes(tags)) return 0;
  int32_t number = (int32_t)(entry - tiles->entries);
  ftl_late_use use = {.entry = number, .side = side, .times = 1};
  if (presence->place < late->count) {
    ftl_late_use *before = &late->uses[presence->place];
    if (before->entry == number && before->side == side) {
      use.times += before->times;
      before->times = 0;
    }
  }
  if (late->count == FTL_LATE_USES) ftl_late_uses_settle(late, tags, tiles);
  presence->place = late->count;
  late->uses[late->count++] = use;
  return presence->num_sectors;
}

void ftl_late_uses_settle(ftl_late_uses *late, ftl_l2_tags *tags, const ftl_tile_lines *tiles) {
  for (int32_t i = 0; i < late->count; i++) {
    const ftl_late_use *use = &late->uses[i];
    if (use->times == 0) continue;
    const ftl_tile_entry *entry = &tiles->entries[use->entry];
    ftl_l2_tags_use_known(tags, &tiles->lines[entry->first_line], entry->num_sampled, use->side, use->times);
  }
  late->count = 0;
}
