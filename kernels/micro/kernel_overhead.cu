/* What a profiler's kernel time has beyond the time that CTAs run. Run under ncu: gpu__time_duration less the time that
 * the kernel itself saw (x ns of spinning from its first CTA's start, by the wall timer) is launch and drain. Grids of
 * one CTA, of one an SM, of eight an SM (one wave); and `dirty`: each CTA also writes 128 KiB that must be visible at
 * the end. */
#include "bench.h"
using namespace bench;

__device__ unsigned long long first_ns;

template <bool writes>
__global__ __launch_bounds__(128) void passes_spin(uint64_t ns, uint4 *to) {
  if (threadIdx.x == 0) {
    unsigned long long now = global_ns(), before = atomicMin(&first_ns, now);
    uint64_t begin = before < now ? before : now;
    while (global_ns() < begin + ns)
      ;
  }
  __syncthreads();
  if (writes)
    for (int i = 0; i < 64; i++) to[((size_t)blockIdx.x * 64 + (size_t)i) * 128 + threadIdx.x] = make_uint4(1, 2, 3, 4);
}

int main() {
  unsigned long long never = ~0ull;
  uint4 *to = device_alloc<uint4>((size_t)132 * 8 * 64 * 128);
  for (int ctas_per_sm : {0, 1, 8})
    for (int ns : {0, 1000, 2000, 4000, 8000, 16000, 32000}) {
      int grid = ctas_per_sm == 0 ? 1 : num_sms() * ctas_per_sm;
      char variant[32];
      CUDA_CHECK(cudaMemcpyToSymbol(first_ns, &never, 8));
      passes_spin<false><<<grid, 128>>>((uint64_t)ns, to);
      snprintf(variant, sizeof variant, "%d_ctas", grid);
      row("kernel_overhead", variant, "spin_ns", ns, "grid", grid, "1");
      finish();
      if (ctas_per_sm != 1) continue;
      CUDA_CHECK(cudaMemcpyToSymbol(first_ns, &never, 8));
      passes_spin<true><<<grid, 128>>>((uint64_t)ns, to);
      snprintf(variant, sizeof variant, "%d_ctas_dirty", grid);
      row("kernel_overhead", variant, "spin_ns", ns, "grid", grid, "1");
      finish();
    }
  return 0;
}
