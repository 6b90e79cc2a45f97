/* Row softmax, fp16 in and out. TPR threads share a row: a whole CTA, or one warp (then 4 rows a CTA). */
#pragma once

#include "ptx.h"

template <int TPR>
constexpr int softmax_threads() {
  return TPR == 32 ? 128 : TPR;
}

__device__ __forceinline__ void unpack8(float (&f)[8], const uint4& u) {
  const half2* h = reinterpret_cast<const half2*>(&u);
#pragma unroll
  for (int i = 0; i < 4; i++) {
    float2 x = __half22float2(h[i]);
    f[2 * i] = x.x, f[2 * i + 1] = x.y;
  }
}
template <int TPR, bool MAX>
__device__ __forceinline__ float row_reduce(float v, float* red) {
#pragma unroll
  for (int o = 16; o; o >>= 1) {
    float w = __shfl_xor_sync(0xffffffffu, v, o);
    v = MAX ? fmaxf(v, w) : v + w;
  }
  if constexpr (TPR > 32) {
    if ((threadIdx.x & 31) == 0) red[threadIdx.x >> 5] = v;
    __syncthreads();
    v = red[0];
#pragma unroll
    for (int i = 1; i < TPR / 32; i++) v = MAX ? fmaxf(v, red[i]) : v + red[i];
    __syncthreads();
  }
  return v;
}
template <int TPR>
__device__ __forceinline__ size_t my_row() {
  return TPR == 32 ? (size_t)blockIdx.x * 4 + (threadIdx.x >> 5) : blockIdx.x;
}

/* three passes, each reads the row again */
template <int TPR>
__global__ __launch_bounds__(softmax_threads<TPR>()) void softmax_safe_reread(const half* X, half* Y, int cols) {
  __shared__ float red[32];
  const size_t row = my_row<TPR>();
  const int lt = threadIdx.x % TPR, nch = cols / 8;
  const uint4* x = reinterpret_cast<const uint4*>(X + row * cols);
  uint4* y = reinterpret_cast<uint4*>(Y + row * cols);
  float f[8], mx = -INFINITY, sum = 0.f;
  for (int c = lt; c < nch; c += TPR) {
    unpack8(f, x[c]);
#pragma unroll
    for (int i = 0; i < 8; i++) mx = fmaxf(mx, f[i]);
  }
  mx = row_reduce<TPR, true>(mx, red) * LOG2E;
  for (int c = lt; c < nch; c += TPR) {
    unpack8(f, x[c]);
#pragma unroll
    for (int i = 0; i < 8; i++) sum += ex2(fmaf(f[i], LOG2E, -mx));
  }
  const float inv = 1.f / row_reduce<TPR, false>(sum, red);
  for (int c = lt; c < nch; c += TPR) {
    unpack8(f, x[c]);
    uint32_t p[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
      p[i] = pack2(ex2(fmaf(f[2 * i], LOG2E, -mx)) * inv, ex2(fmaf(f[2 * i + 1], LOG2E, -mx)) * inv);
    y[c] = make_uint4(p[0], p[1], p[2], p[3]);
  }
}

/* the row (TPR*CH*8 columns) stays in registers; may work in place */
template <int TPR, int CH>
__global__ __launch_bounds__(softmax_threads<TPR>()) void softmax_safe_regs(const half* X, half* Y) {
  __shared__ float red[32];
  constexpr int cols = TPR * CH * 8;
  const size_t row = my_row<TPR>();
  const int lt = threadIdx.x % TPR;
  const uint4* x = reinterpret_cast<const uint4*>(X + row * cols);
  uint4* y = reinterpret_cast<uint4*>(Y + row * cols);
  uint4 raw[CH];
#pragma unroll
  for (int c = 0; c < CH; c++) raw[c] = x[lt + c * TPR];
  float f[CH][8], mx = -INFINITY, sum = 0.f;
#pragma unroll
  for (int c = 0; c < CH; c++) {
    unpack8(f[c], raw[c]);
#pragma unroll
    for (int i = 0; i < 8; i++) mx = fmaxf(mx, f[c][i]);
  }
  mx = row_reduce<TPR, true>(mx, red) * LOG2E;
#pragma unroll
  for (int c = 0; c < CH; c++)
#pragma unroll
    for (int i = 0; i < 8; i++) {
      f[c][i] = ex2(fmaf(f[c][i], LOG2E, -mx));
      sum += f[c][i];
    }
  const float inv = 1.f / row_reduce<TPR, false>(sum, red);
#pragma unroll
  for (int c = 0; c < CH; c++)
    y[lt + c * TPR] = make_uint4(pack2(f[c][0] * inv, f[c][1] * inv), pack2(f[c][2] * inv, f[c][3] * inv),
                                 pack2(f[c][4] * inv, f[c][5] * inv), pack2(f[c][6] * inv, f[c][7] * inv));
}

/* two passes: running (max, sum), then normalise */
template <int TPR>
__global__ __launch_bounds__(softmax_threads<TPR>()) void softmax_online(const half* X, half* Y, int cols) {
  __shared__ float red[32];
  const size_t row = my_row<TPR>();
  const int lt = threadIdx.x % TPR, nch = cols / 8;
  const uint4* x = reinterpret_cast<const uint4*>(X + row * cols);
  uint4* y = reinterpret_cast<uint4*>(Y + row * cols);
  float f[8], m = -1e30f, l = 0.f;
  for (int c = lt; c < nch; c += TPR) {
    unpack8(f, x[c]);
    float mn = m;
#pragma unroll
    for (int i = 0; i < 8; i++) mn = fmaxf(mn, f[i]);
    const float ms = mn * LOG2E;
    l *= ex2(fmaf(m, LOG2E, -ms));
#pragma unroll
    for (int i = 0; i < 8; i++) l += ex2(fmaf(f[i], LOG2E, -ms));
    m = mn;
  }
  const float M = row_reduce<TPR, true>(m, red);
  const float ms = M * LOG2E;
  const float inv = 1.f / row_reduce<TPR, false>(l * ex2(fmaf(m, LOG2E, -ms)), red);
  for (int c = lt; c < nch; c += TPR) {
    unpack8(f, x[c]);
    uint32_t p[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
      p[i] = pack2(ex2(fmaf(f[2 * i], LOG2E, -ms)) * inv, ex2(fmaf(f[2 * i + 1], LOG2E, -ms)) * inv);
    y[c] = make_uint4(p[0], p[1], p[2], p[3]);
  }
}
