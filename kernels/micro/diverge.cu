/* What a block costs that only some lanes of a warp enter. ptxas puts a predicate on a store that stands alone, but a
 * branch around two of one predicate: BSSY, BRA, two STS, BSYNC. Where the lanes part at the branch, the warp goes both
 * ways and executes BSYNC on each; where all enter, once. Cycles of such a block, in a loop with an FFMA before each;
 * the lanes that enter are the first `lanes`. */
#include "bench.h"
using namespace bench;

constexpr int num_iterations = 1024, blocks = 4;

template <int stores>
__global__ void blocks_of(uint64_t *span, float *sink, float a, unsigned lanes) {
  __shared__ float buffer[2048];
  float x = (float)threadIdx.x;
  uint32_t place = (uint32_t)__cvta_generic_to_shared(buffer + threadIdx.x), enters = threadIdx.x % 32 < lanes;
  __syncthreads();
  uint64_t start = cycles64();
#pragma unroll 1
  for (int i = 0; i < num_iterations; i++) {
#pragma unroll
    for (int block = 0; block < blocks; block++) {
      asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(x) : "f"(a));
#pragma unroll
      for (int k = 0; k < stores; k++)
        asm volatile("{.reg .pred p; setp.ne.u32 p, %0, 0; @p st.shared.f32 [%1], %2;}" ::"r"(enters), "r"(place + 4096u * (unsigned)k), "f"(x));
    }
  }
  uint64_t stop = cycles64();
  sink[threadIdx.x] = x + buffer[threadIdx.x];
  if (threadIdx.x == 0) *span = stop - start;
}

template <int stores>
static void measure() {
  static uint64_t *span = device_alloc<uint64_t>(1);
  static float *sink = device_alloc<float>(1024);
  for (int warps : {1, 4, 16})
    for (unsigned lanes : {8u, 32u}) {
      char variant[32];
      snprintf(variant, sizeof variant, "%d_warps_%u_lanes", warps, lanes);
      for (int warm = 0; warm < 2; warm++) blocks_of<stores><<<1, warps * 32>>>(span, sink, 1.0f, lanes);
      row("diverge", variant, "stores", stores, "block", (double)to_host(span, 1)[0] / (num_iterations * blocks), "cycles");
    }
  finish();
}

int main() {
  measure<1>();
  measure<2>();
  return 0;
}
