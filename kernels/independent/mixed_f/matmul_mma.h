/* C = A B with mma.sync: tiles of A and B in a ring of STAGES buffers that cp.async fills STAGES - 1 steps ahead.
 * WM x WN warps. */
#pragma once

#include "ptx.h"

namespace mixed_f {

struct Raster {
  int tiles_m, tiles_n;
  bool n_first;
  int strip; /* 0: all */
};

DEVICE void tile_of(const Raster &raster, int id, int &tile_m, int &tile_n) {
  int fast = raster.n_first ? raster.tiles_n : raster.tiles_m, slow = raster.n_first ? raster.tiles_m : raster.tiles_n;
  int strip = raster.strip ? raster.strip : fast;
  int first = id / (strip * slow) * strip, rest = id % (strip * slow), width = min(strip, fast - first);
  int f = first + rest % width, s = rest / width;
  tile_m = raster.n_first ? s : f;
  tile_n = raster.n_first ? f : s;
}

template <int BM, int BN, int BK, int STAGES>
constexpr int matmul_shared = STAGES *(BM + BN) * BK * 2;

template <class T, int BM, int BN, int BK, int WM, int WN, int STAGES, bool TRANSPOSE_B, bool C_THROUGH_SHARED,
          int MIN_CTAS>
__global__ void __launch_bounds__(WM *WN * 32, MIN_CTAS)
    matmul(const T *__restrict__ a, const T *__restrict__ b, T *__restrict__ c, int m, int n, int k, Raster raster) {
  constexpr int threads = WM * WN * 32, TM = BM / WM, TN = BN / WN, a_bytes = BM * BK * 2, b_bytes = BN * BK * 2;
  static_assert(TM % 16 == 0 && TN % 16 == 0 && STAGES >= 2, "tile and warps");
  static_assert(!C_THROUGH_SHARED || BM * BN * 2 <= STAGES * (a_bytes + b_bytes), "C does not fit the ring");
  extern __shared__ __align__(1024) unsigned char shared[];

  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const int warp_row = warp / WN * TM, warp_column = warp % WN * TN;
  int tile_m, tile_n;
  tile_of(raster, blockIdx.x, tile_m, tile_n);
  const int first_row = tile_m * BM, first_column = tile_n * BN;
  const uint32_t ring = shared_address(shared);
  const int steps = (k + BK - 1) / BK;

  const T *a_from = a + (int64_t)first_row * k;
  const T *b_from = b + (TRANSPOSE_B ? (int64_t)first_column * k : (int64_t)first_column);
  auto fetch = [&](int step) {
    uint32_t to = ring + step % STAGES * (a_bytes + b_bytes);
    int depth = step * BK;
    fetch_tile<BM, BK, threads>(to, a_from + depth, k, m - first_row, k - depth, thread);
    if constexpr (TRANSPOSE_B)
      fetch_tile<BN, BK, threads>(to + a_bytes, b_from + depth, k, n - first_column, k - depth, thread);
    else
      fetch_tile<BK, BN, threads>(to + a_bytes, b_from + (int64_t)depth * n, n, k - depth, n - first_column, thread);
  };
#pragma unroll
  for (int s = 0; s < STAGES - 1; s++) {
    if (s < steps) fetch(s);
    copies_commit();
  }

  const LanePlace wide = across(lane), tall = along(lane);
  float sum[TM / 16][TN / 2];
#pragma unroll
  for (int i = 0; i < TM / 16; i++)
#pragma unroll
    for (int j = 0; j < TN / 2; j++) sum[i][j] = 0;

  for (int step = 0; step < steps; step++) {
    copies_wait<STAGES - 2>();
    __syncthreads();
    if (step + STAGES - 1 < steps) fetch(step + STAGES - 1);
    copies_commit();
    const uint32_t a_tile = ring + step % STAGES * (a_bytes + b_bytes), b_tile = a_tile + a_bytes;
#pragma unroll
    for (int d = 0; d < BK / 16; d++) {
      uint32_t x[TM / 16][4], y[TN / 16][4];
#pragma unroll
      for (int i = 0; i < TM / 16; i++)
        load_matrices(x[i], a_tile + chunk_at<BK / 8>(warp_row + i * 16 + wide.row, d * 2 + wide.chunk));
#pragma unroll
      for (int j = 0; j < TN / 16; j++) {
        if constexpr (TRANSPOSE_B)
          load_matrices(y[j], b_tile + chunk_at<BK / 8>(warp_column + j * 16 + tall.row, d * 2 + tall.chunk));
        else
          load_matrices_transposed(y[j],
                                   b_tile + chunk_at<BN / 8>(d * 16 + wide.row, warp_column / 8 + j * 2 + wide.chunk));
      }
#pragma unroll
      for (int i = 0; i < TM / 16; i++)
#pragma unroll
        for (int j = 0; j < TN / 16; j++) {
          mma<T>(&sum[i][j * 8], x[i], y[j][0], y[j][1]);
          mma<T>(&sum[i][j * 8 + 4], x[i], y[j][2], y[j][3]);
        }
    }
  }

  if constexpr (C_THROUGH_SHARED) {
    copies_wait<0>();
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TM / 16; i++)
#pragma unroll
      for (int h = 0; h < 2; h++)
#pragma unroll
        for (int t = 0; t < TN / 8; t++)
          store_word(ring + chunk_at<BN / 8>(warp_row + i * 16 + lane / 4 + 8 * h, warp_column / 8 + t) + lane % 4 * 4,
                     pack<T>(sum[i][t * 4 + 2 * h], sum[i][t * 4 + 2 * h + 1]));
    __syncthreads();
#pragma unroll 4
    for (int index = thread; index < BM * BN / 8; index += threads) {
      int row = index / (BN / 8), chunk = index % (BN / 8);
      if (first_row + row < m && first_column + chunk * 8 < n)
        *reinterpret_cast<uint4 *>(c + (int64_t)(first_row + row) * n + first_column + chunk * 8) =
            load_chunk(ring + chunk_at<BN / 8>(row, chunk));
    }
  } else {
#pragma unroll
    for (int i = 0; i < TM / 16; i++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        int row = first_row + warp_row + i * 16 + lane / 4 + 8 * h;
#pragma unroll
        for (int t = 0; t < TN / 8; t++) {
          int column = first_column + warp_column + t * 8 + lane % 4 * 2;
          if (row < m && column < n)
            *reinterpret_cast<uint32_t *>(c + (int64_t)row * n + column) =
                pack<T>(sum[i][t * 4 + 2 * h], sum[i][t * 4 + 2 * h + 1]);
        }
      }
  }
}

}  // namespace mixed_f
