/* TMA maps of 16-bit tensors in boxes of 64 columns, 128-byte swizzle; elements past an end read as zero. The encoder
 * comes from the driver at run time. */
#pragma once

#include <string>

#include <cuda.h>

#include "error.h"

namespace independent {

typedef CUresult (*EncodeTiled)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                                const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
                                CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

inline EncodeTiled tensor_map_encoder() {
  static EncodeTiled encode = nullptr;
  if (!encode) {
    void *entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found));
    if (!entry || found != cudaDriverEntryPointSuccess) throw std::runtime_error("no cuTensorMapEncodeTiled");
    encode = (EncodeTiled)entry;
  }
  return encode;
}

/* Sizes and strides innermost first, in elements; strides[i] belongs to sizes[i + 1]. */
inline CUtensorMap tensor_map(void *base, bool bf16, int rank, const long long *sizes, const long long *strides,
                              int box_rows, CUtensorMapL2promotion promotion) {
  CUtensorMap map;
  cuuint64_t dims[4], bytes[3];
  cuuint32_t box[4] = {64, (cuuint32_t)box_rows, 1, 1}, steps[4] = {1, 1, 1, 1};
  for (int i = 0; i < rank; i++) dims[i] = (cuuint64_t)sizes[i];
  for (int i = 0; i + 1 < rank; i++) bytes[i] = (cuuint64_t)strides[i] * 2;
  CUresult status =
      tensor_map_encoder()(&map, bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
                           (cuuint32_t)rank, base, dims, bytes, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                           CU_TENSOR_MAP_SWIZZLE_128B, promotion, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) throw std::runtime_error("cuTensorMapEncodeTiled: " + std::to_string((int)status));
  return map;
}

}  // namespace independent
