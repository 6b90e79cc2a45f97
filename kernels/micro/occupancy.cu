/* How registers are given to CTAs: the most CTAs that an SM holds at once, counted while they wait for each other, for
 * CTAs of x warps whose kernel has a known number of registers. Shows the unit in which warps and registers are
 * allocated. `predicted` is what the runtime's occupancy calculator says. */
#include "bench.h"
using namespace bench;

__device__ unsigned resident[256], most[256];

/* Holds `count` values live, so that the compiler cannot use fewer registers. */
template <int count>
__global__ void hold(uint64_t ns, float seed, float *sink) {
  float x[count];
#pragma unroll
  for (int i = 0; i < count; i++) {
    x[i] = seed * (float)(threadIdx.x + (unsigned)i);
    asm volatile("" : "+f"(x[i]));
  }
  if (threadIdx.x == 0) {
    unsigned now = atomicAdd(&resident[sm_id()], 1) + 1;
    atomicMax(&most[sm_id()], now);
  }
  uint64_t begin = global_ns();
  while (global_ns() < begin + ns)
    ;
#pragma unroll
  for (int i = 0; i < count; i++) asm volatile("" : "+f"(x[i]));
  float sum = 0;
#pragma unroll
  for (int i = 0; i < count; i++) sum += x[i] * (float)(i + 1);
  sink[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) atomicSub(&resident[sm_id()], 1);
}

template <int count>
static void measure() {
  static float *sink = device_alloc<float>(1024);
  cudaFuncAttributes attributes;
  CUDA_CHECK(cudaFuncGetAttributes(&attributes, hold<count>));
  for (int warps : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16}) {
    int predicted = 0;
    CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&predicted, hold<count>, warps * 32, 0));
    if (predicted == 0) continue;
    unsigned zero[256] = {};
    CUDA_CHECK(cudaMemcpyToSymbol(resident, zero, sizeof zero));
    CUDA_CHECK(cudaMemcpyToSymbol(most, zero, sizeof zero));
    hold<count><<<num_sms() * 40, warps * 32>>>(200000, 1.5f, sink);
    CUDA_CHECK(cudaMemcpyFromSymbol(zero, most, sizeof zero));
    char variant[32];
    snprintf(variant, sizeof variant, "%d_registers", attributes.numRegs);
    row("occupancy", variant, "warps_a_cta", warps, "ctas_an_sm", *std::max_element(zero, zero + 256), "1");
    row("occupancy", variant, "warps_a_cta", warps, "predicted", predicted, "1");
  }
  finish();
}

int main() {
  measure<16>();
  measure<48>();
  measure<80>();
  measure<100>();
  measure<120>();
  measure<150>();
  measure<180>();
  measure<220>();
  return 0;
}
