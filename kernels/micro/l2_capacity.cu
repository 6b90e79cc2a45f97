/* How much L2 holds, and how fast it delivers: repeated passes over a footprint.
 * shared: every CTA reads everything. own: CTA i reads its own chunk in every pass (one SM, so one side). moved: the
 * chunks rotate over the CTAs by a pseudo-random step each pass (one random side a pass). Under ncu, (dram read bytes /
 * footprint - 1) / (passes - 1) is the miss rate of a warm pass. */
#include "bench.h"
using namespace bench;

constexpr int num_threads = 1024;
constexpr int num_passes = 9;

enum class Mode { shared, own, moved };

__device__ __forceinline__ uint32_t read_chunk(const char *chunk, size_t bytes) {
  uint32_t sum = 0;
  size_t step = num_threads * 16;
  const char *p = chunk + threadIdx.x * 16;
#pragma unroll 4
  for (size_t at = threadIdx.x * 16; at < bytes; at += step, p += step) {
    uint4 v;
    asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    sum ^= v.x ^ v.y ^ v.z ^ v.w;
  }
  return sum;
}

template <Mode mode>
__global__ __launch_bounds__(num_threads) void passes(const char *buffer, size_t bytes, int count, uint32_t *sink) {
  uint32_t sum = 0;
  size_t chunk_bytes = mode == Mode::shared ? bytes : bytes / gridDim.x / 128 * 128;
  uint32_t chunk = blockIdx.x;
  for (int pass = 0; pass < count; pass++) {
    if (mode == Mode::moved) chunk = (blockIdx.x + (uint32_t)pass * 0x9E3779B1u % gridDim.x) % gridDim.x;
    sum ^= read_chunk(mode == Mode::shared ? buffer : buffer + chunk * chunk_bytes, chunk_bytes);
  }
  if (sum == 0x12345678) *sink = sum;
}

template <Mode mode>
static void measure(const char *name, const char *buffer, double mib, bool profile, uint32_t *sink) {
  size_t bytes = (size_t)(mib * 1024 * 1024);
  int grid = num_sms() * 2;
  double moved_bytes = (double)bytes * (mode == Mode::shared ? grid : 1);
  if (profile) {
    passes<mode><<<grid, num_threads>>>(buffer, bytes, num_passes, sink);
    row("l2_capacity", name, "footprint_bytes", (double)bytes, "passes", num_passes, "1");
    return;
  }
  EventTimer timer;
  int few = mode == Mode::shared ? 3 : 9, many = mode == Mode::shared ? 7 : 49;
  passes<mode><<<grid, num_threads>>>(buffer, bytes, few, sink);
  timer.start();
  passes<mode><<<grid, num_threads>>>(buffer, bytes, few, sink);
  float few_ms = timer.stop_ms();
  timer.start();
  passes<mode><<<grid, num_threads>>>(buffer, bytes, many, sink);
  float many_ms = timer.stop_ms();
  row("l2_capacity", name, "footprint_bytes", (double)bytes, "bandwidth",
      moved_bytes * (many - few) / (many_ms - few_ms) * 1e-6, "GB/s");
}

int main(int argc, char **argv) {
  bool profile = has_flag(argc, argv, "--profile");
  char *buffer = device_alloc<char>((size_t)256 << 20);
  uint32_t *sink = device_alloc<uint32_t>(1);
  for (double mib : {4.,  8.,  12., 16., 20., 22., 24., 26., 28., 29., 30., 31., 32., 34.,
                     36., 40., 44., 48., 52., 56., 58., 60., 62., 64., 72., 80., 96., 128.}) {
    measure<Mode::shared>("shared", buffer, mib, profile, sink);
    measure<Mode::own>("own", buffer, mib, profile, sink);
    measure<Mode::moved>("moved", buffer, mib, profile, sink);
  }
  finish();
  return 0;
}
