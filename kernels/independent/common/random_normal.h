/* Fills a tensor with normal numbers that depend on the seed and the position alone. */
#pragma once

#include <cstdint>

#include "error.h"
#include "number.h"

namespace independent {

__device__ inline uint64_t mix_bits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

template <class T>
__global__ void normal_numbers(T *to, size_t count, uint64_t seed) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) {
    uint64_t bits = mix_bits((i + 1) * 0x9e3779b97f4a7c15ull + seed * 0x1234567abcdefull);
    float radius = sqrtf(-2.f * logf(((uint32_t)bits >> 8) * 0x1p-24f + 0x1p-25f));
    to[i] = T(radius * cospif(2.f * (uint32_t)(bits >> 40) * 0x1p-24f));
  }
}

template <class T>
inline void fill_normal(T *to, size_t count, uint64_t seed) {
  normal_numbers<<<1024, 256>>>(to, count, seed);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace independent
