/* Which lines L2 gives up: reads of pieces of 16 KiB in an order that is known, DRAM reads counted under ncu.
 * `one`: a single CTA reads them, one after the other. `all`: one CTA an SM, all in step to within eight pieces.
 *   cycle: passes over a buffer, as in l2_capacity, but in order.
 *   hot: a buffer of 8 MiB is read over and over, and between two reads of a piece `x` bytes of others that are read
 *     once and never again. hot_again: the hot pieces are read twice each time; cold_again: the others are.
 *     cold_written: the others are written.
 *   window: every piece is read eight times, `x` bytes of reads of it and of other pieces apart.
 * (DRAM reads - bytes read for the first time) / (bytes read again) is the share that L2 had given up. */
#include "bench.h"
using namespace bench;

constexpr int num_threads = 1024, pieces_in_step = 8;
constexpr size_t piece_bytes = 16 * num_threads;
constexpr uint32_t is_write = 1u << 31;
constexpr double mib = 1024 * 1024;

struct Order {
  std::vector<uint32_t> pieces;
  size_t first_reads = 0, reads_again = 0;
};

__device__ void wait_for_all(uint32_t *arrived, uint32_t round) {
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < (round + 1) * gridDim.x)
      ;
  }
  __syncthreads();
}

__global__ __launch_bounds__(num_threads) void passes(char *buffer, const uint32_t *order, int count, uint32_t *arrived,
                                                      uint32_t *sink) {
  uint32_t sum = 0;
  char *mine = buffer + threadIdx.x * 16;
  for (int i = 0; i < count; i += pieces_in_step) {
    if (gridDim.x > 1) wait_for_all(arrived, (uint32_t)(i / pieces_in_step));
#pragma unroll
    for (int k = 0; k < pieces_in_step; k++) {
      uint32_t piece = __ldg(order + i + k);
      char *p = mine + (size_t)(piece & ~is_write) * piece_bytes;
      if (piece & is_write) {
        if (k % gridDim.x == blockIdx.x)
          asm volatile("st.global.v4.u32 [%0], {%1,%1,%1,%1};" ::"l"(p), "r"(sum) : "memory");
        continue;
      }
      uint4 v;
      asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
      sum ^= v.x ^ v.y ^ v.z ^ v.w;
    }
  }
  if (sum == 0x12345678) *sink = sum;
}

static Order cycle(size_t bytes) {
  const int num_passes = 6;
  uint32_t pieces = (uint32_t)(bytes / piece_bytes);
  Order order;
  for (int pass = 0; pass < num_passes; pass++)
    for (uint32_t i = 0; i < pieces; i++) order.pieces.push_back(i);
  order.first_reads = pieces;
  order.reads_again = (num_passes - 1) * (size_t)pieces;
  return order;
}

static Order hot(size_t between, int hot_times, int cold_times, bool written) {
  const size_t cold_bytes = (size_t)320 << 20;
  uint32_t hots = (uint32_t)((size_t)(8 << 20) / piece_bytes), next = hots, colds = (uint32_t)(between / piece_bytes);
  int num_passes = (int)(cold_bytes / between);
  Order order;
  for (int pass = 0; pass < num_passes; pass++)
    for (uint32_t i = 0, cold = 0; i < hots; i++) {
      for (int k = 0; k < hot_times; k++) order.pieces.push_back(i);
      for (; cold < (uint64_t)colds * (i + 1) / hots; cold++, next++)
        for (int k = 0; k < cold_times; k++) order.pieces.push_back(written ? next | is_write : next);
    }
  order.first_reads = written ? hots : next;
  order.reads_again = (size_t)(num_passes - 1) * hots;
  return order;
}

static Order window(size_t apart) {
  const uint32_t readers = 8, pieces = (uint32_t)(((size_t)192 << 20) / piece_bytes);
  uint32_t step = (uint32_t)(apart / piece_bytes);
  Order order;
  for (uint32_t at = 0; at < pieces + (readers - 1) * step; at++)
    for (uint32_t reader = 0; reader < readers; reader++)
      if (at >= reader * step && at - reader * step < pieces) order.pieces.push_back(at - reader * step);
  order.first_reads = pieces;
  order.reads_again = (size_t)(readers - 1) * pieces;
  return order;
}

struct Device {
  char *buffer;
  uint32_t *order, *arrived, *sink;
};

static void measure(const Device &device, bool all, const char *name, double x, Order order) {
  while (order.pieces.size() % pieces_in_step) order.pieces.push_back(order.pieces.back());
  CUDA_CHECK(cudaMemcpy(device.order, order.pieces.data(), order.pieces.size() * 4, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(device.arrived, 0, 4));
  passes<<<all ? num_sms() : 1, num_threads>>>(device.buffer, device.order, (int)order.pieces.size(), device.arrived,
                                               device.sink);
  finish();
  char variant[64];
  snprintf(variant, sizeof variant, "%s_%s_first_%zu_again_%zu", all ? "all" : "one", name, order.first_reads,
           order.reads_again);
  row("l2_replacement", variant, "bytes", x, "pieces", (double)order.pieces.size(), "1");
}

int main() {
  Device device = {device_alloc<char>((size_t)512 << 20), device_alloc<uint32_t>(1 << 20), device_alloc<uint32_t>(1),
                   device_alloc<uint32_t>(1)};
  for (bool all : {false, true}) {
    double places = all ? 1 : 1.5;  // a line that both sides read takes two places
    for (double x : {26., 28., 29., 30., 31., 32., 34., 36., 40.})
      measure(device, all, "cycle", x * places * mib, cycle((size_t)(x * places * mib)));
    for (double x : {4., 8., 12., 16., 20., 24.}) {
      size_t bytes = (size_t)(x * places * mib);
      measure(device, all, "hot", x * places * mib, hot(bytes, 1, 1, false));
      measure(device, all, "hot_again", x * places * mib, hot(bytes, 2, 1, false));
      measure(device, all, "cold_again", x * places * mib, hot(bytes, 1, 2, false));
      measure(device, all, "cold_written", x * places * mib, hot(bytes, 1, 1, true));
    }
    for (double x : {1., 2., 3., 3.5, 4.})
      measure(device, all, "window", x * places * mib, window((size_t)(x * places * mib)));
  }
  return 0;
}
