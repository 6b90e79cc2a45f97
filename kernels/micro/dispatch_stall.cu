/* What Nsight Compute calls dispatch_stall: mixes of independent instructions of two kinds, n of one and m of the other
 * in turn, with one, two or four warps a sub-core. Run it under ncu for the stall reasons of each mix (a row a
 * launch); the rows themselves have the cycles that a sub-core needs for n + m instructions of one warp. */
#include "bench.h"
using namespace bench;
constexpr int chains = 8;
struct State {
  uint32_t x[chains];
  float d[chains][4];
  uint32_t p[4], q[4];
};
#define A(s, i) s.x[(i) % chains]
struct None {
  static constexpr const char *name = "none";
  static __device__ __forceinline__ void go(State &, int) {}
};
#define OP(N, text, code)                                        \
  struct N {                                                     \
    static constexpr const char *name = text;                    \
    static __device__ __forceinline__ void go(State &s, int i) { \
      uint32_t &x = A(s, i);                                     \
                                                                 \
      code                                                       \
    }                                                            \
  };
OP(Fmul, "FMUL", asm volatile("{ .reg .f32 f; mov.b32 f, %0; mul.rn.f32 f, f, 0f3F800001; mov.b32 %0, f; }" : "+r"(x));)
OP(Fadd, "FADD",
   asm volatile("{ .reg .f32 f, g; mov.b32 f, %0; mov.b32 g, %1; add.rn.f32 f, f, g; mov.b32 %0, f; }"
                : "+r"(x)
                : "r"(s.p[i % 4]));)
OP(Ffma, "FFMA",
   asm volatile(
       "{ .reg .f32 f, g, h; mov.b32 f, %0; mov.b32 g, %1; mov.b32 h, %2; fma.rn.f32 f, f, g, h; mov.b32 %0, f; }"
       : "+r"(x)
       : "r"(s.p[i % 4]), "r"(s.q[(i + 1) % 4]));)
OP(Lop, "LOP3", asm volatile("lop3.b32 %0, %0, %1, %2, 0x6a;" : "+r"(x) : "r"(s.p[i % 4]), "r"(s.q[(i + 1) % 4]));)
OP(Imad, "IMAD", asm volatile("mad.lo.u32 %0, %0, %1, %2;" : "+r"(x) : "r"(s.p[i % 4]), "r"(s.q[(i + 1) % 4]));)
OP(Fmnmx, "FMNMX",
   asm volatile("{ .reg .f32 f, g; mov.b32 f, %0; mov.b32 g, %1; max.f32 f, f, g; mov.b32 %0, f; }"
                : "+r"(x)
                : "r"(s.p[i % 4]));)
OP(F2fp, "F2FP",
   asm volatile("{ .reg .f32 f, g; mov.b32 f, %0; mov.b32 g, %1; cvt.rn.f16x2.f32 %0, f, g; }"
                : "+r"(x)
                : "r"(s.p[i % 4]));)
OP(Hfma, "HFMA2", asm volatile("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(x) : "r"(s.p[i % 4]), "r"(s.q[(i + 1) % 4]));)
OP(Mufu, "MUFU", asm volatile("{ .reg .f32 f; mov.b32 f, %0; ex2.approx.ftz.f32 f, f; mov.b32 %0, f; }" : "+r"(x));)
OP(Shfl, "SHFL", asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 0x1f, 0xffffffff;" : "+r"(x));)
struct Mma {
  static constexpr const char *name = "HMMA";
  static __device__ __forceinline__ void go(State &s, int i) {
    float *d = s.d[i % chains];
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(s.p[0]), "r"(s.p[1]), "r"(s.p[2]), "r"(s.p[3]), "r"(s.q[0]), "r"(s.q[1]));
  }
};

template <class X, int n, class Y, int m>
__global__ void mix(int iterations, uint64_t *span, uint32_t *sink, uint32_t r) {
  __shared__ unsigned long long first, last;
  if (threadIdx.x == 0) first = ~0ull, last = 0;
  State s;
  for (int i = 0; i < chains; i++) {
    s.x[i] = 0x3F800000 + threadIdx.x + (uint32_t)i;
    for (int j = 0; j < 4; j++) s.d[i][j] = 0;
  }
  for (int i = 0; i < 4; i++) s.p[i] = r * 7 + (uint32_t)i + threadIdx.x, s.q[i] = r * 5 + (uint32_t)i + threadIdx.x;
  __syncthreads();
  uint64_t start = cycles64();
#pragma unroll 1
  for (int i = 0; i < iterations; i++) {
#pragma unroll
    for (int c = 0; c < 16; c++) {
#pragma unroll
      for (int j = 0; j < n; j++) X::go(s, c * n + j);
#pragma unroll
      for (int j = 0; j < m; j++) Y::go(s, c * m + j + 4);
    }
  }
  uint64_t stop = cycles64();
  uint32_t sum = 0;
  for (int c = 0; c < chains; c++) sum ^= s.x[c] ^ __float_as_uint(s.d[c][0] + s.d[c][1] + s.d[c][2] + s.d[c][3]);
  sink[threadIdx.x] = sum;
  atomicMin(&first, (unsigned long long)start);
  atomicMax(&last, (unsigned long long)stop);
  __syncthreads();
  if (threadIdx.x == 0) span[blockIdx.x] = last - first;
}
template <class X, int n, class Y, int m>
static void run(int warps) {
  static uint64_t *span = device_alloc<uint64_t>(132);
  static uint32_t *sink = device_alloc<uint32_t>(1024);
  const int iterations = 100;
  mix<X, n, Y, m><<<132, warps * 128>>>(iterations, span, sink, 3);
  uint64_t s;
  CUDA_CHECK(cudaMemcpy(&s, span, 8, cudaMemcpyDeviceToHost));
  char v[64];
  snprintf(v, 64, "%s*%d+%s*%d", X::name, n, Y::name, m);
  row("dispatch_stall", v, "warps_a_subcore", warps, "cycles_per_group", (double)s / (16.0 * iterations * warps), "cycles");
}
template <class X, class Y>
static void both() {
  run<X, 1, Y, 1>(4);
  run<X, 1, Y, 4>(4);
}
template <class X>
static void alone() {
  run<X, 1, None, 0>(1);
  run<X, 1, None, 0>(2);
  run<X, 1, None, 0>(4);
}
template <class X>
static void beside() {
  both<X, Fmul>();
  both<X, Fadd>();
  both<X, Ffma>();
  both<X, Lop>();
  both<X, Imad>();
  both<X, F2fp>();
  both<X, Hfma>();
}
int main() {
  alone<Fmul>();
  alone<Fadd>();
  alone<Ffma>();
  alone<Lop>();
  alone<Imad>();
  alone<Fmnmx>();
  alone<F2fp>();
  alone<Hfma>();
  alone<Mufu>();
  alone<Shfl>();
  alone<Mma>();
  beside<Mma>();
  beside<Mufu>();
  beside<Shfl>();
  both<Fmul, Lop>();
  both<Fmul, Imad>();
  both<Fmul, F2fp>();
  both<Imad, Lop>();
  both<Lop, Imad>();
  both<Ffma, Lop>();
  both<Ffma, Imad>();
  both<Hfma, Fmul>();
  both<Mma, Mufu>();
  both<Mma, Shfl>();
}
