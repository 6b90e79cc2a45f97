/* Softmax of rows: "safe" finds the maximum, then the sum, then divides; "online" finds maximum and sum in one pass.
 * A row stays in registers (of a CTA or of a warp) or in shared memory, or is read again. Columns: whole 16-byte words. */
#pragma once

#include "ptx.h"

namespace decode_a {

template <class T>
struct Vector {
  static constexpr int n = 16 / sizeof(T);
};

template <class T>
__device__ __forceinline__ void unpack(uint4 word, float (&x)[Vector<T>::n]) {
  const T *values = (const T *)&word;
#pragma unroll
  for (int i = 0; i < Vector<T>::n; i++) x[i] = independent::as_float(values[i]);
}
template <class T>
__device__ __forceinline__ uint4 packed(const float (&x)[Vector<T>::n]) {
  if constexpr (sizeof(T) == 4)
    return make_uint4(__float_as_uint(x[0]), __float_as_uint(x[1]), __float_as_uint(x[2]), __float_as_uint(x[3]));
  else
    return make_uint4(pack2<T>(x[0], x[1]), pack2<T>(x[2], x[3]), pack2<T>(x[4], x[5]), pack2<T>(x[6], x[7]));
}

__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
  for (int step = 16; step > 0; step >>= 1) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
  return x;
}
__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
  for (int step = 16; step > 0; step >>= 1) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}
/* Of all threads; `scratch` is used once per kernel. */
template <int WARPS>
__device__ __forceinline__ float block_max(float x, float *scratch) {
  x = warp_max(x);
  if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = x;
  __syncthreads();
  x = scratch[0];
#pragma unroll
  for (int w = 1; w < WARPS; w++) x = fmaxf(x, scratch[w]);
  return x;
}
template <int WARPS>
__device__ __forceinline__ float block_sum(float x, float *scratch) {
  x = warp_sum(x);
  if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = x;
  __syncthreads();
  x = scratch[0];
#pragma unroll
  for (int w = 1; w < WARPS; w++) x += scratch[w];
  return x;
}

/* A thread's running maximum (times log2 e) and sum. */
struct Online {
  float top = -INFINITY, sum = 0.f;
  template <int N>
  __device__ __forceinline__ void add(const float (&x)[N]) {
    float m = x[0];
#pragma unroll
    for (int i = 1; i < N; i++) m = fmaxf(m, x[i]);
    m = fmaxf(top, m * log2e);
    const float safe = finite_top(m);
    sum *= ex2(top - safe);
#pragma unroll
    for (int i = 0; i < N; i++) sum += ex2(fmaf(x[i], log2e, -safe));
    top = m;
  }
};

template <class T, int WARPS, int VECTORS>
__global__ void __launch_bounds__(WARPS * 32) softmax_in_registers(const T *x, T *y, int columns) {
  __shared__ float maxima[WARPS], sums[WARPS];
  constexpr int N = Vector<T>::n;
  const uint4 *from = (const uint4 *)(x + (size_t)blockIdx.x * columns);
  uint4 *to = (uint4 *)(y + (size_t)blockIdx.x * columns);
  const int words = columns / N;
  float values[VECTORS][N];
#pragma unroll
  for (int i = 0; i < VECTORS; i++) {
    const int at = threadIdx.x + i * WARPS * 32;
    if (at < words) {
      unpack<T>(from[at], values[i]);
    } else {
#pragma unroll
      for (int j = 0; j < N; j++) values[i][j] = -INFINITY;
    }
  }
  float top = -INFINITY, sum = 0.f;
#pragma unroll
  for (int i = 0; i < VECTORS; i++)
#pragma unroll
    for (int j = 0; j < N; j++) top = fmaxf(top, values[i][j]);
  const float scaled = block_max<WARPS>(top, maxima) * log2e;
#pragma unroll
  for (int i = 0; i < VECTORS; i++)
#pragma unroll
    for (int j = 0; j < N; j++) sum += values[i][j] = ex2(fmaf(values[i][j], log2e, -scaled));
  const float inverse = 1.f / block_sum<WARPS>(sum, sums);
#pragma unroll
  for (int i = 0; i < VECTORS; i++) {
    const int at = threadIdx.x + i * WARPS * 32;
#pragma unroll
    for (int j = 0; j < N; j++) values[i][j] *= inverse;
    if (at < words) to[at] = packed<T>(values[i]);
  }
}

/* A warp a row. */
template <class T, int WARPS, int VECTORS>
__global__ void __launch_bounds__(WARPS * 32) softmax_in_warp(const T *x, T *y, int rows, int columns) {
  constexpr int N = Vector<T>::n;
  const int row = blockIdx.x * WARPS + (threadIdx.x >> 5), lane = threadIdx.x & 31, words = columns / N;
  if (row >= rows) return;
  const uint4 *from = (const uint4 *)(x + (size_t)row * columns);
  uint4 *to = (uint4 *)(y + (size_t)row * columns);
  float values[VECTORS][N], top = -INFINITY, sum = 0.f;
#pragma unroll
  for (int i = 0; i < VECTORS; i++) {
    const int at = lane + i * 32;
    if (at < words) {
      unpack<T>(from[at], values[i]);
    } else {
#pragma unroll
      for (int j = 0; j < N; j++) values[i][j] = -INFINITY;
    }
#pragma unroll
    for (int j = 0; j < N; j++) top = fmaxf(top, values[i][j]);
  }
  const float scaled = warp_max(top) * log2e;
#pragma unroll
  for (int i = 0; i < VECTORS; i++)
#pragma unroll
    for (int j = 0; j < N; j++) sum += values[i][j] = ex2(fmaf(values[i][j], log2e, -scaled));
  const float inverse = 1.f / warp_sum(sum);
#pragma unroll
  for (int i = 0; i < VECTORS; i++) {
    const int at = lane + i * 32;
#pragma unroll
    for (int j = 0; j < N; j++) values[i][j] *= inverse;
    if (at < words) to[at] = packed<T>(values[i]);
  }
}

/* Online; the row is kept in dynamic shared memory (IN_SHARED; each thread its own words) or read twice. */
template <class T, int WARPS, bool IN_SHARED>
__global__ void __launch_bounds__(WARPS * 32) softmax_online_rows(const T *x, T *y, int columns) {
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ float maxima[WARPS], sums[WARPS];
  constexpr int N = Vector<T>::n;
  const uint4 *from = (const uint4 *)(x + (size_t)blockIdx.x * columns);
  uint4 *to = (uint4 *)(y + (size_t)blockIdx.x * columns), *row = (uint4 *)shared;
  const int words = columns / N;
  Online online;
#pragma unroll 4
  for (int at = threadIdx.x; at < words; at += WARPS * 32) {
    const uint4 word = from[at];
    if constexpr (IN_SHARED) row[at] = word;
    float values[N];
    unpack<T>(word, values);
    online.add(values);
  }
  const float top = block_max<WARPS>(online.top, maxima);
  const float inverse = 1.f / block_sum<WARPS>(online.sum * ex2(online.top - top), sums);
#pragma unroll 4
  for (int at = threadIdx.x; at < words; at += WARPS * 32) {
    float values[N];
    unpack<T>(IN_SHARED ? row[at] : from[at], values);
#pragma unroll
    for (int j = 0; j < N; j++) values[j] = ex2(fmaf(values[j], log2e, -top)) * inverse;
    to[at] = packed<T>(values);
  }
}

/* Safe; the row is read three times. */
template <class T, int WARPS>
__global__ void __launch_bounds__(WARPS * 32) softmax_three_passes(const T *x, T *y, int columns) {
  __shared__ float maxima[WARPS], sums[WARPS];
  constexpr int N = Vector<T>::n;
  const uint4 *from = (const uint4 *)(x + (size_t)blockIdx.x * columns);
  uint4 *to = (uint4 *)(y + (size_t)blockIdx.x * columns);
  const int words = columns / N;
  float top = -INFINITY, sum = 0.f;
#pragma unroll 4
  for (int at = threadIdx.x; at < words; at += WARPS * 32) {
    float values[N];
    unpack<T>(from[at], values);
#pragma unroll
    for (int j = 0; j < N; j++) top = fmaxf(top, values[j]);
  }
  const float scaled = block_max<WARPS>(top, maxima) * log2e;
#pragma unroll 4
  for (int at = threadIdx.x; at < words; at += WARPS * 32) {
    float values[N];
    unpack<T>(from[at], values);
#pragma unroll
    for (int j = 0; j < N; j++) sum += ex2(fmaf(values[j], log2e, -scaled));
  }
  const float inverse = 1.f / block_sum<WARPS>(sum, sums);
#pragma unroll 4
  for (int at = threadIdx.x; at < words; at += WARPS * 32) {
    float values[N];
    unpack<T>(from[at], values);
#pragma unroll
    for (int j = 0; j < N; j++) values[j] = ex2(fmaf(values[j], log2e, -scaled)) * inverse;
    to[at] = packed<T>(values);
  }
}

}  // namespace decode_a
