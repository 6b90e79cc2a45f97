/* How many lines one SM may have outstanding: warps issue loads that touch 32 lines each (16 bytes of every line), or
 * four whole lines each (whole), all from DRAM, without waiting. Cycles from before the first to after the last issue;
 * while the table of outstanding lines has room the slope is the rate at which the L1 takes requests, after that the
 * rate at which data returns. x counts lines. cp.async, and plain loads to registers. */
#include "bench.h"
using namespace bench;

enum { LANE_BYTES = 16, LINE_BYTES = 128 };

template <int per_warp, bool async, bool whole>
__global__ __launch_bounds__(1024) void burst(const char *buffer, uint32_t *cycles, uint32_t *sink) {
  extern __shared__ __align__(16) uint8_t tile[];
  __shared__ uint32_t last;
  uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, num_warps = blockDim.x / 32;
  if (threadIdx.x == 0) last = 0;
  uint4 v[per_warp];
  __syncthreads();
  uint32_t start = clock32();
#pragma unroll
  for (int i = 0; i < per_warp; i++) {
    const char *from = buffer + (((size_t)i * num_warps + warp) * 32 + lane) * (whole ? LANE_BYTES : LINE_BYTES);
    if (async)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(tile) + threadIdx.x * 16), "l"(from)
                   : "memory");
    else
      asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                   : "=r"(v[i].x), "=r"(v[i].y), "=r"(v[i].z), "=r"(v[i].w)
                   : "l"(from)
                   : "memory");
  }
  uint32_t issued = clock32();
  atomicMax(&last, issued - start);
  uint32_t sum = 0;
  if (async)
    asm volatile("cp.async.wait_all;" ::: "memory");
  else
    for (int i = 0; i < per_warp; i++) sum ^= v[i].x ^ v[i].y;
  if (sum == 0x12345678) *sink = sum;
  __syncthreads();
  uint32_t stop = clock32();
  if (threadIdx.x == 0) {
    cycles[0] = last;
    cycles[1] = stop - start;
  }
}

__global__ void flush(char *to, size_t bytes) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < bytes / 16; i += (size_t)gridDim.x * blockDim.x)
    ((uint4 *)to)[i] = make_uint4(1, 2, 3, 4);
}

static char *buffer, *other;
static uint32_t *cycles, *sink;

template <int per_warp, bool async, bool whole>
static void measure() {
  for (int warps : {whole ? 32 : 4, 16}) {
    std::vector<double> issue, done;
    for (int repeat = 0; repeat < 5; repeat++) {
      flush<<<1024, 256>>>(other, (size_t)256 << 20);
      burst<per_warp, async, whole><<<1, warps * 32, warps * 32 * LANE_BYTES>>>(buffer, cycles, sink);
      std::vector<uint32_t> c = to_host(cycles, 2);
      issue.push_back(c[0]);
      done.push_back(c[1]);
    }
    char variant[32];
    snprintf(variant, sizeof variant, "%s%s_%d_warps", async ? "cp_async" : "ldg", whole ? "_whole" : "", warps);
    int lines = per_warp * warps * (whole ? 32 * LANE_BYTES / LINE_BYTES : 32);
    row("pending_lines", variant, "lines", lines, "last_issue", median(issue), "cycles");
    row("pending_lines", variant, "lines", lines, "all_there", median(done), "cycles");
  }
  finish();
}

template <int per_warp>
static void measure_all() {
  measure<per_warp, true, false>();
  measure<per_warp, false, false>();
  if constexpr (per_warp <= 12) {
    measure<per_warp, true, true>();
    measure<per_warp, false, true>();
  }
}

int main() {
  buffer = device_alloc<char>((size_t)16 << 20);
  other = device_alloc<char>((size_t)256 << 20);
  cycles = device_alloc<uint32_t>(2);
  sink = device_alloc<uint32_t>(1);
  measure_all<1>();
  measure_all<2>();
  measure_all<3>();
  measure_all<4>();
  measure_all<5>();
  measure_all<6>();
  measure_all<8>();
  measure_all<12>();
  measure_all<16>();
  return 0;
}
