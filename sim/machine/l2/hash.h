// Which side, slice and set of L2 a line belongs to.
// Models: home side by a hash of the address granule, a slice hash that is fair for any slice count, sets of any
// number. Does not model: the real, unpublished bit functions; physical page placement. Numbers: l2.num_sides,
// num_slices, size_bytes, ways, side_hash_granule_bytes.
#ifndef FTL_MACHINE_L2_HASH_H
#define FTL_MACHINE_L2_HASH_H

#include <stdint.h>

#include "arch/arch.h"
#include "base/divisor.h"

enum { FTL_L2_GROUP_BLOCKS = 32 };  // a power of two
// Of equal choices one with which buffers fall out of L2 as measured (tests/timing/l2/capacity.c): three golden ratios.
#define FTL_L2_GROUP_SEED (3u * 0x9e3779b97f4a7c15u)

typedef struct ftl_l2_hash {
  uint32_t num_sides, slices_per_side, sets_per_slice;
  ftl_divisor by_slices, by_granule;  // of a side; lines
} ftl_l2_hash;

// A register holds it.
typedef struct ftl_l2_address {
  uint16_t home_side;
  uint16_t slice_in_side;  // the same on both sides: a replica lies in the mirror slice
  uint32_t set_in_side;    // set * slices_per_side + slice_in_side: neighbours lie in different slices
} ftl_l2_address;

// The finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014): a bijection of 64-bit numbers.
static inline uint64_t ftl_l2_mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Maps a uniform 64-bit number to [0, n) without division (Lemire, ACM TOMACS 2019).
static inline uint32_t ftl_l2_scale(uint64_t x, uint32_t n) { return (uint32_t)(((x >> 32) * n) >> 32); }

// num_sides 1 or 2; granule_lines: that lie on one side together.
ftl_l2_hash ftl_l2_hash_make(uint32_t num_sides, uint32_t slices_per_side, uint32_t sets_per_slice,
                             uint32_t granule_lines);
ftl_l2_hash ftl_l2_hash_init(const ftl_arch *arch);

// Two granules in a row are split over the sides, in an order given by a hash, so that any run of addresses is halved
// between them.
static inline uint32_t ftl_l2_hash_side_of_granule(const ftl_l2_hash *hash, uint64_t granule) {
  return hash->num_sides == 2 ? (uint32_t)((granule ^ ftl_l2_mix(granule >> 1)) & 1) : 0;
}

// The line's home side.
static inline uint32_t ftl_l2_hash_home(const ftl_l2_hash *hash, uint64_t line) {
  return ftl_l2_hash_side_of_granule(hash, ftl_divide(hash->by_granule, line).quotient);
}

// A line's place, and the lines from it on, itself included, that one granule and one block have: their sets follow
// each other one by one, but that those after the block's last slice begin anew with its first. How many there are does
// not hang on the hash, so that the next stretch can be worked out before this one is.
typedef struct ftl_l2_stretch {
  ftl_l2_address at;
  uint32_t num_lines;
} ftl_l2_stretch;

// Lines of one side are numbered by `index`. `slices_per_side` lines in a row, whatever that number is,
// are a rotation over the slices, by a hash of the block's number: a run is spread evenly and a stride is spread by the
// hash. Blocks take sets in golden-ratio steps (Knuth, TAOCP 3, 6.4), which fills any number of sets almost evenly. In
// groups of 32 their order is changed, by a hash of the group's number: a run fills as many sets as before, but tiles a
// stride apart do not meet in a few where the stride is close to a Fibonacci number of blocks or a fraction of one.
static inline ftl_l2_stretch ftl_l2_hash_stretch(const ftl_l2_hash *hash, uint64_t line) {
  ftl_quotient granule = ftl_divide(hash->by_granule, line);
  uint64_t index = line;
  if (hash->num_sides == 2) index = (granule.quotient >> 1) * hash->by_granule.number + granule.remainder;
  ftl_quotient block = ftl_divide(hash->by_slices, index);
  uint32_t n = hash->slices_per_side, in_block = n - block.remainder;
  uint32_t in_granule = hash->num_sides == 2 ? hash->by_granule.number - granule.remainder : in_block;
  uint32_t position = block.remainder + ftl_l2_scale(ftl_l2_mix(block.quotient + 1), n);
  uint32_t slice = position < n ? position : position - n;
  uint64_t group = ftl_l2_mix(block.quotient / FTL_L2_GROUP_BLOCKS + FTL_L2_GROUP_SEED);
  uint64_t step = block.quotient ^ (group & (FTL_L2_GROUP_BLOCKS - 1));
  uint32_t set = ftl_l2_scale(step * 0x9e3779b97f4a7c15u, hash->sets_per_slice);
  return (ftl_l2_stretch){.at = {.home_side = (uint16_t)ftl_l2_hash_side_of_granule(hash, granule.quotient),
                                 .slice_in_side = (uint16_t)slice,
                                 .set_in_side = set * n + slice},
                          .num_lines = in_block < in_granule ? in_block : in_granule};
}

static inline ftl_l2_address ftl_l2_hash_address(const ftl_l2_hash *hash, uint64_t line) {
  return ftl_l2_hash_stretch(hash, line).at;
}

#endif
