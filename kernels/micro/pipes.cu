/* Which pipe an instruction issues to: warps of one SM run A and B in turn, eight independent chains of each. If both
 * have a pipe of their own, a pair takes the longer of the two alone; on one pipe the sum. Cycles an SM sub-core needs
 * for one warp instruction of A, of B, and of the pair; x is the number of warps of the SM. (Integer additions are not
 * among them: ptxas turns some of them into IMAD to balance the pipes. LOP3 stands for them.) */
#include "bench.h"
using namespace bench;

constexpr int num_iterations = 32, unroll = 8, chains = 8;

#define OP(name, text)                                                              \
  struct name {                                                                     \
    static __device__ __forceinline__ void apply(uint32_t &x, uint32_t r) {         \
      asm volatile("{ .reg .f32 f, g; .reg .b32 t; " text " }" : "+r"(x) : "r"(r)); \
    }                                                                               \
  }
OP(Nothing, "");
OP(Ffma, "mov.b32 f, %0; fma.rn.f32 f, f, g, g; mov.b32 %0, f;");
OP(Fadd, "mov.b32 f, %0; add.rn.f32 f, f, g; mov.b32 %0, f;");
OP(Fmnmx, "mov.b32 f, %0; max.f32 f, f, g; mov.b32 %0, f;");
OP(Imad, "mad.lo.u32 %0, %0, %1, %1;");
OP(Lop, "lop3.b32 %0, %0, %1, %1, 0x6a;");
OP(Shf, "shf.l.wrap.b32 %0, %0, %1, 5;");
OP(F2fp, "mov.b32 f, %0; cvt.rn.f16x2.f32 %0, f, g;");
OP(Hfma2, "fma.rn.f16x2 %0, %0, %1, %1;");
OP(Mufu, "mov.b32 f, %0; ex2.approx.ftz.f32 f, f; mov.b32 %0, f;");
OP(F2i, "mov.b32 f, %0; cvt.rni.s32.f32 %0, f;");
OP(Prmt, "prmt.b32 %0, %0, %1, 0x2143;");

template <class A, class B>
__global__ void run(uint64_t *span, uint32_t *sink, uint32_t r) {
  uint32_t a[chains], b[chains];
  __shared__ unsigned long long first, last;
  if (threadIdx.x == 0) first = ~0ull, last = 0;
  for (int k = 0; k < chains; k++) a[k] = 0x3F800000 + threadIdx.x, b[k] = 0x3F900000 + (uint32_t)k;
  __syncthreads();
  uint64_t start = cycles64();
#pragma unroll 1
  for (int i = 0; i < num_iterations; i++) {
#pragma unroll
    for (int u = 0; u < unroll; u++) {
#pragma unroll
      for (int k = 0; k < chains; k++) {
        A::apply(a[k], r);
        B::apply(b[k], r);
      }
    }
  }
  uint32_t sum = 0;
  for (int k = 0; k < chains; k++) sum ^= a[k] ^ b[k];
  uint64_t stop = cycles64();
  sink[threadIdx.x] = sum;
  atomicMin(&first, (unsigned long long)start);
  atomicMax(&last, (unsigned long long)stop);
  __syncthreads();
  if (threadIdx.x == 0) *span = last - first;
}

template <class A, class B>
static void measure(const char *variant, const char *metric) {
  static uint64_t *span = device_alloc<uint64_t>(1);
  static uint32_t *sink = device_alloc<uint32_t>(1024);
  for (int warps : {4, 16}) {
    for (int warm = 0; warm < 2; warm++) run<A, B><<<1, warps * 32>>>(span, sink, 3);
    double steps = (double)num_iterations * unroll * chains * (warps / 4);
    row("pipes", variant, "warps", warps, metric, (double)to_host(span, 1)[0] / steps, "cycles/warp_instr/subcore");
  }
  finish();
}

template <class A>
static void alone(const char *name) {
  measure<A, Nothing>(name, "alone");
}
template <class A, class B>
static void pair(const char *names) {
  measure<A, B>(names, "pair");
}

int main() {
  alone<Ffma>("FFMA");
  alone<Fadd>("FADD");
  alone<Fmnmx>("FMNMX");
  alone<Imad>("IMAD");
  alone<Lop>("LOP3");
  alone<Shf>("SHF");
  alone<F2fp>("F2FP");
  alone<Hfma2>("HFMA2");
  alone<Mufu>("MUFU.EX2");
  alone<F2i>("F2I");
  alone<Prmt>("PRMT");
  pair<Ffma, Imad>("FFMA+IMAD");
  pair<Ffma, Lop>("FFMA+LOP3");
  pair<Ffma, Fmnmx>("FFMA+FMNMX");
  pair<Ffma, F2fp>("FFMA+F2FP");
  pair<Ffma, Hfma2>("FFMA+HFMA2");
  pair<Ffma, Fadd>("FFMA+FADD");
  pair<Ffma, Mufu>("FFMA+MUFU.EX2");
  pair<Imad, Lop>("IMAD+LOP3");
  pair<Imad, Fmnmx>("IMAD+FMNMX");
  pair<Imad, F2fp>("IMAD+F2FP");
  pair<Imad, Hfma2>("IMAD+HFMA2");
  pair<Lop, F2fp>("LOP3+F2FP");
  pair<Lop, Fmnmx>("LOP3+FMNMX");
  pair<Lop, Shf>("LOP3+SHF");
  pair<Lop, Hfma2>("LOP3+HFMA2");
  pair<Fmnmx, F2fp>("FMNMX+F2FP");
  pair<Hfma2, F2fp>("HFMA2+F2FP");
  pair<Mufu, F2fp>("MUFU.EX2+F2FP");
  pair<Mufu, F2i>("MUFU.EX2+F2I");
  pair<Lop, Prmt>("LOP3+PRMT");
  return 0;
}
