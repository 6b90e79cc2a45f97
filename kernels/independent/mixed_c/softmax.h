/* Row softmax. Either each pass reads the row again (a CTA a row, NT*8 columns a step), or the row stays in registers
 * as stored (TPR threads a row, NV vectors of 8 a thread; TPR = 32: a warp a row, several rows a CTA). */
#pragma once

#include "ptx.h"

struct SoftmaxArgs {
  const void* x;
  void* y;
  int cols;
};

/* running (max, sum); all in the log2 domain */
__device__ __forceinline__ void merge_ml(float& m, float& l, float m2, float l2) {
  const float x = fmaxf(m, m2);
  l = l * exp2f(m - x) + l2 * exp2f(m2 - x);
  m = x;
}

template <int NW>
__device__ __forceinline__ float reduce_max(float v) {
#pragma unroll
  for (int i = 16; i; i >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, i));
  if constexpr (NW > 1) {
    __shared__ float red[NW];
    if ((threadIdx.x & 31) == 0) red[threadIdx.x >> 5] = v;
    __syncthreads();
    v = red[0];
#pragma unroll
    for (int w = 1; w < NW; w++) v = fmaxf(v, red[w]);
  }
  return v;
}
template <int NW>
__device__ __forceinline__ float reduce_sum(float v) {
#pragma unroll
  for (int i = 16; i; i >>= 1) v += __shfl_xor_sync(0xffffffffu, v, i);
  if constexpr (NW > 1) {
    __shared__ float red[NW];
    if ((threadIdx.x & 31) == 0) red[threadIdx.x >> 5] = v;
    __syncthreads();
    v = red[0];
#pragma unroll
    for (int w = 1; w < NW; w++) v += red[w];
  }
  return v;
}
template <int NW>
__device__ __forceinline__ void reduce_ml(float& m, float& l) {
#pragma unroll
  for (int i = 16; i; i >>= 1) {
    const float m2 = __shfl_xor_sync(0xffffffffu, m, i), l2 = __shfl_xor_sync(0xffffffffu, l, i);
    merge_ml(m, l, m2, l2);
  }
  if constexpr (NW > 1) {
    __shared__ float2 red[NW];
    if ((threadIdx.x & 31) == 0) red[threadIdx.x >> 5] = make_float2(m, l);
    __syncthreads();
    m = red[0].x;
    l = red[0].y;
#pragma unroll
    for (int w = 1; w < NW; w++) merge_ml(m, l, red[w].x, red[w].y);
  }
}

template <typename T>
__device__ __forceinline__ void unpack8(float (&f)[8], const uint4& v) { /* times log2(e) */
  const uint32_t u[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const float2 t = unpack2<T>(u[i]);
    f[2 * i] = t.x * LOG2E;
    f[2 * i + 1] = t.y * LOG2E;
  }
}
template <typename T>
__device__ __forceinline__ uint4 norm8(const float (&f)[8], float m, float inv) {
  uint32_t u[4];
#pragma unroll
  for (int i = 0; i < 4; i++) u[i] = pack2<T>(exp2f(f[2 * i] - m) * inv, exp2f(f[2 * i + 1] - m) * inv);
  return make_uint4(u[0], u[1], u[2], u[3]);
}
__device__ __forceinline__ float max8(const float (&f)[8]) {
  return fmaxf(fmaxf(fmaxf(f[0], f[1]), fmaxf(f[2], f[3])), fmaxf(fmaxf(f[4], f[5]), fmaxf(f[6], f[7])));
}
__device__ __forceinline__ float sumexp8(const float (&f)[8], float m) {
  float s = 0.f;
#pragma unroll
  for (int i = 0; i < 8; i++) s += exp2f(f[i] - m);
  return s;
}
__device__ __forceinline__ void online8(float& m, float& l, const float (&f)[8]) {
  const float x = fmaxf(m, max8(f));
  l = l * exp2f(m - x) + sumexp8(f, x);
  m = x;
}

template <typename T, bool ONLINE, int NW>
__global__ void __launch_bounds__(NW * 32) softmax_reread(const SoftmaxArgs p) {
  constexpr int NT = NW * 32;
  const uint4* x = reinterpret_cast<const uint4*>((const T*)p.x + (size_t)blockIdx.x * p.cols);
  uint4* y = reinterpret_cast<uint4*>((T*)p.y + (size_t)blockIdx.x * p.cols);
  const int nv = p.cols / 8;
  float m = -INFINITY, l = 0.f, f[8];
  if constexpr (ONLINE) {
    for (int i = threadIdx.x; i < nv; i += NT) {
      unpack8<T>(f, x[i]);
      online8(m, l, f);
    }
    reduce_ml<NW>(m, l);
  } else {
    for (int i = threadIdx.x; i < nv; i += NT) {
      unpack8<T>(f, x[i]);
      m = fmaxf(m, max8(f));
    }
    m = reduce_max<NW>(m);
    for (int i = threadIdx.x; i < nv; i += NT) {
      unpack8<T>(f, x[i]);
      l += sumexp8(f, m);
    }
    l = reduce_sum<NW>(l);
  }
  const float inv = 1.f / l;
  for (int i = threadIdx.x; i < nv; i += NT) {
    unpack8<T>(f, x[i]);
    y[i] = norm8<T>(f, m, inv);
  }
}

template <typename T, bool ONLINE, int TPR, int NV, int ROWS>
__global__ void __launch_bounds__(TPR* ROWS) softmax_regs(const SoftmaxArgs p) {
  static_assert(ROWS == 1 || TPR == 32, "a warp a row or a CTA a row");
  const int t = threadIdx.x % TPR;
  const size_t row = (size_t)blockIdx.x * ROWS + threadIdx.x / TPR;
  const uint4* x = reinterpret_cast<const uint4*>((const T*)p.x + row * p.cols);
  uint4* y = reinterpret_cast<uint4*>((T*)p.y + row * p.cols);
  uint4 v[NV];
#pragma unroll
  for (int i = 0; i < NV; i++) v[i] = x[t + i * TPR];
  float m = -INFINITY, l = 0.f, f[8];
  if constexpr (ONLINE) {
#pragma unroll
    for (int i = 0; i < NV; i++) {
      unpack8<T>(f, v[i]);
      online8(m, l, f);
    }
    reduce_ml<TPR / 32>(m, l);
  } else {
#pragma unroll
    for (int i = 0; i < NV; i++) {
      unpack8<T>(f, v[i]);
      m = fmaxf(m, max8(f));
    }
    m = reduce_max<TPR / 32>(m);
#pragma unroll
    for (int i = 0; i < NV; i++) {
      unpack8<T>(f, v[i]);
      l += sumexp8(f, m);
    }
    l = reduce_sum<TPR / 32>(l);
  }
  const float inv = 1.f / l;
#pragma unroll
  for (int i = 0; i < NV; i++) {
    unpack8<T>(f, v[i]);
    y[t + i * TPR] = norm8<T>(f, m, inv);
  }
}
