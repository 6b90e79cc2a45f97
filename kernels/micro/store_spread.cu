/* How far CTAs come apart by what they store at their end: one an SM, num_waves one after the other, 8 warps each. A
 * CTA waits work_cycles by its own clock, then its warps store 4 KB each: `words` (4 bytes of every 16, four in a row
 * fill four lines), `halves` (16 bytes of 8 rows, two in a row fill 8 sectors), `whole` (lines) or nothing (`none`);
 * the SMs below the number in the name. Those of the first wave begin together. x: the wave. Metrics: what it takes
 * from a CTA's first store until its warps have issued their last one: the mean, the least and the most; its standard
 * deviation inside the GPCs and between their means; and those of when it begins and ends. */
#include "gpc_map.h"
using namespace bench;

constexpr int num_waves = 8, num_warps = 8, work_cycles = 6000, warp_bytes = 4096;

enum class Kind { none, words, halves, whole };

struct Notes {
  uint64_t begin, end;
  uint32_t sm;
};

__device__ uint32_t arrived;
__device__ uint64_t first_begin;

__device__ __forceinline__ void store(char *to, uint32_t value) {
  asm volatile("st.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}

template <Kind kind>
__global__ __launch_bounds__(num_warps * 32) void waves(char *buffer, uint32_t goal, int num_writers, Notes *notes) {
  extern __shared__ __align__(128) uint8_t raw[];
  int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  Notes *own = &notes[blockIdx.x];
  if (blockIdx.x < goal && threadIdx.x == 0) {
    if (atomicAdd(&arrived, 1) == goal - 1) *(volatile uint64_t *)&first_begin = global_ns() + 8192;
    uint64_t begin;
    do begin = *(volatile uint64_t *)&first_begin;
    while (begin == 0 || global_ns() < begin);
  }
  __syncthreads();
  uint64_t start = cycles64();
  while (cycles64() < start + work_cycles)
    ;
  size_t place = (size_t)blockIdx.x * num_warps + (size_t)warp;
  __syncthreads();
  uint64_t begin = cycles64();
  if ((int)sm_id() < num_writers) {
    if (kind == Kind::words)
#pragma unroll
      for (int i = 0; i < 32; i++)
        store(buffer + place * warp_bytes + lane * 16 + i / 4 * 512 + i % 4 * 4, (uint32_t)start);
    if (kind == Kind::halves)
#pragma unroll
      for (int i = 0; i < 32; i++)
        store(buffer + (place * 8 + (size_t)(lane / 4)) * 512 + lane % 4 * 4 + i * 16, (uint32_t)start);
    if (kind == Kind::whole)
#pragma unroll
      for (int i = 0; i < 8; i++)
        asm volatile(
            "st.global.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(buffer + place * warp_bytes + lane * 16 + i * 512),
            "r"((uint32_t)start)
            : "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0) *own = {begin, cycles64(), sm_id()};
}

template <Kind kind>
static void measure(const char *kind_name, const GpcMap &map, char *buffer, Notes *notes, int num_writers) {
  allow_shared(waves<kind>, whole_sm_bytes);
  std::vector<Notes> all;
  for (int repeat = 0; repeat < 2; repeat++) {
    uint32_t zero = 0;
    uint64_t no_time = 0;
    CUDA_CHECK(cudaMemcpyToSymbol(arrived, &zero, sizeof zero));
    CUDA_CHECK(cudaMemcpyToSymbol(first_begin, &no_time, sizeof no_time));
    waves<kind>
        <<<num_sms() * num_waves, num_warps * 32, whole_sm_bytes>>>(buffer, (uint32_t)num_sms(), num_writers, notes);
    finish();
    all = to_host(notes, (size_t)(num_sms() * num_waves));
  }
  char name[64];
  snprintf(name, sizeof name, "%s_%d", kind_name, num_writers);
  std::sort(all.begin(), all.end(),
            [](const Notes &a, const Notes &b) { return a.sm != b.sm ? a.sm < b.sm : a.begin < b.begin; });
  std::vector<std::vector<Notes>> by_wave(num_waves);
  for (size_t i = 0, wave = 0; i < all.size(); i++) {
    wave = i > 0 && all[i].sm == all[i - 1].sm ? wave + 1 : 0;
    if (wave < num_waves && (int)all[i].sm < num_writers) by_wave[wave].push_back(all[i]);
  }
  for (int wave = 0; wave < num_waves; wave++) {
    std::vector<uint32_t> sms;
    std::vector<double> took, began, ended;
    for (const Notes &n : by_wave[(size_t)wave]) {
      sms.push_back(n.sm);
      took.push_back((double)(n.end - n.begin));
      double origin = (double)(int64_t)by_wave[0][0].begin + map.offset_of(n.sm);
      began.push_back((double)(int64_t)n.begin - origin);
      ended.push_back((double)(int64_t)n.end - origin);
    }
    Spread spread = spread_by_gpc(map, sms, took);
    row("store_spread", name, "wave", wave, "took", mean(took), "cycles");
    row("store_spread", name, "wave", wave, "took_inside", spread.inside, "cycles");
    row("store_spread", name, "wave", wave, "took_between", spread.between, "cycles");
    row("store_spread", name, "wave", wave, "began_inside", spread_by_gpc(map, sms, began).inside, "cycles");
    row("store_spread", name, "wave", wave, "ended_inside", spread_by_gpc(map, sms, ended).inside, "cycles");
    row("store_spread", name, "wave", wave, "took_least", percentile(took, 0), "cycles");
    row("store_spread", name, "wave", wave, "took_most", percentile(took, 1), "cycles");
  }
}

int main() {
  GpcMap map;
  char *buffer = device_alloc<char>((size_t)num_sms() * num_waves * num_warps * warp_bytes);
  Notes *notes = device_alloc<Notes>((size_t)num_sms() * num_waves);
  measure<Kind::none>("none", map, buffer, notes, num_sms());
  for (int writers : {num_sms(), 66, 16}) {
    measure<Kind::words>("words", map, buffer, notes, writers);
    measure<Kind::halves>("halves", map, buffer, notes, writers);
    measure<Kind::whole>("whole", map, buffer, notes, writers);
  }
  return 0;
}
