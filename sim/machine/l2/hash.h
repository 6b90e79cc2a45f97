// Which side, slice and set of L2 a line belongs to.
// Models: home side by a hash of the address granule, a slice hash that is fair for any slice count, sets of any
// number. Does not model: the real, unpublished bit functions; physical page placement. Numbers: l2.num_sides,
// num_slices, size_bytes, ways, side_hash_granule_bytes.
#ifndef FTL_MACHINE_L2_HASH_H
#define FTL_MACHINE_L2_HASH_H

#include <stdint.h>

#include "arch/arch.h"

typedef struct ftl_l2_hash {
  uint32_t num_sides, slices_per_side, sets_per_slice;
  uint32_t granule_lines;
} ftl_l2_hash;

typedef struct ftl_l2_address {
  uint32_t home_side;
  uint32_t slice_in_side;  // the same on both sides: a replica lies in the mirror slice
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

ftl_l2_hash ftl_l2_hash_init(const ftl_arch *arch);

// Two granules in a row are split over the sides, in an order given by a hash, so that any run of addresses is halved
// between them.
static inline uint32_t ftl_l2_hash_home(const ftl_l2_hash *hash, uint64_t line) {
  uint64_t granule = line / hash->granule_lines;
  return hash->num_sides == 2 ? (uint32_t)((granule ^ ftl_l2_mix(granule >> 1)) & 1) : 0;
}

// Lines of one side are numbered by `index`. `slices_per_side` lines in a row, whatever that number is,
// are a rotation over the slices, by a hash of the block's number: a run is spread evenly and a stride is spread by the
// hash. Blocks take sets in golden-ratio steps (Knuth, TAOCP 3, 6.4), which fills any number of sets almost evenly.
static inline ftl_l2_address ftl_l2_hash_address(const ftl_l2_hash *hash, uint64_t line) {
  ftl_l2_address at = {.home_side = ftl_l2_hash_home(hash, line)};
  uint64_t index = line;
  if (hash->num_sides == 2)
    index = (line / hash->granule_lines >> 1) * hash->granule_lines + line % hash->granule_lines;
  uint32_t n = hash->slices_per_side;
  uint64_t block = index / n;
  uint32_t position = (uint32_t)(index % n) + ftl_l2_scale(ftl_l2_mix(block + 1), n);
  at.slice_in_side = position < n ? position : position - n;
  at.set_in_side = ftl_l2_scale(block * 0x9e3779b97f4a7c15u, hash->sets_per_slice) * n + at.slice_in_side;
  return at;
}

// Lines from `line` (which lies at `at`) on, itself included, whose sets follow each other one by one.
static inline uint32_t ftl_l2_hash_run(const ftl_l2_hash *hash, uint64_t line, const ftl_l2_address *at) {
  uint64_t index = line, in_granule = UINT64_MAX;
  if (hash->num_sides == 2) {
    index = (line / hash->granule_lines >> 1) * hash->granule_lines + line % hash->granule_lines;
    in_granule = hash->granule_lines - line % hash->granule_lines;
  }
  uint32_t n = hash->slices_per_side, in_block = n - (uint32_t)(index % n), to_wrap = n - at->slice_in_side;
  uint32_t run = in_block < to_wrap ? in_block : to_wrap;
  return run < in_granule ? run : (uint32_t)in_granule;
}

#endif
