/* What one warp waits for shared memory while others use it, each at its own pace.
 *
 * One SM. A warp executes 64 SHFL (or LDS) of which each needs the one before it: cycles of one (`latency`). Beside it
 * x other warps, dealt to the sub-cores one by one, execute LDSM.x4, LDS or SHFL, wait for the data, then `fma` FFMAs of
 * which each needs the one before it, and a LOP3 for the next address: cycles of such a round (`period`). */
#include "bench.h"
using namespace bench;

constexpr int probe_count = 64, unrolled = 8, delay_fmas = 256, probe_cycles = 24000;

struct Shfl {
  static __device__ __forceinline__ uint32_t go(uint32_t, uint32_t value) {
    uint32_t r;
    asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 31, -1;" : "=r"(r) : "r"(value));
    return r;
  }
};
struct Lds {
  static __device__ __forceinline__ uint32_t go(uint32_t at, uint32_t) {
    uint32_t r;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(r) : "r"(at));
    return r;
  }
};
struct Ldsm4 {
  static __device__ __forceinline__ uint32_t go(uint32_t at, uint32_t) {
    uint32_t r[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
    return r[0];
  }
};

template <int count>
static __device__ __forceinline__ float chain(float x, float a) {
#pragma unroll
  for (int i = 0; i < count; i++) asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(x) : "f"(a));
  return x;
}

/* cycles[0]: of a probe's instruction, times probe_count; cycles[w]: of warp w's rounds. The word at each address that
 * the probe reads is that address. */
template <class Probe, class Other, int fmas>
__global__ void beside(int rounds, uint32_t *cycles, float *sink, float a, uint32_t zero) {
  __shared__ __align__(128) uint32_t shared[1024];
  uint32_t at = shared_address((uint8_t *)shared) + threadIdx.x % 32 * 4, at_rows = shared_address((uint8_t *)shared) + threadIdx.x % 32 * 16;
  for (uint32_t i = threadIdx.x; i < 1024; i += blockDim.x) shared[i] = shared_address((uint8_t *)shared) + i * 4;
  float x = (float)threadIdx.x;
  __syncthreads();
  if (threadIdx.x < 32) {
    x = chain<delay_fmas>(x, a);
    uint32_t start = clock32();
#pragma unroll
    for (int i = 0; i < probe_count; i++) at = Probe::go(at, at);
    if (at == 1) x += 1; /* waits for the last */
    uint32_t stop = clock32();
    if (threadIdx.x == 0) cycles[0] = stop - start;
    x += (float)at;
  } else {
    uint32_t start = clock32();
#pragma unroll 1
    for (int i = 0; i < rounds; i++) {
#pragma unroll
      for (int j = 0; j < unrolled; j++) {
        uint32_t last = __float_as_uint(x), from = last & zero | at_rows; /* one LOP3 */
        x = chain<fmas>(__uint_as_float(Other::go(from, from)), a);
      }
    }
    uint32_t stop = clock32();
    if (threadIdx.x % 32 == 0) cycles[threadIdx.x / 32] = stop - start;
  }
  sink[threadIdx.x] = x;
}

template <class Probe, class Other, int fmas>
static void measure(const char *probe, const char *other) {
  static uint32_t *cycles = device_alloc<uint32_t>(33);
  static float *sink = device_alloc<float>(33 * 32);
  for (int warps : {1, 4, 8, 16, 24}) {
    int rounds = probe_cycles / (24 + 4 * fmas) / unrolled + 1;
    for (int repeat = 0; repeat < 2; repeat++) beside<Probe, Other, fmas><<<1, 32 + 32 * warps>>>(rounds, cycles, sink, 0.5f, 0);
    auto c = to_host(cycles, 33);
    double sum = 0;
    for (int w = 1; w <= warps; w++) sum += c[(size_t)w];
    char variant[64];
    snprintf(variant, sizeof variant, "%s_beside_%s_fma%d", probe, other, fmas);
    row("shared_latency", variant, "warps", warps, "latency", (double)c[0] / probe_count, "cycles");
    row("shared_latency", variant, "warps", warps, "period", sum / warps / (rounds * unrolled), "cycles");
  }
  finish();
}

template <class Probe, class Other>
static void measure_paces(const char *probe, const char *other) {
  measure<Probe, Other, 1>(probe, other), measure<Probe, Other, 8>(probe, other), measure<Probe, Other, 24>(probe, other);
  measure<Probe, Other, 72>(probe, other);
}

int main() {
  measure_paces<Shfl, Shfl>("SHFL", "SHFL"), measure_paces<Shfl, Lds>("SHFL", "LDS"), measure_paces<Shfl, Ldsm4>("SHFL", "LDSM.x4");
  measure_paces<Lds, Shfl>("LDS", "SHFL"), measure_paces<Lds, Lds>("LDS", "LDS"), measure_paces<Lds, Ldsm4>("LDS", "LDSM.x4");
  return 0;
}
