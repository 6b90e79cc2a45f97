/* What special math, shuffles and accesses to shared memory take of a sub-core's dispatch beside mma.sync.
 *
 * A warp repeats rounds of m m16n8k16 and k instructions of one kind, whose results feed later products; cycles a sub-core needs for a round;
 * x is k. `one`: the warps of sub-core 0 alone run, so that the shared-memory pipe, which all four share, has room; `four`: those of all.
 * Addresses differ, and `stride` is 0, which the compiler does not know: it drops loads that repeat.
 * B is two words next to each other, which ptxas makes by moves (MOV, IMAD.MOV; a cycle of dispatch each). Other instructions a round in sm_90a code of CUDA 13.0:
 *   m, k        1,1   2,1   4,1   8,1   2,2   4,2   8,2
 *   LDSM.x4     1.6   2.6   3.3   4.9   2.7   5.5   9.6
 *   LDS.32      1.4   2.1   2.9   3.6   2.3   5.1   6.1
 *   SHFL        1.2   1.4   3.2   3.6   2.3   2.3   2.5
 *   MUFU.EX2    1.2   1.2   3.1   3.4   2.2   2.5   2.3
 * So with 4 warps MUFU costs 1.1 to 2.3 cycles of the sub-core's beside its moves and 6 for each mma, SHFL 0.7 to 1.6, LDS and LDSM 0 to 0.7. */
#include "bench.h"
using namespace bench;

constexpr int rounds = 16, iterations = 64, chains = 8;

__device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

struct Nothing {
  static constexpr int words = 4;  // that it gives
  static __device__ __forceinline__ void apply(uint32_t, uint32_t (&)[4]) {}
};
struct Ldsm {
  static constexpr int words = 4;  // that it gives
  static __device__ __forceinline__ void apply(uint32_t at, uint32_t (&r)[4]) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
  }
};
struct LdsmT {
  static constexpr int words = 4;  // that it gives
  static __device__ __forceinline__ void apply(uint32_t at, uint32_t (&r)[4]) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
  }
};
struct Lds128 {
  static constexpr int words = 4;  // that it gives
  static __device__ __forceinline__ void apply(uint32_t at, uint32_t (&r)[4]) {
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
  }
};
struct Lds32 {
  static constexpr int words = 1;  // that it gives
  static __device__ __forceinline__ void apply(uint32_t at, uint32_t (&r)[4]) { asm volatile("ld.shared.u32 %0, [%1];" : "=r"(r[0]) : "r"(at)); }
};
struct Sts128 {
  static constexpr int words = 4;  // that it gives
  static __device__ __forceinline__ void apply(uint32_t at, uint32_t (&r)[4]) {
    asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(at), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]));
  }
};
struct Shfl {
  static constexpr int words = 1;  // that it gives
  static __device__ __forceinline__ void apply(uint32_t, uint32_t (&r)[4]) { asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, -1;" : "+r"(r[0])); }
};
struct Mufu {
  static constexpr int words = 1;  // that it gives
  static __device__ __forceinline__ void apply(uint32_t, uint32_t (&r)[4]) {
    asm volatile("{ .reg .f32 f; mov.b32 f, %0; ex2.approx.ftz.f32 f, f; mov.b32 %0, f; }" : "+r"(r[0]));
  }
};

/* What a round loads feeds the products of the next but one, so that nothing is dropped and nothing waits. */
template <class X, int m, int k>
__global__ void beside(int active, uint32_t stride, uint64_t *span, uint32_t *sink, uint32_t r0) {
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ unsigned long long first, last;
  if (threadIdx.x == 0) first = ~0ull, last = 0;
  for (uint32_t i = threadIdx.x; i < 8192; i += blockDim.x) ((uint32_t *)shared)[i] = 0;
  uint32_t at = shared_address(shared) + threadIdx.x % 32 * 16, r[4][4], a[4] = {r0, r0 + 1, r0 + 2, r0 + 3};
  float d[chains][4] = {};
  for (int i = 0; i < 16; i++) r[i / 4][i % 4] = r0 * (uint32_t)i;
  __syncthreads();
  if ((int)(threadIdx.x / 32 % 4) < active) {
    uint64_t start = cycles64();
#pragma unroll 1
    for (int i = 0; i < iterations; i++) {
      at += stride;
#pragma unroll
      for (int j = 0; j < rounds; j++) {
#pragma unroll
        for (int n = 0; n < k; n++) X::apply(at + (uint32_t)(j * k + n) * 512, r[(j * k + n) % 4]);
#pragma unroll
        for (int n = 0; n < m; n++) {
          const uint32_t(&b)[4] = r[(j * k + 4 - 2 * k + n % k) % 4];
          mma(d[(j * m + n) % chains], a, b[0], b[X::words - 1]);
        }
      }
    }
    uint64_t stop = cycles64();
    atomicMin(&first, (unsigned long long)start);
    atomicMax(&last, (unsigned long long)stop);
  }
  uint32_t sum = 0;
  for (int c = 0; c < chains; c++) sum ^= __float_as_uint(d[c][0] + d[c][1] + d[c][2] + d[c][3]);
  for (int c = 0; c < 4; c++) sum ^= r[c][0] ^ r[c][1] ^ r[c][2] ^ r[c][3];
  sink[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) *span = last - first;
}

template <class X, int m, int k>
static void measure(const char *name) {
  static uint64_t *span = device_alloc<uint64_t>(1);
  static uint32_t *sink = device_alloc<uint32_t>(1024);
  for (int active : {1, 4})
    for (int warps : {1, 2, 3, 4}) {
      for (int warm = 0; warm < 2; warm++) beside<X, m, k><<<1, warps * 128, 32768>>>(active, 0, span, sink, 3);
      char variant[64];
      snprintf(variant, sizeof variant, "%s_%d_mma_%s_%d_warps", name, m, active == 1 ? "one" : "four", warps);
      row("mma_beside_shared", variant, "k", k, "cycles_per_round_subcore", (double)to_host(span, 1)[0] / (iterations * rounds * warps), "cycles");
    }
  finish();
}

template <class X>
static void sweep(const char *name) {
  measure<X, 1, 1>(name);
  measure<X, 2, 1>(name);
  measure<X, 4, 1>(name);
  measure<X, 8, 1>(name);
  measure<X, 2, 2>(name);
  measure<X, 4, 2>(name);
  measure<X, 8, 2>(name);
}

int main() {
  sweep<Nothing>("nothing");
  sweep<Ldsm>("LDSM.x4");
  sweep<LdsmT>("LDSM.x4.T");
  sweep<Lds128>("LDS.128");
  sweep<Lds32>("LDS.32");
  sweep<Sts128>("STS.128");
  sweep<Shfl>("SHFL");
  sweep<Mufu>("MUFU");
  return 0;
}
