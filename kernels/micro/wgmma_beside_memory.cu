/* How long shuffles, copies and arithmetic of a warpgroup take while another one of the SM multiplies.
 *
 * One warpgroup multiplies (variant, behind `beside`: not at all, A in shared memory or in registers, and n), with a
 * wait for each group of sixteen; the other runs a short sequence again and again, each time behind a barrier and a
 * pause of another length, so that it meets the products anywhere. x is the number of instructions in the sequence.
 * Rows, over 400 times and four warps: median, mean, 10th and 90th percentile of the cycles from before the first
 * instruction until one that needs the last one's result has issued (`LDGSTS_issue`: until the last has issued). */
#include "bench.h"
#include "hopper.h"
using namespace bench;

constexpr int times = 400, shared_bytes = 66 * 1024;

struct State {
  uint32_t wide_address, tiles;
  const uint8_t *from;
  float x[16];
};

#define READ(value) asm volatile("add.rn.f32 %0, %0, 0f3F800000;" : "+f"(value))

template <int n>
struct Shfl_chain {
  static __device__ __forceinline__ void go(State &s) {
#pragma unroll
    for (int i = 0; i < n; i++) asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, -1;" : "+f"(s.x[0]));
    READ(s.x[0]);
  }
};
template <int n>
struct Shfl_burst {
  static __device__ __forceinline__ void go(State &s) {
#pragma unroll
    for (int i = 0; i < n; i++) asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, -1;" : "+f"(s.x[i]));
    READ(s.x[n - 1]);
  }
};
/* 16 bytes a lane from L2, addresses ready. */
template <int n>
struct Copy_issue {
  static __device__ __forceinline__ void go(State &s) {
#pragma unroll
    for (int i = 0; i < n; i++)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(s.wide_address + i * 2048), "l"(s.from + i * 2048)
                   : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
};
template <int n>
struct Barrier {
  static __device__ __forceinline__ void go(State &) {
#pragma unroll
    for (int i = 0; i < n; i++) asm volatile("bar.sync 2, 128;" ::: "memory");
  }
};
template <int n>
struct Fadd_chain {
  static __device__ __forceinline__ void go(State &s) {
#pragma unroll
    for (int i = 0; i < n; i++) READ(s.x[0]);
  }
};
template <int n>
struct Mufu_chain {
  static __device__ __forceinline__ void go(State &s) {
#pragma unroll
    for (int i = 0; i < n; i++) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(s.x[0]));
    READ(s.x[0]);
  }
};
template <int n>
struct Mufu_burst {
  static __device__ __forceinline__ void go(State &s) {
#pragma unroll
    for (int i = 0; i < n; i++) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(s.x[i]));
    READ(s.x[n - 1]);
  }
};

enum Beside { none, ss, rs };

template <Beside kind, int n>
__device__ __forceinline__ void multiply(const volatile int *stop, volatile int *seen, State &s, uint32_t *sink) {
  float d[n / 2];
  uint32_t p[4][4];
  for (int i = 0; i < n / 2; i++) d[i] = 0;
  for (int i = 0; i < 16; i++) p[i / 4][i % 4] = 0x2C002C00;
  uint64_t a = hopper::descriptor(s.tiles, 16, 1024), b = hopper::descriptor(s.tiles + 16384, 8192, 1024);
  for (;;) {
    if (threadIdx.x == 0) *seen = *stop;
    asm volatile("bar.sync 1, 128;" ::: "memory");  // all four warps see the same
    if (*seen) break;
    hopper::wgmma_fence();
#pragma unroll
    for (int i = 0; i < 16; i++)
      if constexpr (kind == rs)
        Wgmma<n>::template rs<1>(d, p[i % 4], b + i % 4 * 128, 1);
      else
        Wgmma<n>::template ss<0>(d, a + i % 4 * 2, b + i % 4 * 2, 1);
    hopper::wgmma_commit();
    hopper::wgmma_wait<0>();
    hopper::keep(d);
  }
  for (int i = 0; i < n / 2; i++) s.x[0] += d[i];
  sink[threadIdx.x] = __float_as_uint(s.x[0]);
}

template <class Probe, Beside kind, int n>
__global__ __launch_bounds__(256) void beside(const uint8_t *from, uint32_t *out, uint32_t *sink) {
  extern __shared__ __align__(1024) uint8_t tiles[];
  __shared__ volatile int stop, seen;
  for (uint32_t i = threadIdx.x; i < 48 * 1024 / 4; i += blockDim.x) ((uint32_t *)tiles)[i] = 0x2C002C00;
  if (threadIdx.x == 0) stop = 0;
  hopper::proxy_fence();
  __syncthreads();
  State s;
  uint32_t thread = threadIdx.x % 128;
  s.tiles = hopper::smem(tiles);
  s.wide_address = s.tiles + 49152 + thread * 16;
  s.from = from + thread * 16;
  for (int i = 0; i < 16; i++) s.x[i] = 1.0f + (float)(thread + (uint32_t)i) * 0.001f;
  if (threadIdx.x < 128) {
    if constexpr (kind != none) multiply<kind, n>(&stop, &seen, s, sink);
    return;
  }
#pragma unroll 1
  for (int i = -8; i < times; i++) {
    asm volatile("cp.async.wait_all;" ::: "memory");
    asm volatile("bar.sync 2, 128;" ::: "memory");
    uint32_t until = clock32() + 200 + (uint32_t)(i + 8) * 37 % 613;
    while ((int)(clock32() - until) < 0) {
    }
    asm volatile("bar.sync 2, 128;" ::: "memory");
    uint32_t start = clock32();
    Probe::go(s);
    uint32_t end = clock32();
    if (i >= 0 && thread % 32 == 0) out[i * 4 + (int)thread / 32] = end - start;
  }
  for (int i = 1; i < 16; i++) s.x[0] += s.x[i];
  sink[threadIdx.x] = __float_as_uint(s.x[0]);
  asm volatile("bar.sync 2, 128;" ::: "memory");
  if (thread == 0) stop = 1;
}

static double mean(const std::vector<uint32_t> &values) {
  double sum = 0;
  for (uint32_t value : values) sum += value;
  return sum / (double)values.size();
}

template <class Probe, Beside kind, int n>
static void run(const char *name, const char *other, int x) {
  static uint32_t *out = device_alloc<uint32_t>(times * 4), *sink = device_alloc<uint32_t>(256);
  static uint8_t *from = device_alloc<uint8_t>(1 << 16);
  char variant[64];
  snprintf(variant, sizeof variant, "%s_beside_%s", name, other);
  allow_shared(beside<Probe, kind, n>, shared_bytes);
  beside<Probe, kind, n><<<1, 256, shared_bytes>>>(from, out, sink);
  finish();
  std::vector<uint32_t> values = to_host(out, times * 4);
  row("wgmma_beside_memory", variant, "count", x, "median", median(values), "cycles");
  row("wgmma_beside_memory", variant, "count", x, "mean", mean(values), "cycles");
  row("wgmma_beside_memory", variant, "count", x, "p10", percentile(values, 0.1), "cycles");
  row("wgmma_beside_memory", variant, "count", x, "p90", percentile(values, 0.9), "cycles");
}

template <class Probe>
static void measure(const char *name, int x) {
  run<Probe, none, 64>(name, "none", x);
  run<Probe, ss, 16>(name, "ss16", x);
  run<Probe, ss, 32>(name, "ss32", x);
  run<Probe, ss, 64>(name, "ss64", x);
  run<Probe, ss, 128>(name, "ss128", x);
  run<Probe, ss, 256>(name, "ss256", x);
  run<Probe, rs, 16>(name, "rs16", x);
  run<Probe, rs, 32>(name, "rs32", x);
  run<Probe, rs, 64>(name, "rs64", x);
  run<Probe, rs, 128>(name, "rs128", x);
}

int main() {
  measure<Shfl_chain<1>>("SHFL_chain", 1);
  measure<Shfl_chain<2>>("SHFL_chain", 2);
  measure<Shfl_chain<4>>("SHFL_chain", 4);
  measure<Shfl_burst<2>>("SHFL", 2);
  measure<Shfl_burst<4>>("SHFL", 4);
  measure<Shfl_burst<8>>("SHFL", 8);
  measure<Copy_issue<1>>("LDGSTS_issue", 1);
  measure<Copy_issue<4>>("LDGSTS_issue", 4);
  measure<Copy_issue<8>>("LDGSTS_issue", 8);
  measure<Barrier<1>>("BAR_SYNC", 1);
  measure<Barrier<4>>("BAR_SYNC", 4);
  measure<Fadd_chain<4>>("FADD_chain", 4);
  measure<Fadd_chain<16>>("FADD_chain", 16);
  measure<Mufu_chain<4>>("MUFU_chain", 4);
  measure<Mufu_burst<16>>("MUFU", 16);
  return 0;
}
