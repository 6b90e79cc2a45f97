/* How much of what all SMs store at once waits without holding up its warps: after a barrier of the whole grid the 8
 * warps of a CTA, one an SM, store x instructions each, `lines` (512 bytes in whole lines) or `halves` (16 bytes of 8
 * lines, no sector made whole); SMs 0 to `sms` - 1 do. Cycles from the barrier on, means over these SMs and the bursts
 * after the first: `issued`, until the last warp has issued its last store; `loaded`, until a load of a line in L2 that
 * the last warp issues then has come; `done`, until all is at L2 (membar). */
#include "bench.h"
using namespace bench;

constexpr int num_bursts = 6, num_warps = 8, most_stores = 128, instruction_lines = 8;

__device__ __forceinline__ void store_line(char *to, uint32_t value) {
  asm volatile("st.global.v4.u32 [%0], {%1,%1,%1,%1};" ::"l"(to), "r"(value) : "memory");
}

__device__ __forceinline__ void store_half(char *to, uint32_t value) {
  asm volatile("st.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}

__device__ __forceinline__ uint32_t load_past_l1(const char *from) {
  uint32_t value;
  asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}

/* All CTAs are resident. */
__device__ __forceinline__ void grid_barrier(uint32_t *arrived, uint32_t round) {
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1u);
    while (*(volatile uint32_t *)arrived < (round + 1) * gridDim.x)
      ;
  }
  __syncthreads();
}

template <bool lines>
__global__ __launch_bounds__(num_warps * 32) void run(char *buffer, uint32_t *arrived, int num_writers, int count,
                                                      uint32_t *times) {
  extern __shared__ __align__(128) uint8_t raw[];
  uint32_t *last = (uint32_t *)raw;
  int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, sm = (int)sm_id();
  size_t first_line = (((size_t)sm * num_warps) + (size_t)warp) * most_stores * instruction_lines;
  char *own = buffer + first_line * 128 + (lines ? lane * 16 : lane / 4 * 128 + lane % 4 * 4);
  for (uint32_t burst = 0; burst < num_bursts; burst++) {
    if (threadIdx.x < 3) last[threadIdx.x] = 0;
    grid_barrier(arrived, burst);
    if (sm >= num_writers) continue;
    uint32_t start = clock32();
#pragma unroll 4
    for (int i = 0; i < count; i++) {
      char *to = own + (size_t)i * (lines ? 512 : instruction_lines * 128);
      if (lines)
        store_line(to, start);
      else
        store_half(to + burst % 2 * 16, start);
    }
    uint32_t issued = clock32() - start;
    uint32_t value = load_past_l1(own);
    uint32_t loaded = clock32() - start + (value == 1 && lane == 40);
    __threadfence();
    uint32_t done = clock32() - start;
    if (lane == 0) {
      atomicMax(&last[0], issued);
      atomicMax(&last[1], loaded);
      atomicMax(&last[2], done);
    }
    __syncthreads();
    if (threadIdx.x < 3) times[((size_t)sm * num_bursts + burst) * 3 + threadIdx.x] = last[threadIdx.x];
    __syncthreads();
  }
}

template <typename Kernel>
static void measure(const char *name, Kernel kernel, char *buffer, uint32_t *arrived, uint32_t *times) {
  allow_shared(kernel, whole_sm_bytes);
  for (int writers : {1, num_sms()})
    for (int count : {1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128}) {
      CUDA_CHECK(cudaMemset(arrived, 0, sizeof *arrived));
      kernel<<<num_sms(), num_warps * 32, whole_sm_bytes>>>(buffer, arrived, writers, count, times);
      finish();
      std::vector<uint32_t> all = to_host(times, (size_t)num_sms() * num_bursts * 3);
      const char *const metrics[] = {"issued", "loaded", "done"};
      for (int what = 0; what < 3; what++) {
        double sum = 0;
        for (int sm = 0; sm < writers; sm++)
          for (int burst = 1; burst < num_bursts; burst++)
            sum += all[((size_t)sm * num_bursts + (size_t)burst) * 3 + (size_t)what];
        char variant[64];
        snprintf(variant, sizeof variant, "%s_%d_sms", name, writers);
        row("store_burst", variant, "stores", count, metrics[what], sum / writers / (num_bursts - 1), "cycles");
      }
    }
}

int main() {
  char *buffer = device_alloc<char>((size_t)num_sms() * num_warps * most_stores * instruction_lines * 128);
  uint32_t *arrived = device_alloc<uint32_t>(1);
  uint32_t *times = device_alloc<uint32_t>((size_t)num_sms() * num_bursts * 3);
  measure("lines", run<true>, buffer, arrived, times);
  measure("halves", run<false>, buffer, arrived, times);
  return 0;
}
