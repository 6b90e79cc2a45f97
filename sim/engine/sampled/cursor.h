// Where the tile of an access lies in one iteration of its loop after the other. Most move by a constant number of rows
// or columns an iteration: their place is then worked out from a base and a step, the others' from their expressions.
#ifndef FTL_ENGINE_SAMPLED_CURSOR_H
#define FTL_ENGINE_SAMPLED_CURSOR_H

#include "engine/sampled/segments.h"
#include "engine/sampled/tile_lines.h"
#include "lower/walk.h"

typedef struct ftl_ref_step {
  bool is_steady;  // batch, head and the ends of rows and columns stay; row, column, presence and the entry of the
                   // first page grow by these an iteration
  int64_t rows, columns, presence, entries;
  bool is_tall, is_wide;  // the tiles of iterations follow each other below, or beside
  bool shares_sectors;    // with the tile beside it, wherever the first begins
  int64_t element_bytes, row_stride_bytes;
} ftl_ref_step;

// A steady access of one CTA in the loop (or straight code) that it runs now.
typedef struct ftl_ref_cursor {
  int64_t base_bytes;  // address of the first tile's first column in row 0 of the batch and head (and of page 0)
  int64_t first_row, end_row;
  int64_t num_columns;     // from the first tile's first column to the end
  int64_t first_presence;  // present where above 0
  int64_t first_entry;     // of the table of pages; 0 without pages
} ftl_ref_cursor;

// How an access moves from iteration to iteration, from the form of its expressions.
ftl_ref_step ftl_ref_step_of(const ftl_tile_program *tile, const ftl_segment_ref *ref);
// `outer`: value of the loop around the access's loop; 0 where there is none.
ftl_ref_cursor ftl_ref_cursor_at(const ftl_tile_program *tile, const ftl_segment_ref *ref, int64_t cta, int64_t outer);
// Those of all accesses of a segment that are steady.
void ftl_ref_cursors_at(const ftl_tile_program *tile, const ftl_segment *segment, const ftl_ref_step *steps,
                        const ftl_cta_at *at, ftl_ref_cursor *cursors);
// The tile in an iteration, counted from 0: what ftl_tile_place_of gives there. The cursor is read if it is steady.
ftl_tile_place ftl_ref_place(const ftl_tile_program *tile, const ftl_segment_ref *ref, const ftl_ref_step *step,
                             const ftl_ref_cursor *cursor, const ftl_cta_at *at, int64_t iteration);

// Tiles of successive iterations that follow each other in memory, as one tall tile, or one wide one.
typedef struct ftl_tile_run {
  ftl_tile_place place;         // of the tiles of a whole group of iterations
  int32_t first_row, num_rows;  // of its rows, the ones that are asked for
  int32_t num_tiles;            // asked for one after the other; 0: none is present
  int32_t tile_row_bytes;       // of a wide tile: of the rows of each of its tiles; else 0
  int32_t box_bytes;            // of a row that TMA asks for at a time; 0: not by TMA
  ftl_l2_priority priority;     // of their tensor
  bool waits_for_channels;      // of DRAM (gpu_access.c)
  bool is_ahead;                // for a later step, which the one that asks does not wait for
  bool is_multicast;            // a share of tiles that several CTAs load together: not coalesced
  bool was_loaded;              // by the same CTA before, in tiles of other sizes
  bool splits_lines;            // a warp's copies ask for parts of lines, one behind the other
  ftl_tile_trail *trail;        // of the access; NULL: it has none
} ftl_tile_run;

// Iterations [first, first + count) are asked for. They are part of the group [group_first, group_first + group), which
// is the same for all CTAs, so that a run of rows is found again under the same place; a run of columns is found by
// CTAs that ask for the same iterations. False where the tiles do not follow each other, or share sectors.
bool ftl_ref_try_run(const ftl_tile_program *tile, const ftl_segment_ref *ref, const ftl_ref_step *step,
                     const ftl_ref_cursor *cursor, int64_t group_first, int64_t group, int64_t first, int64_t count,
                     ftl_tile_run *run);

// What CTA `cta` asks for of tiles that several CTAs load together: its share of the rows, as tiles of their own.
ftl_tile_run ftl_tile_run_share(const ftl_tile_run *run, ftl_multicast multicast, int64_t cta);

#endif
