/* What wgmmas and the instructions of another warpgroup cost each other, by how dense and how mixed those are.
 *
 * One warpgroup multiplies without a pause, one or two others (a warp a sub-core each) run rounds of a stream of
 * instructions; both are counted in the same span. Variant: operand A (in shared memory; from registers ptxas
 * serialises the products here), stream, warps a sub-core; x is N. Rows: cycles of a round alone and beside wgmmas (of
 * one warp's, so that two warps give half), those of a wgmma alone and beside them. `FMUL_chains*`: dependent chains,
 * which issue one FMUL in about 4 / chains cycles: what a wgmma loses to instructions that leave it time. `*_and_*`:
 * pairs of pipes. `softmax*`: what attention runs, 64 elements a round. */
#include "bench.h"
#include "hopper.h"
#include "streams.h"
using namespace bench;
using namespace streams;

__device__ __forceinline__ void lop3(float &x, float a, float b) {
  asm volatile(
      "{ .reg .b32 p, q, r; mov.b32 p, %0; mov.b32 q, %1; mov.b32 r, %2; lop3.b32 p, p, q, r, 0x6a; mov.b32 %0, p; }"
      : "+f"(x)
      : "f"(a), "f"(b));
}
__device__ __forceinline__ void hfma2(float &x, float a, float b) {
  asm volatile(
      "{ .reg .b32 p, q, r; mov.b32 p, %0; mov.b32 q, %1; mov.b32 r, %2; fma.rn.f16x2 p, p, q, r; mov.b32 %0, p; }"
      : "+f"(x)
      : "f"(a), "f"(b));
}
__device__ __forceinline__ void shfl(float &x) { asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, -1;" : "+f"(x)); }

template <int chains>
struct Fmul_chains {
  static constexpr int num_insts = 64;
  static __device__ __forceinline__ void round(Values &v) {
#pragma unroll
    for (int i = 0; i < 64; i++) fmul(v.x[i % chains]);
  }
};
#define STREAM(Name, insts, ...)                                     \
  struct Name {                                                      \
    static constexpr int num_insts = insts;                          \
    static __device__ __forceinline__ void round(Values &v) {        \
      _Pragma("unroll") for (int i = 0; i < 64; i++) { __VA_ARGS__ } \
    }                                                                \
  };
STREAM(Ffma_reuse, 64, ffma(v.x[i % 16], v.f, v.g);)
STREAM(Ffma_imm, 64, asm volatile("fma.rn.f32 %0, %0, 0f3F800001, %1;" : "+f"(v.x[i % 16]) : "f"(v.g));)
STREAM(Hfma2, 64, hfma2(v.x[i % 16], v.f, v.g);)
STREAM(Fadd_chains2, 64, fadd(v.x[i % 2], v.g);)
STREAM(Fmnmx_chains2, 64, fmnmx(v.x[i % 2], v.g);)
STREAM(F2fp, 64, f2fp(v.x[i % 16], v.g);)
STREAM(Shfl, 64, shfl(v.x[i % 16]);)
STREAM(Fmul_and_lop3, 128, fmul(v.x[i % 16]); lop3(v.x[16 + i % 16], v.f, v.g);)
STREAM(Fmul2_and_lop3, 192, fmul(v.x[i % 16]); fmul(v.x[32 + i % 16]); lop3(v.x[16 + i % 16], v.f, v.g);)
STREAM(Ffma_and_mufu, 128, ffma(v.x[i % 16], v.f, v.g); mufu(v.x[16 + i % 16]);)
STREAM(Lop3_and_mufu, 128, lop3(v.x[i % 16], v.f, v.g); mufu(v.x[16 + i % 16]);)
STREAM(Ffma4_and_mufu, 320, ffma(v.x[i % 8], v.f, v.g); ffma(v.x[8 + i % 8], v.f, v.g); ffma(v.x[16 + i % 8], v.f, v.g);
       ffma(v.x[24 + i % 8], v.f, v.g); mufu(v.x[32 + i % 16]);)
STREAM(Imad_and_fmul, 128, fmul(v.x[i % 16]);
       asm volatile("{ .reg .b32 p; mov.b32 p, %0; mad.lo.u32 p, p, %1, %2; mov.b32 %0, p; }"
                    : "+f"(v.x[16 + i % 16])
                    : "r"(v.a), "r"(v.b));)

/* Where a row becomes an address: a register times a constant, to which 64 bits are added. In eight chains, whose next
 * factor is the LOP3 of both halves; ptxas would leave the high one out else.
 * It adds by two IADD3: a round has 64 IMAD.WIDE, 128 IADD3 and 64 LOP3. */
__device__ __forceinline__ void imad_wide(float &x, uint32_t low, uint32_t high) {
  asm volatile(
      "{ .reg .b32 l, h, p; .reg .b64 q; mov.b32 p, %0; mov.b64 q, {%1, %2}; mad.wide.s32 q, p, 48, q; "
      "mov.b64 {l, h}, q; xor.b32 l, l, h; mov.b32 %0, l; }"
      : "+f"(x)
      : "r"(low), "r"(high));
}
STREAM(Imad_wide, 64, imad_wide(v.x[i % 8], v.a, v.b);)
STREAM(Imad_hi, 64,
       asm volatile("{ .reg .b32 p; mov.b32 p, %0; mul.hi.u32 p, p, %1; mov.b32 %0, p; }" : "+f"(v.x[i % 8]) : "r"(v.b));)
STREAM(Iadd3, 64, asm volatile("{ .reg .b32 p; mov.b32 p, %0; add.u32 p, p, %1; mov.b32 %0, p; }"
                               : "+f"(v.x[i % 8])
                               : "r"(v.b));)
STREAM(Imad, 64, asm volatile("{ .reg .b32 p; mov.b32 p, %0; mad.lo.u32 p, p, %1, %2; mov.b32 %0, p; }"
                              : "+f"(v.x[i % 8])
                              : "r"(v.a), "r"(v.b));)
STREAM(Imad_wide_and_3fmul, 256, imad_wide(v.x[i % 8], v.a, v.b); fmul(v.x[32 + i % 8]); fmul(v.x[40 + i % 8]);
       fmul(v.x[48 + i % 8]);)

/* An exponential that `length` independent FMULs wait for: bursts with a gap before each. */
template <int length>
struct Fmul_burst {
  static constexpr int num_insts = 64 + 64 / length;
  static __device__ __forceinline__ void round(Values &v) {
#pragma unroll
    for (int i = 0; i < 64; i++) {
      if (i % length == 0) mufu(v.f);
      asm volatile("mul.rn.f32 %0, %0, %1;" : "+f"(v.x[i]) : "f"(v.f));
    }
  }
};
/* The same, then 64 elements of an accumulator scaled. */
struct Softmax_scale {
  static constexpr int num_insts = Softmax::num_insts + 64;
  static __device__ __forceinline__ void round(Values &v) {
    Softmax::round(v);
#pragma unroll
    for (int i = 0; i < 64; i++) asm volatile("mul.rn.f32 %0, %0, %1;" : "+f"(v.x[i]) : "f"(v.g));
  }
};

template <int n>
__device__ __forceinline__ int products(const volatile int *stop, volatile int *seen, uint8_t *tiles, uint32_t *sink) {
  constexpr int group = 32;
  float d[n / 2];
#pragma unroll
  for (int i = 0; i < n / 2; i++) d[i] = 0;
  uint64_t a_desc = hopper::descriptor(hopper::smem(tiles), 16, 1024),
           b_desc = hopper::descriptor(hopper::smem(tiles) + 32768, 16, 1024);
  int done = 0;
#pragma unroll 1
  for (;; done += group) {
    if (threadIdx.x == 0) *seen = *stop;
    asm volatile("bar.sync 1, 128;" ::: "memory");  // all four warps see the same
    if (*seen) break;
    hopper::wgmma_fence();
#pragma unroll
    for (int i = 0; i < group; i++) Wgmma<n>::template ss<0>(d, a_desc, b_desc, 1);
    hopper::wgmma_commit();
    hopper::wgmma_wait<0>();
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < n / 2; i++) sum += d[i];
  sink[threadIdx.x] = __float_as_uint(sum);
  return done;
}

struct Result {
  uint64_t rounds_cycles, products_cycles;
  int num_products;
};

/* Warpgroup 0 multiplies until the others have done their rounds, or with none for idle_cycles; without products these
 * run alone. Their span is from the first warp's begin to the last one's end. */
template <class X, int n>
__global__ __launch_bounds__(384) void beside(bool with_products, int num_rounds, int idle_cycles, Result *out,
                                              uint32_t *sink, uint32_t r) {
  extern __shared__ __align__(1024) uint8_t tiles[];
  __shared__ unsigned long long first, last;
  __shared__ int stop, seen, left;
  if (threadIdx.x == 0) first = ~0ull, last = 0, stop = 0, left = (int)blockDim.x / 128 - 1;
  for (uint32_t i = threadIdx.x; i < 64 * 1024 / 4; i += blockDim.x)
    ((uint32_t *)tiles)[i] = 0x2C002C00 + (i * 2654435761u >> 24);
  hopper::proxy_fence();
  __syncthreads();
  if (threadIdx.x < 128) {
    uint64_t start = cycles64();
    int done = with_products ? products<n>(&stop, &seen, tiles, sink) : 0;
    uint64_t end = cycles64();
    if (threadIdx.x == 0) out->products_cycles = end - start, out->num_products = done;
  } else {
    uint64_t start = cycles64();
    if (num_rounds > 0)
      rounds<X>(num_rounds, sink, r);
    else
      while (cycles64() - start < (uint64_t)idle_cycles) __nanosleep(2000);
    uint64_t end = cycles64();
    atomicMin(&first, (unsigned long long)start);
    atomicMax(&last, (unsigned long long)end);
    if (threadIdx.x % 128 == 0 && atomicSub(&left, 1) == 1) *(volatile int *)&stop = 1;
  }
  __syncthreads();
  if (threadIdx.x == 0) out->rounds_cycles = last - first;
}

template <class X, int n>
static Result run(bool with_products, int num_rounds, int others) {
  static Result *out = device_alloc<Result>(1);
  static uint32_t *sink = device_alloc<uint32_t>(1024);
  allow_shared(beside<X, n>, 66 * 1024);
  for (int warm = 0; warm < 2; warm++)
    beside<X, n><<<1, 128 * (1 + others), 66 * 1024>>>(with_products, num_rounds, 100000, out, sink, 3);
  return to_host(out, 1)[0];
}

template <class X, int n>
static void measure(const char *name) {
  const int num_rounds = 32768 / X::num_insts;
  for (int others : {1, 2}) {
    char variant[64];
    snprintf(variant, sizeof variant, "ss_%s_%dwarps", name, others);
    Result alone = run<X, n>(false, num_rounds, others), idle = run<X, n>(true, 0, others),
           both = run<X, n>(true, num_rounds, others);
    row("wgmma_beside", variant, "n", n, "round_alone", (double)alone.rounds_cycles / num_rounds / others, "cycles");
    row("wgmma_beside", variant, "n", n, "round_beside_wgmma", (double)both.rounds_cycles / num_rounds / others,
        "cycles");
    row("wgmma_beside", variant, "n", n, "wgmma_alone", (double)idle.products_cycles / idle.num_products, "cycles");
    row("wgmma_beside", variant, "n", n, "wgmma_beside_rounds",
        both.num_products ? (double)both.products_cycles / both.num_products : 0, "cycles");
  }
  finish();
}

template <class X>
static void sweep(const char *name) {
  measure<X, 64>(name);
  measure<X, 128>(name);
  measure<X, 256>(name);
}

int main() {
  sweep<Fmul_chains<1>>("FMUL_chains1");
  sweep<Fmul_chains<2>>("FMUL_chains2");
  sweep<Fmul_chains<3>>("FMUL_chains3");
  sweep<Fmul_chains<4>>("FMUL_chains4");
  sweep<Ffma_reuse>("FFMA_reuse");
  sweep<Ffma_imm>("FFMA_immediate");
  sweep<Hfma2>("HFMA2");
  sweep<Fadd_chains2>("FADD_chains2");
  sweep<Fmnmx_chains2>("FMNMX_chains2");
  sweep<Fmul_burst<4>>("FMUL_burst4");
  sweep<Fmul_burst<8>>("FMUL_burst8");
  sweep<Fmul_burst<16>>("FMUL_burst16");
  sweep<Fmul_burst<64>>("FMUL_burst64");
  sweep<Shfl>("SHFL");
  sweep<F2fp>("F2FP");
  sweep<Fmul_and_lop3>("FMUL_and_LOP3");
  sweep<Fmul2_and_lop3>("FMUL2_and_LOP3");
  sweep<Imad_and_fmul>("FMUL_and_IMAD");
  sweep<Ffma_and_mufu>("FFMA_and_MUFU");
  sweep<Lop3_and_mufu>("LOP3_and_MUFU");
  sweep<Ffma4_and_mufu>("FFMA4_and_MUFU");
  sweep<Iadd3>("IADD3");
  sweep<Imad>("IMAD");
  sweep<Imad_hi>("IMAD.HI");
  sweep<Imad_wide>("IMAD.WIDE");
  sweep<Imad_wide_and_3fmul>("IMAD.WIDE_and_3FMUL");
  sweep<Softmax>("softmax");
  sweep<Softmax_scale>("softmax_scale");
  return 0;
}
