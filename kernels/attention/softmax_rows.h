/* Softmax of the rows of a matrix alone: y[r][c] = exp(x[r][c] - lse[r]); x and y f16, lse f32, natural logarithm.
 *
 * Shape: num_rows = batch * heads * seqlen_q rows of seqlen_kv columns, not in place, m_first (CTA i has the rows from
 * i * block_m on). A CTA of num_warps warps owns block_m rows, num_warps / block_m warps each: block_m = 1 is a CTA a
 * row, block_m = num_warps a warp a row. A thread takes 8 neighbouring columns (16 bytes), then the next 8 a row's
 * threads further on.
 *
 *   safe, reread      max, then sum of exp(x - max), then exp(x - max) / sum: the row is read three times
 *   online, reread    max and sum together, rescaled when the maximum grows: read twice
 *   *, registers      the row (at most block_n columns) is read once and stays in registers as f16
 *
 * Rows are read again by plain loads (L1 may serve them), as the algorithms are written. With a CTA a row the partial
 * max and sum pass through shuffles and shared memory (two barriers each), with a warp a row through shuffles alone.
 * seqlen_kv must be a multiple of 8, num_rows of block_m. block_n of a `reread` instance: the columns of one step, 8 a
 * thread. */
#pragma once

#include "standard_mma.h"

namespace softmax_rows {

using standard_mma::Softmax;

template <Softmax kind_, int block_m_, int num_warps_, int held_columns_>
struct Shape {
  static constexpr Softmax kind = kind_;
  static constexpr int block_m = block_m_, num_warps = num_warps_;
  static constexpr int row_warps = num_warps / block_m, row_threads = row_warps * 32, step_columns = row_threads * 8;
  static constexpr int held_columns = held_columns_; /* 0: reread */
  static constexpr int held_steps = held_columns / step_columns;
  static_assert(num_warps % block_m == 0 && held_columns % step_columns == 0 && held_steps <= 16);
};

/* The row's reduction; every thread of the row gets it. */
template <class S, bool is_max>
__device__ __forceinline__ float reduce(float value) {
  __shared__ float parts[S::num_warps];
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    float other = __shfl_xor_sync(0xffffffff, value, step);
    value = is_max ? fmaxf(value, other) : value + other;
  }
  if (S::row_warps == 1) return value;
  int first = (int)threadIdx.x / S::row_threads * S::row_warps;
  __syncthreads(); /* the reduction before has been read */
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  value = parts[first];
#pragma unroll
  for (int w = 1; w < S::row_warps; w++) value = is_max ? fmaxf(value, parts[first + w]) : value + parts[first + w];
  return value;
}

struct Running {
  float top, sum;
};

constexpr float log2e = 1.44269504f;

/* One step of a pass that finds max, sum, or both. */
template <bool with_max, bool with_sum>
__device__ __forceinline__ void take(Running &r, uint4 packed) {
  float x[8], before = r.top;
  standard_mma::unpack(x, packed);
  if (with_max) {
#pragma unroll
    for (int i = 0; i < 8; i++) r.top = fmaxf(r.top, x[i]);
  }
  if (with_max && with_sum) r.sum *= exp2_fast((before - r.top) * log2e);
  if (with_sum) {
#pragma unroll
    for (int i = 0; i < 8; i++) r.sum += exp2_fast((x[i] - r.top) * log2e);
  }
}

/* Where a pass takes the thread's columns from: memory each time, or registers that were filled once. */
template <class S>
struct Source {
  const __half *row;
  int columns;
  uint4 held[S::held_steps > 0 ? S::held_steps : 1];

  __device__ __forceinline__ void open() {
    int first = ((int)threadIdx.x % S::row_threads) * 8;
#pragma unroll
    for (int i = 0; i < S::held_steps; i++) {
      int at = first + i * S::step_columns;
      held[i] = at < columns ? *(const uint4 *)(row + at) : make_uint4(0xfc00fc00, 0xfc00fc00, 0xfc00fc00, 0xfc00fc00);
    }
  }

  /* body(column, 8 halves); registers past the end hold -inf and are passed too. */
  template <class Body>
  __device__ __forceinline__ void each(Body body) {
    int first = ((int)threadIdx.x % S::row_threads) * 8;
    if constexpr (S::held_columns > 0) {
#pragma unroll
      for (int i = 0; i < S::held_steps; i++) body(first + i * S::step_columns, held[i]);
    } else {
#pragma unroll 4
      for (int at = first; at < columns; at += S::step_columns) body(at, standard_mma::load_again(row + at));
    }
  }
};

template <class S>
__global__ __launch_bounds__(S::num_warps * 32) void rows(const __half *x, __half *y, float *lse, int columns) {
  int row = (int)blockIdx.x * S::block_m + (int)threadIdx.x / S::row_threads;
  Source<S> source = {x + (size_t)row * (size_t)columns, columns, {}};
  if constexpr (S::held_columns > 0) source.open();
  Running r = {-INFINITY, 0};
  if (S::kind == Softmax::online) {
    source.each([&](int, uint4 packed) { take<true, true>(r, packed); });
    float top = reduce<S, true>(r.top);
    r.sum = r.top == -INFINITY ? 0 : r.sum * exp2_fast((r.top - top) * log2e);
    r.top = top;
  } else {
    source.each([&](int, uint4 packed) { take<true, false>(r, packed); });
    r.top = reduce<S, true>(r.top);
    source.each([&](int, uint4 packed) { take<false, true>(r, packed); });
  }
  r.sum = reduce<S, false>(r.sum);
  float inverse = 1.0f / r.sum;
  __half *to = y + (size_t)row * (size_t)columns;
  source.each([&](int at, uint4 packed) {
    float v[8];
    standard_mma::unpack(v, packed);
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
      words[i] =
          pack(exp2_fast((v[i * 2] - r.top) * log2e) * inverse, exp2_fast((v[i * 2 + 1] - r.top) * log2e) * inverse);
    if (S::held_columns == 0 || at < columns) *(uint4 *)(to + at) = make_uint4(words[0], words[1], words[2], words[3]);
  });
  if (threadIdx.x % S::row_threads == 0) lse[row] = r.top + __log2f(r.sum) * 0.69314718f;
}

template <class S>
Launch plan(const Problem &p) {
  return {(unsigned)(p.batch * p.heads * p.seqlen_q / S::block_m), (unsigned)S::num_warps * 32, 0};
}

/* x is p.q, y is p.o. */
template <class S>
void run(const Problem &p, cudaStream_t stream) {
  Launch l = plan<S>(p);
  rows<S><<<l.grid, l.block, 0, stream>>>(p.q, p.o, p.lse, p.seqlen_kv);
}

template <class S>
Instance instance() {
  return {{S::kind == Softmax::safe ? "softmax_safe" : "softmax_online", "none", "ldg",
           S::held_columns > 0 ? "registers" : "reread", S::block_m,
           S::held_columns > 0 ? S::held_columns : S::step_columns, S::num_warps, 1, 0, false},
          (const void *)rows<S>,
          plan<S>,
          run<S>};
}

}  // namespace softmax_rows
