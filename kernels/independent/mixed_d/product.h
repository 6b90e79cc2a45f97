/* C[m][n] = A[m][k] B[n][k]^T, fp16 with fp32 sums: slices of block_k come in by cp.async, num_stages - 1 ahead. */
#pragma once

#include "warp.h"

namespace mixed_d {

struct ProductArguments {
  const __half *a, *b;
  __half *c;
  int m, n, k;
  bool n_first;
};

template <int BlockM, int BlockN, int BlockK, int WarpsM, int WarpsN, int Stages>
struct ProductTile {
  static constexpr int block_m = BlockM, block_n = BlockN, block_k = BlockK, stages = Stages;
  static constexpr int warps_m = WarpsM, warps_n = WarpsN, warps = WarpsM * WarpsN, threads = warps * 32;
  static constexpr int warp_m = BlockM / WarpsM, warp_n = BlockN / WarpsN;
  static constexpr int row_bytes = BlockK * 2, a_bytes = BlockM * row_bytes, b_bytes = BlockN * row_bytes;
  static constexpr int shared_bytes = Stages * (a_bytes + b_bytes);
  static_assert(warp_m % 16 == 0 && warp_n % 16 == 0 && Stages >= 2, "tile");
  static_assert(shared_bytes >= BlockM * BlockN * 2, "C leaves through the buffers");
};

/* Grid: m_first (tiles of m, tiles of n, batch); n_first (tiles of n, tiles of m, batch). */
template <class Tile>
__global__ void __launch_bounds__(Tile::threads) multiply_tiled(const ProductArguments p) {
  constexpr int block_m = Tile::block_m, block_n = Tile::block_n, block_k = Tile::block_k, stages = Tile::stages;
  constexpr int row_bytes = Tile::row_bytes, blocks_m = Tile::warp_m / 16, blocks_n = Tile::warp_n / 16;
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int first_m = (p.n_first ? blockIdx.y : blockIdx.x) * block_m;
  int first_n = (p.n_first ? blockIdx.x : blockIdx.y) * block_n;
  int warp_m = warp % Tile::warps_m * Tile::warp_m, warp_n = warp / Tile::warps_m * Tile::warp_n;
  const __half *a = p.a + ((int64_t)blockIdx.z * p.m + first_m) * p.k;
  const __half *b = p.b + ((int64_t)blockIdx.z * p.n + first_n) * p.k;
  uint32_t a_tiles = shared_address(), b_tiles = a_tiles + stages * Tile::a_bytes;
  int slices = p.k / block_k;

  auto fetch = [&](int j, int stage) {
    if (j < slices) {
      copy_rows<block_m, block_k, Tile::threads>(a_tiles + stage * Tile::a_bytes, a + j * block_k, p.k, threadIdx.x);
      copy_rows<block_n, block_k, Tile::threads>(b_tiles + stage * Tile::b_bytes, b + j * block_k, p.k, threadIdx.x);
    }
    commit_copies();
  };
#pragma unroll
  for (int j = 0; j < stages - 1; j++) fetch(j, j);

  float c[blocks_m][2 * blocks_n][4] = {};
  uint32_t a_lane = a_tiles + warp_m * row_bytes + lane_offset_a<block_k>(lane);
  uint32_t b_lane = b_tiles + warp_n * row_bytes + lane_offset_b<block_k>(lane);
  int stage = 0, stage_to_fill = stages - 1;
  for (int j = 0; j < slices; j++) {
    wait_copies<stages - 2>();
    __syncthreads();
    fetch(j + stages - 1, stage_to_fill);
    stage_to_fill = next_stage<stages>(stage_to_fill);
    uint32_t a_stage = a_lane + stage * Tile::a_bytes, b_stage = b_lane + stage * Tile::b_bytes;
    stage = next_stage<stages>(stage);
#pragma unroll
    for (int s = 0; s < block_k / 16; s++) {
      uint32_t a_block[blocks_m][4], b_block[blocks_n][4];
#pragma unroll
      for (int i = 0; i < blocks_m; i++) load_matrices(a_block[i], step_along_row(a_stage, s) + i * 16 * row_bytes);
#pragma unroll
      for (int n = 0; n < blocks_n; n++) load_matrices(b_block[n], step_along_row(b_stage, s) + n * 16 * row_bytes);
#pragma unroll
      for (int i = 0; i < blocks_m; i++)
#pragma unroll
        for (int n = 0; n < blocks_n; n++) {
          multiply<__half>(c[i][2 * n], a_block[i], b_block[n][0], b_block[n][1]);
          multiply<__half>(c[i][2 * n + 1], a_block[i], b_block[n][2], b_block[n][3]);
        }
    }
  }

  __syncthreads(); /* no copy is under way: those of the last slices were waited for */
#pragma unroll
  for (int i = 0; i < blocks_m; i++)
#pragma unroll
    for (int t = 0; t < 2 * blocks_n; t++)
#pragma unroll
      for (int h = 0; h < 2; h++)
        *(uint32_t *)(shared_memory + swizzled<block_n>(warp_m + i * 16 + h * 8 + (lane >> 2), warp_n / 8 + t) +
                      (lane & 3) * 4) = pack<__half>(c[i][t][2 * h], c[i][t][2 * h + 1]);
  __syncthreads();
  constexpr int chunks = block_n / 8, step = Tile::threads / chunks;
  static_assert(block_m % step == 0, "every thread stores as much as any other");
  int chunk = threadIdx.x % chunks;
  __half *out = p.c + ((int64_t)blockIdx.z * p.m + first_m) * p.n + first_n + chunk * 8;
#pragma unroll
  for (int i = 0; i < block_m / step; i++) {
    int row = i * step + threadIdx.x / chunks;
    *(uint4 *)(out + (int64_t)row * p.n) = *(const uint4 *)(shared_memory + swizzled<block_n>(row, chunk));
  }
}

}  // namespace mixed_d
