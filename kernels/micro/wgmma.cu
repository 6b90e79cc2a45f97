/* wgmma m64nNk16, f16 in, f32 out, N = 8 to 256, A from shared memory (SS) or registers (RS):
 * latency (issue, commit, wait for one), issue interval (16 in one group on one accumulator), rate with 1 to 3
 * warpgroups on one SM. */
#include "bench.h"
#include "hopper.h"
using namespace bench;

constexpr int group_size = 16;
constexpr int num_groups = 32;

enum class Source { ss, rs };

template <int n, Source source>
__device__ __forceinline__ void issue(float (&d)[n / 2], uint32_t (&a)[4], uint64_t a_desc, uint64_t b_desc) {
  if constexpr (source == Source::ss)
    Wgmma<n>::template ss<0>(d, a_desc, b_desc, 1);
  else
    Wgmma<n>::template rs<0>(d, a, b_desc, 1);
}

template <int n, Source source>
__global__ __launch_bounds__(384) void run(int per_group, uint64_t *span, float *sink) {
  extern __shared__ __align__(1024) uint8_t tiles[];
  __shared__ unsigned long long first, last;
  if (threadIdx.x == 0) first = ~0ull, last = 0;
  for (uint32_t i = threadIdx.x; i < 64 * 1024 / 4; i += blockDim.x)
    ((uint32_t *)tiles)[i] = 0x2C002C00 + (i * 2654435761u >> 24);
  hopper::proxy_fence();
  float d[n / 2];
  for (int i = 0; i < n / 2; i++) d[i] = 0;
  uint32_t a[4] = {0x2C002C00, 0x2C012C03, 0x2C102C08, 0x2C002C01};
  uint64_t a_desc = hopper::descriptor(hopper::smem(tiles) + threadIdx.x / 128 * 8192, 16, 1024);
  uint64_t b_desc = hopper::descriptor(hopper::smem(tiles) + 32768, 16, 1024);
  __syncthreads();
  uint64_t start = cycles64();
  if (per_group == 1) {
    for (int g = 0; g < num_groups * group_size; g++) {
      hopper::wgmma_fence();
      issue<n, source>(d, a, a_desc, b_desc);
      hopper::wgmma_commit();
      hopper::wgmma_wait<0>();
    }
  } else {
    for (int g = 0; g < num_groups; g++) {
      hopper::wgmma_fence();
#pragma unroll
      for (int i = 0; i < group_size; i++) issue<n, source>(d, a, a_desc, b_desc);
      hopper::wgmma_commit();
      hopper::wgmma_wait<0>();
    }
  }
  uint64_t stop = cycles64();
  float sum = 0;
  for (int i = 0; i < n / 2; i++) sum += d[i];
  sink[threadIdx.x] = sum;
  atomicMin(&first, (unsigned long long)start);
  atomicMax(&last, (unsigned long long)stop);
  __syncthreads();
  if (threadIdx.x == 0) *span = last - first;
}

template <int n, Source source>
static double cycles(int warpgroups, int per_group) {
  static uint64_t *span = device_alloc<uint64_t>(1);
  static float *sink = device_alloc<float>(1024);
  allow_shared(run<n, source>, 66 * 1024);
  for (int warm = 0; warm < 2; warm++) run<n, source><<<1, warpgroups * 128, 66 * 1024>>>(per_group, span, sink);
  return (double)to_host(span, 1)[0] / (num_groups * group_size);
}

template <int n, Source source>
static void measure() {
  const char *name = source == Source::ss ? "ss" : "rs";
  double alone = cycles<n, source>(1, 1), grouped = cycles<n, source>(1, group_size);
  row("wgmma", name, "n", n, "latency_issue_to_wait", alone, "cycles");
  row("wgmma", name, "n", n, "cycles_per_wgmma_in_groups_of_16", grouped, "cycles");
  /* A group costs (latency + 15 intervals). */
  row("wgmma", name, "n", n, "issue_interval", (grouped * group_size - alone) / (group_size - 1), "cycles");
  for (int warpgroups : {1, 2, 3}) {
    char variant[16];
    snprintf(variant, sizeof variant, "%s_%dwg", name, warpgroups);
    row("wgmma", variant, "n", n, "rate", 64. * n * 16 * warpgroups / cycles<n, source>(warpgroups, group_size),
        "fma/cycle/sm");
  }
  finish();
}

template <int n>
static void measure_both() {
  measure<n, Source::ss>();
  measure<n, Source::rs>();
}

int main() {
  measure_both<8>();
  measure_both<16>();
  measure_both<32>();
  measure_both<64>();
  measure_both<96>();
  measure_both<128>();
  measure_both<192>();
  measure_both<256>();
  return 0;
}
