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

// The device address of (row, byte 0) of a tile reference at a point, and how many of its rows exist (0: absent).
// Local accesses: the address of the warp's local memory (slot 0), row_stride_bytes FTL_LOCAL_SLOT_BYTES, num_rows all.
enum { FTL_LOCAL_SLOT_BYTES = 128 };  // 4 bytes of each lane
typedef struct ftl_tile_place {
  int64_t address_bytes, row_stride_bytes;
  int32_t num_rows;
} ftl_tile_place;
ftl_tile_place ftl_tile_place_of(const ftl_tile_program *tile, const ftl_tile_ref *ref, const ftl_expr_point *point);

// The 128-byte lines of one execution of an access by `warp`, in address order: line address / 128, the mask of the
// 32-byte sectors that it touches and of those that it covers in full (a store of a whole sector needs no fill in L2).
// Rows that touch in memory are merged. At most `capacity` are written; gives the number there are. A local access
// ignores `warp`.
typedef struct ftl_line {
  uint64_t line;
  uint8_t sectors;
  uint8_t full_sectors;
} ftl_line;
int32_t ftl_access_lines(const ftl_access *access, const ftl_tile_place *place, int32_t warp, ftl_line *lines,
                         int32_t capacity);

#endif
