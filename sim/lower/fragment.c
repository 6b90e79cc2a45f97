#include "lower/fragment.h"

#include "base/integer.h"

int32_t ftl_operand_columns(ftl_dtype dtype) { return FTL_OPERAND_BYTES / ftl_dtype_bytes(dtype); }

ftl_fragment_shape ftl_fragment_shape_of(const ftl_arch *arch, bool wgmma) {
  bool quad_pairs = !wgmma && arch->tensor_mma_m == 8;
  return (ftl_fragment_shape){
      .quad_pairs = quad_pairs,
      .accumulator_columns = quad_pairs ? 16 : 8,
      .accumulator_registers = quad_pairs ? 8 : 4,
      // two quad pairs share every operand row, so each is held twice
      .operand_registers = quad_pairs ? 8 : 4,
      .row_lanes = 4,
  };
}

ftl_fragment_place ftl_fragment_accumulator(const ftl_fragment_shape *shape, int32_t lane, int32_t element) {
  if (!shape->quad_pairs) return (ftl_fragment_place){lane / 4 + 8 * (element / 2), 2 * (lane % 4) + element % 2};
  // A quad pair's 8 x 8 product is put together from 4 x 4 pieces 8 apart, so that eight lanes load eight adjacent
  // rows.
  int32_t pair = lane / 4 % 4;
  return (ftl_fragment_place){
      .row = (lane & 1) + (element & 2) + 4 * (pair & 1) + (lane >= 16 ? 8 : 0),
      .column = (lane & 2) + (element & 1) + 4 * (pair >> 1) + 2 * (element & 4),
  };
}

ftl_fragment_map ftl_fragment_map_of(const ftl_fragment_shape *shape, const ftl_value *value, int32_t num_warps) {
  if (value->layout.threads_per_row > 0) {
    int32_t threads = value->layout.threads_per_row, vector = value->layout.vector_columns;
    int32_t num_slabs = value->rows / (num_warps * FTL_WARP_LANES / threads);
    if (value->kind == FTL_VALUE_ROWS) return (ftl_fragment_map){num_slabs, 1, 1};
    int32_t bytes = vector * ftl_dtype_bytes(value->dtype);
    return (ftl_fragment_map){num_slabs, value->columns / (threads * vector), bytes < 4 ? 1 : bytes / 4};
  }
  if (value->kind == FTL_VALUE_COLUMNS) {
    int32_t columns = shape->accumulator_columns;
    return (ftl_fragment_map){1, ftl_divide_up32(value->columns, columns), columns / shape->row_lanes};
  }
  int32_t across = value->warps_per_row > 1 ? value->warps_per_row : 1;
  int32_t num_slabs = value->rows * across / (FTL_SLAB_ROWS * num_warps);
  if (value->kind == FTL_VALUE_ROWS) return (ftl_fragment_map){num_slabs, 1, 2};
  bool wide = value->dtype == FTL_FP32 || value->dtype == FTL_INT32, accumulates = wide || value->accumulates;
  int32_t columns = accumulates ? shape->accumulator_columns : ftl_operand_columns(value->dtype);
  int32_t registers = accumulates ? shape->accumulator_registers : shape->operand_registers;
  if (accumulates && !wide) registers /= 2;  // pairs of 16-bit sums
  return (ftl_fragment_map){num_slabs, ftl_divide_up32(ftl_value_warp_columns(value), columns), registers};
}
