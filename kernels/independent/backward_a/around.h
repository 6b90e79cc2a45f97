/* The kernels before and behind the main one: D = rowsum(dO * O) with LSE in base 2 and the dQ sums zeroed; dQ rounded. */
#pragma once

#include "configuration.h"

namespace backward_a {

constexpr int PREPROCESS_THREADS = 128;

/* The product of eight elements. */
template <class T>
__device__ __forceinline__ float dot8(const uint4 &x, const uint4 &y) {
  const T *a = (const T *)&x, *b = (const T *)&y;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 8; i++) sum += independent::as_float(a[i]) * independent::as_float(b[i]);
  return sum;
}

/* D of the rows [first, first + BM), by all THREADS; the row's first thread calls `take(row in block, D)`. */
template <class T, int D, int BM, int THREADS, class Take>
__device__ __forceinline__ void row_deltas(const T *o, const T *d_o, int first, int rows, Take take) {
  constexpr int LANES = D / 8, PER_PASS = THREADS / LANES;
  static_assert(BM % PER_PASS == 0, "rows and threads do not match");
  int lane = threadIdx.x % LANES;
#pragma unroll
  for (int pass = 0; pass < BM / PER_PASS; pass++) {
    int row = pass * PER_PASS + threadIdx.x / LANES;
    float sum = 0;
    if (first + row < rows) {
      size_t at = (size_t)(first + row) * D + lane * 8;
      sum = dot8<T>(__ldg((const uint4 *)(o + at)), __ldg((const uint4 *)(d_o + at)));
    }
#pragma unroll
    for (int distance = LANES / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    if (lane == 0) take(row, sum);
  }
}

/* Grid (m_blocks, heads, batch). */
template <class T, int D, int BM>
__global__ void __launch_bounds__(PREPROCESS_THREADS) preprocess(Arguments<T> a) {
  int first = blockIdx.x * BM;
  size_t head = (size_t)blockIdx.z * a.heads + blockIdx.y, rows = head * a.seqlen_q,
         padded = (head * a.m_blocks + blockIdx.x) * BM;
  row_deltas<T, D, BM, PREPROCESS_THREADS>(a.o + rows * D, a.d_o + rows * D, first, a.seqlen_q,
                                           [&](int row, float delta) { a.delta[padded + row] = delta; });
  for (int row = threadIdx.x; row < BM; row += PREPROCESS_THREADS)
    a.lse_log2[padded + row] = first + row < a.seqlen_q ? lse_in_base_2(a.lse[rows + first + row]) : INFINITY;
  float4 *sums = (float4 *)(a.dq_sum + padded * D);
#pragma unroll
  for (int i = 0; i < BM * D / 4 / PREPROCESS_THREADS; i++)
    sums[i * PREPROCESS_THREADS + threadIdx.x] = make_float4(0.f, 0.f, 0.f, 0.f);
}

/* Grid (m_blocks, heads, batch). */
template <class C>
__global__ void __launch_bounds__(C::THREADS) convert_dq(Arguments<typename C::T> a) {
  typedef typename C::T T;
  __shared__ __align__(128) unsigned char tile[C::Q_BYTES];
  size_t head = (size_t)blockIdx.z * a.heads + blockIdx.y;
  const float *block = a.dq_sum + (head * a.m_blocks + blockIdx.x) * (C::BM * C::D);
  float dq[C::Q_MT][C::Q_NT][4];
#pragma unroll
  for (int i = 0; i < C::Q_MT; i++)
#pragma unroll
    for (int j = 0; j < C::Q_NT; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) dq[i][j][e] = block[((i * C::Q_NT + j) * 4 + e) * C::THREADS + threadIdx.x];
  int warp = threadIdx.x / 32;
  store_accumulator<T, C::D>(tile, dq, (warp % C::Q_WARPS_M) * (C::Q_MT * 16), (warp / C::Q_WARPS_M) * (C::Q_NT * 8),
                             a.scale);
  __syncthreads();
  store_tile<C::BM, C::D, C::THREADS>(tile, a.dq + head * a.seqlen_q * C::D, blockIdx.x * C::BM, a.seqlen_q);
}

}  // namespace backward_a
