// Which tiles that a CTA loads into registers, through L1, are still there when it loads them again.
// Models: segmented least recently used replacement, as machine/sm/l1.h has it of lines, by bytes that have passed: a
//   tile that is loaded again is protected until as much as may be protected has been after it. Another is there while
//   no more has been loaded, stored, or lost its protection since it came than L1 has besides what is protected.
// Does not model: sets and ways; tiles that another CTA of the SM loaded; tiles that were stored (they take their
//   room); that a use renews protection; tiles in pages, whose rows come from anywhere: they are taken to miss.
#ifndef FTL_ENGINE_SAMPLED_L1_TILES_H
#define FTL_ENGINE_SAMPLED_L1_TILES_H

#include "arch/arch.h"
#include "lower/walk.h"

typedef struct ftl_l1_tile {
  int64_t address_bytes;
  int64_t once_used_bytes, protected_bytes;  // of its SM, when it was loaded, or became protected
  int32_t row_bytes;                         // of the longest rows that were loaded
  bool is_protected;
  uint8_t asking;  // of its CTA's slot, in which it was asked for
  uint8_t part;    // of the rows that were asked for with it, what is before it: 1/256
} ftl_l1_tile;

// What an SM has loaded and stored so far, and what of it became protected.
typedef struct ftl_l1_passed {
  int64_t once_used_bytes, protected_bytes;
} ftl_l1_passed;

enum { FTL_L1_TILES_A_SLOT = 256, FTL_L1_ASKINGS = 64 };

// What passed an SM from when a CTA had asked for tiles until the first parts of their rows were there, and the last.
typedef struct ftl_l1_coming {
  int64_t first_bytes, last_bytes;
} ftl_l1_coming;

// The last times that a slot's CTA asked for tiles, one after the other in a ring: of CTAs that ask more often before
// they look again, those in between are much like each other.
typedef struct ftl_l1_askings {
  ftl_l1_coming coming[FTL_L1_ASKINGS];
  int64_t asked_bytes;  // once_used_bytes of the SM when all of the last was asked for
  uint8_t last;
} ftl_l1_askings;

typedef struct ftl_l1_tiles {
  int64_t capacity_bytes, max_protected_bytes;
  ftl_l1_passed *passed;    // per SM
  ftl_l1_tile *tiles;       // per slot of a CTA, FTL_L1_TILES_A_SLOT each, by address
  ftl_l1_askings *askings;  // per slot
} ftl_l1_tiles;

// What shared memory leaves of an SM's unified array with `num_ctas` on it; 0: nothing.
int64_t ftl_l1_capacity_bytes(const ftl_arch *arch, const ftl_warp_program *program, int64_t num_ctas);
// False when memory is out.
bool ftl_l1_tiles_try_init(ftl_l1_tiles *l1, int64_t capacity_bytes, int64_t max_protected_bytes, int64_t num_sms,
                           int64_t num_slots);
void ftl_l1_tiles_fini(ftl_l1_tiles *l1);
// The CTA in `slot` of `sm` loads a tile, one of those that lie `unit_bytes` apart, of which it may want a part: how
// many bytes of each row L1 has, from the first on. It has all afterwards. `part`: of the rows that the CTA asks for
// with it, what is before it, in 1/256.
int32_t ftl_l1_tiles_load(ftl_l1_tiles *l1, int32_t sm, int32_t slot, const ftl_tile_place *place, int32_t unit_bytes,
                          int32_t part);
// Loads of up to `count` such tiles one after the other, `step_bytes` apart, a multiple of unit_bytes, up to the first
// of which L1 has some. Gives how many were loaded, of which it had nothing.
int64_t ftl_l1_tiles_load_absent(ftl_l1_tiles *l1, int32_t sm, int32_t slot, const ftl_tile_place *first,
                                 int32_t unit_bytes, int64_t step_bytes, int64_t count);
// All that the slot's CTA has loaded since the last call is there: the first parts of its rows were when that share of
// the time since then was over, the last ones likewise.
void ftl_l1_tiles_come(ftl_l1_tiles *l1, int32_t sm, int32_t slot, double first, double last);
// As many tiles of that size are stored from registers.
void ftl_l1_tiles_store(ftl_l1_tiles *l1, int32_t sm, const ftl_tile_place *place, int64_t count);

#endif
