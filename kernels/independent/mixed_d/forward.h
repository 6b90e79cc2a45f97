/* FlashAttention-2 forward: a CTA has block_m queries of one head and walks the keys upwards; K and V come in by
 * cp.async into num_stages buffers each, num_stages - 1 tiles ahead, with one barrier a tile. */
#pragma once

#include "online_softmax.h"
#include "reference_attention.h"

namespace mixed_d {

template <class T>
struct ForwardArguments {
  const T *q, *k, *v;
  T *o;
  float *lse;
  independent::Strides q_strides, kv_strides;
  int heads, group, seqlen_q, seqlen_kv;
  bool causal, head_first;
  float scale;
};

template <class T, int HeadDim, int BlockM, int BlockN, int Warps, int Stages>
struct ForwardTile {
  typedef T Number;
  static constexpr int head_dim = HeadDim, block_m = BlockM, block_n = BlockN, warps = Warps, stages = Stages;
  static constexpr int threads = Warps * 32, rows_of_warp = BlockM / Warps, blocks_m = rows_of_warp / 16;
  static constexpr int row_bytes = HeadDim * 2, q_bytes = BlockM * row_bytes, kv_bytes = BlockN * row_bytes;
  static constexpr int shared_bytes = q_bytes + 2 * Stages * kv_bytes;
  static constexpr bool q_in_registers = blocks_m * HeadDim / 4 <= 32;
  static_assert(BlockM % (16 * Warps) == 0 && BlockN % 16 == 0 && HeadDim % 64 == 0 && Stages >= 2, "tile");
};

/* Scores of keys after the row's last one become minus infinity. `last`: of row 0 of the block, relative to the tile's
 * first key. */
template <int ScoreTiles>
__device__ inline void mask_scores(float (&s)[ScoreTiles][4], int last, int lane) {
#pragma unroll
  for (int i = 0; i < ScoreTiles; i++)
#pragma unroll
    for (int e = 0; e < 4; e++)
      if (i * 8 + (lane & 3) * 2 + (e & 1) > last + (lane >> 2) + (e >> 1) * 8) s[i][e] = -INFINITY;
}

/* Grid: m_first (tiles, heads * batch); head_first (heads * batch, tiles). Causal: the longest tiles first. */
template <class Tile>
__global__ void __launch_bounds__(Tile::threads) forward(const ForwardArguments<typename Tile::Number> a) {
  typedef typename Tile::Number T;
  constexpr int head_dim = Tile::head_dim, block_m = Tile::block_m, block_n = Tile::block_n, stages = Tile::stages;
  constexpr int blocks_m = Tile::blocks_m, row_bytes = Tile::row_bytes, score_tiles = block_n / 8;
  constexpr int steps_d = head_dim / 16, output_tiles = head_dim / 8;
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int tile = a.head_first ? blockIdx.y : blockIdx.x, plane = a.head_first ? blockIdx.x : blockIdx.y;
  if (a.causal) tile = a.seqlen_q / block_m - 1 - tile;
  int head = plane % a.heads, sequence = plane / a.heads;
  int first_row = tile * block_m, diagonal = a.seqlen_kv - a.seqlen_q;
  int keys = a.causal ? min(a.seqlen_kv, first_row + block_m + diagonal) : a.seqlen_kv;
  int tiles = keys > 0 ? (keys + block_n - 1) / block_n : 0;

  int64_t q_offset = sequence * a.q_strides.batch + head * a.q_strides.head + first_row * a.q_strides.row;
  int64_t kv_offset = sequence * a.kv_strides.batch + head / a.group * a.kv_strides.head;
  const T *k = a.k + kv_offset, *v = a.v + kv_offset;
  uint32_t q_tile = shared_address(), k_tiles = q_tile + Tile::q_bytes, v_tiles = k_tiles + stages * Tile::kv_bytes;

  auto fetch = [&](int j, int stage) {
    if (j < tiles) {
      int64_t offset = (int64_t)j * block_n * a.kv_strides.row;
      copy_rows<block_n, head_dim, Tile::threads>(k_tiles + stage * Tile::kv_bytes, k + offset, a.kv_strides.row,
                                                  threadIdx.x);
      copy_rows<block_n, head_dim, Tile::threads>(v_tiles + stage * Tile::kv_bytes, v + offset, a.kv_strides.row,
                                                  threadIdx.x);
    }
    commit_copies();
  };
  copy_rows<block_m, head_dim, Tile::threads>(q_tile, a.q + q_offset, a.q_strides.row, threadIdx.x);
  commit_copies();
#pragma unroll
  for (int j = 0; j < stages - 1; j++) fetch(j, j);

  wait_copies<stages - 1>();
  __syncthreads();
  int warp_row = warp * Tile::rows_of_warp;
  uint32_t q_lane = q_tile + warp_row * row_bytes + lane_offset_a<head_dim>(lane);
  uint32_t q[Tile::q_in_registers ? steps_d : 1][blocks_m][4];
  if constexpr (Tile::q_in_registers) {
#pragma unroll
    for (int d = 0; d < steps_d; d++)
#pragma unroll
      for (int i = 0; i < blocks_m; i++) load_matrices(q[d][i], step_along_row(q_lane, d) + i * 16 * row_bytes);
  }

  RowState state[blocks_m];
  float o[blocks_m][output_tiles][4] = {};
  float scale_log2 = a.scale * log2_of_e;
  uint32_t k_lane = k_tiles + lane_offset_b<head_dim>(lane), v_lane = v_tiles + lane_offset_a<head_dim>(lane);
  int stage = 0, stage_to_fill = stages - 1;
  for (int j = 0; j < tiles; j++) {
    wait_copies<stages - 2>();
    __syncthreads();
    fetch(j + stages - 1, stage_to_fill);
    stage_to_fill = next_stage<stages>(stage_to_fill);

    float s[blocks_m][score_tiles][4] = {};
    uint32_t k_stage = k_lane + stage * Tile::kv_bytes, v_stage = v_lane + stage * Tile::kv_bytes;
    stage = next_stage<stages>(stage);
#pragma unroll
    for (int d = 0; d < steps_d; d++) {
      constexpr bool kept = Tile::q_in_registers;
      if constexpr (!kept) {
#pragma unroll
        for (int i = 0; i < blocks_m; i++) load_matrices(q[0][i], step_along_row(q_lane, d) + i * 16 * row_bytes);
      }
#pragma unroll
      for (int n = 0; n < block_n / 16; n++) {
        uint32_t b[4];
        load_matrices(b, step_along_row(k_stage, d) + n * 16 * row_bytes);
#pragma unroll
        for (int i = 0; i < blocks_m; i++) {
          multiply<T>(s[i][2 * n], q[kept ? d : 0][i], b[0], b[1]);
          multiply<T>(s[i][2 * n + 1], q[kept ? d : 0][i], b[2], b[3]);
        }
      }
    }

    int last = first_row + warp_row + diagonal - j * block_n; /* key of the warp's first row */
    bool masked = a.causal && last < block_n - 1;
#pragma unroll
    for (int i = 0; i < blocks_m; i++) {
      if (masked) mask_scores(s[i], last + i * 16, lane);
      take_scores(state[i], s[i], o[i], scale_log2);
    }

#pragma unroll
    for (int n = 0; n < block_n / 16; n++) {
      uint32_t p[blocks_m][4];
#pragma unroll
      for (int i = 0; i < blocks_m; i++) pack_probabilities<T>(p[i], s[i], n);
#pragma unroll
      for (int d = 0; d < steps_d; d++) {
        uint32_t b[4];
        load_transposed(b, step_along_row(v_stage, d) + n * 16 * row_bytes);
#pragma unroll
        for (int i = 0; i < blocks_m; i++) {
          multiply<T>(o[i][2 * d], p[i], b[0], b[1]);
          multiply<T>(o[i][2 * d + 1], p[i], b[2], b[3]);
        }
      }
    }
  }

  /* O leaves through the rows of Q that no other warp reads. */
  __syncwarp();
  float *lse = a.lse + (int64_t)plane * a.seqlen_q + first_row + warp_row;
#pragma unroll
  for (int i = 0; i < blocks_m; i++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float sum = quad_sum(state[i].sum[h]), inverse = sum > 0 ? 1 / sum : 0.f;
      int row = i * 16 + h * 8 + (lane >> 2);
      if ((lane & 3) == 0) lse[row] = sum > 0 ? state[i].top[h] * a.scale + logf(sum) : -INFINITY;
#pragma unroll
      for (int t = 0; t < output_tiles; t++)
        *(uint32_t *)(shared_memory + swizzled<head_dim>(warp_row + row, t) + (lane & 3) * 4) =
            pack<T>(o[i][t][2 * h] * inverse, o[i][t][2 * h + 1] * inverse);
    }
  __syncwarp();
  constexpr int chunks = head_dim / 8;
#pragma unroll
  for (int i = 0; i < Tile::rows_of_warp * chunks / 32; i++) {
    int row = warp_row + (i * 32 + lane) / chunks, chunk = lane % chunks;
    *(uint4 *)(a.o + q_offset + row * a.q_strides.row + chunk * 8) =
        *(const uint4 *)(shared_memory + swizzled<head_dim>(row, chunk));
  }
}

}  // namespace mixed_d
