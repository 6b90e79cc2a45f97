/* What the backward kernels of FlashAttention-2 (arXiv:2307.08691, algorithm 2) share: what a launch is given, products
 * of tiles in shared memory by mma.sync m16n8k16, P and dS of a step, and the launch that comes first.
 *
 *   flash2_bwd_delta: delta = rowsum(dO * O); with dq=atomics dQ's sum = 0 too.
 *
 * Layout bhsd as in attention.h, f16; as many key/value heads as heads. Lengths are multiples of both blocks and of the
 * rows of delta's CTAs, and causal problems have no query that sees no key: attention_bench refuses others. Tiles
 * arrive by cp.async, rows swizzled in 16-byte chunks (flash2_mma.h). */
#pragma once

#include "flash2_mma.h"

namespace flash2_bwd {

using flash2_mma::commit;
using flash2_mma::copy_tile;
using flash2_mma::ldmatrix;
using flash2_mma::ldmatrix_trans;
using flash2_mma::mma;
using flash2_mma::shared_address;
using flash2_mma::swizzled_in;
using flash2_mma::wait_and_sync;

struct Params {
  const __half *q, *k, *v, *o, *d_o;
  const float *lse;
  float *delta, *d_q_sum;
  __half *d_q, *d_k, *d_v;
  int seqlen_q, seqlen_kv, num_heads_total;
  int head_first, reverse;
  float scale, scale_log2;
};

inline Params params(const Problem &p) {
  const Gradients &g = *p.gradients;
  float scale = 1.0f / std::sqrt((float)p.head_dim);
  return {p.q,          p.k,
          p.v,          p.o,
          g.d_o,        p.lse,
          g.delta,      g.d_q_sum,
          g.d_q,        g.d_k,
          g.d_v,        p.seqlen_q,
          p.seqlen_kv,  p.batch * p.heads,
          p.head_first, p.tile_reverse,
          scale,        1.44269504f * scale};
}

template <int block_m_, int block_n_, int num_warps_, int num_stages_, int head_dim_, bool causal_>
struct Tiles {
  static constexpr int block_m = block_m_, block_n = block_n_, num_warps = num_warps_, num_stages = num_stages_,
                       head_dim = head_dim_;
  static constexpr bool causal = causal_;
  static constexpr int num_threads = num_warps * 32;
  static constexpr int row_chunks = head_dim / 8;
  static constexpr int step_bytes = block_m * head_dim * 2, kept_bytes = block_n * head_dim * 2;
  static_assert(block_m % 16 == 0 && block_n % 16 == 0 && head_dim % 64 == 0);
};

/* The rows that a CTA keeps, or its rows of a launch that only streams them. */
struct Kept {
  int index, head;
};

__device__ __forceinline__ Kept kept_of(const Params &p, int num_tiles) {
  int cta = (int)blockIdx.x, index = p.head_first ? cta / p.num_heads_total : cta % num_tiles,
      head = p.head_first ? cta % p.num_heads_total : cta / num_tiles;
  return {p.reverse ? num_tiles - 1 - index : index, head};
}

/* Query tiles, of `end`: from `first` on they see any of a tile's keys, from `whole` on all. */
struct SeenBy {
  int first, whole, end;
};

template <class S>
__device__ __forceinline__ SeenBy seen_by(const Params &p, int first_key) {
  int end = p.seqlen_q / S::block_m;
  if (!S::causal) return {0, 0, end};
  int sees_first = max(0, first_key + p.seqlen_q - p.seqlen_kv);
  int sees_last = max(0, first_key + S::block_n - 1 + p.seqlen_q - p.seqlen_kv);
  return {min(end, sees_first / S::block_m), min(end, (sees_last + S::block_m - 1) / S::block_m), end};
}

/* ---- products ---- */

/* A lane's chunk of a tile in shared memory. Others lie a constant away, or have a constant's bits flipped: found once
 * a product, since each by itself (swizzled_in) takes so many registers through the loop that others are spilled. */
template <int chunks>
struct Place {
  uint32_t address;

  __device__ __forceinline__ Place(uint32_t from, uint32_t row, uint32_t chunk)
      : address(from + swizzled_in<chunks>(row, chunk)) {
    static_assert(chunks % 8 == 0); /* rows begin with a swizzle group */
  }
  /* `rows`, a multiple of 8, further down, and `more` chunks on, which share no bit with this one's. */
  __device__ __forceinline__ uint32_t at(int rows, int more) const {
    return (address ^ (uint32_t)(more % 8 * 16)) + (uint32_t)(more / 8 * 128 + rows * chunks * 16);
  }
};

/* A tile in shared memory, and the first row (of A) or column (of B) that a warp takes of it. */
struct Operand {
  uint32_t from, first;
};

/* A by blocks of 16 rows and 16 terms, stored [row][term] or, transposed, [term][row]. */
template <bool transposed, int chunks>
struct BlocksOfA {
  Place<chunks> place;

  __device__ __forceinline__ static Place<chunks> place_of(Operand a, uint32_t lane) {
    if (transposed) return {a.from, lane / 16 * 8 + lane % 8, a.first / 8 + lane / 8 % 2};
    return {a.from, a.first + lane % 16, lane / 16};
  }
  __device__ __forceinline__ explicit BlocksOfA(Operand a) : place(place_of(a, threadIdx.x % 32)) {}
  __device__ __forceinline__ void load(uint32_t (&a)[4], int m, int kk) const {
    if (transposed)
      ldmatrix_trans(a, place.at(kk * 16, m * 2));
    else
      ldmatrix(a, place.at(m * 16, kk * 2));
  }
};

/* B by blocks of 16 columns, the first of which is column tile n of 8, and 16 terms; stored [column][term], or by_k
 * [term][column]. */
template <bool by_k, int chunks>
struct BlocksOfB {
  Place<chunks> place;

  __device__ __forceinline__ static Place<chunks> place_of(Operand b, uint32_t lane) {
    if (by_k) return {b.from, lane % 16, b.first / 8 + lane / 16};
    return {b.from, b.first + lane / 16 * 8 + lane % 8, lane / 8 % 2};
  }
  __device__ __forceinline__ explicit BlocksOfB(Operand b) : place(place_of(b, threadIdx.x % 32)) {}
  __device__ __forceinline__ void load(uint32_t (&b)[4], int n, int kk) const {
    if (by_k)
      ldmatrix_trans(b, place.at(kk * 16, n));
    else
      ldmatrix(b, place.at(n * 8, kk * 2));
  }
};

template <class Blocks, int m_tiles, int count>
__device__ __forceinline__ void multiply_step(float (&sums)[m_tiles][count], const uint32_t (&a)[m_tiles][4],
                                              const Blocks &blocks, int kk) {
#pragma unroll
  for (int n = 0; n < count / 4; n += 2) {
    uint32_t b[4];
    blocks.load(b, n, kk);
#pragma unroll
    for (int m = 0; m < m_tiles; m++) {
      mma(&sums[m][n * 4], a[m], b[0], b[1]);
      mma(&sums[m][n * 4 + 4], a[m], b[2], b[3]);
    }
  }
}

/* sums += A B over k terms. */
template <bool a_transposed, int a_chunks, bool b_by_k, int b_chunks, int k, int m_tiles, int count>
__device__ __forceinline__ void multiply(float (&sums)[m_tiles][count], Operand a_tile, Operand b_tile) {
  BlocksOfA<a_transposed, a_chunks> blocks_of_a(a_tile);
  BlocksOfB<b_by_k, b_chunks> blocks_of_b(b_tile);
#pragma unroll
  for (int kk = 0; kk < k / 16; kk++) {
    uint32_t a[m_tiles][4];
#pragma unroll
    for (int m = 0; m < m_tiles; m++) blocks_of_a.load(a[m], m, kk);
    multiply_step(sums, a, blocks_of_b, kk);
  }
}

/* The same with A in registers, fragments of 16 terms one after the other, and B stored by k. */
template <int b_chunks, int k, int m_tiles, int count>
__device__ __forceinline__ void multiply_held(float (&sums)[m_tiles][count], const uint32_t (&held)[m_tiles][k / 4],
                                              uint32_t b_from) {
  BlocksOfB<true, b_chunks> blocks({b_from, 0});
#pragma unroll
  for (int kk = 0; kk < k / 16; kk++) {
    uint32_t a[m_tiles][4];
#pragma unroll
    for (int m = 0; m < m_tiles; m++)
#pragma unroll
      for (int i = 0; i < 4; i++) a[m][i] = held[m][kk * 4 + i];
    multiply_step(sums, a, blocks, kk);
  }
}

/* ---- P and dS ---- */

constexpr float log2e = 1.44269504f;

/* Two numbers of f16 each, as they lie beside each other in rows of accumulators and in fragments of A. */
template <int m_tiles, int count>
__device__ __forceinline__ void round_to(uint32_t (&packed)[m_tiles][count / 2], const float (&x)[m_tiles][count]) {
#pragma unroll
  for (int m = 0; m < m_tiles; m++)
#pragma unroll
    for (int i = 0; i < count / 2; i++) packed[m][i] = pack(x[m][i * 2], x[m][i * 2 + 1]);
}

template <int m_tiles, int count>
__device__ __forceinline__ void scale_all(float (&x)[m_tiles][count], float by) {
#pragma unroll
  for (int m = 0; m < m_tiles; m++)
#pragma unroll
    for (int i = 0; i < count; i++) x[m][i] *= by;
}

/* Of rows: two of each row tile a lane, -LSE in the unit of exp2 and delta. */
template <int m_tiles>
struct RowTerms {
  float lse[m_tiles][2], delta[m_tiles][2];

  __device__ __forceinline__ void load(const float *lse_from, const float *delta_from) {
    uint32_t lane = threadIdx.x % 32;
#pragma unroll
    for (int m = 0; m < m_tiles; m++)
#pragma unroll
      for (int half = 0; half < 2; half++) lse[m][half] = lse_from[(uint32_t)(m * 16 + half * 8) + lane / 4];
#pragma unroll
    for (int m = 0; m < m_tiles; m++)
#pragma unroll
      for (int half = 0; half < 2; half++) delta[m][half] = delta_from[(uint32_t)(m * 16 + half * 8) + lane / 4];
  }
  __device__ __forceinline__ void prepare() {
#pragma unroll
    for (int m = 0; m < m_tiles; m++)
#pragma unroll
      for (int half = 0; half < 2; half++) lse[m][half] *= -log2e;
  }
  __device__ __forceinline__ float lse_of(int m, int i) const { return lse[m][i % 4 / 2]; }
  __device__ __forceinline__ float delta_of(int m, int i) const { return delta[m][i % 4 / 2]; }
};

/* The same of columns. */
template <int columns>
struct ColumnTerms {
  float lse[columns / 4], delta[columns / 4];

  __device__ __forceinline__ void load(const float *lse_from, const float *delta_from) {
    uint32_t lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < columns / 8; n++) {
      float2 two = *(const float2 *)(lse_from + n * 8 + lane % 4 * 2);
      lse[n * 2] = two.x;
      lse[n * 2 + 1] = two.y;
    }
#pragma unroll
    for (int n = 0; n < columns / 8; n++) {
      float2 two = *(const float2 *)(delta_from + n * 8 + lane % 4 * 2);
      delta[n * 2] = two.x;
      delta[n * 2 + 1] = two.y;
    }
  }
  __device__ __forceinline__ void prepare() {
#pragma unroll
    for (int i = 0; i < columns / 4; i++) lse[i] *= -log2e;
  }
  __device__ __forceinline__ float lse_of(int, int i) const { return lse[i / 4 * 2 + i % 2]; }
  __device__ __forceinline__ float delta_of(int, int i) const { return delta[i / 4 * 2 + i % 2]; }
};

/* S becomes P = exp(scale S - LSE). */
template <class Terms, int m_tiles, int count>
__device__ __forceinline__ void exponentiate(float (&s)[m_tiles][count], const Terms &terms, float scale_log2) {
#pragma unroll
  for (int m = 0; m < m_tiles; m++)
#pragma unroll
    for (int i = 0; i < count; i++) s[m][i] = exp2_fast(s[m][i] * scale_log2 + terms.lse_of(m, i));
}

/* dP becomes dS = P (dP - delta). */
template <class Terms, int m_tiles, int count>
__device__ __forceinline__ void differentiate(float (&products)[m_tiles][count], const float (&probs)[m_tiles][count],
                                              const Terms &terms) {
#pragma unroll
  for (int m = 0; m < m_tiles; m++)
#pragma unroll
    for (int i = 0; i < count; i++) products[m][i] = (products[m][i] - terms.delta_of(m, i)) * probs[m][i];
}

/* ---- from registers to memory ---- */

/* Rows of f16 of accumulators from (row, column) of a tile in shared memory on. */
template <int chunks, int m_tiles, int count>
__device__ __forceinline__ void put(uint32_t to, const uint32_t (&packed)[m_tiles][count], uint32_t row,
                                    uint32_t column) {
  uint32_t lane = threadIdx.x % 32;
  Place<chunks> place(to, row + lane / 4, column / 8);
#pragma unroll
  for (int m = 0; m < m_tiles; m++)
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
      for (int n = 0; n < count / 2; n++)
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(place.at(m * 16 + half * 8, n) + lane % 4 * 4),
                     "r"(packed[m][n * 2 + half])
                     : "memory");
}

/* Rows of a tile in shared memory, by num_threads threads of which this is the thread-th: 16 bytes each. */
template <int chunks, int rows, int num_threads>
__device__ __forceinline__ void copy_out(__half *to, uint32_t from, uint32_t first_row, uint32_t thread) {
  static_assert(rows * chunks % num_threads == 0);
#pragma unroll
  for (int i = 0; i < rows * chunks / num_threads; i++) {
    uint32_t index = thread + (uint32_t)i * num_threads, row = first_row + index / chunks, chunk = index % chunks;
    uint4 data;
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(data.x), "=r"(data.y), "=r"(data.z), "=r"(data.w)
                 : "r"(from + swizzled_in<chunks>(row, chunk)));
    *(uint4 *)(to + (row * chunks + chunk) * 8) = data;
  }
}

/* ---- delta ---- */

/* Threads of a row take 8 columns each at a time; a CTA has four rows for each of its groups of threads. */
template <int head_dim, int num_warps>
struct DeltaRows {
  static constexpr int threads = head_dim <= 64 ? 8 : head_dim <= 128 ? 16 : 32, turns = 4;
  static constexpr int num_threads = num_warps * 32, at_once = num_threads / threads, rows = at_once * turns;
  static constexpr int columns = threads * 8;
  static_assert(delta_unit % rows == 0, "whole CTAs of delta");
};

template <class S, bool clears_sum>
__global__ __launch_bounds__(S::num_threads) void flash2_bwd_delta(Params p) {
  typedef DeltaRows<S::head_dim, S::num_warps> D;
  Kept tile = kept_of(p, p.seqlen_q / D::rows);
  size_t first_row = (size_t)tile.head * (size_t)p.seqlen_q + (size_t)tile.index * D::rows;
  uint32_t row = threadIdx.x / D::threads, column = threadIdx.x % D::threads * 8;
  bool has_columns = S::head_dim == D::columns || column < S::head_dim;
  uint4 o[D::turns] = {}, d_o[D::turns] = {};
#pragma unroll
  for (int i = 0; i < D::turns; i++)
    if (has_columns) o[i] = *(const uint4 *)(p.o + (first_row + row + i * D::at_once) * S::head_dim + column);
#pragma unroll
  for (int i = 0; i < D::turns; i++)
    if (has_columns) d_o[i] = *(const uint4 *)(p.d_o + (first_row + row + i * D::at_once) * S::head_dim + column);
  float sums[D::turns];
#pragma unroll
  for (int i = 0; i < D::turns; i++) {
    const __half2 *a = (const __half2 *)&o[i], *b = (const __half2 *)&d_o[i];
    sums[i] = 0;
#pragma unroll
    for (int c = 0; c < 4; c++) {
      float2 x = __half22float2(a[c]), y = __half22float2(b[c]);
      sums[i] += x.x * y.x;
      sums[i] += x.y * y.y;
    }
  }
#pragma unroll
  for (int i = 0; i < D::turns; i++)
#pragma unroll
    for (int step = D::threads / 2; step > 0; step /= 2) sums[i] += __shfl_xor_sync(0xffffffff, sums[i], step);
#pragma unroll
  for (int i = 0; i < D::turns; i++)
    if (threadIdx.x % D::threads == 0) p.delta[first_row + row + i * D::at_once] = sums[i];
  if (!clears_sum) return;
  float4 *sum = (float4 *)(p.d_q_sum + first_row * S::head_dim);
#pragma unroll
  for (int i = 0; i < D::rows * S::head_dim / 4 / S::num_threads; i++)
    sum[threadIdx.x + (uint32_t)i * S::num_threads] = make_float4(0, 0, 0, 0);
}

template <class S, bool clears_sum>
void run_delta(const Params &p, cudaStream_t stream) {
  unsigned grid = (unsigned)(p.seqlen_q / DeltaRows<S::head_dim, S::num_warps>::rows * p.num_heads_total);
  flash2_bwd_delta<S, clears_sum><<<grid, S::num_threads, 0, stream>>>(p);
}

}  // namespace flash2_bwd
