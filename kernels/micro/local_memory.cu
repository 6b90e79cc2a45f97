/* What spilling costs: every thread stores x bytes to local memory and loads them again, `num_rounds` times, as a
 * kernel does whose registers do not suffice. Cycles a round, and (under ncu) where the sectors go: the threads of an
 * SM hold warps * 32 * x bytes; while that fits L1 the loads hit it, and stores reach L2 or stay. */
#include "bench.h"
using namespace bench;

constexpr int num_rounds = 64;

template <int bytes>
__global__ __launch_bounds__(256) void passes_local(uint64_t *span, uint32_t *sink, uint32_t zero) {
  uint32_t slots[bytes / 4], sum = threadIdx.x;
  /* An offset that the compiler does not know keeps the slots in memory. */
  size_t base = __cvta_generic_to_local(slots) + zero;
  uint64_t start = cycles64();
#pragma unroll 1
  for (int round = 0; round < num_rounds; round++) {
#pragma unroll
    for (int i = 0; i < bytes / 4; i++)
      asm volatile("st.local.u32 [%0], %1;" ::"l"(base + (size_t)i * 4), "r"(sum + (uint32_t)i) : "memory");
#pragma unroll
    for (int i = 0; i < bytes / 4; i++) {
      uint32_t v;
      asm volatile("ld.local.u32 %0, [%1];" : "=r"(v) : "l"(base + (size_t)i * 4) : "memory");
      sum ^= v;
    }
  }
  uint64_t stop = cycles64();
  sink[blockIdx.x * blockDim.x + threadIdx.x] = sum;
  if (blockIdx.x + threadIdx.x == 0) *span = stop - start;
}

template <int bytes>
static void measure(bool profile) {
  static uint64_t *span = device_alloc<uint64_t>(1);
  static uint32_t *sink = device_alloc<uint32_t>((size_t)1 << 20);
  for (int ctas_per_sm : {1, 4}) {
    int grid = num_sms() * ctas_per_sm;
    char variant[32];
    snprintf(variant, sizeof variant, "%d_warps", ctas_per_sm * 8);
    for (int warm = profile ? 1 : 0; warm < 2; warm++) passes_local<bytes><<<grid, 256>>>(span, sink, 0);
    row("local_memory", variant, "bytes_a_thread", bytes, "cycles_a_round", (double)to_host(span, 1)[0] / num_rounds,
        "cycles");
  }
  finish();
}

int main(int argc, char **argv) {
  bool profile = has_flag(argc, argv, "--profile");
  measure<8>(profile);
  measure<16>(profile);
  measure<32>(profile);
  measure<64>(profile);
  measure<128>(profile);
  measure<256>(profile);
  measure<512>(profile);
  return 0;
}
