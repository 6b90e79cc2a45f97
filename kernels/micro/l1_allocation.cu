/* When a line takes its place in L1: when it is asked for, or when it comes; and whether rows that lie far apart take
 * places from each other. One CTA of 8 warps on an idle SM, whose L1 is full of other lines; a hit of what is looked
 * for takes less than 120 cycles. Shared memory is given 16 KB by the carve-out, L1 has the rest of 256 KB.
 *
 *   late_dram, late_l2   1300 lines; then 32 are asked for, of DRAM or of L2, and at once 224 others of L2 by the other
 *                        warps, all of which come before those of DRAM do; then x others: how many of the 32 are there.
 *                        A place taken when a line comes makes those of DRAM outlast 224 others more than those of L2.
 *   rows_*               64 lines, then x others, in rows of so many lines at random places: how many of the 64 are
 * there Means of 24 places. */
#include "bench.h"
using namespace bench;

constexpr int line_bytes = 128, hit_cycles = 120, shared_kb = 16, shared_bytes = 8192;
constexpr int num_looked_for = 32, num_before = 1300, others_a_warp = 32, other_warps = 7;
constexpr uint64_t filler = 1 << 16, first = 1 << 17, beside = 1 << 18, after = 1 << 19, rows_at = 1 << 20;
constexpr uint64_t cold = 4 << 20, cold_step = 3001, num_lines = 8 << 20; /* 1 GB */

__device__ __forceinline__ uint32_t load(const char *at) {
  uint32_t value;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  return value;
}

__device__ __forceinline__ const char *line_at(const char *buffer, uint64_t line) {
  return buffer + line * line_bytes + threadIdx.x % 32 * 4;
}

/* One after the other, each waited for; how many were hits. */
template <class Place>
__device__ int walk(const char *buffer, int count, volatile uint32_t *arrived, Place place) {
  int hits = 0;
  for (int i = 0; i < count; i++) {
    const char *at = line_at(buffer, place(i));
    uint32_t start = clock32();
    arrived[threadIdx.x % 32 + i % 32 * 32] = load(at);
    uint32_t stop = clock32();
    hits += stop - start < hit_cycles;
  }
  return hits;
}

__global__ __launch_bounds__(256) void late(const char *buffer, uint64_t asked, int num_after, int *num_hits,
                                            uint32_t *sink) {
  __shared__ volatile uint32_t arrived[shared_bytes / 4];
  int warp = (int)threadIdx.x / 32;
  if (warp == 0) {
    walk(buffer, other_warps * others_a_warp, arrived, [](int i) { return beside + (uint64_t)i; }); /* into L2 */
    walk(buffer, 6000, arrived, [](int i) { return filler + (uint64_t)i; });
    walk(buffer, num_before, arrived, [](int i) { return first + (uint64_t)i; });
  }
  __syncthreads();
  uint32_t values[num_looked_for], sum = 0;
  if (warp == 0) {
#pragma unroll
    for (int i = 0; i < num_looked_for; i++) values[i] = load(line_at(buffer, asked + (uint64_t)i));
  }
  __syncthreads();
  if (warp > 0) {
#pragma unroll
    for (int i = 0; i < others_a_warp; i++)
      values[i] = load(line_at(buffer, beside + (uint64_t)((warp - 1) * others_a_warp + i)));
  }
#pragma unroll
  for (int i = 0; i < num_looked_for; i++) sum += values[i];
  __syncthreads();
  if (warp == 0) {
    walk(buffer, num_after, arrived, [](int i) { return after + (uint64_t)i; });
    int hits = walk(buffer, num_looked_for, arrived, [asked](int i) { return asked + (uint64_t)i; });
    if (threadIdx.x == 0) *num_hits = hits;
  }
  if (sum == 0x12345678) *sink = sum;
}

__global__ __launch_bounds__(256) void rows(const char *buffer, int row_lines, int begin, int num_others,
                                            int *num_hits) {
  __shared__ volatile uint32_t arrived[shared_bytes / 4];
  if (threadIdx.x >= 32) return;
  auto place = [=](int i) {
    uint64_t row = ((uint64_t)(i / row_lines) + (uint64_t)begin * 1237) * 2654435761u % 9973;
    return rows_at + row * (uint64_t)row_lines + (uint64_t)(i % row_lines);
  };
  walk(buffer, 6000, arrived, [](int i) { return filler + (uint64_t)i; });
  walk(buffer, 64 + num_others, arrived, place);
  int hits = walk(buffer, 64, arrived, place);
  if (threadIdx.x == 0) *num_hits = hits;
}

static char *buffer;
static int *num_hits;
static uint32_t *sink;

/* At so many places, of which each has sets of its own. */
template <class Measure>
static void sum_over(const char *variant, int x, int places, Measure measure) {
  int hits = 0;
  for (int place = 0; place < places; place++) {
    measure(place);
    hits += to_host(num_hits, 1)[0];
  }
  row("l1_allocation", variant, "lines", x, "hits", (double)hits / places, "lines");
}

template <class Kernel>
static void carve(Kernel kernel) {
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, shared_kb * 100 / 228));
}

int main() {
  buffer = device_alloc<char>(num_lines * line_bytes);
  num_hits = device_alloc<int>(1);
  sink = device_alloc<uint32_t>(1);
  carve(late);
  carve(rows);
  uint64_t asked = cold; /* each time lines that nothing has read */
  for (int n = 512; n <= 2048; n += 64) {
    sum_over("late_dram", n, 24, [&](int) { late<<<1, 256>>>(buffer, asked += cold_step, n, num_hits, sink); });
    sum_over("late_l2", n, 24, [&](int) {
      asked += cold_step;
      for (int turn = 0; turn < 2; turn++) late<<<1, 256>>>(buffer, asked, n, num_hits, sink); /* the first into L2 */
    });
  }
  for (int row_lines : {1, 4, 16, 32, 64, 128}) {
    char variant[32];
    snprintf(variant, sizeof variant, "rows_%d", row_lines);
    for (int n = 256; n <= 2560; n += 128)
      sum_over(variant, n, 24, [&](int place) { rows<<<1, 256>>>(buffer, row_lines, place, n, num_hits); });
  }
  finish();
  return 0;
}
