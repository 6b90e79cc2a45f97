/* FlashAttention-2 backward with mma.sync, in three launches. A CTA of the second has a tile of keys and walks the
 * queries; it works on S transposed, so that P^T and dS^T leave the accumulators as operands of dV and dK, and only
 * dQ = dS K takes dS through shared memory. dQ is summed in fp32 by atomics into a buffer in the order of the
 * accumulators, [16 rows][8 columns][register][lane], where a warp's additions are contiguous. */
#pragma once

#include "softmax.h"

namespace mixed_f {

constexpr int delta_threads = 256;

/* delta = rowsum(dO O), and zeros for dQ's sums; D / 8 lanes a row, rows of a head padded to 16. */
template <class T, int D>
__global__ void __launch_bounds__(delta_threads)
    backward_delta(const Attention a, const T *__restrict__ o, const T *__restrict__ d_o, float *__restrict__ delta,
                   float *__restrict__ dq_sums) {
  constexpr int lanes = D / 8;
  const int padded = (a.seqlen_q + 15) / 16 * 16;
  const size_t index = (size_t)blockIdx.x * delta_threads + threadIdx.x, row = index / lanes;
  const bool in_buffer = row < (size_t)a.batch * a.heads * padded;
  const size_t head = row / padded;
  const int of_head = (int)(row % padded), lane = (int)(index % lanes);
  const bool valid = in_buffer && of_head < a.seqlen_q;
  float sum = 0;
  if (valid) {
    size_t at = (head * a.seqlen_q + of_head) * D + lane * 8;
    uint4 x = *reinterpret_cast<const uint4 *>(o + at), y = *reinterpret_cast<const uint4 *>(d_o + at);
    const T *xs = reinterpret_cast<const T *>(&x), *ys = reinterpret_cast<const T *>(&y);
#pragma unroll
    for (int i = 0; i < 8; i++) sum = fmaf(independent::as_float(xs[i]), independent::as_float(ys[i]), sum);
  }
#pragma unroll
  for (int step = lanes / 2; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (valid && lane == 0) delta[head * a.seqlen_q + of_head] = sum;
  if (in_buffer) {
    float4 *zeros = reinterpret_cast<float4 *>(dq_sums + index * 8);
    zeros[0] = zeros[1] = make_float4(0, 0, 0, 0);
  }
}

/* dQ from its sums; a thread has eight columns of a row. */
template <class T, int D>
__global__ void __launch_bounds__(delta_threads)
    backward_convert(const Attention a, const float *__restrict__ dq_sums, T *__restrict__ dq, float scale) {
  constexpr int chunks = D / 8;
  const size_t index = (size_t)blockIdx.x * delta_threads + threadIdx.x, row = index / chunks;
  if (row >= (size_t)a.batch * a.heads * a.seqlen_q) return;
  const size_t head = row / a.seqlen_q;
  const int of_head = (int)(row % a.seqlen_q), chunk = (int)(index % chunks), blocks = (a.seqlen_q + 15) / 16;
  const float *fragment = dq_sums + ((head * blocks + of_head / 16) * chunks + chunk) * 128;
  const float *half = fragment + of_head / 8 % 2 * 64 + of_head % 8 * 4;
  float4 even = *reinterpret_cast<const float4 *>(half), odd = *reinterpret_cast<const float4 *>(half + 32);
  uint4 packed = make_uint4(pack<T>(even.x * scale, odd.x * scale), pack<T>(even.y * scale, odd.y * scale),
                            pack<T>(even.z * scale, odd.z * scale), pack<T>(even.w * scale, odd.w * scale));
  *reinterpret_cast<uint4 *>(dq + row * D + chunk * 8) = packed;
}

template <class T, int D, int BM, int BN, int W, int STAGES>
constexpr int backward_mma_shared = (2 * BN + 2 * STAGES * BM) * D * 2 + BN *BM * 2 + STAGES * 2 * BM * 4;

template <class T, int D, int BM, int BN, int W, int STAGES, bool CAUSAL, int MIN_CTAS>
__global__ void __launch_bounds__(W * 32, MIN_CTAS)
    backward_main(const Attention a, const T *__restrict__ q, const T *__restrict__ k, const T *__restrict__ v,
                  const T *__restrict__ d_o, const float *__restrict__ lse, const float *__restrict__ delta,
                  float *__restrict__ dq_sums, T *__restrict__ dk, T *__restrict__ dv) {
  constexpr int threads = W * 32, R = BN / (16 * W), chunks = D / 8, key_bytes = BN * D * 2, query_bytes = BM * D * 2;
  constexpr int QS = R == 1 && D == 64 ? 64 : 32; /* queries whose scores are in registers at a time */
  static_assert(R >= 1 && BN == R * 16 * W && BM % QS == 0 && BM <= threads && STAGES >= 2, "tile and warps");
  extern __shared__ __align__(1024) unsigned char shared[];

  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const int first_key = blockIdx.x * BN, offset = a.seqlen_kv - a.seqlen_q;
  const size_t head = (size_t)blockIdx.z * a.heads + blockIdx.y;
  const float scale = rsqrtf((float)D), scale_log2 = scale * log2_e;
  const int64_t q_head = blockIdx.z * a.q.batch + blockIdx.y * a.q.head;
  const int64_t kv_first = blockIdx.z * a.kv.batch + blockIdx.y * a.kv.head + first_key * a.kv.row;

  const uint32_t k_tile = shared_address(shared), v_tile = k_tile + key_bytes, ring = v_tile + key_bytes;
  const uint32_t ds_tile = ring + STAGES * 2 * query_bytes, stats = ds_tile + BN * BM * 2;

  const int begin = CAUSAL ? max(0, first_key - offset) / BM : 0;
  const int turns = (a.seqlen_q + BM - 1) / BM - begin;

  auto fetch = [&](int turn) {
    int row = (begin + turn) * BM, slot = turn % STAGES;
    int64_t from = q_head + (int64_t)row * a.q.row;
    uint32_t to = ring + slot * (2 * query_bytes);
    fetch_tile<BM, D, threads>(to, q + from, a.q.row, a.seqlen_q - row, D, thread);
    fetch_tile<BM, D, threads>(to + query_bytes, d_o + from, a.q.row, a.seqlen_q - row, D, thread);
    if (thread < BM) {
      bool ok = row + thread < a.seqlen_q;
      size_t at = head * a.seqlen_q + (ok ? row + thread : 0);
      copy4(stats + (slot * 2 * BM + thread) * 4, lse + at, ok);
      copy4(stats + (slot * 2 * BM + BM + thread) * 4, delta + at, ok);
    }
  };

  fetch_tile<BN, D, threads>(k_tile, k + kv_first, a.kv.row, a.seqlen_kv - first_key, D, thread);
  fetch_tile<BN, D, threads>(v_tile, v + kv_first, a.kv.row, a.seqlen_kv - first_key, D, thread);
#pragma unroll
  for (int s = 0; s < STAGES - 1; s++) {
    if (s < turns) fetch(s);
    copies_commit();
  }

  const LanePlace wide = across(lane), tall = along(lane);
  const int warp_key = warp * 16 * R;
  float dk_sum[R][D / 2], dv_sum[R][D / 2];
#pragma unroll
  for (int r = 0; r < R; r++)
#pragma unroll
    for (int i = 0; i < D / 2; i++) dk_sum[r][i] = dv_sum[r][i] = 0;

  /* R x QS/8 accumulators of (rows of `keys`) (rows of `queries`)^T */
  auto product = [&](float(&s)[R][QS / 2], uint32_t keys, uint32_t queries, int first) {
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
      for (int i = 0; i < QS / 2; i++) s[r][i] = 0;
#pragma unroll
    for (int d = 0; d < D / 16; d++) {
      uint32_t x[R][4];
#pragma unroll
      for (int r = 0; r < R; r++)
        load_matrices(x[r], keys + chunk_at<chunks>(warp_key + r * 16 + wide.row, d * 2 + wide.chunk));
#pragma unroll
      for (int n = 0; n < QS / 16; n++) {
        uint32_t b[4];
        load_matrices(b, queries + chunk_at<chunks>(first + n * 16 + tall.row, d * 2 + tall.chunk));
#pragma unroll
        for (int r = 0; r < R; r++) {
          mma<T>(&s[r][n * 8], x[r], b[0], b[1]);
          mma<T>(&s[r][n * 8 + 4], x[r], b[2], b[3]);
        }
      }
    }
  };
  /* sum += s (QS rows of `queries` from `first`) */
  auto gather = [&](float(&sum)[R][D / 2], const float(&s)[R][QS / 2], uint32_t queries, int first) {
#pragma unroll
    for (int n = 0; n < QS / 16; n++) {
      uint32_t x[R][4];
#pragma unroll
      for (int r = 0; r < R; r++) as_operand<T>(x[r], &s[r][n * 8]);
#pragma unroll
      for (int d = 0; d < D / 16; d++) {
        uint32_t b[4];
        load_matrices_transposed(b, queries + chunk_at<chunks>(first + n * 16 + wide.row, d * 2 + wide.chunk));
#pragma unroll
        for (int r = 0; r < R; r++) {
          mma<T>(&sum[r][d * 8], x[r], b[0], b[1]);
          mma<T>(&sum[r][d * 8 + 4], x[r], b[2], b[3]);
        }
      }
    }
  };

  for (int turn = 0; turn < turns; turn++) {
    copies_wait<STAGES - 2>();
    __syncthreads(); /* this tile is there; the one before it and dS are free */
    if (turn + STAGES - 1 < turns) fetch(turn + STAGES - 1);
    copies_commit();

    const int first_row = (begin + turn) * BM, slot = turn % STAGES;
    const uint32_t q_tile = ring + slot * (2 * query_bytes), do_tile = q_tile + query_bytes;
    const uint32_t lse_row = stats + slot * (2 * BM * 4), delta_row = lse_row + BM * 4;
    const bool masked = first_key + BN > a.seqlen_kv || (CAUSAL && first_key + BN - 1 > first_row + offset);

#pragma unroll 1
    for (int first = 0; first < BM; first += QS) {
      float p[R][QS / 2], ds[R][QS / 2];
      product(p, k_tile, q_tile, first);
#pragma unroll
      for (int t = 0; t < QS / 8; t++) {
        float2 l = load_floats(lse_row + (first + t * 8 + lane % 4 * 2) * 4);
        l.x *= log2_e, l.y *= log2_e;
#pragma unroll
        for (int r = 0; r < R; r++) {
#pragma unroll
          for (int e = 0; e < 4; e++)
            p[r][t * 4 + e] = exp2_fast(fmaf(p[r][t * 4 + e], scale_log2, e % 2 ? -l.y : -l.x));
        }
      }
      if (masked) {
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
          for (int t = 0; t < QS / 8; t++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
              int key = first_key + warp_key + r * 16 + lane / 4 + e / 2 * 8;
              int row = first_row + first + t * 8 + lane % 4 * 2 + e % 2;
              if (key >= a.seqlen_kv || (CAUSAL && key > row + offset)) p[r][t * 4 + e] = 0;
            }
      }
      gather(dv_sum, p, do_tile, first);
      product(ds, v_tile, do_tile, first);
#pragma unroll
      for (int t = 0; t < QS / 8; t++) {
        float2 x = load_floats(delta_row + (first + t * 8 + lane % 4 * 2) * 4);
#pragma unroll
        for (int r = 0; r < R; r++) {
#pragma unroll
          for (int e = 0; e < 4; e++) ds[r][t * 4 + e] = p[r][t * 4 + e] * (ds[r][t * 4 + e] - (e % 2 ? x.y : x.x));
#pragma unroll
          for (int h = 0; h < 2; h++)
            store_word(ds_tile + chunk_at<BM / 8>(warp_key + r * 16 + lane / 4 + 8 * h, first / 8 + t) + lane % 4 * 4,
                       pack<T>(ds[r][t * 4 + 2 * h], ds[r][t * 4 + 2 * h + 1]));
        }
      }
      gather(dk_sum, ds, q_tile, first);
    }
    __syncthreads(); /* dS of all warps */

    /* dQ in pieces of 16 rows and 64 columns */
    constexpr int row_blocks = BM / 16, pieces = row_blocks * (D / 64);
#pragma unroll 1
    for (int piece = warp; piece < pieces; piece += W) {
      const int block = piece % row_blocks, columns = piece / row_blocks;
      float sum[32];
#pragma unroll
      for (int i = 0; i < 32; i++) sum[i] = 0;
#pragma unroll 4
      for (int n = 0; n < BN / 16; n++) {
        uint32_t x[4];
        load_matrices_transposed(x, ds_tile + chunk_at<BM / 8>(n * 16 + tall.row, block * 2 + tall.chunk));
#pragma unroll
        for (int d = 0; d < 4; d++) {
          uint32_t b[4];
          load_matrices_transposed(b, k_tile + chunk_at<chunks>(n * 16 + wide.row, columns * 8 + d * 2 + wide.chunk));
          mma<T>(&sum[d * 8], x, b[0], b[1]);
          mma<T>(&sum[d * 8 + 4], x, b[2], b[3]);
        }
      }
      const int row = first_row + block * 16;
      if (row < a.seqlen_q) {
        float *to = dq_sums + ((head * ((a.seqlen_q + 15) / 16) + row / 16) * chunks + columns * 8) * 128 + lane;
#pragma unroll
        for (int i = 0; i < 32; i++) atomicAdd(to + i * 32, sum[i]);
      }
    }
  }

  /* dK and dV through the rows of K and V that were the warp's. */
  copies_wait<0>();
  __syncthreads();
#pragma unroll
  for (int r = 0; r < R; r++)
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int t = 0; t < D / 8; t++) {
        uint32_t at = chunk_at<chunks>(warp_key + r * 16 + lane / 4 + 8 * h, t) + lane % 4 * 4;
        int i = t * 4 + 2 * h;
        store_word(k_tile + at, pack<T>(dk_sum[r][i] * scale, dk_sum[r][i + 1] * scale));
        store_word(v_tile + at, pack<T>(dv_sum[r][i], dv_sum[r][i + 1]));
      }
  __syncwarp();
#pragma unroll
  for (int i = 0; i < 16 * R * chunks / 32; i++) {
    int index = i * 32 + lane, local = warp_key + index / chunks, chunk = index % chunks;
    if (first_key + local < a.seqlen_kv) {
      int64_t at = kv_first + local * a.kv.row + chunk * 8;
      *reinterpret_cast<uint4 *>(dk + at) = load_chunk(k_tile + chunk_at<chunks>(local, chunk));
      *reinterpret_cast<uint4 *>(dv + at) = load_chunk(v_tile + chunk_at<chunks>(local, chunk));
    }
  }
}

}  // namespace mixed_f
