/* Streams of instructions that a warp repeats in rounds, on values that stay in registers. */
#pragma once

#include <cstdint>

#include "instructions.h"

namespace streams {

constexpr int num_values = 64;

struct Values {
  float x[num_values];
  uint32_t a, b;
  float f, g;
};

/* Maximum, exponentials, sum and conversion of 64 elements, as ptxas orders them for kernels/attention/flash3.h. */
struct Softmax {
  static constexpr int num_insts = 64 + 128 + 64 + 32;
  static __device__ __forceinline__ void round(Values &v) {
    float m[2] = {v.f, v.g}, s[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < 64; i++) fmnmx(m[i / 2 % 2], v.x[i]);
#pragma unroll
    for (int i = 0; i < 64; i++) {
      ffma(v.x[i], v.f, m[i / 2 % 2]);
      mufu(v.x[i]);
      if (i >= 8) fadd(s[i / 2 % 2], v.x[i - 8]);
      if (i % 2 && i >= 8) f2fp(v.x[i - 8], v.x[i - 7]);
    }
#pragma unroll
    for (int i = 56; i < 64; i++) {
      fadd(s[i / 2 % 2], v.x[i]);
      if (i % 2) f2fp(v.x[i], v.x[i - 1]);
    }
    v.x[0] += s[0] + s[1];
  }
};

template <class X>
__device__ __forceinline__ void rounds(int amount, uint32_t *sink, uint32_t r) {
  Values v;
  v.a = r * 3, v.b = r * 5, v.f = 0.5f + 0.001f * (float)r, v.g = 0.25f * (float)r;
#pragma unroll
  for (int i = 0; i < num_values; i++) v.x[i] = 1.0f + (float)(threadIdx.x + i) * 0.001f;
#pragma unroll 1
  for (int count = 0; count < amount; count++) X::round(v);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < num_values; i++) sum += v.x[i];
  sink[threadIdx.x] = __float_as_uint(sum);
}

}  // namespace streams
