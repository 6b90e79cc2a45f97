/* Latency (one warp, one dependent chain) and throughput (8 independent chains a thread, 1 to 32 warps on one SM) of
 * the instructions between the MMAs of an attention kernel. x is the number of warps. Throughput is in warp
 * instructions per SM cycle. */
#include "bench.h"
using namespace bench;

constexpr int num_iterations = 64;
constexpr int unroll = 16;

#define OP(name, type, text, dst, ...)                                                                          \
  struct name {                                                                                                 \
    typedef type T;                                                                                             \
    static __device__ __forceinline__ void apply(T &x, T a, T b) { asm volatile(text : dst(x) : __VA_ARGS__); } \
  }

OP(Ffma, float, "fma.rn.f32 %0, %0, %1, %2;", "+f", "f"(a), "f"(b));
OP(Fadd, float, "add.rn.f32 %0, %0, %1;", "+f", "f"(a));
OP(Fmul, float, "mul.rn.f32 %0, %0, %1;", "+f", "f"(a));
OP(Fmnmx, float, "max.f32 %0, %0, %1;", "+f", "f"(a));
OP(Iadd3, uint32_t, "{ .reg .u32 t; add.u32 t, %0, %1; add.u32 %0, t, %2; }", "+r", "r"(a), "r"(b));
OP(Imad, uint32_t, "mad.lo.u32 %0, %0, %1, %2;", "+r", "r"(a), "r"(b));
OP(Lop3, uint32_t, "lop3.b32 %0, %0, %1, %2, 0x96;", "+r", "r"(a), "r"(b));
OP(Shf, uint32_t, "shf.l.wrap.b32 %0, %0, %1, %2;", "+r", "r"(a), "r"(b));
OP(MufuEx2, float, "ex2.approx.ftz.f32 %0, %0;", "+f", "f"(a));
OP(MufuRsq, float, "rsqrt.approx.ftz.f32 %0, %0;", "+f", "f"(a));
OP(MufuLg2, float, "lg2.approx.ftz.f32 %0, %0;", "+f", "f"(a));
OP(Shfl, uint32_t, "shfl.sync.bfly.b32 %0, %0, 1, 31, 0xffffffff;", "+r", "r"(a));
OP(Hfma2, uint32_t, "fma.rn.f16x2 %0, %0, %1, %2;", "+r", "r"(a), "r"(b));

/* %0 is packed from two floats, of which one is the previous result's bits. */
struct F2fpF16 {
  typedef uint32_t T;
  static __device__ __forceinline__ void apply(T &x, T a, T) {
    asm volatile("{ .reg .f32 f, g; mov.b32 f, %0; mov.b32 g, %1; cvt.rn.f16x2.f32 %0, f, g; }" : "+r"(x) : "r"(a));
  }
};
struct F2fpBf16 {
  typedef uint32_t T;
  static __device__ __forceinline__ void apply(T &x, T a, T) {
    asm volatile("{ .reg .f32 f, g; mov.b32 f, %0; mov.b32 g, %1; cvt.rn.bf16x2.f32 %0, f, g; }" : "+r"(x) : "r"(a));
  }
};
/* float to integer and back: two conversions a step. */
struct F2iI2f {
  typedef float T;
  static __device__ __forceinline__ void apply(T &x, T, T) {
    asm volatile("{ .reg .s32 i; cvt.rni.s32.f32 i, %0; cvt.rn.f32.s32 %0, i; }" : "+f"(x));
  }
};
/* f32 to f64 and back: two conversions a step (F2F). */
struct F2f64 {
  typedef float T;
  static __device__ __forceinline__ void apply(T &x, T, T) {
    asm volatile("{ .reg .f64 d; cvt.f64.f32 d, %0; cvt.rn.f32.f64 %0, d; }" : "+f"(x));
  }
};

template <typename Op, int chains>
__global__ void run(uint64_t *span, typename Op::T *sink, typename Op::T a, typename Op::T b) {
  typename Op::T x[chains];
  __shared__ unsigned long long first, last;
  if (threadIdx.x == 0) first = ~0ull, last = 0;
  for (int k = 0; k < chains; k++) x[k] = (typename Op::T)(threadIdx.x + (unsigned)k) * a;
  __syncthreads();
  uint64_t start = cycles64();
  for (int i = 0; i < num_iterations; i++) {
#pragma unroll
    for (int u = 0; u < unroll; u++) {
#pragma unroll
      for (int k = 0; k < chains; k++) Op::apply(x[k], a, b);
    }
  }
  for (int k = 0; k < chains; k++) sink[threadIdx.x * (unsigned)chains + (unsigned)k] = x[k];
  uint64_t stop = cycles64();
  atomicMin(&first, start);
  atomicMax(&last, stop);
  __syncthreads();
  if (threadIdx.x == 0) *span = last - first;
}

template <typename Op>
static void measure(const char *name, int instructions_per_step = 1) {
  static uint64_t *span = device_alloc<uint64_t>(1);
  static void *sink = device_alloc<uint64_t>(1024 * 8);
  typename Op::T *out = (typename Op::T *)sink, a = (typename Op::T)1, b = (typename Op::T)2;
  for (int warm = 0; warm < 2; warm++) run<Op, 1><<<1, 32>>>(span, out, a, b);
  double steps = num_iterations * unroll;
  row("alu", name, "warps", 1, "latency", (double)to_host(span, 1)[0] / steps / instructions_per_step, "cycles");
  for (int warps : {1, 4, 8, 16, 32}) {
    for (int warm = 0; warm < 2; warm++) run<Op, 8><<<1, warps * 32>>>(span, out, a, b);
    row("alu", name, "warps", warps, "throughput",
        steps * 8 * warps * instructions_per_step / (double)to_host(span, 1)[0], "warp_instr/cycle");
  }
  finish();
}

int main() {
  measure<Ffma>("FFMA");
  measure<Fadd>("FADD");
  measure<Fmul>("FMUL");
  measure<Fmnmx>("FMNMX");
  measure<Iadd3>("IADD3");
  measure<Imad>("IMAD");
  measure<Lop3>("LOP3");
  measure<Shf>("SHF");
  measure<Hfma2>("HFMA2");
  measure<MufuEx2>("MUFU.EX2");
  measure<MufuRsq>("MUFU.RSQ");
  measure<MufuLg2>("MUFU.LG2");
  measure<Shfl>("SHFL.BFLY");
  measure<F2fpF16>("F2FP.F16.PACK");
  measure<F2fpBf16>("F2FP.BF16.PACK");
  measure<F2iI2f>("F2I+I2F", 2);
  measure<F2f64>("F2F.F64+F2F.F32", 2);
  return 0;
}
