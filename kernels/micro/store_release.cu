/* How long a warp that issued x stores waits before it may write the registers of their data again.
 *
 * `release`: cycles from before the first of x STG (4 or 16 bytes a lane, adjacent, registers of their own) to after
 * the additions to their data; in `kept` the additions are to other registers, so that it is the time to issue them.
 * 1 or 4 warps, one a sub-core, at once. */
#include "bench.h"
using namespace bench;

constexpr int repeats = 33;

template <int count, int words, bool steps>
__global__ void release(uint32_t *to, uint32_t add, uint32_t *cycles) {
  uint32_t data[count][words], other[count];
  uint32_t *at = to + (threadIdx.x / 32 * 4096 + threadIdx.x % 32 * words);
#pragma unroll
  for (int i = 0; i < count; i++) {
    other[i] = threadIdx.x + (uint32_t)i;
#pragma unroll
    for (int k = 0; k < words; k++) data[i][k] = threadIdx.x + (uint32_t)(i + k);
  }
#pragma unroll 1
  for (int repeat = 0; repeat < repeats; repeat++) {
    __syncthreads();
    uint32_t start = clock32();
#pragma unroll
    for (int i = 0; i < count; i++)
      if (words == 4)
        asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(at + i * 32 * words), "r"(data[i][0]),
                     "r"(data[i][words / 4]), "r"(data[i][words / 2]), "r"(data[i][words - 1])
                     : "memory");
      else
        asm volatile("st.global.u32 [%0], %1;" ::"l"(at + i * 32 * words), "r"(data[i][0]) : "memory");
#pragma unroll
    for (int i = 0; i < count; i++)
      if (steps)
        asm volatile("add.u32 %0, %0, %1;" : "+r"(data[i][0]) : "r"(add) : "memory");
      else
        asm volatile("add.u32 %0, %0, %1;" : "+r"(other[i]) : "r"(add) : "memory");
    uint32_t stop = clock32();
    if (threadIdx.x == 0) cycles[repeat] = stop - start;
    for (uint32_t wait = clock32(); clock32() - wait < 3000;)
      ;
  }
  uint32_t sum = 0;
#pragma unroll
  for (int i = 0; i < count; i++) {
    sum ^= other[i];
#pragma unroll
    for (int k = 0; k < words; k++) sum ^= data[i][k];
  }
  cycles[64 + threadIdx.x] = sum;
}

static uint32_t *cycles, *to;

template <int count, int words, bool steps>
static void measure_one(int warps) {
  release<count, words, steps><<<1, warps * 32>>>(to, 0, cycles);
  char variant[48];
  snprintf(variant, sizeof variant, "%s_%d_bytes_%d_warps", steps ? "release" : "kept", words * 4, warps);
  row("store_release", variant, "stores", count, "cycles", median(to_host(cycles, repeats)), "cycles");
  finish();
}

template <int count>
static void measure() {
  for (int warps = 1; warps <= 4; warps *= 4) {
    measure_one<count, 1, true>(warps), measure_one<count, 1, false>(warps);
    measure_one<count, 4, true>(warps), measure_one<count, 4, false>(warps);
  }
}

int main() {
  cycles = device_alloc<uint32_t>(1024);
  to = device_alloc<uint32_t>(1 << 20);
  measure<1>(), measure<2>(), measure<4>(), measure<8>();
  return 0;
}
