/* FlashAttention-2 forward with mma.sync. K and V each have STAGES buffers in a ring that cp.async fills STAGES - 1
 * tiles ahead; one barrier a key tile. A warp has 16 R rows of the tile. */
#pragma once

#include "softmax.h"

namespace mixed_f {

template <class T, int D, int BM, int BN, int W, int STAGES>
constexpr int forward_mma_shared = (BM + 2 * STAGES * BN) * D * 2;

template <class T, int D, int BM, int BN, int W, int STAGES, bool CAUSAL, int MIN_CTAS>
__global__ void __launch_bounds__(W * 32, MIN_CTAS)
    forward_mma(const Attention a, const T *__restrict__ q, const T *__restrict__ k, const T *__restrict__ v,
                T *__restrict__ o, float *__restrict__ lse, TileOrder order) {
  constexpr int threads = W * 32, R = BM / (16 * W), chunks = D / 8, tile_bytes = BN * D * 2;
  constexpr bool q_in_registers = D == 64;
  static_assert(R >= 1 && BM == R * 16 * W && STAGES >= 2, "tile and warps");
  extern __shared__ __align__(1024) unsigned char shared[];

  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const Place place = place_of(order);
  const int first_row = place.tile * BM, kv_head = place.head / (a.heads / a.kv_heads);
  const int tiles = key_tiles<BM, BN, CAUSAL>(a, first_row);
  const float scale = rsqrtf((float)D), scale_log2 = scale * log2_e;

  const int64_t q_first = place.sequence * a.q.batch + place.head * a.q.head + first_row * a.q.row;
  const int64_t kv_first = place.sequence * a.kv.batch + kv_head * a.kv.head;
  const uint32_t q_tile = shared_address(shared), ring = q_tile + BM * D * 2;

  auto fetch = [&](int tile) {
    uint32_t to = ring + tile % STAGES * (2 * tile_bytes);
    int64_t from = kv_first + (int64_t)tile * BN * a.kv.row;
    fetch_tile<BN, D, threads>(to, k + from, a.kv.row, a.seqlen_kv - tile * BN, D, thread);
    fetch_tile<BN, D, threads>(to + tile_bytes, v + from, a.kv.row, a.seqlen_kv - tile * BN, D, thread);
  };

  fetch_tile<BM, D, threads>(q_tile, q + q_first, a.q.row, a.seqlen_q - first_row, D, thread);
#pragma unroll
  for (int s = 0; s < STAGES - 1; s++) {
    if (s < tiles) fetch(s);
    copies_commit();
  }
  copies_wait<STAGES - 2>();
  __syncthreads(); /* Q is there, whatever the number of key tiles */

  const LanePlace wide = across(lane), tall = along(lane);
  const uint32_t q_warp = q_tile + warp * (16 * R * D * 2);
  uint32_t q_kept[q_in_registers ? R : 1][q_in_registers ? D / 16 : 1][4];
  if constexpr (q_in_registers) {
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
      for (int d = 0; d < D / 16; d++)
        load_matrices(q_kept[r][d], q_warp + chunk_at<chunks>(r * 16 + wide.row, d * 2 + wide.chunk));
  }

  float out[R][D / 2];
  RowState state[R];
#pragma unroll
  for (int r = 0; r < R; r++)
#pragma unroll
    for (int i = 0; i < D / 2; i++) out[r][i] = 0;

  for (int tile = 0; tile < tiles; tile++) {
    copies_wait<STAGES - 2>();
    __syncthreads(); /* this tile is there, and nobody reads the one before it any more */
    if (tile + STAGES - 1 < tiles) fetch(tile + STAGES - 1);
    copies_commit();

    const uint32_t k_tile = ring + tile % STAGES * (2 * tile_bytes), v_tile = k_tile + tile_bytes;
    float s[R][BN / 2];
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
      for (int i = 0; i < BN / 2; i++) s[r][i] = 0;
#pragma unroll
    for (int d = 0; d < D / 16; d++) {
      uint32_t q_now[R][4];
#pragma unroll
      for (int r = 0; r < R; r++) {
        if constexpr (q_in_registers) {
#pragma unroll
          for (int i = 0; i < 4; i++) q_now[r][i] = q_kept[r][d][i];
        } else {
          load_matrices(q_now[r], q_warp + chunk_at<chunks>(r * 16 + wide.row, d * 2 + wide.chunk));
        }
      }
#pragma unroll
      for (int n = 0; n < BN / 16; n++) {
        uint32_t b[4];
        load_matrices(b, k_tile + chunk_at<chunks>(n * 16 + tall.row, d * 2 + tall.chunk));
#pragma unroll
        for (int r = 0; r < R; r++) {
          mma<T>(&s[r][n * 8], q_now[r], b[0], b[1]);
          mma<T>(&s[r][n * 8 + 4], q_now[r], b[2], b[3]);
        }
      }
    }
#pragma unroll
    for (int r = 0; r < R; r++) {
      mask_scores<BN, CAUSAL>(s[r], a, first_row + (warp * R + r) * 16, tile * BN, lane);
      softmax_step(s[r], out[r], state[r], scale_log2);
    }
#pragma unroll
    for (int n = 0; n < BN / 16; n++) {
      uint32_t p[R][4];
#pragma unroll
      for (int r = 0; r < R; r++) as_operand<T>(p[r], &s[r][n * 8]);
#pragma unroll
      for (int d = 0; d < D / 16; d++) {
        uint32_t b[4];
        load_matrices_transposed(b, v_tile + chunk_at<chunks>(n * 16 + wide.row, d * 2 + wide.chunk));
#pragma unroll
        for (int r = 0; r < R; r++) {
          mma<T>(&out[r][d * 8], p[r], b[0], b[1]);
          mma<T>(&out[r][d * 8 + 4], p[r], b[2], b[3]);
        }
      }
    }
  }

  /* Out through the warp's own rows of Q. */
  const size_t lse_first = ((size_t)place.sequence * a.heads + place.head) * a.seqlen_q;
  __syncwarp();
#pragma unroll
  for (int r = 0; r < R; r++) {
    float row_lse[2];
    finish(out[r], state[r], scale, row_lse);
#pragma unroll
    for (int h = 0; h < 2; h++) {
      int local = r * 16 + lane / 4 + 8 * h, row = first_row + warp * 16 * R + local;
      if (lane % 4 == 0 && row < a.seqlen_q) lse[lse_first + row] = row_lse[h];
#pragma unroll
      for (int t = 0; t < D / 8; t++)
        store_word(q_warp + chunk_at<chunks>(local, t) + lane % 4 * 4,
                   pack<T>(out[r][t * 4 + 2 * h], out[r][t * 4 + 2 * h + 1]));
    }
  }
  __syncwarp();
  T *to = o + q_first + (int64_t)warp * 16 * R * a.q.row;
#pragma unroll
  for (int i = 0; i < 16 * R * chunks / 32; i++) {
    int index = i * 32 + lane, local = index / chunks, chunk = index % chunks;
    if (first_row + warp * 16 * R + local < a.seqlen_q)
      *reinterpret_cast<uint4 *>(to + local * a.q.row + chunk * 8) =
          load_chunk(q_warp + chunk_at<chunks>(local, chunk));
  }
}

}  // namespace mixed_f
