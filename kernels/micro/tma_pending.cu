/* How many lines TMA may have outstanding for one SM: a thread asks for x lines at once, in copies of 64, and waits for
 * all. While the table of outstanding lines has room the slope is the rate at which TMA asks, after that the rate at
 * which lines come back. `dram`: lines that nobody has read; `l2`: lines that were read just before. `dram_beside_N`:
 * the other SMs stream DRAM and rest N cycles after each 64 bytes a thread, which makes the latency longer (the line
 * `others` says how fast they go). `multicast`: a cluster of two CTAs, each asks for every other copy for both; the
 * slower one's time. The wait polls (test_wait): try_wait may sleep past the end. */
#include <cooperative_groups.h>

#include "bench.h"
#include "hopper.h"
using namespace bench;

constexpr int copy_lines = 64, copy_bytes = copy_lines * 128, max_copies = 28, num_repeats = 33;
constexpr int smem_bytes = max_copies * copy_bytes;
const int sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28};
constexpr int num_sizes = sizeof sizes / sizeof sizes[0];

__device__ uint32_t finished;

__device__ __forceinline__ void bulk_multicast(uint32_t to, const void *from, uint32_t bytes, uint32_t bar,
                                               uint16_t ctas) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], "
      "%4;" ::"r"(to),
      "l"(from), "r"(bytes), "r"(bar), "h"(ctas)
      : "memory");
}

struct Sizes {
  int copies[num_sizes];
};

/* cycles[cta][size][repeat]. Every burst has lines of its own, but `in_l2` asks for the same ones again and again. */
template <int ctas>
__device__ void measure_bursts(const char *region, const Sizes &sizes_of, bool in_l2, uint32_t rank, uint32_t *cycles) {
  extern __shared__ __align__(1024) uint8_t tile[];
  __shared__ __align__(8) uint64_t bar_storage;
  uint32_t bar = hopper::smem(&bar_storage), to = hopper::smem(tile), parity = 0;
  if (threadIdx.x == 0) {
    hopper::mbarrier_init(bar, 1);
    hopper::mbarrier_init_fence();
  }
  const char *from = region;
  for (int s = 0; s < num_sizes; s++) {
    int copies = sizes_of.copies[s];
    for (int r = 0; r < num_repeats; r++) {
      if (ctas > 1)
        cooperative_groups::this_cluster().sync();
      else
        __syncthreads();
      if (threadIdx.x == 0) {
        uint32_t start = clock32();
        hopper::mbarrier_expect(bar, (uint32_t)(copies * copy_bytes));
        for (int i = 0; i < copies; i++) {
          uint32_t there = to + (uint32_t)(i * copy_bytes);
          if (ctas == 1)
            hopper::bulk_load(there, from + (size_t)i * copy_bytes, copy_bytes, bar);
          else if (i % ctas == (int)rank)
            bulk_multicast(there, from + (size_t)i * copy_bytes, copy_bytes, bar, (1 << ctas) - 1);
        }
        hopper::mbarrier_poll(bar, parity);
        cycles[(rank * num_sizes + (uint32_t)s) * num_repeats + (uint32_t)r] = clock32() - start;
      }
      parity ^= 1;
      if (!in_l2) from += smem_bytes;
    }
  }
  if (ctas > 1) cooperative_groups::this_cluster().sync();
}

/* rest < 0: the others do nothing. */
template <int ctas>
__global__ __launch_bounds__(512) void bursts(const char *region, const uint4 *streamed, size_t streamed_count,
                                              const __grid_constant__ Sizes sizes_of, bool in_l2, int rest,
                                              uint32_t *cycles, unsigned long long *bytes, uint64_t *span_ns,
                                              uint32_t *sink) {
  if (blockIdx.x < (unsigned)ctas) {
    uint64_t begin = global_ns();
    while (rest >= 0 && global_ns() < begin + 100000)
      ;
    measure_bursts<ctas>(region, sizes_of, in_l2, blockIdx.x, cycles);
    if (threadIdx.x == 0 && blockIdx.x == 0) {
      *span_ns = global_ns() - begin;
      *(volatile uint32_t *)&finished = 1;
    }
    return;
  }
  if (rest < 0) return;
  uint32_t sum = 0;
  size_t step = (size_t)(gridDim.x - ctas) * blockDim.x * 4,
         first = (size_t)(blockIdx.x - ctas) * blockDim.x * 4 + threadIdx.x, at = first;
  unsigned long long done = 0;
  while (*(volatile uint32_t *)&finished == 0) {
    uint4 v[4];
#pragma unroll
    for (int k = 0; k < 4; k++) v[k] = __ldcg(streamed + at + (size_t)k * blockDim.x);
#pragma unroll
    for (int k = 0; k < 4; k++) sum ^= v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
    at += step;
    if (at + 4 * blockDim.x >= streamed_count) at = first;
    done += 64;
    uint64_t begin = cycles64();
    while (cycles64() < begin + (uint64_t)rest)
      ;
  }
  if (sum == 0x12345678) *sink = sum;
  atomicAdd(bytes, done);
}

__global__ void flush(uint4 *to, size_t count) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x)
    to[i] = make_uint4(1, 2, 3, 4);
}

static char *region, *streamed;
static uint32_t *cycles, *sink;
static unsigned long long *bytes;
static uint64_t *span;
static const size_t streamed_bytes = (size_t)4 << 30;

template <int ctas>
static void measure(const char *variant, bool in_l2, int rest) {
  uint32_t zero = 0;
  Sizes sizes_of;
  for (int s = 0; s < num_sizes; s++) sizes_of.copies[s] = sizes[s];
  CUDA_CHECK(cudaMemcpyToSymbol(finished, &zero, 4));
  CUDA_CHECK(cudaMemset(bytes, 0, 8));
  flush<<<1024, 256>>>((uint4 *)streamed, ((size_t)256 << 20) / 16);
  allow_shared(bursts<ctas>, smem_bytes);
  launch_clusters(bursts<ctas>, num_sms() / ctas * ctas, 512, smem_bytes, ctas, (const char *)region,
                  (const uint4 *)streamed, streamed_bytes / 16, sizes_of, in_l2, rest, cycles, bytes, span, sink);
  std::vector<uint32_t> all = to_host(cycles, (size_t)ctas * num_sizes * num_repeats);
  for (int s = 0; s < num_sizes; s++) {
    std::vector<uint32_t> slower;
    for (int r = in_l2; r < num_repeats; r++) {
      uint32_t most = 0;
      for (int c = 0; c < ctas; c++) most = std::max(most, all[(size_t)((c * num_sizes + s) * num_repeats + r)]);
      slower.push_back(most);
    }
    row("tma_pending", variant, "lines", sizes[s] * copy_lines, "all_there", median(slower), "cycles");
  }
  if (rest >= 0)
    row("tma_pending", variant, "lines", 0, "others", (double)to_host(bytes, 1)[0] / (double)to_host(span, 1)[0],
        "GB/s");
  finish();
}

int main() {
  region = device_alloc<char>((size_t)num_sizes * num_repeats * smem_bytes);
  streamed = device_alloc<char>(streamed_bytes);
  cycles = device_alloc<uint32_t>((size_t)2 * num_sizes * num_repeats);
  sink = device_alloc<uint32_t>(1);
  bytes = device_alloc<unsigned long long>(1);
  span = device_alloc<uint64_t>(1);
  measure<1>("l2", true, -1);
  measure<1>("dram", false, -1);
  for (int rest : {2000, 700, 300, 0}) {
    char variant[32];
    snprintf(variant, sizeof variant, "dram_beside_%d", rest);
    measure<1>(variant, false, rest);
  }
  measure<2>("multicast_l2", true, -1);
  measure<2>("multicast_dram", false, -1);
  measure<2>("multicast_dram_beside_0", false, 0);
  return 0;
}
