/* Unfused attention: S = scale * Q K^T (mma.sync, one tile of S a CTA), softmax of the rows of S in place, O = P V
 * (mma.sync, block_m rows a CTA, P and V tiles double-buffered by cp.async). S and P are f16 in global memory. With
 * causal, tiles above the diagonal are neither computed nor read, and each row's tail inside the last tile is zeroed by
 * the softmax.
 *
 * Softmax: one CTA of 128 threads a row; `safe` reads the row three times (max, sum, normalise), `online` twice (max
 * and sum together). The row is read again from memory each time, as the algorithms are written. LSE is written too.
 *
 * seqlen_q must be a multiple of block_m, seqlen_kv of block_n. */
#pragma once

#include "flash2_mma.h"

namespace standard_mma {

using namespace flash2_mma;

enum class Softmax { safe, online };

/* S and P of all heads; grows, never shrinks. */
__half *score_memory(size_t bytes);

template <int block_m, int block_n, int num_warps, int head_dim, bool causal>
using Tiles = flash2_mma::Shape<block_m, block_n, num_warps, 2, head_dim, causal, Schedule::stages>;

template <class S>
__global__ __launch_bounds__(S::num_threads) void scores(TileParams p, __half *s_memory) {
  extern __shared__ __align__(128) uint8_t shared[];
  int num_n_tiles = p.seqlen_kv / S::block_n, n = (int)blockIdx.x % num_n_tiles;
  Tile tile = tile_of(p, (int)blockIdx.x / num_n_tiles);
  if (S::causal && n * S::block_n > tile.m * S::block_m + S::block_m - 1 + p.seqlen_kv - p.seqlen_q) return;
  uint32_t q = shared_address(shared), k = q + S::q_bytes, warp_row = threadIdx.x / 32 * S::warp_rows,
           lane = threadIdx.x % 32;
  copy_tile<S, S::block_m>(q,
                           p.q + ((size_t)tile.head * (size_t)p.seqlen_q + (size_t)tile.m * S::block_m) * S::head_dim);
  copy_tile<S, S::block_n>(k,
                           p.k + ((size_t)tile.kv_head * (size_t)p.seqlen_kv + (size_t)n * S::block_n) * S::head_dim);
  commit();
  wait_and_sync<0>();
  State<S> st;
  score(st, q, k, warp_row);
  float scale = p.scale_log2 * 0.69314718f;
  __half *to = s_memory +
               ((size_t)tile.head * (size_t)p.seqlen_q + (size_t)tile.m * S::block_m + warp_row) * (size_t)p.seqlen_kv +
               (size_t)n * S::block_n;
#pragma unroll
  for (int m = 0; m < S::m_tiles; m++)
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
      for (int j = 0; j < S::n_tiles; j++) {
        size_t row = (size_t)(m * 16 + half * 8) + lane / 4;
        *(uint32_t *)(to + row * (size_t)p.seqlen_kv + j * 8 + lane % 4 * 2) =
            pack(st.s[m][j * 4 + half * 2] * scale, st.s[m][j * 4 + half * 2 + 1] * scale);
      }
}

__device__ __forceinline__ void unpack(float (&x)[8], uint4 v) {
  const __half2 *h = (const __half2 *)&v;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    float2 f = __half22float2(h[i]);
    x[i * 2] = f.x;
    x[i * 2 + 1] = f.y;
  }
}

/* A load that the compiler may not replace by what it loaded before. */
__device__ __forceinline__ uint4 load_again(const __half *from) {
  uint4 v;
  asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from)
               : "memory");
  return v;
}

template <bool is_max>
__device__ __forceinline__ float reduce(float value) {
  __shared__ float parts[4];
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    float other = __shfl_xor_sync(0xffffffff, value, step);
    value = is_max ? fmaxf(value, other) : value + other;
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  return is_max ? fmaxf(fmaxf(parts[0], parts[1]), fmaxf(parts[2], parts[3]))
                : parts[0] + parts[1] + parts[2] + parts[3];
}

/* from == to is allowed. Columns from `visible` up to `columns` become 0; columns past it are left alone. */
template <Softmax kind>
__device__ __forceinline__ void softmax_row(const __half *from, __half *to, int visible, int columns, float *lse) {
  constexpr float log2e = 1.44269504f;
  float top = -INFINITY, sum = 0;
  for (int at = (int)threadIdx.x * 8; at < visible; at += 1024) {
    float x[8];
    unpack(x, load_again(from + at));
    float before = top;
#pragma unroll
    for (int i = 0; i < 8; i++) top = at + i < visible ? fmaxf(top, x[i]) : top;
    if (kind == Softmax::online) {
      sum *= exp2_fast((before - top) * log2e);
#pragma unroll
      for (int i = 0; i < 8; i++) sum += at + i < visible ? exp2_fast((x[i] - top) * log2e) : 0;
    }
  }
  float all_top = reduce<true>(top);
  if (kind == Softmax::online) {
    sum = top == -INFINITY ? 0 : sum * exp2_fast((top - all_top) * log2e);
  } else {
    for (int at = (int)threadIdx.x * 8; at < visible; at += 1024) {
      float x[8];
      unpack(x, load_again(from + at));
#pragma unroll
      for (int i = 0; i < 8; i++) sum += at + i < visible ? exp2_fast((x[i] - all_top) * log2e) : 0;
    }
  }
  sum = reduce<false>(sum);
  float inverse = 1.0f / sum;
  for (int at = (int)threadIdx.x * 8; at < columns; at += 1024) {
    float x[8];
    unpack(x, load_again(from + at));
    uint4 packed;
    uint32_t *words = (uint32_t *)&packed;
#pragma unroll
    for (int i = 0; i < 8; i++) x[i] = at + i < visible ? exp2_fast((x[i] - all_top) * log2e) * inverse : 0;
#pragma unroll
    for (int i = 0; i < 4; i++) words[i] = pack(x[i * 2], x[i * 2 + 1]);
    *(uint4 *)(to + at) = packed;
  }
  if (lse && threadIdx.x == 0) *lse = all_top + __log2f(sum) * 0.69314718f;
}

template <Softmax kind, bool causal>
__global__ __launch_bounds__(128) void softmax_rows(TileParams p, __half *s, int block_m, int block_n) {
  int row = (int)blockIdx.x % p.seqlen_q, offset = p.seqlen_kv - p.seqlen_q;
  int visible = causal ? row + offset + 1 : p.seqlen_kv;
  int last_of_block = row / block_m * block_m + block_m - 1 + offset;
  int columns = causal ? min(p.seqlen_kv, (last_of_block / block_n + 1) * block_n) : p.seqlen_kv;
  __half *at = s + (size_t)blockIdx.x * (size_t)p.seqlen_kv;
  softmax_row<kind>(at, at, visible, columns, p.lse + blockIdx.x);
}

/* block_m x block_n halves of P, rows of block_n, swizzled like the other tiles. */
template <class S>
__device__ __forceinline__ uint32_t p_offset(uint32_t row, uint32_t chunk) {
  constexpr uint32_t chunks = S::block_n / 8;
  return (row * chunks + (chunk ^ (row & (chunks < 8 ? chunks - 1 : 7)))) * 16;
}

template <class S>
__global__ __launch_bounds__(S::num_threads) void outputs(TileParams p, const __half *p_memory) {
  extern __shared__ __align__(128) uint8_t shared[];
  constexpr int p_bytes = S::block_m * S::block_n * 2;
  Tile tile = tile_of(p, (int)blockIdx.x);
  uint32_t warp_row = threadIdx.x / 32 * S::warp_rows, lane = threadIdx.x % 32, base = shared_address(shared);
  int num_tiles = p.seqlen_kv / S::block_n;
  if (S::causal)
    num_tiles =
        min(num_tiles, (tile.m * S::block_m + p.seqlen_kv - p.seqlen_q + S::block_m + S::block_n - 1) / S::block_n);
  const __half *p_from =
      p_memory + ((size_t)tile.head * (size_t)p.seqlen_q + (size_t)tile.m * S::block_m) * (size_t)p.seqlen_kv;
  const __half *v_from = p.v + (size_t)tile.kv_head * (size_t)p.seqlen_kv * S::head_dim;
  auto p_buffer = [&](int j) { return base + (uint32_t)(j % 2) * p_bytes; };
  auto v_buffer = [&](int j) { return base + 2 * p_bytes + (uint32_t)(j % 2) * S::tile_bytes; };
  auto fetch = [&](int j) {
    if (j < num_tiles) {
      constexpr int chunks = S::block_n / 8;
#pragma unroll
      for (int i = 0; i < S::block_m * chunks / S::num_threads; i++) {
        uint32_t index = threadIdx.x + (uint32_t)i * S::num_threads, row = index / chunks, chunk = index % chunks;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(p_buffer(j) + p_offset<S>(row, chunk)),
                     "l"(p_from + (size_t)row * (size_t)p.seqlen_kv + (size_t)j * S::block_n + chunk * 8)
                     : "memory");
      }
      copy_tile<S, S::block_n>(v_buffer(j), v_from + (size_t)j * S::block_n * S::head_dim);
    }
    commit();
  };
  float o[S::m_tiles][S::d_tiles * 4];
  fill_zero(o);
  fetch(0);
  for (int j = 0; j < num_tiles; j++) {
    fetch(j + 1);
    wait_and_sync<1>();
#pragma unroll
    for (int kk = 0; kk < S::block_n / 16; kk++) {
      uint32_t a[S::m_tiles][4];
#pragma unroll
      for (int m = 0; m < S::m_tiles; m++)
        ldmatrix(a[m],
                 p_buffer(j) + p_offset<S>(warp_row + (uint32_t)m * 16 + lane % 16, (uint32_t)kk * 2 + lane / 16));
#pragma unroll
      for (int d = 0; d < S::d_tiles; d += 2) {
        uint32_t b[4];
        ldmatrix_trans(b, v_buffer(j) + swizzled<S>((uint32_t)kk * 16 + lane % 16, (uint32_t)d + lane / 16));
#pragma unroll
        for (int m = 0; m < S::m_tiles; m++) {
          mma(&o[m][d * 4], a[m], b[0], b[1]);
          mma(&o[m][d * 4 + 4], a[m], b[2], b[3]);
        }
      }
    }
    __syncthreads();
  }
  __half *to = p.o + ((size_t)tile.head * (size_t)p.seqlen_q + (size_t)tile.m * S::block_m + warp_row) * S::head_dim;
#pragma unroll
  for (int m = 0; m < S::m_tiles; m++)
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
      for (int d = 0; d < S::d_tiles; d++) {
        size_t row = (size_t)(m * 16 + half * 8) + lane / 4;
        *(uint32_t *)(to + row * S::head_dim + d * 8 + lane % 4 * 2) =
            pack(o[m][d * 4 + half * 2], o[m][d * 4 + half * 2 + 1]);
      }
}

template <class S>
constexpr int scores_shared() {
  return S::q_bytes + S::tile_bytes;
}
template <class S>
constexpr int outputs_shared() {
  return 2 * (S::block_m * S::block_n * 2 + S::tile_bytes);
}

/* The driver shows the second product's launch. */
template <class S>
Launch plan(const Problem &p) {
  return {(unsigned)(p.seqlen_q / S::block_m * p.batch * p.heads), (unsigned)S::num_threads,
          (size_t)outputs_shared<S>()};
}

template <class S, Softmax kind>
void run(const Problem &p, cudaStream_t stream) {
  Launch l = plan<S>(p);
  TileParams t = tile_params(p, S::block_m);
  size_t rows = (size_t)p.batch * (size_t)p.heads * (size_t)p.seqlen_q;
  __half *s = score_memory(rows * (size_t)p.seqlen_kv * 2);
  cudaFuncSetAttribute(scores<S>, cudaFuncAttributeMaxDynamicSharedMemorySize, scores_shared<S>());
  cudaFuncSetAttribute(outputs<S>, cudaFuncAttributeMaxDynamicSharedMemorySize, outputs_shared<S>());
  scores<S><<<l.grid *(unsigned)(p.seqlen_kv / S::block_n), S::num_threads, scores_shared<S>(), stream>>>(t, s);
  softmax_rows<kind, S::causal><<<(unsigned)rows, 128, 0, stream>>>(t, s, S::block_m, S::block_n);
  outputs<S><<<l.grid, S::num_threads, outputs_shared<S>(), stream>>>(t, s);
}

/* schedule names the softmax. */
template <class S, Softmax kind>
Instance instance() {
  return {{"standard_attention", "mma", "cp_async", kind == Softmax::safe ? "safe" : "online", S::block_m, S::block_n,
           S::num_warps, 2, S::head_dim, S::causal},
          (const void *)outputs<S>,
          plan<S>,
          run<S, kind>,
          3};
}

}  // namespace standard_mma
