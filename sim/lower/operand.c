#include "lower/operand.h"

// A matrix is 8 rows of 16 bytes, whatever they hold.
static ftl_fragment_place ldmatrix_place(ftl_operand_kind kind, int32_t lane, int32_t element_bytes) {
  int32_t columns = FTL_CHUNK_BYTES / element_bytes;
  // A and [k][n]: the second pair of matrices is a chunk on; [n][k]: 8 rows on, so that a pair of matrices is an n8
  // tile
  if (kind == FTL_OPERAND_B_NK) return (ftl_fragment_place){lane % 8 + lane / 16 * 8, lane / 8 % 2 * columns};
  return (ftl_fragment_place){lane % 16, lane / 16 * columns};
}

static ftl_fragment_place quad_pair_place(ftl_operand_kind kind, int32_t lane) {
  int32_t pair = lane / 4 % 4, high = lane >= 16;
  switch (kind) {
    case FTL_OPERAND_A:
      return (ftl_fragment_place){lane % 4 + 4 * (pair & 1) + 8 * high, 0};
    case FTL_OPERAND_B_NK:
      return (ftl_fragment_place){lane % 4 + 4 * (pair >> 1) + 8 * high, 0};
    // a lane's 8 columns serve two n tiles, whose columns are permuted (CUTLASS's congruous Volta operands)
    case FTL_OPERAND_B_KN:
      return (ftl_fragment_place){lane % 4, 8 * (2 * (pair >> 1) + high)};
    case FTL_OPERAND_KIND_COUNT:
      break;
  }
  return (ftl_fragment_place){0, 0};
}

ftl_wavefronts ftl_operand_wavefronts(const ftl_fragment_shape *shape, const ftl_shared_layout *layout,
                                      ftl_operand_kind kind, int32_t row, int32_t column) {
  int32_t offset[FTL_WARP_LANES];
  for (int32_t lane = 0; lane < FTL_WARP_LANES; lane++) {
    ftl_fragment_place place =
        shape->quad_pairs ? quad_pair_place(kind, lane) : ldmatrix_place(kind, lane, layout->element_bytes);
    bool inside = row + place.row < layout->rows && column + place.column < layout->columns;
    offset[lane] = inside ? ftl_shared_layout_offset(layout, row + place.row, column + place.column) : FTL_LANE_IDLE;
  }
  return ftl_shared_wavefronts(offset, FTL_CHUNK_BYTES);
}

ftl_wavefronts ftl_accumulator_wavefronts(const ftl_fragment_shape *shape, const ftl_shared_layout *layout, int32_t row,
                                          int32_t column) {
  int32_t offset[FTL_WARP_LANES];
  for (int32_t lane = 0; lane < FTL_WARP_LANES; lane++) {
    ftl_fragment_place place = ftl_fragment_accumulator(shape, lane, 0);
    offset[lane] = ftl_shared_layout_offset(layout, row + place.row, column + place.column);
  }
  return ftl_shared_wavefronts(offset, 2 * layout->element_bytes);
}
