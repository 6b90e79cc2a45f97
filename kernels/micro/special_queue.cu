/* Whether special functions wait in the queue of shared memory.
 *
 * `P_beside_MUFUn_fmaK_same` (or `_others`): one SM. A warp executes 64 SHFL, LDS or MUFU of which each needs the one
 * before it: cycles of one (`latency`). Beside it x other warps of its sub-core (`same`) or of each other one (`others`)
 * execute n independent MUFU, wait for them, then K FFMAs of which each needs the one before it: cycles of such a
 * round (`period`); beside `SHFLn` n SHFL. */
#include "bench.h"
using namespace bench;

constexpr int probe_count = 64, unrolled = 4, delay_fmas = 256, probe_cycles = 24000, most_warps = 32;

enum Kind { SHFL, LDS, MUFU };

template <Kind kind>
__device__ __forceinline__ uint32_t go(uint32_t x) {
  uint32_t r;
  if constexpr (kind == SHFL) asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 31, -1;" : "=r"(r) : "r"(x));
  if constexpr (kind == LDS) asm volatile("ld.shared.u32 %0, [%1];" : "=r"(r) : "r"(x));
  if constexpr (kind == MUFU) asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=r"(r) : "r"(x));
  return r;
}

template <int count>
__device__ __forceinline__ float chain(float x, float a) {
#pragma unroll
  for (int i = 0; i < count; i++) asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(x) : "f"(a));
  return x;
}

/* cycles[0]: of the probe's instructions; cycles[w]: of other w's rounds. The word at each address is that address. */
template <Kind probe, Kind other, int n, int fmas>
__global__ void beside(int rounds, bool same, uint32_t *cycles, float *sink, float a) {
  __shared__ __align__(128) uint32_t shared[128];
  if (threadIdx.x < 128) shared[threadIdx.x] = shared_address((uint8_t *)shared) + threadIdx.x * 4;
  __syncthreads();
  int warp = (int)threadIdx.x / 32;
  float x = (float)threadIdx.x;
  if (warp == 0) {
    uint32_t at = probe == LDS ? shared_address((uint8_t *)shared) + threadIdx.x * 4 : threadIdx.x;
    x = chain<delay_fmas>(x, a);
    uint32_t start = clock32();
#pragma unroll
    for (int i = 0; i < probe_count; i++) at = go<probe>(at);
    if (at == 1) x += 1; /* waits for the last */
    uint32_t stop = clock32();
    if (threadIdx.x == 0) cycles[0] = stop - start;
    x += __uint_as_float(at);
  } else if ((warp % 4 == 0) == same) {
    uint32_t start = clock32();
#pragma unroll 1
    for (int i = 0; i < rounds; i++) {
#pragma unroll
      for (int j = 0; j < unrolled; j++) {
        uint32_t results[n], all = 0;
#pragma unroll
        for (int k = 0; k < n; k++) results[k] = go<other>(__float_as_uint(x) + (uint32_t)k);
#pragma unroll
        for (int k = 0; k < n; k++) all |= results[k];
        x = chain<fmas>(__uint_as_float(all), a);
      }
    }
    uint32_t stop = clock32();
    if (threadIdx.x % 32 == 0) cycles[warp] = stop - start;
  }
  sink[threadIdx.x] = x;
}

template <Kind probe, Kind other, int n, int fmas>
static void measure(const char *name, bool same) {
  static uint32_t *cycles = device_alloc<uint32_t>(most_warps);
  static float *sink = device_alloc<float>(most_warps * 32);
  for (int warps : {1, 2, 4, 7}) {
    int rounds = probe_cycles / (24 + 8 * n + 4 * fmas) / unrolled + 1;
    CUDA_CHECK(cudaMemset(cycles, 0, most_warps * sizeof *cycles));
    for (int repeat = 0; repeat < 2; repeat++)
      beside<probe, other, n, fmas><<<1, 32 * (1 + 4 * warps)>>>(rounds, same, cycles, sink, 0.5f);
    auto c = to_host(cycles, most_warps);
    double sum = 0, count = 0;
    for (int w = 1; w < most_warps; w++) sum += c[(size_t)w], count += c[(size_t)w] > 0;
    char variant[64];
    snprintf(variant, sizeof variant, "%s_%s", name, same ? "same" : "others");
    row("special_queue", variant, "warps", warps, "latency", (double)c[0] / probe_count, "cycles");
    row("special_queue", variant, "warps", warps, "period", sum / count / (rounds * unrolled), "cycles");
  }
  finish();
}

template <Kind probe>
static void measure_all(const char *name) {
  char variant[48];
  for (bool same : {true, false}) {
#define BESIDE(other, n, fmas)                                                     \
  snprintf(variant, sizeof variant, "%s_beside_" #other #n "_fma" #fmas, name);    \
  measure<probe, other, n, fmas>(variant, same);
    BESIDE(MUFU, 1, 1)
    BESIDE(MUFU, 1, 24)
    BESIDE(MUFU, 8, 1)
    BESIDE(MUFU, 8, 24)
    BESIDE(MUFU, 16, 24)
    BESIDE(SHFL, 8, 1)
    BESIDE(SHFL, 8, 24)
#undef BESIDE
  }
}

int main() {
  measure_all<SHFL>("SHFL"), measure_all<LDS>("LDS"), measure_all<MUFU>("MUFU");
  return 0;
}
