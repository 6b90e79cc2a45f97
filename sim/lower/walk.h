// Walks one warp's instructions in program order, loops unrolled: the flat trace, one step at a time.
#ifndef FTL_LOWER_WALK_H
#define FTL_LOWER_WALK_H

#include "lower/warp_program.h"

typedef struct ftl_walk {
  const ftl_warp_program *program;
  int32_t role, warp;  // warp index within the role
  int32_t pc, end;     // absolute instruction indices
  ftl_expr_point point;
} ftl_walk;

ftl_walk ftl_walk_start(const ftl_warp_program *program, int32_t role, int32_t warp, int64_t cta);
// The next instruction that is not loop control (TILE, WGMMA_COMMIT, MBAR_ADVANCE are given; LOOP and END_LOOP are not;
// FTL_INST_WARP0 instructions only to warp 0); NULL at the end. walk->point holds at it.
const ftl_warp_inst *ftl_walk_next(ftl_walk *walk);

// The device address of (row, column) of a tile reference at a point, and how many of its rows exist (0: absent).
// Local accesses: the address of the warp's local memory (slot 0), row_stride_bytes FTL_LOCAL_SLOT_BYTES, num_rows all.
enum { FTL_LOCAL_SLOT_BYTES = 128 };  // 4 bytes of each lane

// Where the local memory of a warp begins: 16 MiB each, SM by SM and in the order of its warps, above every device
// address (bit 46).
enum { FTL_LOCAL_BIT = 46, FTL_LOCAL_FRAME_BITS = 24, FTL_LOCAL_WARP_BITS = 8 };
static inline uint64_t ftl_local_address_bytes(int32_t sm, int32_t warp) {
  uint64_t frame = (uint64_t)sm << FTL_LOCAL_WARP_BITS | (uint64_t)warp;
  return UINT64_C(1) << FTL_LOCAL_BIT | frame << FTL_LOCAL_FRAME_BITS;
}
typedef struct ftl_tile_place {
  int64_t address_bytes, row_stride_bytes;
  int32_t num_rows;
  int32_t row_bytes;  // of the tile's columns that exist
  // Of a tile in pages: the numbers of its pages, from that of its first row on (NULL: its rows are row_stride_bytes
  // apart), and where in that page the row lies.
  const int32_t *pages;
  int64_t page_stride_bytes;
  int32_t page_rows, page_row;
} ftl_tile_place;
// The address of a row of the tile, counted from its first.
static inline int64_t ftl_tile_place_row(const ftl_tile_place *place, int32_t row) {
  if (!place->pages) return place->address_bytes + place->row_stride_bytes * row;
  int32_t in_pages = place->page_row + row, page = in_pages / place->page_rows;
  return place->address_bytes + (place->pages[page] - place->pages[0]) * place->page_stride_bytes +
         (in_pages % place->page_rows - place->page_row) * place->row_stride_bytes;
}
ftl_tile_place ftl_tile_place_of(const ftl_tile_program *tile, const ftl_tile_ref *ref, const ftl_expr_point *point);
// The pages of a tile that begins at `row`, whose first is entry `entry` of the table; `place` knows its rows.
void ftl_tile_place_find_pages(const ftl_tile_program *tile, const ftl_tile_ref *ref, int64_t row, int64_t entry,
                               ftl_tile_place *place);

// Where a warp's execution of an access begins within its tile, and how many bytes of each row exist (0: none, or
// another warp of the row makes it).
typedef struct ftl_access_start {
  int32_t row, column_byte, bytes;
} ftl_access_start;
static inline ftl_access_start ftl_access_start_of(const ftl_access *access, const ftl_tile_place *place,
                                                   int32_t warp) {
  int32_t of_row = 0;
  if (access->row_warps > 1) {
    of_row = warp % access->row_warps;
    warp /= access->row_warps;
  }
  ftl_access_start start = {.row = access->row + warp * access->warp_row_step,
                            .column_byte = access->column_byte + of_row * access->warp_column_bytes};
  int32_t left = place->row_bytes - start.column_byte;
  start.bytes = left < access->bytes ? left : access->bytes;
  if (start.bytes < 0 || (access->first_of_row && of_row > 0)) start.bytes = 0;
  return start;
}

// A load of a number a row by a further warp of the row, or again: the bytes that the first one reads.
static inline bool ftl_access_repeats(const ftl_access *access, int32_t warp) {
  if (access->is_reread) return true;
  return access->row_warps > 1 && access->warp_column_bytes == 0 && warp % access->row_warps > 0;
}

// The 128-byte lines of one execution of an access by `warp`, in the order of its rows: line address / 128, the mask of
// the 32-byte sectors that it touches and of those that it covers in full (a store of a whole sector needs no fill in
// L2), and the words that it touches. Rows that touch in memory are merged. At most `capacity` are
// written; gives the number there are. A local access ignores `warp`.
typedef struct ftl_line {
  uint64_t line;
  uint8_t sectors;
  uint8_t full_sectors;
  uint32_t words;  // mask of the line's 32 words of 4 bytes
} ftl_line;
int32_t ftl_access_lines(const ftl_access *access, const ftl_tile_place *place, int32_t warp, ftl_line *lines,
                         int32_t capacity);

#endif
