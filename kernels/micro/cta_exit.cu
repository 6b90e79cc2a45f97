/* When a CTA that ends with stores makes room for the next one on its SM: CTAs of known length, one an SM, whose warps
 * end with x stores of a line each; from the cycle in which they begin to store to the next CTA's first. */
#include "bench.h"
using namespace bench;
struct Entry {
  uint64_t cycle;
  uint32_t sm, pad;
};
template <int stores>
__global__ void record(Entry *entries, char *to, uint32_t work_cycles) {
  extern __shared__ uint32_t unused[];
  uint64_t cycle = cycles64();
  if (threadIdx.x == 0) entries[blockIdx.x] = {cycle, sm_id(), 0};
  char *own =
      to + ((size_t)(blockIdx.x % 1056) * (blockDim.x / 32) + threadIdx.x / 32) * 128 * 128 + threadIdx.x % 32 * 4;
  while (cycles64() < cycle + work_cycles)
    ;
#pragma unroll
  for (int i = 0; i < stores; i++)
    asm volatile("st.global.u32 [%0], %1;" ::"l"(own + i * 128), "r"(work_cycles) : "memory");
}
template <int stores>
static void measure(int warps) {
  const uint32_t work = 8000;
  static Entry *entries = device_alloc<Entry>(132 * 4);
  static char *to = device_alloc<char>((size_t)256 << 20);
  allow_shared(record<stores>, whole_sm_bytes);
  const size_t grid = 132 * 4;
  for (int repeat = 0; repeat < 3; repeat++) record<stores><<<grid, warps * 32, whole_sm_bytes>>>(entries, to, work);
  std::vector<Entry> e = to_host(entries, grid);
  std::vector<double> gaps;
  for (size_t i = 0; i < grid; i++) {
    uint64_t next = ~0ull;
    for (size_t j = 0; j < grid; j++)
      if (e[j].sm == e[i].sm && e[j].cycle > e[i].cycle) next = std::min(next, e[j].cycle);
    if (next != ~0ull) gaps.push_back((double)(next - e[i].cycle - work));
  }
  char variant[64];
  snprintf(variant, sizeof variant, "%d_warps", warps);
  row("cta_exit", variant, "stores_a_warp", stores, "gap_p10", percentile(gaps, 0.1), "cycles");
  row("cta_exit", variant, "stores_a_warp", stores, "gap_median", median(gaps), "cycles");
  row("cta_exit", variant, "stores_a_warp", stores, "gap_p90", percentile(gaps, 0.9), "cycles");
}
int main() {
  for (int warps : {1, 4, 8}) {
    measure<0>(warps);
    measure<1>(warps);
    measure<4>(warps);
    measure<16>(warps);
    measure<64>(warps);
  }
  finish();
}
