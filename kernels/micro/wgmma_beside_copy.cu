/* What copies into shared memory cost the wgmmas that read their operands there: two warpgroups issue products of 64 of
 * K without a pause, one group ahead of the one they wait for, while `x` copies of 128 rows of 128 bytes from L2 are
 * kept on the way into other buffers: by TMA, or (`cp_async`) by four warps with 16 bytes a lane. B lies in rows of
 * columns of C, or (`mn`) in rows of K. `cycles`: of a wgmma m64nNk16; `bytes`: that arrived in a cycle. */
#include "bench.h"
#include "hopper.h"
using namespace bench;

constexpr int steps = 2000, copy_rows = 128, copy_bytes = copy_rows * 128, buffers = 8, table_bytes = 4 << 20;
constexpr int a_bytes = 8192, b_bytes = 256 * 128;

/* How B lies in shared memory: rows of columns of C, or of K in panels of 64 columns. */
enum Major { k_major, mn_major };

template <int n, Major major>
__device__ __forceinline__ void multiply(float (&d)[n / 2], uint32_t a, uint32_t b) {
  hopper::wgmma_fence();
#pragma unroll
  for (uint32_t k = 0; k < 4; k++) {
    uint64_t of_b =
        major == k_major ? hopper::descriptor(b + k * 32, 16, 1024) : hopper::descriptor(b + k * 2048, 64 * 128, 1024);
    Wgmma<n>::template ss<major == mn_major>(d, hopper::descriptor(a + k * 32, 16, 1024), of_b, 1);
  }
  hopper::wgmma_commit();
}

/* Copies of a warpgroup, `in_flight` groups of them, until the products are done. */
template <uint32_t in_flight>
__device__ __forceinline__ void copy_by_threads(uint32_t to, const uint8_t *table, const volatile int *num_done,
                                                uint64_t *copied) {
  uint32_t issued = 0;
  auto copy = [&] {
    const uint8_t *source = table + issued % (table_bytes / copy_bytes) * copy_bytes + threadIdx.x * 16;
    uint32_t slot = to + issued++ % in_flight * copy_bytes + threadIdx.x * 16;
#pragma unroll
    for (uint32_t i = 0; i < copy_bytes / 2048; i++)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(slot + i * 2048), "l"(source + i * 2048)
                   : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  uint64_t begin = cycles64();
  for (uint32_t i = 0; i < in_flight; i++) copy();
  while (!*num_done) {
    asm volatile("cp.async.wait_group %0;" ::"n"(in_flight - 1) : "memory");
    copy();
  }
  if (threadIdx.x == 0) copied[1] = cycles64() - begin, copied[0] = (uint64_t)(issued - in_flight) * copy_bytes;
  asm volatile("cp.async.wait_all;" ::: "memory");
}

enum Copier { by_tma, by_threads };

template <int n, uint32_t in_flight, Copier copier, Major major>
__global__ __launch_bounds__(384, 1) void run(const __grid_constant__ CUtensorMap from, const uint8_t *table,
                                              uint64_t *cycles, uint64_t *copied, float *sink) {
  extern __shared__ uint8_t raw[];
  __shared__ __align__(8) uint64_t bars[buffers];
  __shared__ volatile int num_done;
  uint32_t tiles = (hopper::smem(raw) + 1023) / 1024 * 1024, a = tiles, b = a + 2 * a_bytes, to = b + b_bytes;
  for (uint32_t i = threadIdx.x; i < (2 * a_bytes + b_bytes) / 4; i += blockDim.x)
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(tiles + i * 4), "r"(0x2C002C00 + (i * 2654435761u >> 24)) : "memory");
  if (threadIdx.x == 0) {
    for (int i = 0; i < buffers; i++) hopper::mbarrier_init(hopper::smem(&bars[i]), 1);
    hopper::mbarrier_init_fence();
    num_done = 0;
  }
  hopper::proxy_fence();
  __syncthreads();
  int group = (int)threadIdx.x / 128 - 1;
  if (group >= 0) {
    float d[n / 2];
    for (int i = 0; i < n / 2; i++) d[i] = 0;
    multiply<n, major>(d, a + (uint32_t)group * a_bytes, b);
    uint64_t start = cycles64();
    for (int step = 0; step < steps; step++) {
      multiply<n, major>(d, a + (uint32_t)group * a_bytes, b);
      hopper::wgmma_wait<1>();
    }
    uint64_t end = cycles64();
    hopper::wgmma_wait<0>();
    hopper::keep(d);
    float sum = 0;
    for (int i = 0; i < n / 2; i++) sum += d[i];
    sink[threadIdx.x] = sum;
    if (threadIdx.x % 128 == 0) {
      cycles[group] = end - start;
      num_done = 1;
    }
    return;
  }
  if constexpr (in_flight > 0 && copier == by_threads) copy_by_threads<in_flight>(to, table, &num_done, copied);
  if constexpr (in_flight > 0 && copier == by_tma) {
    if (threadIdx.x > 0) return;
    uint32_t bar = hopper::smem(bars), issued = 0, arrived = 0;
    auto copy = [&] {
      uint32_t slot = issued % in_flight;
      hopper::mbarrier_expect(bar + slot * 8, copy_bytes);
      hopper::tensor_load_3d(to + slot * copy_bytes, &from, 0, (int)(issued++ * copy_rows % (table_bytes / 128)), 0,
                             bar + slot * 8);
    };
    auto wait = [&] {
      hopper::mbarrier_wait(bar + arrived % in_flight * 8, arrived / in_flight & 1);
      arrived++;
    };
    uint64_t begin = cycles64();
    for (uint32_t i = 0; i < in_flight; i++) copy();
    while (!num_done) {
      wait();
      copy();
    }
    copied[1] = cycles64() - begin;
    copied[0] = (uint64_t)arrived * copy_bytes;
    while (arrived < issued) wait();
  }
}

template <int n, uint32_t in_flight, Copier copier, Major major>
static void measure(const CUtensorMap &from, const uint8_t *table) {
  static uint64_t *cycles = device_alloc<uint64_t>(2), *copied = device_alloc<uint64_t>(2);
  static float *sink = device_alloc<float>(384);
  constexpr int bytes = 1024 + 2 * a_bytes + b_bytes + buffers * copy_bytes;
  char variant[32];
  snprintf(variant, sizeof variant, "ss_%sn%d%s", major == mn_major ? "mn_" : "", n,
           copier == by_threads ? "_cp_async" : "");
  allow_shared(run<n, in_flight, copier, major>, bytes);
  CUDA_CHECK(cudaMemset(copied, 0, 16));
  for (int warm = 0; warm < 2; warm++)
    run<n, in_flight, copier, major><<<1, 384, bytes>>>(from, table, cycles, copied, sink);
  finish();
  std::vector<uint64_t> took = to_host(cycles, 2), arrived = to_host(copied, 2);
  row("wgmma_beside_copy", variant, "in_flight", in_flight, "cycles",
      (double)std::max(took[0], took[1]) / (steps * 8.0), "cycles");
  row("wgmma_beside_copy", variant, "in_flight", in_flight, "bytes",
      arrived[1] ? (double)arrived[0] / (double)arrived[1] : 0, "bytes/cycle");
}

template <int n, Copier copier, Major major>
static void measure_all(const CUtensorMap &from, const uint8_t *table) {
  measure<n, 0, copier, major>(from, table);
  measure<n, 1, copier, major>(from, table);
  measure<n, 4, copier, major>(from, table);
  measure<n, 8, copier, major>(from, table);
}

template <Copier copier, Major major>
static void measure_columns(const CUtensorMap &from, const uint8_t *table) {
  measure_all<64, copier, major>(from, table);
  measure_all<128, copier, major>(from, table);
  measure_all<256, copier, major>(from, table);
}

int main() {
  uint8_t *table = device_alloc<uint8_t>(table_bytes);
  CUtensorMap from = hopper::tensor_map(table, 64, table_bytes / 128, 1, copy_rows);
  measure_columns<by_tma, k_major>(from, table);
  measure_columns<by_threads, k_major>(from, table);
  measure_columns<by_tma, mn_major>(from, table);
  return 0;
}
