#include "engine/sampled/l1_tiles.h"

#include <stdlib.h>

#include "base/integer.h"
#include "base/sectors.h"

int64_t ftl_l1_capacity_bytes(const ftl_arch *arch, const ftl_warp_program *program, int64_t num_ctas) {
  int64_t unit = arch->shared_unit_bytes, shared = program->shared_bytes + arch->shared_reserved_bytes_per_cta;
  int64_t left = arch->l1_unified_bytes - ftl_round_up(shared, unit) * num_ctas;
  return left > 0 ? left : 0;
}

bool ftl_l1_tiles_try_init(ftl_l1_tiles *l1, int64_t capacity_bytes, int64_t max_protected_bytes, int64_t num_sms,
                           int64_t num_slots) {
  *l1 = (ftl_l1_tiles){.capacity_bytes = capacity_bytes, .max_protected_bytes = max_protected_bytes};
  l1->passed = calloc((size_t)num_sms, sizeof *l1->passed);
  l1->tiles = calloc((size_t)num_slots * FTL_L1_TILES_A_SLOT, sizeof *l1->tiles);  // address 0 is no tensor's
  l1->askings = calloc((size_t)num_slots, sizeof *l1->askings);
  return l1->passed && l1->tiles && l1->askings;
}

void ftl_l1_tiles_fini(ftl_l1_tiles *l1) {
  free(l1->passed);
  free(l1->tiles);
  free(l1->askings);
}

// Tiles of a row follow each other, so that their number in units of a tile spreads them.
static ftl_l1_tile *entry_of(ftl_l1_tiles *l1, int32_t slot, const ftl_tile_place *place, int32_t unit_bytes) {
  int64_t index = place->address_bytes / unit_bytes % FTL_L1_TILES_A_SLOT;
  return &l1->tiles[(int64_t)slot * FTL_L1_TILES_A_SLOT + index];
}

// What passed while the tile was on its way.
static int64_t passed_before_it_came(const ftl_l1_askings *askings, const ftl_l1_tile *tile) {
  int64_t first = askings->coming[tile->asking].first_bytes, last = askings->coming[tile->asking].last_bytes;
  return first + (last - first) * tile->part / 256;
}

// Bytes that have passed since a tile came, or since it lost its protection: once used and protected ones pass evenly.
// -1: it is protected.
static int64_t passed_since(const ftl_l1_tiles *l1, const ftl_l1_passed *passed, const ftl_l1_askings *askings,
                            const ftl_l1_tile *tile, int64_t tile_bytes) {
  int64_t once_used = passed->once_used_bytes - tile->once_used_bytes;
  if (!tile->is_protected) return once_used - passed_before_it_came(askings, tile);
  int64_t since = passed->protected_bytes - tile->protected_bytes;
  int64_t beyond = since + tile_bytes - l1->max_protected_bytes;
  return beyond <= 0 || since == 0 ? -1 : (int64_t)((double)once_used * (double)beyond / (double)since);
}

static bool has(const ftl_l1_tiles *l1, const ftl_l1_passed *passed, int64_t since_bytes, int64_t tile_bytes) {
  int64_t is_protected = passed->protected_bytes, most = l1->max_protected_bytes;
  int64_t room_bytes = l1->capacity_bytes - (is_protected < most ? is_protected : most);
  return since_bytes < 0 || since_bytes + tile_bytes <= room_bytes;
}

// Beyond the most that may be protected, as much loses its protection.
static void protect(const ftl_l1_tiles *l1, ftl_l1_passed *passed, ftl_l1_tile *tile, int64_t bytes) {
  if (l1->max_protected_bytes == 0) return;
  passed->protected_bytes += bytes;
  if (passed->protected_bytes > l1->max_protected_bytes) passed->once_used_bytes += bytes;
  tile->is_protected = true;
  tile->protected_bytes = passed->protected_bytes;
}

int32_t ftl_l1_tiles_load(ftl_l1_tiles *l1, int32_t sm, int32_t slot, const ftl_tile_place *place, int32_t unit_bytes,
                          int32_t part) {
  ftl_l1_tile *tile = entry_of(l1, slot, place, unit_bytes);
  ftl_l1_passed *passed = &l1->passed[sm];
  ftl_l1_askings *askings = &l1->askings[slot];
  int64_t bytes = (int64_t)place->row_bytes * place->num_rows, since = passed_since(l1, passed, askings, tile, bytes);
  bool is_there = tile->address_bytes == place->address_bytes && has(l1, passed, since, bytes);
  int32_t held = is_there ? tile->row_bytes : 0, wanted = place->row_bytes;
  if (!is_there) {
    passed->once_used_bytes += bytes;
    *tile = (ftl_l1_tile){.address_bytes = place->address_bytes, .asking = askings->last, .part = (uint8_t)part};
  } else if (since >= 0) {
    protect(l1, passed, tile, bytes);
  }
  if (since >= 0 || !is_there) tile->once_used_bytes = passed->once_used_bytes;
  askings->asked_bytes = passed->once_used_bytes;
  if (wanted > held) tile->row_bytes = wanted;
  // Sectors are there whole.
  int64_t in_sector = (place->address_bytes + held) % FTL_SECTOR_BYTES;
  if (held > 0 && in_sector > 0) held += (int32_t)(FTL_SECTOR_BYTES - in_sector);
  return held < wanted ? held : wanted;
}

int64_t ftl_l1_tiles_load_absent(ftl_l1_tiles *l1, int32_t sm, int32_t slot, const ftl_tile_place *first,
                                 int32_t unit_bytes, int64_t step_bytes, int64_t count) {
  ftl_l1_tile *tiles = &l1->tiles[(int64_t)slot * FTL_L1_TILES_A_SLOT];
  ftl_l1_passed *passed = &l1->passed[sm];
  ftl_l1_askings *askings = &l1->askings[slot];
  int64_t bytes = (int64_t)first->row_bytes * first->num_rows, address_bytes = first->address_bytes;
  int64_t number = address_bytes / unit_bytes, step = step_bytes / unit_bytes;
  for (int64_t i = 0; i < count; i++, address_bytes += step_bytes, number += step) {
    ftl_l1_tile *tile = &tiles[number % FTL_L1_TILES_A_SLOT];
    bool is_of_it = tile->address_bytes == address_bytes;
    if (is_of_it && has(l1, passed, passed_since(l1, passed, askings, tile, bytes), bytes)) return i;
    passed->once_used_bytes += bytes;
    *tile = (ftl_l1_tile){.address_bytes = address_bytes,
                          .once_used_bytes = passed->once_used_bytes,
                          .row_bytes = first->row_bytes,
                          .asking = askings->last};
    askings->asked_bytes = passed->once_used_bytes;
  }
  return count;
}

void ftl_l1_tiles_come(ftl_l1_tiles *l1, int32_t sm, int32_t slot, double first, double last) {
  ftl_l1_askings *askings = &l1->askings[slot];
  int64_t passed_bytes = l1->passed[sm].once_used_bytes;
  double meanwhile_bytes = (double)(passed_bytes - askings->asked_bytes);
  askings->coming[askings->last] = (ftl_l1_coming){.first_bytes = (int64_t)(first * meanwhile_bytes),
                                                   .last_bytes = (int64_t)(last * meanwhile_bytes)};
  askings->last = (uint8_t)((askings->last + 1) % FTL_L1_ASKINGS);
  askings->coming[askings->last] = (ftl_l1_coming){0};
  askings->asked_bytes = passed_bytes;
}

void ftl_l1_tiles_store(ftl_l1_tiles *l1, int32_t sm, const ftl_tile_place *place, int64_t count) {
  l1->passed[sm].once_used_bytes += count * place->row_bytes * place->num_rows;
}
