// The bytes that a CTA's loads and stores touch, as the tile program says, and which of them the warps have touched.
#ifndef FTL_LOWER_COVERAGE_H
#define FTL_LOWER_COVERAGE_H

#include "lower/walk.h"

// One LOAD or STORE of the tile program at one point, with a bit for each 2 bytes of its rows.
typedef struct ftl_covered_tile {
  int32_t tensor, ring;  // ring: -1 for stores and loads into registers
  int64_t fill;          // of the ring: the how-manieth stage since the CTA's start
  ftl_tile_place place;
  bool is_store;
  int32_t columns_bytes, words_per_row;  // of a row of the reference; place.row_bytes of them exist
  int64_t bytes_left;
  uint64_t *touched;
  int32_t next;  // of the same ring and fill, of the stores, or of the loads into registers; -1: none
} ftl_covered_tile;

typedef struct ftl_coverage {
  const ftl_tile_program *tile;
  ftl_covered_tile *tiles;
  int32_t num_tiles, capacity_tiles;
  int32_t *first_of_fill[FTL_TILE_MAX_RINGS];  // by fill: head of its tiles
  int64_t num_fills[FTL_TILE_MAX_RINGS], capacity_fills[FTL_TILE_MAX_RINGS];
  int32_t first_store, first_direct;
} ftl_coverage;

// Runs the tile program's control flow for one CTA.
FTL_MUST_USE ftl_status ftl_coverage_init(ftl_coverage *coverage, const ftl_tile_program *tile, int64_t cta,
                                          ftl_error *error);
void ftl_coverage_fini(ftl_coverage *coverage);

// Marks what one execution of an access touches. NULL, or what is wrong: a tile that is not copied here, bytes outside
// it, bytes touched before.
const char *ftl_coverage_load(ftl_coverage *coverage, int32_t ring, int64_t fill, const ftl_access *access,
                              const ftl_tile_place *place, int32_t warp);
// A load into registers: of several of the same tile the first whose bytes are still to be read.
const char *ftl_coverage_load_direct(ftl_coverage *coverage, int32_t tensor, const ftl_access *access,
                                     const ftl_tile_place *place, int32_t warp);
const char *ftl_coverage_store(ftl_coverage *coverage, int32_t tensor, const ftl_access *access,
                               const ftl_tile_place *place, int32_t warp);

// Whether every byte of a fill has been copied. A fill that the tile program has not is an empty one.
bool ftl_coverage_is_full(const ftl_coverage *coverage, int32_t ring, int64_t fill);
// A tile with bytes that nobody has touched, or NULL.
const ftl_covered_tile *ftl_coverage_incomplete(const ftl_coverage *coverage);

#endif
