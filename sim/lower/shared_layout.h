// Where the elements of a ring's stage lie in shared memory, and what an access costs in wavefronts.
// Models: 16-byte chunks XOR-swizzled by the row within the widest power-of-two block (at most 128 bytes) that divides
// a row,
//   so that eight rows of one chunk column cover all 32 banks. Whole rows after one another, as Triton and the kernels
//   in kernels/ lay out tiles for ldmatrix; or column blocks after one another, as TMA boxes and wgmma want them (their
//   32-, 64- and 128-byte swizzles, which are CUTLASS's Swizzle<B,3,3> atoms). fp32 accumulators that are read back by
//   rows: pairs of chunks, so that the 8-byte stores of four rows and 16-byte loads of one cover all banks
//   (output_slot of kernels/attention/flash1_mma.h).
// Numbers: 32 banks of 4 bytes; an 8-byte access is served by half warps, a 16-byte one by quarter warps.
#ifndef FTL_LOWER_SHARED_LAYOUT_H
#define FTL_LOWER_SHARED_LAYOUT_H

#include <stdint.h>

#include "base/warp.h"

enum { FTL_CHUNK_BYTES = 16, FTL_LANE_IDLE = -1 };

typedef enum ftl_shared_order {
  FTL_SHARED_PLAIN,            // row after row
  FTL_SHARED_SWIZZLED_ROWS,    // row after row, chunks swizzled
  FTL_SHARED_SWIZZLED_BLOCKS,  // column block after column block, each row after row, chunks swizzled
  FTL_SHARED_SWIZZLED_PAIRS,   // row after row, pairs of chunks swizzled: the eight fp32 columns of a fragment
} ftl_shared_order;

typedef struct ftl_shared_layout {
  int32_t rows, columns, element_bytes;
  ftl_shared_order order;
  int32_t block_columns;  // within which chunks are swizzled; the width of a TMA box
  int32_t stage_bytes;
} ftl_shared_layout;

ftl_shared_layout ftl_shared_layout_of(int32_t rows, int32_t columns, int32_t element_bytes, ftl_shared_order order);
// Byte offset in the stage.
int32_t ftl_shared_layout_offset(const ftl_shared_layout *layout, int32_t row, int32_t column);

typedef struct ftl_wavefronts {
  int32_t cycles;     // data cycles of one warp instruction
  int32_t conflicts;  // of these, beyond one a phase
} ftl_wavefronts;
// One access of `lane_bytes` (4, 8 or 16) bytes by each of 32 lanes at offset[lane], or FTL_LANE_IDLE. Lanes of a phase
// that read the same word share it. ldmatrix is an access of 16 bytes.
ftl_wavefronts ftl_shared_wavefronts(const int32_t offset[FTL_WARP_LANES], int32_t lane_bytes);

#endif
