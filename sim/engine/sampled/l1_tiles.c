#include "engine/sampled/l1_tiles.h"

#include <math.h>
#include <stdlib.h>

#include "base/integer.h"
#include "base/sectors.h"
#include "machine/sm/l1.h"

int64_t ftl_l1_capacity_bytes(const ftl_arch *arch, const ftl_warp_program *program, int64_t num_ctas) {
  int64_t unit = arch->shared_unit_bytes, shared = program->shared_bytes + arch->shared_reserved_bytes_per_cta;
  int64_t left = arch->l1_unified_bytes - ftl_round_up(shared, unit) * num_ctas;
  return left > 0 ? left : 0;
}

ftl_l1_size ftl_l1_size_of(const ftl_arch *arch, int64_t capacity_bytes) {
  return (ftl_l1_size){.capacity_bytes = capacity_bytes,
                       .max_protected_bytes = ftl_sm_l1_protected_bytes(arch, capacity_bytes),
                       .way_bytes = ftl_sm_l1_way_bytes(arch, capacity_bytes)};
}

bool ftl_l1_tiles_try_init(ftl_l1_tiles *l1, ftl_l1_size size, int64_t num_sms, int64_t num_slots) {
  *l1 = (ftl_l1_tiles){.size = size};
  l1->on_sm = calloc((size_t)num_sms, sizeof *l1->on_sm);
  l1->own = calloc((size_t)num_slots, sizeof *l1->own);
  l1->owed_tiles = calloc((size_t)num_sms, sizeof *l1->owed_tiles);
  l1->tiles = calloc((size_t)num_slots * FTL_L1_TILES_A_SLOT, sizeof *l1->tiles);  // address 0 is no tensor's
  return l1->on_sm && l1->own && l1->owed_tiles && l1->tiles;
}

void ftl_l1_tiles_fini(ftl_l1_tiles *l1) {
  free(l1->on_sm);
  free(l1->own);
  free(l1->owed_tiles);
  free(l1->tiles);
}

// ---- what is left ----
// How likely fewer than `ways` of so many lines as a set is given on average have fallen to one.
static double share_with_fewer(double mean, int32_t ways) {
  double term = exp(-mean), sum = 0;
  for (int32_t lines = 0; lines < ways; lines++) {
    sum += term;
    term *= mean / (lines + 1);
  }
  return sum < 1 ? sum : 1;
}

// The same where some sets have a way more than others.
static double share_left(double mean, double ways) {
  enum { NOTHING_LEFT = 64 };  // lines that displace all ways there are
  if (!(ways > 0) || mean > NOTHING_LEFT) return 0;
  int32_t least = (int32_t)ways;
  double more = ways - least;
  return (1 - more) * share_with_fewer(mean, least) + more * share_with_fewer(mean, least + 1);
}

// What is left of a tile of which so much has passed since, in so many bytes of ways: the lines of its own CTA fill
// sets evenly, so that there is room for all of it or none, and those of others leave it its share.
static double share_after(const ftl_l1_tiles *l1, int64_t passed_bytes, int64_t own_bytes, int64_t room_bytes) {
  double way = (double)l1->size.way_bytes, ways = (double)(room_bytes - own_bytes) / way;
  return share_left((double)(passed_bytes - own_bytes) / way, ways > 0 && ways < 1 ? 1 : ways);
}

// An SM's L1, as one of its CTAs sees it.
typedef struct l1_view {
  ftl_l1_passed *on_sm, *own;
  double *owed_tiles;
} l1_view;

static l1_view view_of(const ftl_l1_tiles *l1, int32_t sm, int32_t slot) {
  return (l1_view){&l1->on_sm[sm], &l1->own[slot], &l1->owed_tiles[sm]};
}

static double once_used_left(const ftl_l1_tiles *l1, l1_view now, const ftl_l1_tile *tile) {
  int64_t taken_bytes = ftl_smaller(now.on_sm->protected_bytes, l1->size.max_protected_bytes);
  return share_after(l1, now.on_sm->once_used_bytes - tile->on_sm.once_used_bytes,
                     now.own->once_used_bytes - tile->own.once_used_bytes, l1->size.capacity_bytes - taken_bytes);
}

// Of what was protected: as much as later such lines leave in the ways for them, and of the rest, which is the next to
// go, what no other line has displaced.
static double protected_left(const ftl_l1_tiles *l1, l1_view now, const ftl_l1_tile *tile) {
  double left = share_after(l1, now.on_sm->protected_bytes - tile->on_sm.protected_bytes,
                            now.own->protected_bytes - tile->own.protected_bytes, l1->size.max_protected_bytes);
  int64_t since_bytes = now.on_sm->once_used_bytes - tile->on_sm.once_used_bytes;
  return left + (1 - left) * share_with_fewer((double)since_bytes / (double)l1->size.way_bytes, 1);
}

// Of a tile that was loaded, the share that is there.
static double share_of(const ftl_l1_tiles *l1, l1_view now, const ftl_l1_tile *tile) {
  return tile->is_protected ? protected_left(l1, now, tile) : once_used_left(l1, now, tile);
}

// Whether it is this tile's turn to be there.
static bool is_due(l1_view now, double share) { return *now.owed_tiles + share >= 0.5; }

// ---- what passes ----
// Tiles of a row follow each other, so that their number in units of a tile spreads them.
static ftl_l1_tile *entry_of(ftl_l1_tiles *l1, int32_t slot, int64_t number) {
  return &l1->tiles[(int64_t)slot * FTL_L1_TILES_A_SLOT + number % FTL_L1_TILES_A_SLOT];
}

static void pass(l1_view now, int64_t bytes) {
  now.on_sm->once_used_bytes += bytes;
  now.own->once_used_bytes += bytes;
}

// It is asked for; where it is there it is used again, and protected from then on.
static void use(const ftl_l1_tiles *l1, l1_view now, ftl_l1_tile *tile, double share, int64_t bytes) {
  bool is_there = is_due(now, share);
  *now.owed_tiles += is_there ? share - 1 : share;
  if (!is_there) {
    pass(now, bytes);
  } else if (!tile->is_protected && l1->size.max_protected_bytes > 0) {
    now.on_sm->protected_bytes += bytes;
    now.own->protected_bytes += bytes;
  }
  tile->is_protected = is_there && l1->size.max_protected_bytes > 0;
  tile->on_sm = *now.on_sm;
  tile->own = *now.own;
}

int32_t ftl_l1_tiles_load(ftl_l1_tiles *l1, int32_t sm, int32_t slot, const ftl_tile_place *place, int32_t unit_bytes) {
  ftl_l1_tile *tile = entry_of(l1, slot, place->address_bytes / unit_bytes);
  l1_view now = view_of(l1, sm, slot);
  int32_t wanted = place->row_bytes;
  bool was_loaded = tile->address_bytes == place->address_bytes;
  double share = was_loaded ? share_of(l1, now, tile) : 0;
  int32_t held = was_loaded && is_due(now, share) ? tile->row_bytes : 0;
  if (!was_loaded || held == 0) *tile = (ftl_l1_tile){.address_bytes = place->address_bytes};
  use(l1, now, tile, share, (int64_t)wanted * place->num_rows);
  if (wanted > tile->row_bytes) tile->row_bytes = wanted;
  // Sectors are there whole.
  int64_t in_sector = (place->address_bytes + held) % FTL_SECTOR_BYTES;
  if (held > 0 && in_sector > 0) held += (int32_t)(FTL_SECTOR_BYTES - in_sector);
  return ftl_smaller32(held, wanted);
}

int64_t ftl_l1_tiles_load_absent(ftl_l1_tiles *l1, int32_t sm, int32_t slot, const ftl_tile_place *first,
                                 int32_t unit_bytes, int64_t step_bytes, int64_t count) {
  int64_t bytes = (int64_t)first->row_bytes * first->num_rows, address_bytes = first->address_bytes;
  int64_t number = address_bytes / unit_bytes, step = step_bytes / unit_bytes;
  l1_view now = view_of(l1, sm, slot);
  for (int64_t i = 0; i < count; i++, address_bytes += step_bytes, number += step) {
    ftl_l1_tile *tile = entry_of(l1, slot, number);
    double share = tile->address_bytes == address_bytes ? share_of(l1, now, tile) : 0;
    if (tile->address_bytes == address_bytes && is_due(now, share)) return i;
    *tile = (ftl_l1_tile){.address_bytes = address_bytes, .row_bytes = first->row_bytes};
    use(l1, now, tile, share, bytes);
  }
  return count;
}

void ftl_l1_tiles_store(ftl_l1_tiles *l1, int32_t sm, int32_t slot, const ftl_tile_place *place, int64_t count) {
  pass(view_of(l1, sm, slot), count * place->row_bytes * place->num_rows);
}
