// How a warp's lanes cover a tile of a tensor with 16-byte accesses, coalesced.
#ifndef FTL_LOWER_SELECT_COPY_PLAN_H
#define FTL_LOWER_SELECT_COPY_PLAN_H

#include "lower/shared_layout.h"
#include "tile/tile.h"

typedef struct ftl_copy_plan {
  int32_t lanes_per_row;  // padding chunks included: they write zeros
  int32_t rows;           // that one instruction of a warp covers
  int32_t num_blocks;     // column blocks, one instruction each
  int32_t block_bytes;    // of the shared row that one block covers
  int32_t row_bytes;      // real bytes of a tensor row in the tile
  int32_t num_groups;     // row groups: instructions of a warp for a column block
} ftl_copy_plan;

// How a source deals the chunks of rows to threads where the shared layout keeps column blocks apart: each block's by
// itself, if blocks have 64 bytes or more; the same, but whole rows where a block is as wide as all banks (Triton's
// copies); whole rows always (kernels/attention/flash2_wgmma.h). Other layouts have whole rows.
typedef enum ftl_copied_rows { FTL_COPIED_BY_BLOCKS, FTL_COPIED_WHOLE_IF_WIDE, FTL_COPIED_WHOLE } ftl_copied_rows;

ftl_copy_plan ftl_copy_plan_of(const ftl_tile_ref *ref, int32_t element_bytes, const ftl_shared_layout *layout,
                               int32_t num_warps, ftl_copied_rows rows);
// Real bytes of a row that block `block` reads: 0 where there is padding only.
int32_t ftl_copy_plan_bytes(const ftl_copy_plan *plan, int32_t block);
// Shared-memory cycles of writing (or reading back) the block's rows of warp 0's first group.
ftl_wavefronts ftl_copy_plan_wavefronts(const ftl_copy_plan *plan, const ftl_shared_layout *layout, int32_t block);

#endif
