/* How far the clocks of the GPCs are apart under load: SM cycles (clock64) over wall time (globaltimer) of every SM,
 * from 0.5 ms after the kernel's start to its end at 4 ms. Two warpgroups a SM issue wgmma m64n128k16 or mma.sync
 * m16n8k16 for x percent of the time, on operands that are normally distributed, or zeros. Each run starts after a
 * pause of 100 ms. clock: mean over the SMs; between, inside: standard deviation of the means of the GPCs, and of the
 * SMs inside them (gpc_map.h). */
#include <chrono>
#include <cmath>
#include <thread>

#include "gpc_map.h"
#include "hopper.h"
using namespace bench;

constexpr int num_threads = 256;
constexpr uint64_t begin_ns = 500000, run_ns = 4000000;

struct Clock {
  uint64_t cycles, ns;
  uint32_t sm;
};

/* About 1000 cycles of math on all four sub-cores. */
template <bool is_wgmma>
__device__ __forceinline__ void batch(float (&d)[64], uint64_t a, uint64_t b, uint4 x, uint4 y) {
  if constexpr (is_wgmma) {
    hopper::wgmma_fence();
#pragma unroll
    for (int k = 0; k < 16; k++) Wgmma<128>::ss<0>(d, a + (uint64_t)(k % 4 * 2), b + (uint64_t)(k % 4 * 2), k != 0);
    hopper::wgmma_commit();
    hopper::wgmma_wait<0>();
    hopper::keep(d);
  } else {
    for (int i = 0; i < 16; i++)
#pragma unroll
      for (int k = 0; k < 8; k++)
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(d[k * 4]), "+f"(d[k * 4 + 1]), "+f"(d[k * 4 + 2]), "+f"(d[k * 4 + 3])
            : "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w), "r"(y.x), "r"(y.y));
  }
}

template <bool is_wgmma>
__global__ __launch_bounds__(num_threads) void load(const uint4 *operands, int busy_pct, Clock *clocks, float *sink) {
  extern __shared__ __align__(1024) uint8_t tiles[];
  __shared__ bool goes_on;
  for (uint32_t i = threadIdx.x; i < 49152 / 16; i += blockDim.x) ((uint4 *)tiles)[i] = operands[i];
  hopper::proxy_fence();
  float d[64];
  for (int i = 0; i < 64; i++) d[i] = 0;
  uint4 x = operands[threadIdx.x], y = operands[threadIdx.x + 512];
  uint32_t base = hopper::smem(tiles);
  uint64_t a = hopper::descriptor(base + threadIdx.x / 128 * 8192, 16, 1024),
           b = hopper::descriptor(base + 16384, 16, 1024);
  uint64_t start = global_ns(), first_cycle = 0, first_ns = 0;
  for (;;) {
    __syncthreads();
    if (threadIdx.x == 0) {
      uint64_t now = global_ns();
      goes_on = now < start + run_ns;
      if (first_ns == 0 && now >= start + begin_ns) first_ns = now, first_cycle = cycles64();
      if (!goes_on) clocks[blockIdx.x] = {cycles64() - first_cycle, now - first_ns, sm_id()};
    }
    __syncthreads();
    if (!goes_on) break;
    uint64_t begin = cycles64();
    for (int i = 0; i < 4; i++) batch<is_wgmma>(d, a, b, x, y);
    uint64_t end = cycles64(), idle = (end - begin) * (uint64_t)(100 - busy_pct) / (uint64_t)busy_pct;
    while (cycles64() < end + idle)
      ;
  }
  float sum = 0;
  for (int i = 0; i < 64; i++) sum += d[i];
  sink[threadIdx.x] = sum;
}

static std::vector<__half> normal_halves(size_t count) {
  Random random;
  std::vector<__half> v(count);
  for (__half &h : v) {
    double u = ((double)(random.next() >> 11) + 1) / 9007199254740993.0,
           w = (double)(random.next() >> 11) / 9007199254740992.0;
    h = __float2half((float)(sqrt(-2 * log(u)) * cos(6.283185307179586 * w)));
  }
  return v;
}

int main() {
  GpcMap map;
  const int sms = num_sms();
  uint4 *zeros = device_alloc<uint4>(49152 / 16), *normal = device_alloc<uint4>(49152 / 16);
  CUDA_CHECK(cudaMemcpy(normal, normal_halves(49152 / 2).data(), 49152, cudaMemcpyHostToDevice));
  Clock *clocks = device_alloc<Clock>((size_t)sms);
  float *sink = device_alloc<float>(num_threads);
  allow_shared(load<true>, whole_sm_bytes);
  allow_shared(load<false>, whole_sm_bytes);
  const struct {
    const char *name;
    bool is_wgmma, is_normal;
  } kinds[] = {{"wgmma", true, true}, {"wgmma_zeros", true, false}, {"mma", false, true}};
  for (const auto &kind : kinds)
    for (int run = 0; run < 2; run++)
      for (int busy_pct : {10, 20, 30, 40, 50, 60, 70, 80, 90, 100}) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        auto kernel = kind.is_wgmma ? load<true> : load<false>;
        kernel<<<sms, num_threads, whole_sm_bytes>>>(kind.is_normal ? normal : zeros, busy_pct, clocks, sink);
        finish();
        std::vector<uint32_t> sm;
        std::vector<double> mhz;
        for (const Clock &c : to_host(clocks, (size_t)sms)) {
          sm.push_back(c.sm);
          mhz.push_back((double)c.cycles * 1e3 / (double)c.ns);
        }
        char variant[64];
        snprintf(variant, sizeof variant, "%s_run%d", kind.name, run);
        Spread spread = spread_by_gpc(map, sm, mhz);
        row("gpc_clocks", variant, "busy_pct", busy_pct, "clock", mean(mhz), "MHz");
        row("gpc_clocks", variant, "busy_pct", busy_pct, "between", spread.between / mean(mhz) * 1e6, "1e-6");
        row("gpc_clocks", variant, "busy_pct", busy_pct, "inside", spread.inside / mean(mhz) * 1e6, "1e-6");
      }
  return 0;
}
