/* A load whose SM clock is read while it runs: two warpgroups a SM issue math for `tensor` percent of the time (wgmma
 * m64n128k16, mma.sync m16n8k16, FFMA or MUFU.EX2), four warps read a region for `memory` percent, and one thread takes
 * SM cycles (clock64) and wall time (globaltimer) every few microseconds. */
#pragma once

#include <cmath>

#include "bench.h"
#include "hopper.h"

namespace clock_load {

using namespace bench;

struct Sample {
  uint64_t cycle, ns;
};

constexpr int max_samples = 65536;
constexpr int tensor_threads = 256, memory_threads = 128;

__device__ __forceinline__ void rest(uint64_t busy_cycles, int percent) {
  uint64_t begin = cycles64(), idle = busy_cycles * (uint64_t)(100 - percent) / (uint64_t)percent;
  while (cycles64() < begin + idle) __nanosleep(64);
}

/* One thread asks the time for its warpgroup: wgmma needs all 128 threads to agree. */
__device__ __forceinline__ bool group_goes_on(volatile bool *going_on, uint32_t group, uint64_t deadline) {
  if (threadIdx.x % 128 == 0) going_on[group] = global_ns() < deadline;
  hopper::named_sync((int)group + 1, 128);
  bool result = going_on[group];
  hopper::named_sync((int)group + 1, 128);
  return result;
}

enum class Math { wgmma, mma, ffma, mufu };

/* About 1000 cycles of math on all four sub-cores. */
template <Math math>
__device__ __forceinline__ void batch(float (&d)[64], uint64_t a, uint64_t b, const uint4 *operands) {
  if constexpr (math == Math::wgmma) {
    hopper::wgmma_fence();
#pragma unroll
    for (int k = 0; k < 16; k++) Wgmma<128>::ss<0>(d, a + (uint64_t)(k % 4 * 2), b + (uint64_t)(k % 4 * 2), k != 0);
    hopper::wgmma_commit();
    hopper::wgmma_wait<0>();
    hopper::keep(d);
  } else {
    uint4 x = operands[threadIdx.x], y = operands[threadIdx.x + 512];
    for (int i = 0; i < 16; i++) {
#pragma unroll
      for (int k = 0; k < 8; k++) {
        if constexpr (math == Math::mma) {
          asm volatile(
              "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
              : "+f"(d[k * 4]), "+f"(d[k * 4 + 1]), "+f"(d[k * 4 + 2]), "+f"(d[k * 4 + 3])
              : "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w), "r"(y.x), "r"(y.y));
        } else {
#pragma unroll
          for (int m = 0; m < 8; m++) {
            if constexpr (math == Math::ffma)
              asm volatile("fma.rn.f32 %0, %0, %1, %2;"
                           : "+f"(d[k * 8 + m])
                           : "f"(__uint_as_float(x.x & 0xbfffffff)), "f"(__uint_as_float(y.x & 0xbfffffff)));
            else if (m < 1)
              asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(d[k * 8 + m]) : "f"(d[k * 8 + m]));
          }
        }
      }
    }
  }
}

/* What `work[0]` of mixed_load counts: floating-point operations, exponentials of MUFU. */
inline double operations_per_count(Math math) {
  return math == Math::wgmma  ? 64. * 128 * 16 * 2
         : math == Math::mma  ? 4 * 8 * 16. * 8 * 16 * 2
         : math == Math::ffma ? 128 * 64. * 2
                              : 128 * 8.;
}

template <Math math>
__global__ __launch_bounds__(tensor_threads + memory_threads +
                             32) void mixed_load(const uint4 *operands, const uint4 *region, size_t region_count,
                                                 int tensor_pct, int memory_pct, uint64_t run_ns, Sample *samples,
                                                 int *num_samples, unsigned long long *work, uint32_t *sink) {
  extern __shared__ __align__(1024) uint8_t tiles[];
  __shared__ volatile bool going_on[2];
  for (uint32_t i = threadIdx.x; i < 49152 / 16; i += blockDim.x) ((uint4 *)tiles)[i] = operands[i];
  hopper::proxy_fence();
  __syncthreads();
  uint64_t deadline = global_ns() + run_ns;
  if (threadIdx.x < tensor_threads) {
    if (tensor_pct == 0) return;
    float d[64];
    for (int i = 0; i < 64; i++) d[i] = 0;
    uint32_t base = hopper::smem(tiles);
    uint64_t a = hopper::descriptor(base + threadIdx.x / 128 * 8192, 16, 1024),
             b = hopper::descriptor(base + 16384, 16, 1024);
    unsigned long long count = 0;
    while (group_goes_on(going_on, threadIdx.x / 128, deadline)) {
      uint64_t begin = cycles64();
      batch<math>(d, a, b, operands);
      count += 16;
      if (tensor_pct < 100) rest(cycles64() - begin, tensor_pct);
      __syncwarp();
    }
    float sum = 0;
    for (int i = 0; i < 64; i++) sum += d[i];
    sink[threadIdx.x] = __float_as_uint(sum);
    if (threadIdx.x % 128 == 0) atomicAdd(&work[0], count);
  } else if (threadIdx.x < tensor_threads + memory_threads) {
    if (memory_pct == 0) return;
    uint32_t sum = 0;
    size_t lane = threadIdx.x - tensor_threads, step = (size_t)gridDim.x * memory_threads * 16;
    size_t at = blockIdx.x * (size_t)memory_threads * 16 + lane;
    unsigned long long bytes = 0;
    while (global_ns() < deadline) {
      uint64_t begin = cycles64();
      for (int repeat = 0; repeat < 4; repeat++) {
        uint4 v[16];
#pragma unroll
        for (int k = 0; k < 16; k++) v[k] = __ldcg(region + at + (size_t)(k * memory_threads));
#pragma unroll
        for (int k = 0; k < 16; k++) sum ^= v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
        at += step;
        if (at + (size_t)(16 * memory_threads) >= region_count) at = blockIdx.x * (size_t)memory_threads * 16 + lane;
      }
      bytes += 4 * 16 * 16;
      if (memory_pct < 100) rest(cycles64() - begin, memory_pct);
    }
    sink[threadIdx.x] = sum;
    atomicAdd(&work[1], bytes);
  } else if (blockIdx.x == 0 && threadIdx.x == tensor_threads + memory_threads) {
    int count = 0;
    for (uint64_t now = global_ns(); now < deadline && count < max_samples; now = global_ns()) {
      samples[count++] = {cycles64(), now};
      uint64_t next = now + (count < 2000 ? 2000 : 20000);
      while (global_ns() < next) __nanosleep(200);
    }
    *num_samples = count;
  }
}

inline uint16_t half_bits(float f) {
  __half h = __float2half(f);
  uint16_t bits;
  memcpy(&bits, &h, 2);
  return bits;
}

inline std::vector<uint16_t> normal_halves(size_t count) {
  Random random;
  std::vector<uint16_t> v(count);
  for (size_t i = 0; i < count; i++) {
    double u = ((double)(random.next() >> 11) + 1) / 9007199254740993.0,
           w = (double)(random.next() >> 11) / 9007199254740992.0;
    v[i] = half_bits((float)(sqrt(-2 * log(u)) * cos(6.283185307179586 * w)));
  }
  return v;
}

inline double mhz_between(const std::vector<Sample> &s, uint64_t from_ns, uint64_t to_ns) {
  size_t a = 0, b = 0;
  for (size_t i = 0; i < s.size(); i++) {
    if (s[i].ns - s[0].ns <= from_ns) a = i;
    if (s[i].ns - s[0].ns <= to_ns) b = i;
  }
  return b > a ? (double)(s[b].cycle - s[a].cycle) * 1e3 / (double)(s[b].ns - s[a].ns) : -1;
}

}  // namespace clock_load
