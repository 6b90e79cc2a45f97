/* What tensor instructions leave of the register file's read ports to others of the same sub-core.
 *
 * `mma`: every warp runs m16n8k16 (10 source registers) and k instructions of one kind after each, all independent;
 * cycles a sub-core needs for one mma.sync with its k companions, x is k. If operands had ports of their own, that is
 * the longest of the pipes and of the issue slots; if they share them, the sum of reads counts.
 * `wgmma_ss`, `wgmma_rs`: one warpgroup multiplies without a pause, another runs one kind of instruction (one warp a
 * sub-core, or two); x is N. Cycles for an instruction beside wgmmas and alone, and the wgmmas' rate beside them. */
#include "bench.h"
#include "hopper.h"
using namespace bench;

constexpr int chains = 8, per_round = 64;

struct Ffma3 {  // three source registers
  static __device__ __forceinline__ void apply(uint32_t &x, uint32_t a, uint32_t b) {
    asm volatile("{ .reg .f32 f, g, h; mov.b32 f, %0; mov.b32 g, %1; mov.b32 h, %2; fma.rn.f32 f, f, g, h; mov.b32 %0, f; }" : "+r"(x) : "r"(a), "r"(b));
  }
};
struct Fadd2 {  // two
  static __device__ __forceinline__ void apply(uint32_t &x, uint32_t a, uint32_t) {
    asm volatile("{ .reg .f32 f, g; mov.b32 f, %0; mov.b32 g, %1; add.rn.f32 f, f, g; mov.b32 %0, f; }" : "+r"(x) : "r"(a));
  }
};
struct Fmul1 {  // one
  static __device__ __forceinline__ void apply(uint32_t &x, uint32_t, uint32_t) {
    asm volatile("{ .reg .f32 f; mov.b32 f, %0; mul.rn.f32 f, f, 0f3F800001; mov.b32 %0, f; }" : "+r"(x));
  }
};
struct Imad3 {
  static __device__ __forceinline__ void apply(uint32_t &x, uint32_t a, uint32_t b) { asm volatile("mad.lo.u32 %0, %0, %1, %2;" : "+r"(x) : "r"(a), "r"(b)); }
};
struct Imad_hi {
  static __device__ __forceinline__ void apply(uint32_t &x, uint32_t a, uint32_t) { asm volatile("mul.hi.u32 %0, %0, %1;" : "+r"(x) : "r"(a)); }
};
struct Imad_wide {  // and a LOP3 of both halves
  static __device__ __forceinline__ void apply(uint32_t &x, uint32_t a, uint32_t) {
    asm volatile("{ .reg .b32 l, h; .reg .b64 q; mul.wide.u32 q, %0, %1; mov.b64 {l, h}, q; xor.b32 %0, l, h; }" : "+r"(x) : "r"(a));
  }
};
struct Lop3 {
  static __device__ __forceinline__ void apply(uint32_t &x, uint32_t a, uint32_t b) { asm volatile("lop3.b32 %0, %0, %1, %2, 0x6a;" : "+r"(x) : "r"(a), "r"(b)); }
};
struct Fmnmx2 {
  static __device__ __forceinline__ void apply(uint32_t &x, uint32_t a, uint32_t) {
    asm volatile("{ .reg .f32 f, g; mov.b32 f, %0; mov.b32 g, %1; max.f32 f, f, g; mov.b32 %0, f; }" : "+r"(x) : "r"(a));
  }
};
struct F2fp2 {
  static __device__ __forceinline__ void apply(uint32_t &x, uint32_t a, uint32_t) {
    asm volatile("{ .reg .f32 f, g; mov.b32 f, %0; mov.b32 g, %1; cvt.rn.f16x2.f32 %0, f, g; }" : "+r"(x) : "r"(a));
  }
};
struct Mufu {  // special function: issued through the MIO queue
  static __device__ __forceinline__ void apply(uint32_t &x, uint32_t, uint32_t) {
    asm volatile("{ .reg .f32 f; mov.b32 f, %0; ex2.approx.ftz.f32 f, f; mov.b32 %0, f; }" : "+r"(x));
  }
};

__device__ __forceinline__ void span_begin(unsigned long long &first, unsigned long long &last) {
  if (threadIdx.x == 0) first = ~0ull, last = 0;
}

template <class X, int k>
__global__ void beside_mma(int iterations, uint64_t *span, uint32_t *sink, uint32_t r) {
  __shared__ unsigned long long first, last;
  span_begin(first, last);
  float d[chains][4] = {};
  uint32_t a[4] = {r, r + 1, r + 2, r + 3}, b[2] = {r + 4, r + 5}, x[chains], p[4], q[4];
  for (int i = 0; i < chains; i++) x[i] = 0x3F800000 + threadIdx.x + (uint32_t)i;
  for (int i = 0; i < 4; i++) p[i] = r * 7 + (uint32_t)i + threadIdx.x, q[i] = r * 5 + (uint32_t)i + threadIdx.x;
  __syncthreads();
  uint64_t start = cycles64();
#pragma unroll 1
  for (int i = 0; i < iterations; i++) {
#pragma unroll
    for (int c = 0; c < chains; c++) {
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                   : "+f"(d[c][0]), "+f"(d[c][1]), "+f"(d[c][2]), "+f"(d[c][3])
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#pragma unroll
      for (int j = 0; j < k; j++) X::apply(x[(c * k + j) % chains], p[j % 4], q[(j + 1) % 4]);
    }
  }
  uint64_t stop = cycles64();
  uint32_t sum = 0;
  for (int c = 0; c < chains; c++) sum ^= x[c] ^ __float_as_uint(d[c][0] + d[c][1] + d[c][2] + d[c][3]);
  sink[threadIdx.x] = sum;
  atomicMin(&first, (unsigned long long)start);
  atomicMax(&last, (unsigned long long)stop);
  __syncthreads();
  if (threadIdx.x == 0) *span = last - first;
}

template <class X, int k>
static void measure_mma(const char *name) {
  static uint64_t *span = device_alloc<uint64_t>(1);
  static uint32_t *sink = device_alloc<uint32_t>(1024);
  const int iterations = 64;
  for (int warps : {4, 8, 16}) {
    for (int warm = 0; warm < 2; warm++) beside_mma<X, k><<<1, warps * 32>>>(iterations, span, sink, 3);
    char variant[48];
    snprintf(variant, sizeof variant, "mma_%s_%dwarps", name, warps / 4);
    row("operand_ports", variant, "k", k, "cycles_per_mma_subcore", (double)to_host(span, 1)[0] / (iterations * chains * (warps / 4)), "cycles");
  }
  finish();
}

template <class X>
static void sweep_mma(const char *name) {
  measure_mma<X, 0>(name);
  measure_mma<X, 1>(name);
  measure_mma<X, 2>(name);
  measure_mma<X, 3>(name);
  measure_mma<X, 4>(name);
  measure_mma<X, 6>(name);
  measure_mma<X, 8>(name);
}

enum class Source { ss, rs };

template <class X>
__device__ __forceinline__ void instructions(int amount, uint32_t *sink, uint32_t r) {
  uint32_t x[chains], p[4], q[4];
  for (int i = 0; i < chains; i++) x[i] = 0x3F800000 + threadIdx.x + (uint32_t)i;
  for (int i = 0; i < 4; i++) p[i] = r * 7 + (uint32_t)i + threadIdx.x, q[i] = r * 5 + (uint32_t)i + threadIdx.x;
#pragma unroll 1
  for (int count = 0; count < amount; count += per_round) {
#pragma unroll
    for (int u = 0; u < per_round; u++) X::apply(x[u % chains], p[u % 4], q[(u + 1) % 4]);
  }
  uint32_t sum = 0;
  for (int c = 0; c < chains; c++) sum ^= x[c];
  sink[threadIdx.x] = sum;
}

template <int n, Source source>
__device__ __forceinline__ void products(int amount, uint8_t *tiles, uint32_t *sink) {
  constexpr int group = source == Source::ss ? 32 : 8;
  float d[n / 2];
  for (int i = 0; i < n / 2; i++) d[i] = 0;
  uint32_t a[4] = {0x2C002C00, 0x2C012C03, 0x2C102C08, 0x2C002C01};
  uint64_t a_desc = hopper::descriptor(hopper::smem(tiles), 16, 1024), b_desc = hopper::descriptor(hopper::smem(tiles) + 32768, 16, 1024);
#pragma unroll 1
  for (int count = 0; count < amount; count += group) {
    hopper::wgmma_fence();
#pragma unroll
    for (int i = 0; i < group; i++) {
      if constexpr (source == Source::ss)
        Wgmma<n>::template ss<0>(d, a_desc, b_desc, 1);
      else
        Wgmma<n>::template rs<0>(d, a, b_desc, 1);
    }
    hopper::wgmma_commit();
    hopper::wgmma_wait<0>();
  }
  float sum = 0;
  for (int i = 0; i < n / 2; i++) sum += d[i];
  sink[threadIdx.x] = __float_as_uint(sum);
}

/* Warpgroup 0 multiplies, the others run X. The role that is timed does a known amount, the other more than as long. */
template <class X, int n, Source source>
__global__ __launch_bounds__(384) void beside_wgmma(bool time_wgmma, int num_wgmmas, int num_instructions, uint64_t *span, uint32_t *sink, uint32_t r) {
  extern __shared__ __align__(1024) uint8_t tiles[];
  __shared__ unsigned long long first, last;
  span_begin(first, last);
  for (uint32_t i = threadIdx.x; i < 64 * 1024 / 4; i += blockDim.x) ((uint32_t *)tiles)[i] = 0x2C002C00 + (i * 2654435761u >> 24);
  hopper::proxy_fence();
  __syncthreads();
  bool is_wgmma = threadIdx.x < 128;
  uint64_t start = cycles64();
  if (is_wgmma)
    products<n, source>(num_wgmmas, tiles, sink);
  else
    instructions<X>(num_instructions, sink, r);
  uint64_t stop = cycles64();
  if (is_wgmma == time_wgmma) {
    atomicMin(&first, (unsigned long long)start);
    atomicMax(&last, (unsigned long long)stop);
  }
  __syncthreads();
  if (threadIdx.x == 0) *span = last - first;
}

template <class X, int n, Source source>
static double cycles(bool time_wgmma, int num_wgmmas, int num_instructions, int warpgroups) {
  static uint64_t *span = device_alloc<uint64_t>(1);
  static uint32_t *sink = device_alloc<uint32_t>(1024);
  allow_shared(beside_wgmma<X, n, source>, 66 * 1024);
  for (int warm = 0; warm < 2; warm++)
    beside_wgmma<X, n, source><<<1, 128 * warpgroups, 66 * 1024>>>(time_wgmma, num_wgmmas, num_instructions, span, sink, 3);
  return (double)to_host(span, 1)[0] / (time_wgmma ? num_wgmmas : num_instructions);
}

template <class X, int n, Source source>
static void measure_wgmma(const char *name) {
  const int some = 8192, few = 512, more = 1 << 16;
  for (int others : {1, 2}) {
    char variant[48];
    snprintf(variant, sizeof variant, "wgmma_%s_%s_%dwarps", source == Source::ss ? "ss" : "rs", name, others);
    row("operand_ports", variant, "n", n, "instruction_alone", cycles<X, n, source>(false, 0, some, 1 + others) / others, "cycles");
    row("operand_ports", variant, "n", n, "instruction_beside_wgmma", cycles<X, n, source>(false, more / 16, some, 1 + others) / others, "cycles");
    row("operand_ports", variant, "n", n, "wgmma_alone", cycles<X, n, source>(true, few, 0, 1 + others), "cycles");
    row("operand_ports", variant, "n", n, "wgmma_beside_instructions", cycles<X, n, source>(true, few, 4 * more, 1 + others), "cycles");
  }
  finish();
}

template <class X>
static void sweep_wgmma(const char *name) {
  measure_wgmma<X, 64, Source::ss>(name);
  measure_wgmma<X, 128, Source::ss>(name);
  measure_wgmma<X, 256, Source::ss>(name);
  measure_wgmma<X, 64, Source::rs>(name);
  measure_wgmma<X, 128, Source::rs>(name);
  measure_wgmma<X, 192, Source::rs>(name);
}

int main() {
  sweep_mma<Ffma3>("FFMA3");
  sweep_mma<Fadd2>("FADD2");
  sweep_mma<Fmul1>("FMUL1");
  sweep_mma<Imad3>("IMAD3");
  sweep_mma<Imad_hi>("IMAD.HI");
  sweep_mma<Imad_wide>("IMAD.WIDE_and_LOP3");
  sweep_mma<Lop3>("LOP3");
  sweep_mma<Fmnmx2>("FMNMX2");
  measure_mma<Mufu, 1>("MUFU");
  measure_mma<Mufu, 2>("MUFU");
  sweep_wgmma<Ffma3>("FFMA3");
  sweep_wgmma<Fadd2>("FADD2");
  sweep_wgmma<Fmul1>("FMUL1");
  sweep_wgmma<Imad3>("IMAD3");
  sweep_wgmma<Imad_hi>("IMAD.HI");
  sweep_wgmma<Imad_wide>("IMAD.WIDE_and_LOP3");
  sweep_wgmma<Lop3>("LOP3");
  sweep_wgmma<Fmnmx2>("FMNMX2");
  sweep_wgmma<F2fp2>("F2FP2");
  sweep_wgmma<Mufu>("MUFU");
  return 0;
}
