/* Accumulators of 16 rows a warp, as mma.m16n8 and wgmma.m64nN lay them out: element 4n + 2r + e of a thread is row
 * lane / 4 + 8r, column 8n + 2 (lane % 4) + e. */
#pragma once

#include <cstdint>

#include "work.h"

namespace mixed_e {

__device__ inline int lane_id() { return threadIdx.x % 32; }

__device__ inline float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

template <class T>
__device__ uint32_t pack(float low, float high) {
  uint32_t word;
  if constexpr (independent::is_bf16<T>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

/* The A operand of 16 columns, from the accumulators of two column tiles. */
template <class T, int Count>
__device__ void pack_columns(uint32_t (&a)[4], const float (&s)[Count], int step) {
#pragma unroll
  for (int i = 0; i < 4; i++) a[i] = pack<T>(s[8 * step + 2 * i], s[8 * step + 2 * i + 1]);
}

__device__ inline float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
__device__ inline float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

/* Of a thread's two rows: largest score so far, and the sum over this thread's columns alone. */
struct Softmax {
  float top[2] = {-INFINITY, -INFINITY}, sum[2] = {0.f, 0.f};

  /* Scores to exp(scale (score - top)). `correction` is what earlier sums are to be multiplied by. */
  template <int Count>
  __device__ void step(float (&s)[Count], float scale_log2, float (&correction)[2]) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
      float largest = s[2 * r];
#pragma unroll
      for (int i = 2 * r; i < Count; i += 4) largest = fmaxf(largest, fmaxf(s[i], s[i + 1]));
      largest = fmaxf(top[r], quad_max(largest));
      const float shift = largest == -INFINITY ? 0.f : largest * scale_log2;
      correction[r] = exp2_approx(top[r] * scale_log2 - shift);
      top[r] = largest;
      float part[2] = {0.f, 0.f};
#pragma unroll
      for (int i = 2 * r; i < Count; i += 4) {
#pragma unroll
        for (int e = 0; e < 2; e++) {
          s[i + e] = exp2_approx(fmaf(s[i + e], scale_log2, -shift));
          part[e] += s[i + e];
        }
      }
      sum[r] = sum[r] * correction[r] + (part[0] + part[1]);
    }
  }
};

template <int Count>
__device__ void rescale(float (&o)[Count], const float (&correction)[2]) {
#pragma unroll
  for (int i = 0; i < Count; i++) o[i] *= correction[i / 2 % 2];
}

/* `row`: the thread's first one. */
template <bool Causal, int Count>
__device__ void mask(float (&s)[Count], const Arguments &a, int row, int first_key) {
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const int end = visible_keys<Causal>(a, row + 8 * r) - first_key - lane_id() % 4 * 2;
#pragma unroll
    for (int i = 2 * r; i < Count; i += 4) {
      if (i / 4 * 8 >= end) s[i] = -INFINITY;
      if (i / 4 * 8 + 1 >= end) s[i + 1] = -INFINITY;
    }
  }
}

/* word[j] of lane i of a quad becomes word[i] of lane j. */
__device__ inline void transpose_quad(uint32_t (&word)[4]) {
  const bool upper = lane_id() & 2, odd = lane_id() & 1;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const uint32_t got = __shfl_xor_sync(~0u, upper ? word[i] : word[i + 2], 2);
    word[i] = upper ? got : word[i];
    word[i + 2] = upper ? word[i + 2] : got;
  }
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const uint32_t got = __shfl_xor_sync(~0u, odd ? word[i] : word[i + 1], 1);
    word[i] = odd ? got : word[i];
    word[i + 1] = odd ? word[i + 1] : got;
  }
}

/* Writes O and LSE of 16 rows; `row`: the thread's first one. */
template <class T, int Count>
__device__ void store_rows(const float (&o)[Count], const Softmax &softmax, const Arguments &a, const Work &work,
                           int row) {
  const int column = lane_id() % 4 * 8;
  T *const head = (T *)a.o + work.sequence * a.q_strides.batch + work.head * a.q_strides.head + column;
  float *const lse = a.lse + ((int64_t)work.sequence * a.heads + work.head) * a.seqlen_q;
#pragma unroll
  for (int r = 0; r < 2; r++, row += 8) {
    const float sum = quad_sum(softmax.sum[r]), inverse = sum == 0.f ? 0.f : 1.f / sum;
    const bool exists = row < a.seqlen_q;
#pragma unroll
    for (int i = 0; i < Count; i += 16) { /* 32 columns */
      uint32_t word[4];
#pragma unroll
      for (int j = 0; j < 4; j++) word[j] = pack<T>(o[i + 4 * j + 2 * r] * inverse, o[i + 4 * j + 2 * r + 1] * inverse);
      transpose_quad(word);
      if (exists) *(uint4 *)(head + row * a.q_strides.row + i * 2) = make_uint4(word[0], word[1], word[2], word[3]);
    }
    if (exists && column == 0) lse[row] = sum == 0.f ? -INFINITY : softmax.top[r] * a.scale + logf(sum);
  }
}

}  // namespace mixed_e
