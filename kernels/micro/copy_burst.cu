/* How long the warps of a CTA that copy a tile together wait before they may write the copies' address registers again.
 *
 * After a barrier each warp issues x cp.async (16 bytes a lane, 512 adjacent bytes, registers of their own). Cycles of
 * the SM from the first warp's first copy to the last warp's last: `issue`, when its copies have issued; `release`,
 * when the additions that step all their addresses have; `arrival`, when its bytes are in shared memory.
 * `beside_wgmma`: a warpgroup issues eight wgmmas of 64 x 128 x 16 with both operands in shared memory right before.
 * Data are in L2. */
#include "bench.h"
#include "hopper.h"
using namespace bench;

constexpr int repeats = 33, columns = 128, a_bytes = 64 * 128, b_bytes = columns * 128, table_bytes = 1 << 20;
enum Until { issued, released, arrived };

__device__ __forceinline__ void multiply(float (&d)[columns / 2], uint32_t a, uint32_t b) {
  hopper::wgmma_fence();
#pragma unroll
  for (uint32_t k = 0; k < 8; k++)
    Wgmma<columns>::template ss<0>(d, hopper::descriptor(a + k % 4 * 32, 16, 1024),
                                   hopper::descriptor(b + k % 4 * 32, 16, 1024), 1);
  hopper::wgmma_commit();
}

template <int count, Until until, bool multiplies>
__global__ __launch_bounds__(512, 1) void burst(uint32_t stride, const uint8_t *from, uint32_t *first, uint32_t *last,
                                                float *sink) {
  extern __shared__ uint8_t raw[];
  uint32_t operands = (hopper::smem(raw) + 1023) / 1024 * 1024;
  uint32_t tile = operands + a_bytes + b_bytes + threadIdx.x / 32 * count * 512;
  for (uint32_t i = threadIdx.x; i < (a_bytes + b_bytes) / 4; i += blockDim.x)
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(operands + i * 4), "r"(0x2C002C00 + (i * 2654435761u >> 24))
                 : "memory");
  hopper::proxy_fence();
  uint32_t to[count];
  uint64_t source[count];
#pragma unroll
  for (int i = 0; i < count; i++) {
    to[i] = tile + threadIdx.x % 32 * 16 + (uint32_t)i * 512 * (stride + 1);
    source[i] = (uint64_t)from + threadIdx.x * 16 + (uint64_t)i * 16384 * (stride + 1);
  }
  float d[columns / 2];
  for (int i = 0; i < columns / 2; i++) d[i] = 0;
#pragma unroll 1
  for (int repeat = 0; repeat < repeats; repeat++) {
    __syncthreads();
    if (multiplies) multiply(d, operands, operands + a_bytes);
    uint32_t start = clock32();
#pragma unroll
    for (int i = 0; i < count; i++)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to[i]), "l"(source[i]) : "memory");
    if (until == arrived) asm volatile("cp.async.wait_all;" ::: "memory");
    if (until == released) {
#pragma unroll
      for (int i = 0; i < count; i++) asm volatile("add.u32 %0, %0, %1;" : "+r"(to[i]) : "r"(stride) : "memory");
    }
    uint32_t stop = clock32();
    if (multiplies) hopper::wgmma_wait<0>();
    hopper::keep(d);
    asm volatile("cp.async.wait_all;" ::: "memory");
    if (until != released) {
#pragma unroll
      for (int i = 0; i < count; i++) asm volatile("add.u32 %0, %0, %1;" : "+r"(to[i]) : "r"(stride) : "memory");
    }
    if (threadIdx.x % 32 == 0) {
      first[repeat * 16 + threadIdx.x / 32] = start;
      last[repeat * 16 + threadIdx.x / 32] = stop;
    }
  }
  float sum = 0;
  for (int i = 0; i < columns / 2; i++) sum += d[i];
#pragma unroll
  for (int i = 0; i < count; i++) sum += (float)to[i];
  sink[threadIdx.x] = sum;
}

static uint32_t *first, *last;
static float *sink;

static double longest(uint32_t num_warps) {
  std::vector<uint32_t> from = to_host(first, repeats * 16), to = to_host(last, repeats * 16), lengths;
  for (uint32_t repeat = 1; repeat < repeats; repeat++) {
    uint32_t start = from[repeat * 16], length = 0;
    for (uint32_t warp = 1; warp < num_warps; warp++)
      if ((int32_t)(from[repeat * 16 + warp] - start) < 0) start = from[repeat * 16 + warp];
    for (uint32_t warp = 0; warp < num_warps; warp++) length = std::max(length, to[repeat * 16 + warp] - start);
    lengths.push_back(length);
  }
  return median(lengths);
}

template <int count, Until until, bool multiplies>
static void measure_until(const uint8_t *from, const char *name) {
  for (uint32_t num_warps : {1, 2, 4, 8, 16}) {
    uint32_t bytes = 1024 + a_bytes + b_bytes + num_warps * count * 512;
    if (bytes > 220 * 1024 || (multiplies && num_warps < 4)) continue;
    allow_shared(burst<count, until, multiplies>, (int)bytes);
    burst<count, until, multiplies><<<1, num_warps * 32, bytes>>>(0, from, first, last, sink);
    char variant[48];
    snprintf(variant, sizeof variant, "%s_%d_warps%s", name, (int)num_warps, multiplies ? "_beside_wgmma" : "");
    row("copy_burst", variant, "copies", count, "cycles", longest(num_warps), "cycles");
  }
  finish();
}

template <int count>
static void measure(const uint8_t *from) {
  measure_until<count, issued, false>(from, "issue");
  measure_until<count, released, false>(from, "release");
  measure_until<count, arrived, false>(from, "arrival");
  measure_until<count, issued, true>(from, "issue");
  measure_until<count, released, true>(from, "release");
  measure_until<count, arrived, true>(from, "arrival");
}

int main() {
  first = device_alloc<uint32_t>(repeats * 16), last = device_alloc<uint32_t>(repeats * 16);
  sink = device_alloc<float>(512);
  uint8_t *from = device_alloc<uint8_t>(table_bytes);
  measure<1>(from), measure<2>(from), measure<4>(from), measure<8>(from), measure<12>(from), measure<16>(from);
  return 0;
}
