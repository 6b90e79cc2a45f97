/* What a cp.async takes of the shared-memory pipe beside instructions that read or write shared memory.
 *
 * Every warp repeats k instructions of one kind and one copy of a warp, six copies in flight, data from L2. Cycles of
 * the SM for one copy with its k companions; x is k. `alone` has no copy. cg16: 16 bytes a lane, 512 adjacent bytes;
 * cg16_rows: four rows of 128 bytes, chunks swizzled by the row, as a tile of 64 columns; cg16_row2: two rows of 256;
 * ca16, ca8, ca4: through L1, adjacent; cg16_lines: every lane's line is another (32 lines of 16 bytes). ldg16,
 * ldg16_rows: loads of 16 bytes a lane to registers instead, of 16 MB in turn, so that L1 has none. Companions:
 * LDSM.x4 (4 wavefronts), LDSM.x4.T, LDS.128 (4), LDS.32 (1), STS.128 (4). `stride` is 0, which the compiler does not
 * know. */
#include <type_traits>

#include "bench.h"
using namespace bench;

constexpr int in_flight = 6, per_round = 8, buffer_bytes = 32768, iterations = 512, burst_iterations = 128;

struct Ldsm {
  static __device__ __forceinline__ void apply(uint32_t at, uint32_t (&r)[4]) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at));
  }
};
struct LdsmT {
  static __device__ __forceinline__ void apply(uint32_t at, uint32_t (&r)[4]) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at));
  }
};
struct Lds128 {
  static __device__ __forceinline__ void apply(uint32_t at, uint32_t (&r)[4]) {
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
  }
};
struct Lds32 {
  static __device__ __forceinline__ void apply(uint32_t at, uint32_t (&r)[4]) {
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(r[0]) : "r"(at));
  }
};
struct Sts128 {
  static __device__ __forceinline__ void apply(uint32_t at, uint32_t (&r)[4]) {
    asm volatile("st.shared.v4.u32 [%0], {%1,%1,%1,%1};" ::"r"(at), "r"(at));
    r[0] = at;
  }
};

enum class Copy { none, cg16, cg16_rows, cg16_row2, cg16_lines, ca16, ca8, ca4, ldg16, ldg16_rows };

template <Copy copy>
constexpr bool loads = copy == Copy::ldg16 || copy == Copy::ldg16_rows;
constexpr uint32_t source_bytes = 1 << 24, source_step = 65536;

/* Bytes from the warp's first to this lane's, in memory and in shared memory. */
template <Copy copy>
__device__ __forceinline__ uint32_t source_offset(uint32_t lane) {
  if (copy == Copy::cg16_rows || copy == Copy::ldg16_rows) return lane / 8 * 4096 + lane % 8 * 16;
  if (copy == Copy::cg16_row2) return lane / 16 * 4096 + lane % 16 * 16;
  if (copy == Copy::cg16_lines) return lane * 1024;
  return lane * (copy == Copy::ca8 ? 8 : copy == Copy::ca4 ? 4 : 16);
}
template <Copy copy>
__device__ __forceinline__ uint32_t target_offset(uint32_t lane) {
  if (copy == Copy::cg16_rows) return lane / 8 * 128 + (lane % 8 ^ lane / 8) * 16;
  if (copy == Copy::cg16_row2) return lane / 16 * 256 + (lane % 16 ^ lane / 16) * 16;
  return lane * (copy == Copy::ca8 ? 8 : copy == Copy::ca4 ? 4 : 16);
}

template <Copy copy>
__device__ __forceinline__ void take(uint32_t to, const uint8_t *from) {
  if constexpr (copy == Copy::ca16)
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
  else if constexpr (copy == Copy::ca8)
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(to), "l"(from) : "memory");
  else if constexpr (copy == Copy::ca4)
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
  else if constexpr (copy != Copy::none && !loads<copy>)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
  if constexpr (copy != Copy::none && !loads<copy>)
    asm volatile("cp.async.commit_group; cp.async.wait_group %0;" ::"n"(in_flight) : "memory");
}

__device__ __forceinline__ void load(uint32_t (&r)[4], const uint8_t *from) {
  asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "l"(from));
}

template <class Companion, int k, Copy copy>
__global__ void beside(uint32_t stride, const uint8_t *from, uint64_t *span, uint32_t *sink) {
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ unsigned long long first, last;
  if (threadIdx.x == 0) first = ~0ull, last = 0;
  uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, base = shared_address(shared), r[4][4] = {}, sum[4] = {};
  uint32_t at = base + threadIdx.x * (std::is_same<Companion, Lds32>::value ? 4 : 16);
  uint32_t to = base + buffer_bytes + warp * 512 + target_offset<copy>(lane);
  const uint8_t *source = from +
                          warp * (copy == Copy::cg16_rows || copy == Copy::ldg16_rows ? 128
                                  : copy == Copy::cg16_row2                           ? 256
                                  : copy == Copy::cg16_lines                          ? 32
                                                                                      : 512) +
                          source_offset<copy>(lane);
  uint32_t loaded[per_round][4] = {};
  __syncthreads();
  uint64_t start = cycles64();
#pragma unroll 1
  for (int i = 0; i < iterations; i += per_round) {
#pragma unroll
    for (int j = 0; j < per_round; j++) {
#pragma unroll
      for (int n = 0; n < k; n++) {
        Companion::apply(at += stride, r[n % 4]);
        sum[n % 4] = (sum[n % 4] ^ r[n % 4][0]) + (r[n % 4][1] ^ r[n % 4][2] ^ r[n % 4][3]);
      }
      if constexpr (loads<copy>) {
        uint32_t(&oldest)[4] = loaded[(j + per_round - in_flight) % per_round];
        sum[0] ^= oldest[0] ^ oldest[1] ^ oldest[2] ^ oldest[3];
        load(loaded[j], source + (uint32_t)(i + j) * source_step % source_bytes);
      } else {
        take<copy>(to, source + j * source_step);
      }
    }
  }
  for (int j = 0; j < per_round; j++) sum[1] ^= loaded[j][0];
  asm volatile("cp.async.wait_all;" ::: "memory");
  uint64_t stop = cycles64();
  sink[threadIdx.x] = sum[0] ^ sum[1] ^ sum[2] ^ sum[3];
  atomicMin(&first, (unsigned long long)start);
  atomicMax(&last, (unsigned long long)stop);
  __syncthreads();
  if (threadIdx.x == 0) *span = last - first;
}

template <class Companion, int k, Copy copy>
static void measure(const char *companion, const char *copied) {
  static uint64_t *span = device_alloc<uint64_t>(1);
  static uint32_t *sink = device_alloc<uint32_t>(1024);
  static uint8_t *from = device_alloc<uint8_t>(source_bytes + source_step);
  allow_shared(beside<Companion, k, copy>, 2 * buffer_bytes);
  for (int warps : {4, 8, 16}) {
    for (int warm = 0; warm < 2; warm++)
      beside<Companion, k, copy><<<1, warps * 32, 2 * buffer_bytes>>>(0, from, span, sink);
    char variant[48];
    snprintf(variant, sizeof variant, "%s_%s_%d_warps", copied, companion, warps);
    row("copy_beside", variant, "companions", k, "sm_cycles", (double)to_host(span, 1)[0] / (iterations * warps),
        "cycles");
  }
  finish();
}

/* As a matrix product has them: `count` copies in a row, then k companions for each, and a barrier; two groups in
 * flight. */
template <int k, int count, Copy copy>
__global__ void burst(uint32_t stride, const uint8_t *from, uint64_t *span, uint32_t *sink) {
  extern __shared__ __align__(128) uint8_t shared[];
  uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, base = shared_address(shared), r[4][4] = {}, sum[4] = {};
  uint32_t at = base + threadIdx.x * 16, to = base + buffer_bytes + warp * 512 + target_offset<copy>(lane);
  const uint8_t *source = from + warp * (copy == Copy::cg16_rows ? 128 : 512) + source_offset<copy>(lane);
  __syncthreads();
  uint64_t start = cycles64();
#pragma unroll 1
  for (int i = 0; i < burst_iterations; i++) {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    at += stride;
    if (copy != Copy::none) {
#pragma unroll
      for (int n = 0; n < count; n++)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(source + n * 65536) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
#pragma unroll
    for (int n = 0; n < k * count; n++) {
      Ldsm::apply(at + (uint32_t)n * 64, r[n % 4]);
      sum[n % 4] = (sum[n % 4] ^ r[n % 4][0]) + (r[n % 4][1] ^ r[n % 4][2] ^ r[n % 4][3]);
    }
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  uint64_t stop = cycles64();
  sink[threadIdx.x] = sum[0] ^ sum[1] ^ sum[2] ^ sum[3];
  if (threadIdx.x == 0) *span = stop - start;
}

template <int k, Copy copy>
static void measure_burst(const char *copied) {
  constexpr int count = 8;
  static uint64_t *span = device_alloc<uint64_t>(1);
  static uint32_t *sink = device_alloc<uint32_t>(1024);
  static uint8_t *from = device_alloc<uint8_t>(1 << 21);
  allow_shared(burst<k, count, copy>, 2 * buffer_bytes);
  for (int warps : {4, 8, 16}) {
    for (int warm = 0; warm < 2; warm++)
      burst<k, count, copy><<<1, warps * 32, 2 * buffer_bytes>>>(0, from, span, sink);
    char variant[48];
    snprintf(variant, sizeof variant, "%s_bursts_LDSM.x4_%d_warps", copied, warps);
    row("copy_beside", variant, "companions", k, "sm_cycles",
        (double)to_host(span, 1)[0] / (burst_iterations * count * warps), "cycles");
  }
  finish();
}

template <Copy copy>
static void bursts(const char *copied) {
  measure_burst<1, copy>(copied);
  measure_burst<2, copy>(copied);
  measure_burst<3, copy>(copied);
  measure_burst<4, copy>(copied);
  measure_burst<6, copy>(copied);
  measure_burst<8, copy>(copied);
}

template <class Companion, Copy copy>
static void sweep(const char *companion, const char *copied) {
  measure<Companion, 1, copy>(companion, copied);
  measure<Companion, 2, copy>(companion, copied);
  measure<Companion, 3, copy>(companion, copied);
  measure<Companion, 4, copy>(companion, copied);
  measure<Companion, 6, copy>(companion, copied);
  measure<Companion, 8, copy>(companion, copied);
}

template <Copy copy>
static void all(const char *copied) {
  if (copy != Copy::none) measure<Ldsm, 0, copy>("nothing", copied);
  sweep<Ldsm, copy>("LDSM.x4", copied);
  sweep<Lds128, copy>("LDS.128", copied);
  sweep<Sts128, copy>("STS.128", copied);
}

int main() {
  all<Copy::none>("alone");
  sweep<LdsmT, Copy::none>("LDSM.x4.T", "alone");
  sweep<Lds32, Copy::none>("LDS.32", "alone");
  all<Copy::cg16>("cg16");
  sweep<LdsmT, Copy::cg16>("LDSM.x4.T", "cg16");
  sweep<Lds32, Copy::cg16>("LDS.32", "cg16");
  all<Copy::cg16_rows>("cg16_rows");
  all<Copy::cg16_row2>("cg16_row2");
  all<Copy::cg16_lines>("cg16_lines");
  all<Copy::ca16>("ca16");
  all<Copy::ca8>("ca8");
  all<Copy::ca4>("ca4");
  all<Copy::ldg16>("ldg16");
  all<Copy::ldg16_rows>("ldg16_rows");
  bursts<Copy::none>("alone");
  bursts<Copy::cg16>("cg16");
  bursts<Copy::cg16_rows>("cg16_rows");
  return 0;
}
