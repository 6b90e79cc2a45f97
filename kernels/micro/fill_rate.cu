/* How fast lines from L2 come into one SM by cp.async (16 bytes a lane) and by loads (16 bytes a lane, to registers).
 *
 * Warps issue x lines in all without waiting, four whole adjacent lines an instruction, at addresses that are
 * immediates of one register, so that nothing but the issue of copies takes time; the data are in L2. `all_there`:
 * cycles from before the first to when all have arrived. The slope over x is what a line takes. `rows`: an instruction
 * copies two rows of 256 bytes into two column blocks of 128 bytes, swizzled by the row, as tiles of wgmma lie.
 * `all_sms`: a CTA on every SM, all from the same addresses; the median CTA. `sm_clock`: that of the SMs after they
 * were kept busy, as they are for all rows. */
#include "bench.h"
using namespace bench;

enum { REPEATS = 33, LINE_BYTES = 128 };
enum class Way { linear, rows, load };

template <int per_warp, Way way, int num_warps>
__global__ __launch_bounds__(num_warps * 32, 1) void fill(const char *buffer, uint32_t *cycles, uint32_t *sink) {
  extern __shared__ __align__(1024) uint8_t tile[];
  uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  uint32_t row = warp * 2 + lane / 16, chunk = lane % 16, rows = num_warps * 2 * per_warp, sum = 0;
  uint32_t to = shared_address(tile);
  to += way == Way::rows ? chunk / 8 * rows * LINE_BYTES + row * LINE_BYTES + (chunk % 8 ^ row % 8) * 16
                         : threadIdx.x * 16;
  for (int repeat = 0; repeat < REPEATS; repeat++) {
    const char *from = buffer + threadIdx.x * 16;
    uint4 v[way == Way::load ? per_warp : 1];
    __syncthreads();
    uint32_t start = clock32();
#pragma unroll
    for (int i = 0; i < per_warp; i++) {
      const char *at = from + (size_t)i * num_warps * 512;
      if (way == Way::load)
        asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                     : "=r"(v[i].x), "=r"(v[i].y), "=r"(v[i].z), "=r"(v[i].w)
                     : "l"(at)
                     : "memory");
      else
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                         to + (uint32_t)i * num_warps * (way == Way::rows ? 2 * LINE_BYTES : 512)),
                     "l"(at)
                     : "memory");
    }
    if (way == Way::load)
      for (int i = 0; i < per_warp; i++) sum ^= v[i].x ^ v[i].y ^ v[i].z ^ v[i].w;
    else
      asm volatile("cp.async.wait_all;" ::: "memory");
    if (sum == 0x12345678) *sink = sum;
    __syncthreads();
    uint32_t stop = clock32();
    if (threadIdx.x == 0) cycles[blockIdx.x * REPEATS + repeat] = stop - start;
  }
}

static char *buffer;
static uint32_t *cycles, *sink;

template <int per_warp, Way way, int warps>
static void measure(const char *name) {
  constexpr int bytes = per_warp * warps * 512;
  if constexpr (bytes <= 192 * 1024 && (way != Way::load || per_warp <= 32)) {
    allow_shared(fill<per_warp, way, warps>, 196 * 1024);
    for (int ctas : {1, num_sms()}) {
      fill<per_warp, way, warps><<<ctas, warps * 32, 196 * 1024>>>(buffer, cycles, sink);
      char variant[64];
      snprintf(variant, sizeof variant, "%s_%d_warps%s", name, warps, ctas > 1 ? "_all_sms" : "");
      row("fill_rate", variant, "lines", bytes / LINE_BYTES, "all_there",
          median(to_host(cycles, (size_t)ctas * REPEATS)), "cycles");
    }
  }
}

template <Way way, int warps>
static void measure_counts(const char *name) {
  measure<1, way, warps>(name);
  measure<2, way, warps>(name);
  measure<4, way, warps>(name);
  measure<8, way, warps>(name);
  measure<12, way, warps>(name);
  measure<16, way, warps>(name);
  measure<24, way, warps>(name);
  measure<32, way, warps>(name);
  measure<48, way, warps>(name);
}

template <Way way>
static void measure_warps(const char *name) {
  measure_counts<way, 4>(name);
  measure_counts<way, 8>(name);
  measure_counts<way, 16>(name);
}

__global__ void keep_busy(uint64_t span, uint64_t *time) {
  uint64_t from_cycles = cycles64(), from_ns = global_ns(), now;
  do {
    now = global_ns();
  } while (now - from_ns < span);
  if (blockIdx.x + threadIdx.x == 0) time[0] = cycles64() - from_cycles, time[1] = now - from_ns;
}

int main() {
  uint64_t *time = device_alloc<uint64_t>(2);
  for (int i = 0; i < 2; i++) keep_busy<<<num_sms(), 32>>>(300000000, time);
  std::vector<uint64_t> t = to_host(time, 2);
  row("fill_rate", "keep_busy", "launches", 2, "sm_clock", 1e3 * (double)t[0] / (double)t[1], "MHz");
  buffer = device_alloc<char>((size_t)1 << 20);
  cycles = device_alloc<uint32_t>((size_t)num_sms() * REPEATS);
  sink = device_alloc<uint32_t>(1);
  measure_warps<Way::linear>("cp_async");
  measure_warps<Way::rows>("cp_async_rows");
  measure_warps<Way::load>("ldg");
  finish();
  return 0;
}
