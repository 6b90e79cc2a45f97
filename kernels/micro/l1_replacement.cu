/* Which lines stay in L1. One warp of an idle SM loads lines of 128 bytes one after another, and takes the time of
 * those that are looked for: a hit takes less than 120 cycles. Shared memory is given x KB by the carve-out, L1 has
 * the rest of 256 KB. 6000 other lines go through L1 before each, so that it is full.
 *
 *   again_*      x lines are read twice, then 4096 others once: how many of the x are there
 *   once_*       64 lines are read once, then x others once: how many of the 64 are there
 *   kept_*       64 lines are read twice, then x others once
 *   beside_*     1024 lines are read twice, 64 once, then x others once: how many of the 64
 *   stored_*     as once, but the x others are stored to
 *   own_store_*  x lines are stored to: how many of them are there */
#include "bench.h"
using namespace bench;

struct Access {
  enum Kind { load, store, look } kind;
  int first_line, num_lines;
};

/* The driver keeps to the carve-out asked for only where a CTA uses some shared memory. */
constexpr int max_accesses = 8, line_bytes = 128, hit_cycles = 120, shared_bytes = 8192;
__constant__ Access accesses[max_accesses];

__global__ __launch_bounds__(32) void replacement(char *buffer, int num_accesses, int *num_hits, uint32_t *sink) {
  __shared__ volatile uint32_t arrived[shared_bytes / 4];
  uint32_t sum = 0;
  int hits = 0;
  for (int a = 0; a < num_accesses; a++) {
    Access access = accesses[a];
    for (int i = 0; i < access.num_lines; i++) {
      char *at = buffer + (size_t)(access.first_line + i) * line_bytes + threadIdx.x * 4;
      if (access.kind == Access::store) {
        asm volatile("st.global.u32 [%0], %1;" ::"l"(at), "r"(sum) : "memory");
        continue;
      }
      uint32_t value, start = clock32();
      asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
      arrived[threadIdx.x + i % 32 * 32] = value; /* waits for it */
      uint32_t stop = clock32();
      if (access.kind == Access::look && stop - start < hit_cycles) hits++;
      sum ^= value;
    }
  }
  if (threadIdx.x == 0) *num_hits = hits;
  if (sum == 0x12345678) *sink = sum;
}

static char *buffer;
static int *num_hits;
static uint32_t *sink;

/* Places of lines: looked for, others, and those that fill L1 before. */
constexpr int looked_for = 0, twice = 1 << 12, others = 1 << 14, before = 1 << 18, end = before + 6000;

static void measure(const char *name, int shared_kb, int x, std::vector<Access> list) {
  list.insert(list.begin(), {Access::load, before, 6000});
  CUDA_CHECK(cudaMemcpyToSymbol(accesses, list.data(), list.size() * sizeof(Access)));
  int percent = shared_kb * 100 / 228;
  CUDA_CHECK(cudaFuncSetAttribute(replacement, cudaFuncAttributePreferredSharedMemoryCarveout, percent));
  replacement<<<1, 32>>>(buffer, (int)list.size(), num_hits, sink);
  char variant[32];
  snprintf(variant, sizeof variant, "%s_%dkb", name, 256 - shared_kb);
  row("l1_replacement", variant, "lines", x, "hits", to_host(num_hits, 1)[0], "lines");
}

int main() {
  buffer = device_alloc<char>((size_t)end * line_bytes);
  num_hits = device_alloc<int>(1);
  sink = device_alloc<uint32_t>(1);
  constexpr Access::Kind load = Access::load, store = Access::store, look = Access::look;
  for (int shared_kb : {16, 32, 64, 100, 132, 164, 196, 228}) {
    for (int n : {64, 128, 256, 384, 512, 640, 768, 896, 1024, 1152, 1280, 1536, 1792})
      measure("again", shared_kb, n, {{load, 0, n}, {load, 0, n}, {load, others, 4096}, {look, 0, n}});
    for (int n : {64, 128, 192, 256, 384, 512, 640, 768, 896, 1024, 1152, 1280, 1408, 1536, 1664, 1792, 1920, 2048})
      measure("once", shared_kb, n, {{load, 0, 64}, {load, others, n}, {look, 0, 64}});
  }
  for (int shared_kb : {16, 64}) {
    for (int n : {2048, 8192, 32768, 131072})
      measure("kept", shared_kb, n, {{load, 0, 64}, {load, 0, 64}, {load, others, n}, {look, 0, 64}});
    for (int n : {128, 256, 384, 512, 640, 768, 896, 1024})
      measure("beside", shared_kb, n,
              {{load, twice, 1024}, {load, twice, 1024}, {load, looked_for, 64}, {load, others, n}, {look, 0, 64}});
    for (int n : {512, 1024, 1280, 1536, 1792, 2048})
      measure("stored", shared_kb, n, {{load, 0, 64}, {store, others, n}, {look, 0, 64}});
    for (int n : {64, 512, 1024}) measure("own_store", shared_kb, n, {{store, 0, n}, {look, 0, n}});
  }
  finish();
  return 0;
}
