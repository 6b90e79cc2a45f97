/* The SM clock that a load lets the card hold: SM cycles (clock64) over wall time (globaltimer), in windows from the
 * kernel's start, and power as the driver reports it (an average over about a second: no use for short runs). Two
 * warpgroups a SM issue math for `tensor` percent of the time: wgmma m64n128k16, mma.sync m16n8k16, FFMA or MUFU.EX2;
 * four warps read DRAM for `memory` percent. Operands are normally distributed, or zeros. Each run starts after a
 * pause, which the variant names, because the clock remembers the load before. */
#include <chrono>
#include <cmath>
#include <thread>

#include "bench.h"
#include "hopper.h"
#include "nvml.h"
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

template <Math math>
__global__ __launch_bounds__(tensor_threads + memory_threads +
                             32) void load(const uint4 *operands, const uint4 *region, size_t region_count,
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

static uint16_t half_bits(float f) {
  __half h = __float2half(f);
  uint16_t bits;
  memcpy(&bits, &h, 2);
  return bits;
}

static std::vector<uint16_t> normal_halves(size_t count) {
  Random random;
  std::vector<uint16_t> v(count);
  for (size_t i = 0; i < count; i++) {
    double u = ((double)(random.next() >> 11) + 1) / 9007199254740993.0,
           w = (double)(random.next() >> 11) / 9007199254740992.0;
    v[i] = half_bits((float)(sqrt(-2 * log(u)) * cos(6.283185307179586 * w)));
  }
  return v;
}

static double mhz_between(const std::vector<Sample> &s, uint64_t from_ns, uint64_t to_ns) {
  size_t a = 0, b = 0;
  for (size_t i = 0; i < s.size(); i++) {
    if (s[i].ns - s[0].ns <= from_ns) a = i;
    if (s[i].ns - s[0].ns <= to_ns) b = i;
  }
  return b > a ? (double)(s[b].cycle - s[a].cycle) * 1e3 / (double)(s[b].ns - s[a].ns) : -1;
}

int main() {
  const size_t region_count = ((size_t)8 << 30) / 16;
  uint4 *region = device_alloc<uint4>(region_count), *zeros = device_alloc<uint4>(49152 / 16),
        *normal = device_alloc<uint4>(49152 / 16);
  std::vector<uint16_t> halves = normal_halves((size_t)4 << 20);
  CUDA_CHECK(cudaMemcpy(normal, halves.data(), 49152, cudaMemcpyHostToDevice));
  for (size_t at = 0; at < region_count * 16; at += halves.size() * 2)
    CUDA_CHECK(cudaMemcpy((char *)region + at, halves.data(), halves.size() * 2, cudaMemcpyHostToDevice));
  Sample *samples = device_alloc<Sample>(max_samples);
  int *num_samples = device_alloc<int>(1);
  unsigned long long *work = device_alloc<unsigned long long>(2);
  uint32_t *sink = device_alloc<uint32_t>(1024);
  Nvml nvml;

  struct Load {
    Math math;
    int tensor_pct, memory_pct;
    bool is_normal;
    int run_ms, pause_ms;
  };
  std::vector<Load> loads;
  for (int memory_pct : {0, 50, 100})
    for (int tensor_pct : {0, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100})
      loads.push_back({Math::wgmma, tensor_pct, memory_pct, true, 400, 400});
  for (int memory_pct : {0, 100})
    for (int tensor_pct : {10, 25, 50, 75, 100}) loads.push_back({Math::mma, tensor_pct, memory_pct, true, 400, 400});
  for (Math math : {Math::ffma, Math::mufu})
    for (int tensor_pct : {25, 50, 100}) loads.push_back({math, tensor_pct, 0, true, 400, 400});
  for (int tensor_pct : {25, 50, 75, 100}) loads.push_back({Math::wgmma, tensor_pct, 0, false, 400, 400});
  for (int memory_pct : {0, 100}) loads.push_back({Math::wgmma, 100, memory_pct, true, 3000, 400});
  const char *names[] = {"wgmma", "mma", "ffma", "mufu"};

  for (const Load &l : loads) {
    auto kernel = l.math == Math::wgmma  ? load<Math::wgmma>
                  : l.math == Math::mma  ? load<Math::mma>
                  : l.math == Math::ffma ? load<Math::ffma>
                                         : load<Math::mufu>;
    allow_shared(kernel, whole_sm_bytes);
    std::this_thread::sleep_for(std::chrono::milliseconds(l.pause_ms));
    CUDA_CHECK(cudaMemset(work, 0, 16));
    kernel<<<num_sms(), tensor_threads + memory_threads + 32, whole_sm_bytes>>>(
        l.is_normal ? normal : zeros, region, region_count, l.tensor_pct, l.memory_pct, (uint64_t)l.run_ms * 1000000,
        samples, num_samples, work, sink);
    std::this_thread::sleep_for(std::chrono::milliseconds(l.run_ms * 3 / 4));
    double watts = nvml.watts(), nvml_mhz = nvml.sm_mhz(), celsius = nvml.celsius();
    finish();
    int n = to_host(num_samples, 1)[0];
    std::vector<Sample> s = to_host(samples, (size_t)n);
    std::vector<unsigned long long> done = to_host(work, 2);
    char variant[96];
    snprintf(variant, sizeof variant, "%s_%s_memory%d_run%dms_pause%dms", names[(int)l.math],
             l.is_normal ? "normal" : "zeros", l.memory_pct, l.run_ms, l.pause_ms);
    const uint64_t us = 1000, ms = 1000000;
    struct {
      const char *name;
      uint64_t from, to;
    } windows[] = {{"clock_0_100us", 0, 100 * us},
                   {"clock_100us_1ms", 100 * us, ms},
                   {"clock_1_10ms", ms, 10 * ms},
                   {"clock_10_100ms", 10 * ms, 100 * ms},
                   {"clock_100ms_end", 100 * ms, (uint64_t)l.run_ms * ms}};
    for (const auto &w : windows)
      row("sm_clock", variant, "tensor_pct", l.tensor_pct, w.name, mhz_between(s, w.from, w.to), "MHz");
    double flop_per_count = l.math == Math::wgmma  ? 64. * 128 * 16 * 2
                            : l.math == Math::mma  ? 4 * 8 * 16. * 8 * 16 * 2
                            : l.math == Math::ffma ? 128 * 64. * 2
                                                   : 128 * 8.;
    row("sm_clock", variant, "tensor_pct", l.tensor_pct, l.math == Math::mufu ? "exponentials" : "math_rate",
        (double)done[0] * flop_per_count / l.run_ms * 1e-9, l.math == Math::mufu ? "T/s" : "TFLOP/s");
    row("sm_clock", variant, "tensor_pct", l.tensor_pct, "memory_rate", (double)done[1] / l.run_ms * 1e-6, "GB/s");
    row("sm_clock", variant, "tensor_pct", l.tensor_pct, "power", watts, "W");
    row("sm_clock", variant, "tensor_pct", l.tensor_pct, "nvml_sm_clock", nvml_mhz, "MHz");
    row("sm_clock", variant, "tensor_pct", l.tensor_pct, "temperature", celsius, "C");
  }
  return 0;
}
