// Which tiles that a CTA loads into registers, through L1, are still there when it loads them again.
// Models: segmented least recently used replacement in hashed sets, as machine/sm/l1.h has it of lines, by bytes that
//   have passed since a tile was asked for: those of other CTAs fall on sets at random (a set is given so many lines of
//   theirs as Poisson's law says), those of the same CTA evenly. What is loaded again is protected until as much as may
//   be protected has been after it.
// Does not model: sets one by one, so that a share of each row is there, the first bytes of it; tiles that another CTA
// of
//   the SM loaded; tiles that were stored (they take their room); tiles in pages, whose rows come from anywhere: they
//   are taken to miss.
#ifndef FTL_ENGINE_SAMPLED_L1_TILES_H
#define FTL_ENGINE_SAMPLED_L1_TILES_H

#include "arch/arch.h"
#include "lower/walk.h"

// What an SM, or a CTA's slot of it, has asked for or stored so far, and what of it became protected.
typedef struct ftl_l1_passed {
  int64_t once_used_bytes, protected_bytes;
} ftl_l1_passed;

typedef struct ftl_l1_tile {
  int64_t address_bytes;
  ftl_l1_passed on_sm, own;  // when it was used last
  int32_t row_bytes;         // of the longest rows that were loaded
  bool is_protected;
} ftl_l1_tile;

enum { FTL_L1_TILES_A_SLOT = 256 };

typedef struct ftl_l1_size {
  int64_t capacity_bytes;       // 0: none
  int64_t max_protected_bytes;  // of these
  int64_t way_bytes;            // a line of each set
} ftl_l1_size;

typedef struct ftl_l1_tiles {
  ftl_l1_size size;
  ftl_l1_passed *on_sm, *own;  // per SM, per slot of a CTA
  double *owed_tiles;          // per SM: of the shares that tiles had, what has not been given
  ftl_l1_tile *tiles;          // per slot, FTL_L1_TILES_A_SLOT each, by address
} ftl_l1_tiles;

// What shared memory leaves of an SM's unified array with `num_ctas` on it; 0: nothing.
int64_t ftl_l1_capacity_bytes(const ftl_arch *arch, const ftl_warp_program *program, int64_t num_ctas);
// The L1 of an SM with so much left.
ftl_l1_size ftl_l1_size_of(const ftl_arch *arch, int64_t capacity_bytes);
// False when memory is out.
bool ftl_l1_tiles_try_init(ftl_l1_tiles *l1, ftl_l1_size size, int64_t num_sms, int64_t num_slots);
void ftl_l1_tiles_fini(ftl_l1_tiles *l1);
// The CTA in `slot` of `sm` loads a tile, one of those that lie `unit_bytes` apart, of which it may want a part: how
// many bytes of each row L1 has, from the first on. It has all afterwards.
int32_t ftl_l1_tiles_load(ftl_l1_tiles *l1, int32_t sm, int32_t slot, const ftl_tile_place *place, int32_t unit_bytes);
// Loads of up to `count` such tiles one after the other, `step_bytes` apart, a multiple of unit_bytes, up to the first
// of which L1 has some. Gives how many were loaded, of which it had nothing.
int64_t ftl_l1_tiles_load_absent(ftl_l1_tiles *l1, int32_t sm, int32_t slot, const ftl_tile_place *first,
                                 int32_t unit_bytes, int64_t step_bytes, int64_t count);
// The CTA in `slot` stores as many tiles of that size from registers.
void ftl_l1_tiles_store(ftl_l1_tiles *l1, int32_t sm, int32_t slot, const ftl_tile_place *place, int64_t count);

#endif
