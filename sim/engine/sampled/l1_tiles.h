// Which tiles that a CTA loads into registers, through L1, are still there when it loads them again.
// Models: least recently used: a tile is there while no more has gone through its SM's L1 since than L1 holds.
// Does not model: sets and ways, tiles that another CTA of the SM loaded, bytes that were loaded twice meanwhile (they
//   count twice); tiles in pages, whose rows come from anywhere: they are taken to miss.
#ifndef FTL_ENGINE_SAMPLED_L1_TILES_H
#define FTL_ENGINE_SAMPLED_L1_TILES_H

#include "arch/arch.h"
#include "lower/walk.h"

typedef struct ftl_l1_tile {
  int64_t address_bytes, passed_bytes;  // passed_bytes of its SM when it was loaded last
  int32_t row_bytes;                    // of the longest rows that were loaded
} ftl_l1_tile;

typedef struct ftl_l1_tiles {
  int64_t capacity_bytes;
  int64_t *passed_bytes;  // per SM: loaded so far
  ftl_l1_tile *tiles;     // per slot of a CTA, FTL_L1_TILES_A_SLOT each, by address
} ftl_l1_tiles;

enum { FTL_L1_TILES_A_SLOT = 256 };

// What shared memory leaves of an SM's unified array with `num_ctas` on it; 0: nothing.
int64_t ftl_l1_capacity_bytes(const ftl_arch *arch, const ftl_warp_program *program, int64_t num_ctas);
// False when memory is out.
bool ftl_l1_tiles_try_init(ftl_l1_tiles *l1, int64_t capacity_bytes, int64_t num_sms, int64_t num_slots);
void ftl_l1_tiles_fini(ftl_l1_tiles *l1);
// The CTA in `slot` of `sm` loads a tile, one of those that lie `unit_bytes` apart, of which it may want a part: how
// many bytes of each row L1 has, from the first on. It has all afterwards.
int32_t ftl_l1_tiles_load(ftl_l1_tiles *l1, int32_t sm, int32_t slot, const ftl_tile_place *place, int32_t unit_bytes);

#endif
