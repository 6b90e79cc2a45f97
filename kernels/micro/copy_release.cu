/* How long a warp that issued x copies waits before it may write their address registers again.
 *
 * `release`: cycles from before the first of x cp.async (16 bytes a lane, 512 adjacent bytes, registers of their own)
 * to after the additions that step their addresses; in `kept` the additions follow when all copies have arrived, so
 * that it is the time to issue them. `beside_LDSM`: warps 1 to 15 repeat ldmatrix.x4 meanwhile, and copies wait for
 * their turn. */
#include "bench.h"
using namespace bench;

constexpr int repeats = 33;

template <int count, bool steps>
__global__ void release(uint32_t stride, const uint8_t *from, uint32_t *cycles, bool busy) {
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ volatile int done;
  if (threadIdx.x == 0) done = 0;
  __syncthreads();
  uint32_t base = shared_address(shared);
  if (threadIdx.x >= 32) {
    uint32_t at = base + threadIdx.x % 32 * 16, r[4], sum = 0;
    while (busy && !done)
#pragma unroll
      for (int i = 0; i < 16; i++) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(at + (uint32_t)i * 512));
        sum ^= r[0] ^ r[1] ^ r[2] ^ r[3];
      }
    cycles[64 + threadIdx.x] = sum;
    return;
  }
  uint32_t to[count];
  uint64_t source[count];
#pragma unroll
  for (int i = 0; i < count; i++)
    to[i] = base + 32768 + threadIdx.x * 16 + (uint32_t)i * 512 * (stride + 1),
    source[i] = (uint64_t)from + threadIdx.x * 16 + (uint64_t)i * 512 * (stride + 1);
#pragma unroll 1
  for (int repeat = 0; repeat < repeats; repeat++) {
    uint32_t start = clock32();
#pragma unroll
    for (int i = 0; i < count; i++)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to[i]), "l"(source[i]) : "memory");
    if (steps) {
#pragma unroll
      for (int i = 0; i < count; i++) asm volatile("add.u32 %0, %0, %1;" : "+r"(to[i]) : "r"(stride) : "memory");
    }
    uint32_t stop = clock32();
    asm volatile("cp.async.wait_all;" ::: "memory");
    if (!steps) {
#pragma unroll
      for (int i = 0; i < count; i++) asm volatile("add.u32 %0, %0, %1;" : "+r"(to[i]) : "r"(stride) : "memory");
    }
    if (threadIdx.x == 0) cycles[repeat] = stop - start;
  }
  uint32_t sum = 0;
#pragma unroll
  for (int i = 0; i < count; i++) sum ^= to[i];
  cycles[64 + threadIdx.x] = sum;
  done = 1;
}

static uint32_t *cycles;

template <int count, bool steps>
static void measure_release(const uint8_t *from) {
  allow_shared(release<count, steps>, 65536);
  for (int busy = 0; busy < 2; busy++) {
    release<count, steps><<<1, 512, 65536>>>(0, from, cycles, busy != 0);
    char variant[48];
    snprintf(variant, sizeof variant, "%s%s", steps ? "release" : "kept", busy ? "_beside_LDSM" : "");
    row("copy_release", variant, "copies", count, "cycles", median(to_host(cycles, repeats)), "cycles");
  }
  finish();
}

template <int count>
static void measure(const uint8_t *from) {
  measure_release<count, true>(from);
  measure_release<count, false>(from);
}

int main() {
  cycles = device_alloc<uint32_t>(1024);
  uint8_t *from = device_alloc<uint8_t>(1 << 20);
  measure<1>(from), measure<2>(from), measure<3>(from), measure<4>(from), measure<5>(from), measure<6>(from);
  measure<7>(from), measure<8>(from), measure<9>(from), measure<10>(from), measure<12>(from), measure<16>(from),
      measure<20>(from);
  return 0;
}
