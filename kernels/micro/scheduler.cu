/* Which warp of a sub-core issues, if several could? One to four warps a sub-core run the same rounds of a stream from
 * the same cycle on. Served alike they end together; if one goes before another, it ends first, at its share of the
 * time.
 *
 * x is the warp's place on its sub-core, in order of its index. Rows: when it ended, in cycles a round of all its
 * sub-core's warps (so that the last to end has what a round takes). `beside` runs it with one more warpgroup, of the
 * lowest indices, that multiplies without a pause until all have ended.
 *
 * Variant ..._Wwarps_Cctas: C CTAs of W warps a sub-core on every SM. x counts the warps of a sub-core in the order in
 * which their CTAs came, within a CTA by index; cycles from the first start on the SM, means over SMs and sub-cores. */
#include <algorithm>

#include "bench.h"
#include "hopper.h"
#include "streams.h"
using namespace bench;
using namespace streams;

constexpr int max_warps = 4;

#define STREAM(Name, ...)                                            \
  struct Name {                                                      \
    static __device__ __forceinline__ void round(Values &v) {        \
      _Pragma("unroll") for (int i = 0; i < 64; i++) { __VA_ARGS__ } \
    }                                                                \
  };
STREAM(Fmul, fmul(v.x[i % 16]);)
STREAM(Fmul_chain, fmul(v.x[0]);)
STREAM(Fmnmx, fmnmx(v.x[i % 16], v.g);)
STREAM(F2fp, f2fp(v.x[i % 16], v.g);)
STREAM(Mufu, mufu(v.x[i % 16]);)
STREAM(Ffma_mufu, ffma(v.x[i % 16], v.f, v.g); mufu(v.x[16 + i % 16]);)
STREAM(Fmnmx_mufu, fmnmx(v.x[i % 16], v.g); mufu(v.x[16 + i % 16]);)

__device__ __forceinline__ void products(const volatile int *left, volatile int *seen, uint8_t *tiles, uint32_t *sink) {
  float d[64];
#pragma unroll
  for (int i = 0; i < 64; i++) d[i] = 0;
  uint64_t a_desc = hopper::descriptor(hopper::smem(tiles), 16, 1024),
           b_desc = hopper::descriptor(hopper::smem(tiles) + 32768, 16, 1024);
#pragma unroll 1
  for (;;) {
    if (threadIdx.x == 0) *seen = *left;
    asm volatile("bar.sync 1, 128;" ::: "memory");  // all four warps see the same
    if (*seen == 0) break;
    hopper::wgmma_fence();
#pragma unroll
    for (int i = 0; i < 32; i++) Wgmma<128>::template ss<0>(d, a_desc, b_desc, 1);
    hopper::wgmma_commit();
    hopper::wgmma_wait<0>();
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 64; i++) sum += d[i];
  sink[threadIdx.x] = __float_as_uint(sum);
}

/* ended[p]: of the p-th warp of sub-core 0. */
template <class X, bool beside>
__global__ __launch_bounds__(128 * (max_warps + beside), 1) void run(int num_rounds, uint64_t *ended, uint32_t *sink,
                                                                     uint32_t r) {
  extern __shared__ __align__(1024) uint8_t tiles[];
  __shared__ int left, seen;
  __shared__ unsigned long long start;
  int group = (int)threadIdx.x / 128 - beside;
  for (uint32_t i = threadIdx.x; i < 64 * 1024 / 4; i += blockDim.x)
    ((uint32_t *)tiles)[i] = 0x2C002C00 + (i * 2654435761u >> 24);
  if (threadIdx.x == 0) left = (int)blockDim.x / 32 - 4 * beside;
  hopper::proxy_fence();
  __syncthreads();
  if (threadIdx.x == 0) start = cycles64() + 2000;
  __syncthreads();
  if (beside && group < 0) {
    products(&left, &seen, tiles, sink);
    return;
  }
  while (cycles64() < start) {
  }
  rounds<X>(num_rounds, sink, r);
  uint64_t end = cycles64();
  if (threadIdx.x % 128 == 0) ended[group] = end - start;
  if (threadIdx.x % 32 == 0) atomicSub(&left, 1);
}

template <class X, bool beside>
static void measure(const char *name) {
  static uint64_t *ended = device_alloc<uint64_t>(max_warps);
  static uint32_t *sink = device_alloc<uint32_t>(1024);
  const int num_rounds = 256;
  allow_shared(run<X, beside>, 66 * 1024);
  for (int warps = 1; warps <= (beside ? 3 : max_warps); warps++) {
    for (int warm = 0; warm < 2; warm++)
      run<X, beside><<<1, 128 * (warps + beside), 66 * 1024>>>(num_rounds, ended, sink, 3);
    finish();
    std::vector<uint64_t> at = to_host(ended, warps);
    char variant[64];
    snprintf(variant, sizeof variant, "%s%s_%dwarps", beside ? "beside_wgmma_" : "", name, warps);
    for (int i = 0; i < warps; i++)
      row("scheduler", variant, "place", i, "ended", (double)at[(size_t)i] / num_rounds, "cycles");
  }
}

struct Note {
  uint64_t start, stop;
  uint32_t sm;
};

template <class X>
__global__ __launch_bounds__(128 * max_warps, 1) void share(int num_rounds, Note *notes, uint32_t *sink, uint32_t r) {
  __syncthreads();
  uint64_t start = cycles64();
  rounds<X>(num_rounds, sink, r);
  uint64_t stop = cycles64();
  if (threadIdx.x % 32 == 0) notes[(blockIdx.x * blockDim.x + threadIdx.x) / 32] = {start, stop, sm_id()};
}

/* CTAs come to an SM in the order of their indices. */
template <class X>
static void measure_ctas(const char *name, int warps, int ctas) {
  static Note *notes = device_alloc<Note>(1 << 14);
  static uint32_t *sink = device_alloc<uint32_t>(1024);
  const int num_rounds = 256, num_warps = 4 * warps, places = warps * ctas;
  allow_shared(share<X>, whole_sm_bytes / ctas);
  for (int warm = 0; warm < 2; warm++)
    share<X><<<num_sms() * ctas, 32 * num_warps, whole_sm_bytes / ctas>>>(num_rounds, notes, sink, 3);
  finish();
  std::vector<Note> all = to_host(notes, (size_t)(num_sms() * ctas * num_warps));
  std::vector<double> sum((size_t)places);
  int sms = 0;
  for (int sm = 0; sm < num_sms(); sm++) {
    std::vector<Note> here;
    for (const Note &note : all)
      if ((int)note.sm == sm) here.push_back(note);
    if ((int)here.size() != ctas * num_warps) continue;
    uint64_t first = here[0].start;
    for (const Note &note : here) first = std::min(first, note.start);
    for (size_t i = 0; i < here.size(); i++) sum[i / 4] += (double)(here[i].stop - first) / 4;
    sms++;
  }
  char variant[64];
  snprintf(variant, sizeof variant, "%s_%dwarps_%dctas", name, warps, ctas);
  for (int place = 0; place < places; place++)
    row("scheduler", variant, "place", place, "ended", sum[(size_t)place] / sms / num_rounds, "cycles");
}

template <class X>
static void both(const char *name) {
  measure<X, false>(name);
  measure<X, true>(name);
  measure_ctas<X>(name, 1, 2);
  measure_ctas<X>(name, 1, 4);
  measure_ctas<X>(name, 2, 2);
}

int main() {
  both<Fmul>("FMUL");
  both<Fmul_chain>("FMUL_chain");
  both<Fmnmx>("FMNMX");
  both<F2fp>("F2FP");
  both<Mufu>("MUFU");
  both<Ffma_mufu>("FFMA_and_MUFU");
  both<Fmnmx_mufu>("FMNMX_and_MUFU");
  both<Softmax>("softmax");
  return 0;
}
