/* C = alpha A B of a batch, mma.sync, cp.async in STAGES buffers; A [m][k], B [n][k] (TRANSPOSE_B) or [k][n], C [m][n], all
 * contiguous; m, n and k are multiples of the tile. C goes through shared memory to 16-byte stores. */
#pragma once

#include "ptx.h"

namespace decode_a {

template <int BM, int BN, int BK, int WM, int WN, int STAGES>
struct MatmulShape {
  static constexpr int warps_n = BN / WN, warps = (BM / WM) * warps_n, threads = warps * 32;
  static constexpr int a_bytes = BM * BK * 2, b_bytes = BN * BK * 2, c_stride = BN + 8;
  static constexpr int buffers = STAGES * (a_bytes + b_bytes), c_bytes = BM * c_stride * 2;
  static constexpr int bytes = buffers > c_bytes ? buffers : c_bytes;
};

/* Byte offset of a 16-byte chunk of a row of COLUMNS numbers, so that eight rows' chunks lie in different banks. */
template <int COLUMNS>
__device__ __forceinline__ int swizzled(int row, int chunk) {
  static_assert(COLUMNS >= 32, "");
  if constexpr (COLUMNS == 32)
    return (row * 4 + (chunk ^ ((row >> 1) & 3))) * 16;
  else
    return (row * (COLUMNS / 8) + (chunk ^ (row & 7))) * 16;
}

template <int ROWS, int COLUMNS, int THREADS, class T>
__device__ __forceinline__ void copy_tile(uint32_t to, const T *from, int64_t row_stride) {
  constexpr int chunks = COLUMNS / 8, each = ROWS * chunks / THREADS;
  static_assert(ROWS * chunks % THREADS == 0, "");
#pragma unroll
  for (int i = 0; i < each; i++) {
    const int at = threadIdx.x + i * THREADS, row = at / chunks, chunk = at % chunks;
    cp_async16(to + swizzled<COLUMNS>(row, chunk), from + row * row_stride + chunk * 8);
  }
}

template <class T, int BM, int BN, int BK, int WM, int WN, int STAGES, bool TRANSPOSE_B>
__global__ void __launch_bounds__((BM / WM) * (BN / WN) * 32)
    matmul_mma(const T *a, const T *b, T *c, int m, int n, int k, float alpha) {
  using Shape = MatmulShape<BM, BN, BK, WM, WN, STAGES>;
  extern __shared__ __align__(128) unsigned char shared[];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const int warp_m = warp / Shape::warps_n * WM, warp_n = warp % Shape::warps_n * WN;
  const int first_m = blockIdx.y * BM, first_n = blockIdx.x * BN;
  a += (size_t)blockIdx.z * m * k + (size_t)first_m * k;
  b += (size_t)blockIdx.z * n * k + (TRANSPOSE_B ? (size_t)first_n * k : (size_t)first_n);
  c += (size_t)blockIdx.z * m * n + (size_t)first_m * n + first_n;
  const uint32_t buffers = shared_address(shared);

  auto copy = [&](int step, int stage) {
    const uint32_t a_to = buffers + stage * (Shape::a_bytes + Shape::b_bytes), b_to = a_to + Shape::a_bytes;
    copy_tile<BM, BK, Shape::threads>(a_to, a + step * BK, k);
    if constexpr (TRANSPOSE_B)
      copy_tile<BN, BK, Shape::threads>(b_to, b + step * BK, k);
    else
      copy_tile<BK, BN, Shape::threads>(b_to, b + (size_t)step * BK * n, n);
  };

  float sums[WM / 16][WN / 8][4];
#pragma unroll
  for (int i = 0; i < WM / 16; i++)
#pragma unroll
    for (int j = 0; j < WN / 8; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) sums[i][j][e] = 0.f;

  const int steps = k / BK;
#pragma unroll
  for (int s = 0; s < STAGES - 1; s++) {
    if (s < steps) copy(s, s);
    cp_commit();
  }
  int stage = 0, stage_to_fill = STAGES - 1;
  for (int step = 0; step < steps; step++) {
    cp_wait<STAGES - 2>();
    __syncthreads();
    if (step + STAGES - 1 < steps) copy(step + STAGES - 1, stage_to_fill);
    cp_commit();
    const uint32_t a_at = buffers + stage * (Shape::a_bytes + Shape::b_bytes), b_at = a_at + Shape::a_bytes;
#pragma unroll
    for (int kk = 0; kk < BK / 16; kk++) {
      uint32_t af[WM / 16][4], bf[WN / 16][4];
#pragma unroll
      for (int i = 0; i < WM / 16; i++)
        ldmatrix_x4(af[i], a_at + swizzled<BK>(warp_m + i * 16 + (lane & 15), kk * 2 + (lane >> 4)));
#pragma unroll
      for (int j = 0; j < WN / 16; j++) {
        if constexpr (TRANSPOSE_B)
          ldmatrix_x4(bf[j], b_at + swizzled<BK>(warp_n + j * 16 + (lane & 7) + ((lane >> 4) << 3),
                                                 kk * 2 + ((lane >> 3) & 1)));
        else
          ldmatrix_x4_trans(bf[j],
                            b_at + swizzled<BN>(kk * 16 + (lane & 15), (warp_n + j * 16) / 8 + (lane >> 4)));
      }
#pragma unroll
      for (int i = 0; i < WM / 16; i++)
#pragma unroll
        for (int j = 0; j < WN / 16; j++) {
          mma_16x8x16<T>(sums[i][2 * j], af[i], bf[j][0], bf[j][1]);
          mma_16x8x16<T>(sums[i][2 * j + 1], af[i], bf[j][2], bf[j][3]);
        }
    }
    stage = stage + 1 == STAGES ? 0 : stage + 1;
    stage_to_fill = stage_to_fill + 1 == STAGES ? 0 : stage_to_fill + 1;
  }

  cp_wait<0>();
  __syncthreads();
  T *tile = (T *)shared;
#pragma unroll
  for (int i = 0; i < WM / 16; i++)
#pragma unroll
    for (int j = 0; j < WN / 8; j++)
#pragma unroll
      for (int r = 0; r < 2; r++) {
        const int row = warp_m + i * 16 + (lane >> 2) + 8 * r, column = warp_n + j * 8 + 2 * (lane & 3);
        *(uint32_t *)(tile + row * Shape::c_stride + column) =
            pack2<T>(sums[i][j][2 * r] * alpha, sums[i][j][2 * r + 1] * alpha);
      }
  __syncthreads();
#pragma unroll 4
  for (int i = threadIdx.x; i < BM * (BN / 8); i += Shape::threads) {
    const int row = i / (BN / 8), chunk = i % (BN / 8);
    *(uint4 *)(c + (size_t)row * n + chunk * 8) = *(const uint4 *)(tile + row * Shape::c_stride + chunk * 8);
  }
}

}  // namespace decode_a
