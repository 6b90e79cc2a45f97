/* Whether a side of L2 keeps, or can get from the other side, lines that only the other side goes on reading: DRAM
 * reads counted under ncu (cache control all). SM `a` and SM `b`, of different sides, take turns:
 *   both:    a reads 8 MiB, b reads them. In eight rounds a reads x / 8 bytes never read before, and b the 8 MiB again.
 *   both_a:  the same, and at the end a reads the 8 MiB again.
 *   once_a:  as both_a, but b does not read them again in the rounds.
 *   alone_a: as once_a, but b has never read them.
 *   once_b, alone_b: as these, but at the end b reads the 8 MiB.
 * Half of the lines have their home on a's side, so that in both_a, where a's side gives all of them up, those of the
 * other half are found at home in b's side. */
#include "bench.h"
#include "probe_load.h"
using namespace bench;

constexpr int num_threads = 1024, unroll = 8, tested = 256, rounds = 8;
constexpr size_t mib = 1048576, hot_bytes = 8 * mib, granule_bytes = 4096;

__global__ void look(const char *buffer, uint32_t target_sm, uint16_t *latency) {
  __shared__ volatile uint32_t sink;
  if (sm_id() != target_sm || threadIdx.x != 0) return;
  for (int i = 0; i < tested; i++) latency[i] = cycles_of_load(buffer + (size_t)i * granule_bytes, sink);
}

struct Plan {
  int b_first, b_again, last;  // last: 0 nobody, 1 a, 2 b
  size_t cold_bytes;
};

__device__ uint32_t read(const char *from, size_t bytes) {
  uint32_t sum = 0;
  for (size_t at = threadIdx.x * 16; at < bytes; at += num_threads * 16 * unroll) {
    uint4 v[unroll];
#pragma unroll
    for (int k = 0; k < unroll; k++)
      asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                   : "=r"(v[k].x), "=r"(v[k].y), "=r"(v[k].z), "=r"(v[k].w)
                   : "l"(from + at + (size_t)k * num_threads * 16));
#pragma unroll
    for (int k = 0; k < unroll; k++) sum ^= v[k].x;
  }
  return sum;
}

/* Both have come so far. */
__device__ void meet(uint32_t *arrived, uint32_t times) {
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1);
    while (*(volatile uint32_t *)arrived < 2 * times)
      ;
  }
  __syncthreads();
}

__global__ __launch_bounds__(num_threads) void turn_passes(Plan plan, uint32_t sm_a, uint32_t sm_b, const char *hot,
                                                           const char *cold, uint32_t *arrived, uint32_t *sink) {
  bool is_a = sm_id() == sm_a;
  if (!is_a && sm_id() != sm_b) return;
  uint32_t sum = 0, times = 0;
  if (is_a) sum ^= read(hot, hot_bytes);
  meet(arrived, ++times);
  if (!is_a && plan.b_first) sum ^= read(hot, hot_bytes);
  meet(arrived, ++times);
  for (int round = 0; round < rounds; round++) {
    size_t part = plan.cold_bytes / rounds;
    if (is_a) sum ^= read(cold + (size_t)round * part, part);
    meet(arrived, ++times);
    if (!is_a && plan.b_again) sum ^= read(hot, hot_bytes);
    meet(arrived, ++times);
  }
  if (plan.last == (is_a ? 1 : 2)) sum ^= read(hot, hot_bytes);
  if (sum == 0x12345678) *sink = sum;
}

static uint32_t other_side(char *buffer, uint4 *flush, size_t flush_count) {
  uint16_t *latency = device_alloc<uint16_t>(tested);
  allow_shared(look, whole_sm_bytes);
  auto looked = [&](uint32_t sm) {
    look<<<num_sms(), 32, whole_sm_bytes>>>(buffer, sm, latency);
    return to_host(latency, (size_t)tested);
  };
  for (uint32_t sm = 2; sm < 64; sm += 2) {
    fill<<<num_sms() * 4, 512>>>(flush, flush_count);
    looked(0);
    if (percentile(looked(sm), 0.75) > 370) return sm;
  }
  return 0;
}

int main() {
  const size_t flush_count = ((size_t)256 << 20) / 16;
  char *buffer = device_alloc<char>((size_t)256 << 20), *hot = device_alloc<char>(hot_bytes);
  uint4 *flush = device_alloc<uint4>(flush_count);
  uint32_t *arrived = device_alloc<uint32_t>(1), *sink = device_alloc<uint32_t>(1);
  uint32_t sm_b = other_side(buffer, flush, flush_count);
  const struct {
    const char *name;
    Plan plan;
  } plans[] = {{"both", {1, 1, 0, 0}},    {"both_a", {1, 1, 1, 0}}, {"once_a", {1, 0, 1, 0}},
               {"alone_a", {0, 0, 1, 0}}, {"once_b", {1, 0, 2, 0}}, {"alone_b", {0, 0, 2, 0}}};
  allow_shared(turn_passes, whole_sm_bytes);
  for (auto [name, plan] : plans)
    for (size_t x : {8, 16, 20, 24, 28, 32, 40, 48, 64, 96}) {
      plan.cold_bytes = x * mib;
      CUDA_CHECK(cudaMemset(arrived, 0, 4));
      turn_passes<<<num_sms(), num_threads, whole_sm_bytes>>>(plan, 0, sm_b, hot, buffer, arrived, sink);
      finish();
      row("l2_side_reuse", name, "mib", (double)x, "sm_b", sm_b, "1");
    }
  return 0;
}
