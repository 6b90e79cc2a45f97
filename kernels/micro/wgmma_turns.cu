/* Which of two warpgroups the tensor cores serve. Both issue a batch of independent-looking products (one accumulator,
 * one commit) from the same cycle on, or the second `x` cycles later; when does each have its results? If products ran
 * in the order in which they are issued, batches that are issued together would end together; if the tensor cores stay
 * with a warpgroup, one ends after its own time and the other after both. `alone`: one warpgroup. */
#include "bench.h"
#include "hopper.h"
using namespace bench;

constexpr int rounds = 33;

enum class Source { ss, rs };

template <int n, Source source, int batch>
__device__ __forceinline__ void multiply(float (&d)[n / 2], uint32_t (&a)[4], uint64_t a_desc, uint64_t b_desc) {
  hopper::wgmma_fence();
#pragma unroll
  for (int i = 0; i < batch; i++) {
    if constexpr (source == Source::ss)
      Wgmma<n>::template ss<0>(d, a_desc, b_desc, 1);
    else
      Wgmma<n>::template rs<0>(d, a, b_desc, 1);
  }
  hopper::wgmma_commit();
  hopper::wgmma_wait<0>();
}

__device__ __forceinline__ void wait_until(uint64_t cycle) {
  while (cycles64() < cycle) {
  }
}

/* took[round][warpgroup]: cycles from the common start to the results of its slowest warp. */
template <int n, Source source, int batch>
__global__ __launch_bounds__(256) void run(int delay, unsigned long long *took, float *sink) {
  extern __shared__ __align__(1024) uint8_t tiles[];
  __shared__ unsigned long long start, last[2];
  for (uint32_t i = threadIdx.x; i < 64 * 1024 / 4; i += blockDim.x) ((uint32_t *)tiles)[i] = 0x2C002C00 + (i * 2654435761u >> 24);
  hopper::proxy_fence();
  float d[n / 2];
  for (int i = 0; i < n / 2; i++) d[i] = 0;
  uint32_t a[4] = {0x2C002C00, 0x2C012C03, 0x2C102C08, 0x2C002C01};
  int group = (int)threadIdx.x / 128;
  uint64_t a_desc = hopper::descriptor(hopper::smem(tiles) + (uint32_t)group * 8192, 16, 1024);
  uint64_t b_desc = hopper::descriptor(hopper::smem(tiles) + 32768, 16, 1024);
  for (int round = 0; round < rounds; round++) {
    __syncthreads();
    if (threadIdx.x == 0) start = cycles64() + 2000, last[0] = last[1] = 0;
    __syncthreads();
    wait_until(start + (uint64_t)(group * delay));
    multiply<n, source, batch>(d, a, a_desc, b_desc);
    uint64_t stop = cycles64();
    atomicMax(&last[group], (unsigned long long)stop);
    __syncthreads();
    if (threadIdx.x < 2 && threadIdx.x * 128 < blockDim.x) took[round * 2 + threadIdx.x] = last[threadIdx.x] - start;
  }
  float sum = 0;
  for (int i = 0; i < n / 2; i++) sum += d[i];
  sink[threadIdx.x] = sum;
}

template <int n, Source source, int batch>
static double median_of(int warpgroups, int delay, int group) {
  static unsigned long long *took = device_alloc<unsigned long long>(rounds * 2);
  static float *sink = device_alloc<float>(256);
  allow_shared(run<n, source, batch>, 66 * 1024);
  run<n, source, batch><<<1, warpgroups * 128, 66 * 1024>>>(delay, took, sink);
  finish();
  std::vector<unsigned long long> all = to_host(took, rounds * 2), own;
  for (int round = 1; round < rounds; round++) own.push_back(all[(size_t)(round * 2 + group)]);
  return (double)median(own);
}

template <int n, Source source, int batch>
static void measure() {
  char variant[48];
  snprintf(variant, sizeof variant, "%s_n%d_%d", source == Source::ss ? "ss" : "rs", n, batch);
  row("wgmma_turns", variant, "delay", 0, "alone", median_of<n, source, batch>(1, 0, 0), "cycles");
  for (int delay : {0, 8, 32, 64, 128, 256, 384}) {
    row("wgmma_turns", variant, "delay", delay, "first_warpgroup", median_of<n, source, batch>(2, delay, 0), "cycles");
    row("wgmma_turns", variant, "delay", delay, "second_warpgroup", median_of<n, source, batch>(2, delay, 1), "cycles");
  }
}

int main() {
  measure<64, Source::ss, 4>();
  measure<64, Source::ss, 8>();
  measure<64, Source::ss, 16>();
  measure<128, Source::ss, 8>();
  measure<256, Source::ss, 4>();
  measure<64, Source::rs, 8>();
  measure<128, Source::rs, 4>();
  measure<128, Source::rs, 8>();
  return 0;
}
