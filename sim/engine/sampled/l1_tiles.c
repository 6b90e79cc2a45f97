#include "engine/sampled/l1_tiles.h"

#include <stdlib.h>

enum { SECTOR_BYTES = 32 };

int64_t ftl_l1_capacity_bytes(const ftl_arch *arch, const ftl_warp_program *program, int64_t num_ctas) {
  int64_t unit = arch->shared_unit_bytes, shared = program->shared_bytes + arch->shared_reserved_bytes_per_cta;
  int64_t left = arch->l1_unified_bytes - (shared + unit - 1) / unit * unit * num_ctas;
  return left > 0 ? left : 0;
}

bool ftl_l1_tiles_try_init(ftl_l1_tiles *l1, int64_t capacity_bytes, int64_t num_sms, int64_t num_slots) {
  *l1 = (ftl_l1_tiles){.capacity_bytes = capacity_bytes};
  l1->passed_bytes = calloc((size_t)num_sms, sizeof *l1->passed_bytes);
  l1->tiles = calloc((size_t)num_slots * FTL_L1_TILES_A_SLOT, sizeof *l1->tiles);  // address 0 is no tensor's
  return l1->passed_bytes && l1->tiles;
}

void ftl_l1_tiles_fini(ftl_l1_tiles *l1) {
  free(l1->passed_bytes);
  free(l1->tiles);
}

// Tiles of a row follow each other, so that their number in units of a tile spreads them.
static ftl_l1_tile *entry_of(ftl_l1_tiles *l1, int32_t slot, const ftl_tile_place *place, int32_t unit_bytes) {
  int64_t index = place->address_bytes / unit_bytes % FTL_L1_TILES_A_SLOT;
  return &l1->tiles[(int64_t)slot * FTL_L1_TILES_A_SLOT + index];
}

int32_t ftl_l1_tiles_load(ftl_l1_tiles *l1, int32_t sm, int32_t slot, const ftl_tile_place *place, int32_t unit_bytes) {
  ftl_l1_tile *entry = entry_of(l1, slot, place, unit_bytes);
  int64_t bytes = (int64_t)place->row_bytes * place->num_rows, now = l1->passed_bytes[sm] += bytes;
  bool is_there = entry->address_bytes == place->address_bytes && now - entry->passed_bytes <= l1->capacity_bytes;
  int32_t held = is_there ? entry->row_bytes : 0, wanted = place->row_bytes;
  *entry = (ftl_l1_tile){place->address_bytes, now, held > wanted ? held : wanted};
  // Sectors are there whole.
  int64_t in_sector = (place->address_bytes + held) % SECTOR_BYTES;
  if (held > 0 && in_sector > 0) held += (int32_t)(SECTOR_BYTES - in_sector);
  return held < wanted ? held : wanted;
}
