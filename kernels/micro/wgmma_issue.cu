/* How long a warp stands at the first products of a batch of four m64n64k16, A in shared memory (ss) or in registers
 * (rs).
 *
 * `late`: one warpgroup alone, whose last warp comes x cycles after the others. `beside`: x other warpgroups multiply
 * meanwhile (variant, behind `beside`: A's place and n), in batches of four with a pause of 100 cycles; the batch meets
 * them anywhere. Rows, over 400 times: cycles from before WARPGROUP.ARRIVE until the first and the fourth product have
 * issued and until the results are there, of the first three warps and of the last.
 *
 * `loop`: x CTAs an SM, on all SMs, each with the loop of attention with 64 x 64 tiles of head_dim 64 on 4 warps, but
 * for copies: QK, softmax, PV whose result is waited for with the next QK, and a barrier; `without` shuffles or
 * exponentials, FMULs instead. Rows, over all SMs and 64 iterations: how far the warps of a CTA are apart (last - first)
 * behind that wait, when they come to PV and behind the barrier; how long they stand at PV's first product; and what an
 * iteration takes. The stamps cost some of it. */
#include "bench.h"
#include "hopper.h"
#include "wgmma_tiles.h"
using namespace bench;
using namespace wgmma_tiles;

enum Source { none, ss, rs };
enum Point { FIRST, FOURTH, RESULT, num_points };
constexpr int times = 400, shared_bytes = 66 * 1024;

struct Operands {
  uint64_t a, b;
  uint32_t p[4][4];
};

template <Source source, int n>
__device__ __forceinline__ void product(float (&d)[n / 2], Operands &o, int i) {
  if constexpr (source == rs)
    Wgmma<n>::template rs<1>(d, o.p[i], o.b + (uint64_t)i * 128, 1);
  else
    Wgmma<n>::template ss<0>(d, o.a + (uint64_t)i * 2, o.b + (uint64_t)i * 2, 1);
}

__device__ __forceinline__ void wait_until(uint32_t cycle) {
  while ((int)(clock32() - cycle) < 0) {
  }
}

__device__ __forceinline__ Operands operands(uint32_t tiles) {
  Operands o;
  o.a = hopper::descriptor(tiles, 16, 1024);
  o.b = hopper::descriptor(tiles + 16384, 8192, 1024);
  for (int i = 0; i < 16; i++) o.p[i / 4][i % 4] = 0x2C002C00;
  return o;
}

template <Source source, int n>
__device__ __forceinline__ void multiply(const volatile int *stop, volatile int *seen, Operands &o, float *sink) {
  float d[n / 2];
  for (int i = 0; i < n / 2; i++) d[i] = 0;
  for (;;) {
    if (threadIdx.x % 128 == 0) *seen = *stop;
    asm volatile("bar.sync %0, 128;" ::"r"(threadIdx.x / 128 + 2) : "memory");  // all four warps see the same
    if (*seen) break;
    hopper::keep(d);
    hopper::wgmma_fence();
#pragma unroll
    for (int i = 0; i < 4; i++) product<source, n>(d, o, i);
    hopper::wgmma_commit();
    hopper::wgmma_wait<0>();
    hopper::keep(d);
    asm volatile("bar.sync %0, 128;" ::"r"(threadIdx.x / 128 + 2) : "memory");
    wait_until(clock32() + 100);
  }
  float sum = 0;
  for (int i = 0; i < n / 2; i++) sum += d[i];
  sink[threadIdx.x] = sum;
}

template <Source source>
__device__ __forceinline__ void probe(Operands &o, int late, uint32_t *out, float *sink) {
  float d[32];
  for (int i = 0; i < 32; i++) d[i] = 0;
#pragma unroll 1
  for (int i = -8; i < times; i++) {
    wait_until(clock32() + 200 + (uint32_t)(i + 8) * 37 % 613);
    asm volatile("bar.sync 1, 128;" ::: "memory");
    wait_until(clock32() + 100 + (threadIdx.x / 32 == 3 ? (uint32_t)late : 0));
    hopper::keep(d);
    uint32_t at[num_points], start = clock32();
    hopper::wgmma_fence();
    product<source, 64>(d, o, 0);
    at[FIRST] = clock32();
    product<source, 64>(d, o, 1);
    product<source, 64>(d, o, 2);
    product<source, 64>(d, o, 3);
    at[FOURTH] = clock32();
    hopper::wgmma_commit();
    hopper::wgmma_wait<0>();
    hopper::keep(d);
    at[RESULT] = clock32();
    if (i >= 0 && threadIdx.x % 32 == 0)
      for (int point = 0; point < num_points; point++)
        out[(i * 4 + (int)threadIdx.x / 32) * num_points + point] = at[point] - start;
  }
  float sum = 0;
  for (int i = 0; i < 32; i++) sum += d[i];
  sink[threadIdx.x] = sum;
}

template <Source source, Source other, int n>
__global__ __launch_bounds__(512) void run(int late, uint32_t *out, float *sink) {
  extern __shared__ __align__(1024) uint8_t tiles[];
  __shared__ volatile int stop, seen[4];
  for (uint32_t i = threadIdx.x; i < 64 * 1024 / 4; i += blockDim.x) ((uint32_t *)tiles)[i] = 0x2C002C00;
  if (threadIdx.x == 0) stop = 0;
  hopper::proxy_fence();
  __syncthreads();
  Operands o = operands(hopper::smem(tiles));
  if (threadIdx.x < 128) {
    probe<source>(o, late, out, sink);
    asm volatile("bar.sync 1, 128;" ::: "memory");
    if (threadIdx.x == 0) stop = 1;
  } else if constexpr (other != none) {
    multiply<other, n>(&stop, &seen[threadIdx.x / 128], o, sink);
  }
}

static double mean(const std::vector<uint32_t> &values) {
  double sum = 0;
  for (uint32_t value : values) sum += value;
  return sum / (double)values.size();
}

static void print(const char *variant, const char *parameter, int x, const char *what, std::vector<uint32_t> &values) {
  char metric[64];
  for (int i = 0; i < 4; i++) {
    static const char *const names[] = {"mean", "p10", "median", "p90"};
    snprintf(metric, sizeof metric, "%s_%s", what, names[i]);
    double value = i == 0 ? mean(values) : percentile(values, i == 1 ? 0.1 : i == 2 ? 0.5 : 0.9);
    row("wgmma_issue", variant, parameter, x, metric, value, "cycles");
  }
}

template <Source source, Source other, int n>
static void measure(const char *variant, const char *parameter, int others, int late) {
  static uint32_t *out = device_alloc<uint32_t>(times * 4 * num_points);
  static float *sink = device_alloc<float>(512);
  allow_shared(run<source, other, n>, shared_bytes);
  run<source, other, n><<<1, 128 + others * 128, shared_bytes>>>(late, out, sink);
  finish();
  std::vector<uint32_t> all = to_host(out, times * 4 * num_points);
  static const char *const names[num_points] = {"first", "fourth", "result"};
  for (int last = 0; last < 2; last++)
    for (int point = 0; point < num_points; point++) {
      std::vector<uint32_t> values;
      for (int i = 0; i < times; i++)
        for (int warp = last * 3; warp < 3 + last; warp++)
          values.push_back(all[(size_t)((i * 4 + warp) * num_points + point)]);
      char what[32];
      snprintf(what, sizeof what, "%s_%s", last ? "last_warp" : "warps", names[point]);
      print(variant, parameter, late ? late : others, what, values);
    }
}

template <Source source>
static void sweep(const char *name) {
  char variant[48];
  for (int late : {0, 20, 50, 100, 200, 400}) measure<source, none, 64>(name, "late", 0, late);
#define BESIDE(other, n)                                           \
  snprintf(variant, sizeof variant, "%s_beside_" #other #n, name); \
  for (int others = 1; others <= 3; others++) measure<source, other, n>(variant, "warpgroups", others, 0);
  BESIDE(ss, 64)
  BESIDE(rs, 64)
  BESIDE(ss, 128)
  BESIDE(rs, 128)
#undef BESIDE
}

/* The loop. */
enum Stamp { SCORES, TO_PV, IN_PV, BEHIND, num_stamps };
constexpr int iterations = 64;

__device__ __forceinline__ float other_lane(float x, int distance, bool shuffles) {
  return shuffles ? __shfl_xor_sync(0xffffffff, x, distance) : x * 1.0001f;
}
__device__ __forceinline__ float power(float x, bool special) { return special ? exp2_fast(x) : x * 1.0001f; }

template <bool shuffles, bool special>
__device__ __forceinline__ void softmax(float (&s)[32], float (&o)[32], RowState<1> &rows, float scale_log2) {
#pragma unroll
  for (int half = 0; half < 2; half++) {
    float top = rows.max[0][half];
#pragma unroll
    for (int n = 0; n < 8; n++) top = fmaxf(top, fmaxf(s[n * 4 + half * 2], s[n * 4 + half * 2 + 1]));
    top = fmaxf(top, other_lane(top, 1, shuffles));
    top = fmaxf(top, other_lane(top, 2, shuffles));
    float base = top * scale_log2, correction = power(rows.max[0][half] * scale_log2 - base, special), sum = 0;
    rows.max[0][half] = top;
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
      for (int i = 0; i < 2; i++)
        sum += s[n * 4 + half * 2 + i] = power(s[n * 4 + half * 2 + i] * scale_log2 - base, special);
    sum += other_lane(sum, 1, shuffles);
    sum += other_lane(sum, 2, shuffles);
    rows.sum[0][half] = rows.sum[0][half] * correction + sum;
#pragma unroll
    for (int n = 0; n < 8; n++) o[n * 4 + half * 2] *= correction, o[n * 4 + half * 2 + 1] *= correction;
  }
}

template <bool shuffles, bool special>
__global__ __launch_bounds__(128) void attention(float scale_log2, uint4 *trace, float *sink) {
  extern __shared__ __align__(1024) uint8_t raw[];
  uint32_t q = (hopper::smem(raw) + 1023) / 1024 * 1024, k = q + 8192, v = k + 8192;
  for (uint32_t i = threadIdx.x; i < 24576 / 4; i += blockDim.x)
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(q + i * 4), "r"(0x2C002C00 + (i * 2654435761u >> 24)));
  hopper::proxy_fence();
  float s[1][32], o[1][32];
  uint32_t p[1][4][4];
  RowState<1> rows;
  rows.clear();
  fill_zero(o);
  fill_zero(s);
  make_p<64>(p, s);
  __syncthreads();
#pragma unroll 1
  for (int j = -8; j < iterations; j++) {
    keep_all(s);
    hopper::wgmma_fence();
    issue_scores<64, 64, 64>(s, q, 0, k);
    hopper::wgmma_commit();
    hopper::wgmma_wait<0>();
    keep_all(s);
    keep_all(o);
    uint4 at;
    at.x = clock32();
    softmax<shuffles, special>(s[0], o[0], rows, scale_log2);
    make_p<64>(p, s);
    keep_all(o);
    at.y = clock32();
    hopper::wgmma_fence();
    Wgmma<64>::rs<1>(o[0], p[0][0], hopper::descriptor(v, 8192, 1024), 1);
    at.z = clock32();
#pragma unroll
    for (int i = 1; i < 4; i++)
      Wgmma<64>::rs<1>(o[0], p[0][i], hopper::descriptor(v + (uint32_t)i * 2048, 8192, 1024), 1);
    hopper::wgmma_commit();
    __syncthreads();
    at.w = clock32();
    if (j >= 0 && threadIdx.x % 32 == 0) trace[(blockIdx.x * iterations + (uint32_t)j) * 4 + threadIdx.x / 32] = at;
  }
  hopper::wgmma_wait<0>();
  keep_all(o);
  float sum = rows.sum[0][0] + rows.sum[0][1];
  for (int i = 0; i < 32; i++) sum += o[0][i] + s[0][i];
  sink[blockIdx.x * 128 + threadIdx.x] = sum;
}

static uint32_t apart(const uint32_t *four, int stamp) {
  uint32_t least = 0, most = 0;
  for (int warp = 1; warp < 4; warp++) {
    int after = (int)(four[warp * num_stamps + stamp] - four[stamp]);
    if (after < -(int)least) least = (uint32_t)-after;
    if (after > (int)most) most = (uint32_t)after;
  }
  return least + most;
}

template <bool shuffles, bool special>
static void measure_loop(const char *variant, int ctas, int sms) {
  int blocks = ctas * sms, shared = 220 * 1024 / ctas - 1024;
  size_t count = (size_t)blocks * iterations * 4;
  uint4 *trace = device_alloc<uint4>(count);
  float *sink = device_alloc<float>((size_t)blocks * 128);
  auto kernel = attention<shuffles, special>;
  allow_shared(kernel, shared);
  for (int warm = 0; warm < 2; warm++) kernel<<<blocks, 128, shared>>>(0.25f, trace, sink);
  finish();
  std::vector<uint4> stamps = to_host(trace, count);
  const uint32_t *at = (const uint32_t *)stamps.data();
  std::vector<uint32_t> scores, to_pv, behind, stood, stood_last, took;
  for (size_t i = 0; i < count / 4; i++) {
    const uint32_t *four = at + i * 4 * num_stamps;
    scores.push_back(apart(four, SCORES));
    to_pv.push_back(apart(four, TO_PV));
    behind.push_back(apart(four, BEHIND));
    uint32_t least = ~0u;
    for (int warp = 0; warp < 4; warp++) {
      uint32_t stands = four[warp * num_stamps + IN_PV] - four[warp * num_stamps + TO_PV];
      stood.push_back(stands);
      least = std::min(least, stands);
    }
    stood_last.push_back(least);
    if (i % iterations) took.push_back(four[BEHIND] - four[BEHIND - 4 * num_stamps]);
  }
  print(variant, "ctas_per_sm", ctas, "apart_scores", scores);
  print(variant, "ctas_per_sm", ctas, "apart_to_pv", to_pv);
  print(variant, "ctas_per_sm", ctas, "apart_behind_barrier", behind);
  print(variant, "ctas_per_sm", ctas, "stood_at_pv", stood);
  print(variant, "ctas_per_sm", ctas, "stood_at_pv_last", stood_last);
  print(variant, "ctas_per_sm", ctas, "iteration", took);
}

int main() {
  sweep<ss>("ss");
  sweep<rs>("rs");
  cudaDeviceProp properties;
  cudaGetDeviceProperties(&properties, 0);
  int sms = properties.multiProcessorCount;
  for (int ctas = 1; ctas <= 5; ctas++) {
    measure_loop<true, true>("attention_64x64_d64", ctas, sms);
    measure_loop<false, true>("attention_64x64_d64_without_SHFL", ctas, sms);
    measure_loop<true, false>("attention_64x64_d64_without_MUFU", ctas, sms);
    measure_loop<false, false>("attention_64x64_d64_without_both", ctas, sms);
  }
  return 0;
}
