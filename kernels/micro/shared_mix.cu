/* What instructions of the shared-memory pipe take of each other, kinds mixed: whether the pipe goes from one kind to
 * another without a pause.
 *
 * Every warp repeats k LDSM.x4 (4 wavefronts each) and n instructions of another kind, the latter in one row (`rows`) or
 * spread among the former (`spread`); what is loaded is read at once. Variant: kind, k, order,
 * warps of the SM; x: n; cycles of the SM for a round of one warp. LDS, STS: 4 bytes a lane; STS_8: of the first 8 lanes
 * alone, predicated; LDS.128, STS.128, STSM.x4: 4 wavefronts; commit: LDGDEPBAR. `zero` is 0, which the compiler does not
 * know. */
#include "bench.h"
using namespace bench;

constexpr int iterations = 64, per_iteration = 4;

struct At {
  uint32_t matrix, word, wide;
  bool first_8;
};

struct Shfl {
  static __device__ __forceinline__ void go(const At &at, uint32_t n, uint32_t &sum) {
    uint32_t r;
    asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 31, -1;" : "=r"(r) : "r"(at.word + n));
    sum ^= r;
  }
};
struct Lds {
  static __device__ __forceinline__ void go(const At &at, uint32_t n, uint32_t &sum) {
    uint32_t r;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(r) : "r"(at.word + n * 128));
    sum ^= r;
  }
};
struct Lds_128 {
  static __device__ __forceinline__ void go(const At &at, uint32_t n, uint32_t &sum) {
    uint32_t r[4];
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at.wide + n * 512));
    sum ^= r[0] ^ r[1] ^ r[2] ^ r[3];
  }
};
struct Sts {
  static __device__ __forceinline__ void go(const At &at, uint32_t n, uint32_t &sum) {
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(at.word + n * 128), "r"(sum) : "memory");
  }
};
struct Sts_8 {
  static __device__ __forceinline__ void go(const At &at, uint32_t n, uint32_t &sum) {
    if (at.first_8) asm volatile("st.shared.u32 [%0], %1;" ::"r"(at.word + n * 128), "r"(sum) : "memory");
  }
};
struct Sts_128 {
  static __device__ __forceinline__ void go(const At &at, uint32_t n, uint32_t &sum) {
    asm volatile("st.shared.v4.u32 [%0], {%1,%1,%1,%1};" ::"r"(at.wide + n * 512), "r"(sum) : "memory");
  }
};
struct Stsm {
  static __device__ __forceinline__ void go(const At &at, uint32_t n, uint32_t &sum) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%1,%1,%1};" ::"r"(at.wide + n * 512), "r"(sum) : "memory");
  }
};
struct Commit {
  static __device__ __forceinline__ void go(const At &, uint32_t, uint32_t &) { asm volatile("cp.async.commit_group;" ::: "memory"); }
};

template <class X, int k, int count, bool spread>
__global__ void rounds(uint32_t zero, uint64_t *span, uint32_t *sink) {
  extern __shared__ __align__(128) uint8_t shared[];
  uint32_t base = shared_address(shared), lane = threadIdx.x % 32, warp = threadIdx.x / 32, sum[2] = {}, m[4] = {};
  At at = {base + lane * 16, base + 32768 + warp * 128 + lane * 4, base + 65536 + warp * 512 + lane * 16, lane < 8 + zero};
  __syncthreads();
  uint64_t start = cycles64();
#pragma unroll 1
  for (int i = 0; i < iterations; i++) {
    at.matrix += zero, at.word += zero, at.wide += zero;
#pragma unroll
    for (int j = 0; j < per_iteration; j++) {
      int done = 0;
#pragma unroll
      for (int n = 0; n < k; n++) {
        uint32_t r[4];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(at.matrix + (uint32_t)(j * k + n) * 512));
        m[n % 4] ^= r[0] ^ r[1] ^ r[2] ^ r[3];
        if (spread)
          for (; done * k < (n + 1) * count; done++) X::go(at, (uint32_t)(j * count + done), sum[done % 2]);
      }
#pragma unroll
      for (; done < count; done++) X::go(at, (uint32_t)(j * count + done), sum[done % 2]);
    }
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  sink[threadIdx.x] = sum[0] ^ sum[1] ^ m[0] ^ m[1] ^ m[2] ^ m[3];
  __syncthreads();
  if (threadIdx.x == 0) *span = cycles64() - start;
}

template <class X, int k, int count, bool spread>
static void measure(const char *name) {
  constexpr int shared_bytes = 65536 + 4 * 16 * 512 * 4;
  static uint64_t *span = device_alloc<uint64_t>(1);
  static uint32_t *sink = device_alloc<uint32_t>(1024);
  allow_shared(rounds<X, k, count, spread>, shared_bytes);
  for (int warps : {4, 8, 12, 16}) {
    for (int warm = 0; warm < 2; warm++) rounds<X, k, count, spread><<<1, warps * 32, shared_bytes>>>(0, span, sink);
    char variant[64];
    snprintf(variant, sizeof variant, "%s_%d_LDSM.x4_%s_%d_warps", name, k, spread ? "spread" : "row", warps);
    row("shared_mix", variant, "count", count, "sm_cycles", (double)to_host(span, 1)[0] / (iterations * per_iteration * warps), "cycles");
  }
  finish();
}

template <class X>
static void sweep(const char *name) {
  measure<X, 0, 4, false>(name), measure<X, 0, 8, false>(name);
  measure<X, 8, 1, false>(name), measure<X, 8, 2, false>(name), measure<X, 8, 4, false>(name), measure<X, 8, 8, false>(name), measure<X, 8, 16, false>(name);
  measure<X, 8, 2, true>(name), measure<X, 8, 4, true>(name), measure<X, 8, 8, true>(name), measure<X, 8, 16, true>(name);
}

int main() {
  measure<Lds, 8, 0, false>("nothing");
  sweep<Shfl>("SHFL"), sweep<Lds>("LDS"), sweep<Lds_128>("LDS.128");
  sweep<Sts>("STS"), sweep<Sts_8>("STS_8"), sweep<Sts_128>("STS.128"), sweep<Stsm>("STSM.x4"), sweep<Commit>("commit");
  return 0;
}
