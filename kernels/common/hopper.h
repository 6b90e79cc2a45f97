/* sm_90a building blocks: wgmma descriptors and fences, mbarriers, TMA (tiled and linear), register reallocation. */
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "wgmma_ops.h"

namespace hopper {

__device__ __forceinline__ uint32_t smem(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

/* Shared-memory matrix descriptor with 128-byte swizzle; the tile must start at a multiple of 1024 bytes (the first of
 * its rows may be advanced inside the 128-byte span). K-major: stride = 1024 (8 rows of 128 bytes), leading unused.
 * MN-major: stride = 1024 between groups of 8 k, leading = bytes between columns of 64 elements. */
__device__ __forceinline__ uint64_t descriptor(uint32_t address, uint32_t leading_bytes, uint32_t stride_bytes) {
  uint64_t d = (address & 0x3FFFF) >> 4;
  d |= (uint64_t)(leading_bytes >> 4) << 16;
  d |= (uint64_t)(stride_bytes >> 4) << 32;
  d |= (uint64_t)1 << 62;
  return d;
}

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int pending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}
template <int count>
__device__ __forceinline__ void keep(float (&d)[count]) {
#pragma unroll
  for (int i = 0; i < count; i++) asm volatile("" : "+f"(d[i])::"memory");
}

__device__ __forceinline__ void proxy_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ __forceinline__ void mbarrier_init(uint32_t bar, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(bar), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void mbarrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void mbarrier_expect(uint32_t bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
__device__ __forceinline__ void mbarrier_arrive(uint32_t bar) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(bar) : "memory");
}
__device__ __forceinline__ void mbarrier_wait(uint32_t bar, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n@!p bra again;\n}" ::"r"(bar),
      "r"(parity)
      : "memory");
}

/* Tests again and again: try_wait may sleep past the end. */
__device__ __forceinline__ void mbarrier_poll(uint32_t bar, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred p;\nagain:\nmbarrier.test_wait.parity.shared.b64 p, [%0], %1;\n@!p bra again;\n}" ::"r"(bar),
      "r"(parity)
      : "memory");
}

__device__ __forceinline__ void bulk_load(uint32_t to, const void *from, uint32_t bytes, uint32_t bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(bar)
               : "memory");
}
__device__ __forceinline__ void tensor_load_3d(uint32_t to, const CUtensorMap *map, int x, int y, int z, uint32_t bar) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::
          "r"(to),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(bar)
      : "memory");
}

__device__ __forceinline__ void tensor_store_3d(const CUtensorMap *map, int x, int y, int z, uint32_t from) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(map), "r"(x),
               "r"(y), "r"(z), "r"(from)
               : "memory");
}
__device__ __forceinline__ void tensor_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/* Until all but `pending` groups of the thread's stores have read shared memory. */
template <int pending>
__device__ __forceinline__ void tensor_store_wait() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}

template <int registers>
__device__ __forceinline__ void registers_grow() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
__device__ __forceinline__ void registers_shrink() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}

template <int id, int threads>
__device__ __forceinline__ void named_sync() {
  asm volatile("bar.sync %0, %1;" ::"n"(id), "n"(threads) : "memory");
}
__device__ __forceinline__ void named_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void named_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/* A map of [outer][rows][columns] halves whose box is 64 columns (128 bytes) or 32, swizzled over its width, by
 * box_rows rows. Rows past the end read as zero. */
inline CUtensorMap tensor_map(const void *base, uint64_t columns, uint64_t rows, uint64_t outer, uint32_t box_rows,
                              uint32_t box_columns = 64,
                              CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_NONE) {
  typedef CUresult (*Encode)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                             const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
                             CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
  static Encode encode = nullptr;
  if (!encode) {
    void *entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found) !=
            cudaSuccess ||
        !entry) {
      fprintf(stderr, "cuTensorMapEncodeTiled: not in this driver\n");
      exit(1);
    }
    encode = (Encode)entry;
  }
  CUtensorMap map;
  cuuint64_t sizes[3] = {columns, rows, outer};
  cuuint64_t strides[2] = {columns * 2, columns * rows * 2};
  cuuint32_t box[3] = {box_columns, box_rows, 1}, steps[3] = {1, 1, 1};
  CUresult status =
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3, (void *)base, sizes, strides, box, steps,
             CU_TENSOR_MAP_INTERLEAVE_NONE, box_columns == 64 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
             promotion, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) {
    fprintf(stderr, "cuTensorMapEncodeTiled: error %d (columns %llu, rows %llu, outer %llu, box rows %u)\n",
            (int)status, (unsigned long long)columns, (unsigned long long)rows, (unsigned long long)outer, box_rows);
    exit(1);
  }
  return map;
}

}  // namespace hopper
