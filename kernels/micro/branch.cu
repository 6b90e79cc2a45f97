/* What a taken branch costs a warp: a loop of x independent FFMA and one backward branch, against the same instructions
 * unrolled 16 times. Cycles that an iteration takes beyond those of its FFMA: one warp alone, and four warps of each
 * sub-core, which hide each other's. The loop's own counter and compare are in it (two instructions). */
#include "bench.h"
using namespace bench;

constexpr int num_iterations = 4096;

template <int length, int times>
__global__ void loop(uint64_t *span, float *sink, float a) {
  float x[8];
  for (int k = 0; k < 8; k++) x[k] = (float)(threadIdx.x + (unsigned)k);
  __syncthreads();
  uint64_t start = cycles64();
#pragma unroll 1
  for (int i = 0; i < num_iterations / times; i++) {
#pragma unroll
    for (int u = 0; u < length * times; u++) asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(x[u % 8]) : "f"(a));
  }
  uint64_t stop = cycles64();
  float sum = 0;
  for (int k = 0; k < 8; k++) sum += x[k];
  sink[threadIdx.x] = sum;
  if (threadIdx.x == 0) *span = stop - start;
}

template <int length>
static void measure() {
  static uint64_t *span = device_alloc<uint64_t>(1);
  static float *sink = device_alloc<float>(1024);
  for (int warps : {1, 4, 16}) {
    char variant[32];
    snprintf(variant, sizeof variant, "%d_warps", warps);
    for (int warm = 0; warm < 2; warm++) loop<length, 1><<<1, warps * 32>>>(span, sink, 1.0f);
    double looped = (double)to_host(span, 1)[0] / num_iterations;
    for (int warm = 0; warm < 2; warm++) loop<length, 16><<<1, warps * 32>>>(span, sink, 1.0f);
    double unrolled = (double)to_host(span, 1)[0] / num_iterations;
    row("branch", variant, "ffma_an_iteration", length, "iteration", looped, "cycles");
    row("branch", variant, "ffma_an_iteration", length, "beyond_unrolled", looped - unrolled, "cycles");
  }
  finish();
}

int main() {
  measure<8>();
  measure<16>();
  measure<32>();
  measure<64>();
  return 0;
}
