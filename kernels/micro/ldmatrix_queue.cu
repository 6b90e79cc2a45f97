/* How many memory instructions a sub-core holds, and what their warps wait for.
 *
 * burst: warps issue x instructions of one kind one after another, each to registers of its own: cycles from before the
 * first to after the last (`issued`), and until the last has come (`ended`), of the warp that takes longest. axb: b
 * warps on each of a sub-cores.
 * loop: rounds of k LDSM.x4 and m m16n8k16 for each, which read what the round loaded (`same`), or the one before it
 * (`ahead`). x is the warps a sub-core, of all SMs; cycles of a round. Run it under ncu with --profile for the stall
 * reasons of the loops, a row a launch. */
#include "bench.h"
using namespace bench;

struct Ldsm4 {
  static __device__ __forceinline__ void go(uint32_t at, uint32_t (&r)[4]) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
  }
};
struct Ldsm1 {
  static __device__ __forceinline__ void go(uint32_t at, uint32_t (&r)[4]) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(at));
  }
};
struct Lds128 {
  static __device__ __forceinline__ void go(uint32_t at, uint32_t (&r)[4]) {
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
  }
};
struct Shfl {
  static __device__ __forceinline__ void go(uint32_t at, uint32_t (&r)[4]) {
    asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 31, -1;" : "=r"(r[0]) : "r"(at));
  }
};

template <class X, int count>
__global__ void burst(int subcores, uint32_t *cycles, uint32_t *sink) {
  extern __shared__ __align__(128) uint8_t shared[];
  for (uint32_t i = threadIdx.x; i < 4096; i += blockDim.x) ((uint32_t *)shared)[i] = 0;
  uint32_t at = shared_address(shared) + threadIdx.x % 32 * 16, r[count][4] = {}, sum = 0;
  __syncthreads();
  if ((int)(threadIdx.x / 32 % 4) >= subcores) return;
  for (int repeat = 0; repeat < 3; repeat++) {
    asm volatile("bar.sync 1, %0;" ::"r"((int)blockDim.x / 4 * subcores) : "memory");
    uint32_t start = clock32();
#pragma unroll
    for (int i = 0; i < count; i++) X::go(at + (uint32_t)i * 512, r[i]);
    uint32_t issued = clock32();
#pragma unroll
    for (int i = 0; i < count; i++) sum += r[i][0] ^ r[i][1] ^ r[i][2] ^ r[i][3];
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(sum) : "memory");  // waits for all of them
    uint32_t ended = clock32();
    if (threadIdx.x % 32 == 0) {
      cycles[threadIdx.x / 32 * 2] = issued - start;
      cycles[threadIdx.x / 32 * 2 + 1] = ended - start;
    }
  }
  sink[threadIdx.x] = sum;
}

__device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

constexpr int iterations = 50, rounds = 8, chains = 8;

template <int k, int m, bool ahead>
__global__ __launch_bounds__(512) void loop(uint32_t stride, uint64_t *span, uint32_t *sink, uint32_t r0) {
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ unsigned long long first, last;
  if (threadIdx.x == 0) first = ~0ull, last = 0;
  for (uint32_t i = threadIdx.x; i < 8192; i += blockDim.x) ((uint32_t *)shared)[i] = 0;
  uint32_t at = shared_address(shared) + threadIdx.x % 32 * 16, r[2][k][4] = {}, a[4] = {r0, r0 + 1, r0 + 2, r0 + 3};
  float d[chains][4] = {};
  __syncthreads();
  uint64_t start = cycles64();
#pragma unroll 1
  for (int i = 0; i < iterations; i++) {
    at += stride;
#pragma unroll
    for (int j = 0; j < rounds; j++) {
#pragma unroll
      for (int n = 0; n < k; n++) Ldsm4::go(at + (uint32_t)(j * k + n) % 64 * 512, r[j % 2][n]);
#pragma unroll
      for (int n = 0; n < k * m; n++) {
        const uint32_t(&b)[4] = r[ahead ? (j + 1) % 2 : j % 2][n / m];
        mma(d[n % chains], a, b[n % 2 * 2], b[n % 2 * 2 + 1]);
      }
    }
  }
  uint64_t stop = cycles64();
  uint32_t sum = 0;
  for (int c = 0; c < chains; c++) sum ^= __float_as_uint(d[c][0] + d[c][1] + d[c][2] + d[c][3]);
  for (int s = 0; s < 2; s++)
    for (int n = 0; n < k; n++) sum ^= r[s][n][0] ^ r[s][n][1] ^ r[s][n][2] ^ r[s][n][3];
  sink[blockIdx.x * blockDim.x + threadIdx.x] = sum;
  atomicMin(&first, (unsigned long long)start);
  atomicMax(&last, (unsigned long long)stop);
  __syncthreads();
  if (threadIdx.x == 0) span[blockIdx.x] = last - first;
}

static uint32_t *sink;

template <class X, int count>
static void measure_burst(const char *name) {
  static uint32_t *cycles = device_alloc<uint32_t>(32);
  for (int subcores : {1, 4})
    for (int warps : {1, 2, 4}) {
      burst<X, count><<<1, warps * 128, 16384>>>(subcores, cycles, sink);
      auto c = to_host(cycles, 32);
      uint32_t most[2] = {0, 0};
      for (int w = 0; w < warps * 4; w++)
        for (int e = 0; e < 2; e++)
          if (w % 4 < subcores && c[(size_t)w * 2 + e] > most[e]) most[e] = c[(size_t)w * 2 + e];
      char variant[64];
      snprintf(variant, sizeof variant, "%s_%dx%d", name, subcores, warps);
      row("ldmatrix_queue", variant, "count", count, "issued", most[0], "cycles");
      row("ldmatrix_queue", variant, "count", count, "ended", most[1], "cycles");
    }
  finish();
}

template <int count>
static void measure_bursts() {
  measure_burst<Ldsm4, count>("LDSM.x4");
  measure_burst<Ldsm1, count>("LDSM.x1");
  measure_burst<Lds128, count>("LDS.128");
  measure_burst<Shfl, count>("SHFL");
}

template <int k, int m, bool ahead>
static void measure_loop() {
  static uint64_t *span = device_alloc<uint64_t>(132);
  for (int warps : {1, 2, 4}) {
    loop<k, m, ahead><<<132, warps * 128, 32768>>>(0, span, sink, 3);
    char variant[64];
    snprintf(variant, sizeof variant, "%d_LDSM.x4_%d_mma_%s", k, k * m, ahead ? "ahead" : "same");
    row("ldmatrix_queue", variant, "warps_a_subcore", warps, "cycles_per_round", (double)to_host(span, 1)[0] / (iterations * rounds), "cycles");
  }
  finish();
}

template <int k>
static void measure_loops() {
  measure_loop<k, 2, false>(), measure_loop<k, 2, true>();
  measure_loop<k, 4, false>(), measure_loop<k, 4, true>();
}

int main(int argc, char **argv) {
  sink = device_alloc<uint32_t>(132 * 512);
  if (!has_flag(argc, argv, "--profile")) {
    measure_bursts<1>(), measure_bursts<2>(), measure_bursts<3>(), measure_bursts<4>(), measure_bursts<5>();
    measure_bursts<6>(), measure_bursts<7>(), measure_bursts<8>(), measure_bursts<9>(), measure_bursts<10>();
    measure_bursts<12>(), measure_bursts<14>(), measure_bursts<16>(), measure_bursts<20>(), measure_bursts<24>();
  }
  measure_loops<1>(), measure_loops<2>(), measure_loops<4>(), measure_loops<8>();
  return 0;
}
