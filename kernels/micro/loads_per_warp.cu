/* How many loads a warp may have on their way.
 *
 * One CTA of x warps. Each warp issues n loads of a line each from DRAM (`DRAM`) or of a line that L2 has (`L2`), all into
 * registers of their own; ptxas counts all but seven of them on one scoreboard (control fields). Variant: source and n.
 * `issued`: cycles until the slowest warp has issued the last; `read`: until it has what it loaded first. */
#include "bench.h"
using namespace bench;

constexpr int line_words = 32;

template <int n>
__global__ void burst(const uint32_t *from, uint32_t *cycles, uint32_t *sink) {
  uint32_t v[n];
  const uint32_t *own = from + (size_t)(threadIdx.x / 32) * n * line_words + threadIdx.x % 32;
  __syncthreads();
  uint32_t start = clock32();
#pragma unroll
  for (int i = 0; i < n; i++)
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v[i]) : "l"(own + i * line_words) : "memory");
  uint32_t issued = clock32();
  uint32_t sum = v[0];
  asm volatile("xor.b32 %0, %0, %1;" : "+r"(sum) : "r"(start) : "memory");
  uint32_t read = clock32();
#pragma unroll
  for (int i = 1; i < n; i++) sum += v[i];
  if (threadIdx.x % 32 == 0) cycles[threadIdx.x / 32 * 2] = issued - start, cycles[threadIdx.x / 32 * 2 + 1] = read - start;
  sink[threadIdx.x] = sum;
}

template <int n>
static void measure(const uint32_t *lines, size_t bytes) {
  static uint32_t *cycles = device_alloc<uint32_t>(64), *sink = device_alloc<uint32_t>(1024);
  static char *flushed = device_alloc<char>(256 << 20);
  for (bool cached : {false, true})
    for (int warps : {1, 4}) {
      std::vector<uint32_t> issued, read;
      for (int repeat = 0; repeat < 9; repeat++) {
        CUDA_CHECK(cudaMemset(flushed, repeat, 256 << 20));
        if (cached) CUDA_CHECK(cudaMemset((void *)lines, 0, bytes));
        burst<n><<<1, 32 * warps>>>(lines, cycles, sink);
        auto c = to_host(cycles, 2 * warps);
        uint32_t last_issued = 0, last_read = 0;
        for (int w = 0; w < warps; w++) last_issued = std::max(last_issued, c[2 * w]), last_read = std::max(last_read, c[2 * w + 1]);
        if (repeat > 0) issued.push_back(last_issued), read.push_back(last_read);
      }
      char variant[32];
      snprintf(variant, sizeof variant, "%s_%d", cached ? "L2" : "DRAM", n);
      row("loads_per_warp", variant, "warps", warps, "issued", median(issued), "cycles");
      row("loads_per_warp", variant, "warps", warps, "read", median(read), "cycles");
    }
  finish();
}

int main() {
  constexpr size_t bytes = 4 * 96 * 128;
  uint32_t *lines = device_alloc<uint32_t>(bytes / 4);
  measure<16>(lines, bytes), measure<32>(lines, bytes), measure<48>(lines, bytes), measure<56>(lines, bytes);
  measure<60>(lines, bytes), measure<61>(lines, bytes), measure<62>(lines, bytes), measure<63>(lines, bytes), measure<64>(lines, bytes);
  measure<65>(lines, bytes), measure<66>(lines, bytes), measure<67>(lines, bytes), measure<68>(lines, bytes);
  measure<69>(lines, bytes), measure<70>(lines, bytes), measure<72>(lines, bytes), measure<76>(lines, bytes);
  measure<80>(lines, bytes), measure<88>(lines, bytes), measure<96>(lines, bytes);
  return 0;
}
