/* What loads of few bytes a lane take of L1. They do not wait for each other; cycles from before the first to after the
 * last issue, and until all data are there, the median over SMs and launches. x counts warps. Lines that L1 has (l1),
 * that L2 has (l2) or that come from DRAM (dram), on one SM or on all.
 * by_N: tiles of 512 bytes a warp, 16 bytes a lane, by 16 / N loads of N bytes a lane, so that each touches all four
 *   lines; 64 loads a warp of 2 and 4 bytes, 32 of 8, 16 of 16.
 * rows_N, turns_N: 64 loads of N bytes a lane, of a row of the warp's own, or of one that the CTA's warps read in turns,
 *   from its first byte or from byte 16 on.
 * parts_32, _64, _128: of lines of their own 1, 2 or 4 bytes a lane; bytes_64 and halves_128: 1 and 2 bytes, every other
 *   one left out; halves_32 and words_64: 2 and 4 bytes, two lanes the same.
 * steps_N: 8 warps read rows by turns, from DRAM, and rest between them; x: the last of so many rows. */
#include "bench.h"
using namespace bench;

enum { TILE_BYTES = 512, LINE_BYTES = 128 };

template <int bytes>
__device__ __forceinline__ uint32_t load(const char *from) {
  uint32_t v, a, b, c;
  if constexpr (bytes == 1) {
    asm volatile("ld.global.u8 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
  } else if constexpr (bytes == 2) {
    uint16_t h;
    asm volatile("ld.global.u16 %0, [%1];" : "=h"(h) : "l"(from) : "memory");
    v = h;
  } else if constexpr (bytes == 4) {
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
  } else if constexpr (bytes == 8) {
    asm volatile("ld.global.v2.u32 {%0,%1}, [%2];" : "=r"(v), "=r"(a) : "l"(from) : "memory");
    v ^= a;
  } else {
    asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v), "=r"(a), "=r"(b), "=r"(c) : "l"(from) : "memory");
    v ^= a ^ b ^ c;
  }
  return v;
}

enum class form { tiles, rows, turns, parts, shared, apart };

__host__ __device__ constexpr bool is_line(form as) { return as == form::parts || as == form::shared || as == form::apart; }

/* Where lane `lane` reads first: of a warp's tiles of 512 bytes `bytes` of its 16; of a warp's row; of a row that warps
 * read in turns; or of lines of a warp of which it reads the first bytes alone (parts), by two lanes each (shared) or
 * with as many left out between lanes (apart). */
template <int bytes, form as, int num_warps, int num_loads>
__device__ __forceinline__ size_t first_of(int warp, int lane) {
  if (as == form::tiles) return (size_t)warp * num_loads * bytes * 32 + lane * 16;
  if (as == form::rows) return (size_t)warp * num_loads * bytes * 32 + lane * bytes;
  if (as == form::turns) return (size_t)(warp * 32 + lane) * bytes;
  size_t line = (size_t)warp * num_loads * LINE_BYTES;
  return line + (as == form::shared ? lane / 2 * bytes : as == form::apart ? lane * 2 * bytes : lane * bytes);
}

/* How far behind that load i lies. */
template <int bytes, form as, int num_warps>
__device__ __forceinline__ constexpr int step_of(int i) {
  constexpr int per_tile = 16 / bytes;
  return as == form::tiles   ? i / per_tile * TILE_BYTES + i % per_tile * bytes
         : as == form::rows  ? i * 32 * bytes
         : as == form::turns ? i * num_warps * 32 * bytes
                             : i * LINE_BYTES;
}

template <int bytes, form as, int num_warps, int num_loads>
__global__ __launch_bounds__(num_warps * 32) void burst(const char *buffer, int passes, size_t pass_bytes, uint32_t rest,
                                                        uint32_t *cycles, uint32_t *sink) {
  __shared__ uint32_t last, all;
  constexpr size_t load_bytes = is_line(as) ? LINE_BYTES : bytes * 32;
  const char *from = buffer + (size_t)blockIdx.x * num_warps * num_loads * load_bytes +
                     first_of<bytes, as, num_warps, num_loads>(threadIdx.x / 32, threadIdx.x % 32);
  uint32_t sum = 0;
  for (int pass = 0; pass < passes; pass++, from += pass_bytes) {
    if (threadIdx.x == 0) last = all = 0;
    uint32_t v[num_loads];
    __syncthreads();
    uint32_t start = clock32();
#pragma unroll
    for (int i = 0; i < num_loads; i++) v[i] = load<bytes>(from + step_of<bytes, as, num_warps>(i));
    uint32_t issued = clock32();
#pragma unroll
    for (int i = 0; i < num_loads; i++) asm volatile("" ::"r"(v[i]) : "memory");
#pragma unroll
    for (int i = 0; i < num_loads; i++) sum ^= v[i];
    if (sum == 0x12345678) *sink = sum;
    uint32_t there = clock32();
    atomicMax(&last, issued - start);
    atomicMax(&all, there - start);
    __syncthreads();
    for (uint32_t begin = clock32(); clock32() - begin < rest;)
      ;
  }
  if (threadIdx.x == 0) {
    cycles[blockIdx.x * 2] = last;
    cycles[blockIdx.x * 2 + 1] = all;
  }
}

__global__ void touch(const uint4 *from, size_t count, uint32_t *sink) {
  uint32_t sum = 0;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x)
    sum ^= __ldcg(from + i).x;
  if (sum == 0x12345678) *sink = sum;
}

static char *buffer, *other;
static uint32_t *cycles, *sink;
static constexpr int one_cta_bytes = 120 * 1024;
static const size_t other_bytes = (size_t)512 << 20;

/* Medians over SMs and five launches. `before` puts the caches in order. */
template <typename Kernel, typename Before>
static void measure_launches(Kernel kernel, Before before, const char *buffer, int grid, int threads, int passes,
                             size_t pass_bytes, uint32_t rest, const char *variant, const char *parameter, int x) {
  allow_shared(kernel, one_cta_bytes);
  std::vector<double> issue, done;
  for (int repeat = 0; repeat < 5; repeat++) {
    before();
    kernel<<<grid, threads, one_cta_bytes>>>(buffer, passes, pass_bytes, rest, cycles, sink);
    std::vector<uint32_t> c = to_host(cycles, 2 * (size_t)grid);
    std::vector<double> a, b;
    for (int i = 0; i < grid; i++) a.push_back(c[2 * i]), b.push_back(c[2 * i + 1]);
    issue.push_back(median(a));
    done.push_back(median(b));
  }
  row("narrow_loads", variant, parameter, x, "last_issue", median(issue), "cycles");
  row("narrow_loads", variant, parameter, x, "all_there", median(done), "cycles");
}

template <int bytes, form as, int num_warps, int num_loads>
static void measure_warps(const char *name, size_t offset) {
  const char *states[] = {"l1", "l2", "dram"};
  for (int state = 0; state < 3; state++)
    for (int grid : {1, num_sms()}) {
      size_t used = (size_t)grid * num_warps * num_loads * (is_line(as) ? LINE_BYTES : bytes * 32) + offset;
      auto before = [=] {
        if (state == 2) touch<<<1024, 256>>>((uint4 *)other, other_bytes / 16, sink);
        if (state == 1) touch<<<1024, 256>>>((uint4 *)buffer, used / 16 + 1, sink);
      };
      char variant[48];
      snprintf(variant, sizeof variant, "%s_%s_%s", name, states[state], grid == 1 ? "one_sm" : "all_sms");
      measure_launches(burst<bytes, as, num_warps, num_loads>, before, buffer + offset, grid, num_warps * 32,
                       state == 0 ? 2 : 1, 0, 0, variant, "warps", num_warps);
    }
}

template <int bytes, form as, int num_loads>
static void measure(const char *name, size_t offset = 0) {
  measure_warps<bytes, as, 1, num_loads>(name, offset);
  measure_warps<bytes, as, 2, num_loads>(name, offset);
  measure_warps<bytes, as, 4, num_loads>(name, offset);
  measure_warps<bytes, as, 8, num_loads>(name, offset);
  measure_warps<bytes, as, 12, num_loads>(name, offset);
  measure_warps<bytes, as, 16, num_loads>(name, offset);
  finish();
}

/* All SMs read rows of their own from DRAM, by 8 warps, and rest between them: the last of x rows. */
template <int bytes, int num_loads>
static void measure_steps(const char *name, size_t offset) {
  auto before = [] { touch<<<1024, 256>>>((uint4 *)other, other_bytes / 16, sink); };
  for (int grid : {1, num_sms()})
    for (uint32_t rest : {0u, 2000u, 6000u})
      for (int passes : {1, 2, 3, 5, 9, 17, 33}) {
        char variant[64];
        snprintf(variant, sizeof variant, "%s_%s_rest_%u", name, grid == 1 ? "one_sm" : "all_sms", rest);
        measure_launches(burst<bytes, form::turns, 8, num_loads>, before, buffer + offset, grid, 256, passes,
                         (size_t)grid * 8 * num_loads * bytes * 32, rest, variant, "row", passes);
      }
  finish();
}

int main() {
  buffer = device_alloc<char>((size_t)512 << 20);
  other = device_alloc<char>(other_bytes);
  cycles = device_alloc<uint32_t>(2 * (size_t)num_sms());
  sink = device_alloc<uint32_t>(1);
  measure<16, form::tiles, 16>("by_16");
  measure<8, form::tiles, 32>("by_8");
  measure<4, form::tiles, 64>("by_4");
  measure<2, form::tiles, 64>("by_2");
  measure<4, form::rows, 64>("rows_4");
  measure<2, form::rows, 64>("rows_2");
  measure<2, form::turns, 64>("turns_2");
  measure<2, form::turns, 64>("turns_2_from_16", 16);
  measure<4, form::turns, 64>("turns_4");
  measure<4, form::turns, 64>("turns_4_from_16", 16);
  measure<1, form::parts, 64>("parts_32");
  measure<2, form::parts, 64>("parts_64");
  measure<4, form::parts, 64>("parts_128");
  measure<4, form::shared, 64>("words_64");
  measure<2, form::shared, 64>("halves_32");
  measure<2, form::apart, 64>("halves_128");
  measure<1, form::apart, 64>("bytes_64");
  measure_steps<2, 43>("steps_2_from_16", 16);
  measure_steps<16, 6>("steps_16", 0);
  return 0;
}
