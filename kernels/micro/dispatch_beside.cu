/* What a warp's instructions cost the other warps of its sub-core, which want nothing but an issue slot.
 *
 * Every 4000 cycles the warps of one warpgroup issue a burst of x instructions and as many of another kind, in turn
 * (variant: which, and four m64n128k16 before whose results they have not waited for, A in shared memory or in
 * registers). Meanwhile a warp of another warpgroup on each sub-core runs a chain of FADDs, or of FADDs every fourth of
 * which waits for a MUFU. Rows: cycles until the burst has issued, from before its first instruction, the mean over four
 * warps; and by how many cycles the chain comes later per burst than without a burst and without products (`lost`), the
 * mean over the other four. IMAD_WIDE: with the LOP3 and the two IADD3 that ptxas makes of the rest. */
#include "bench.h"
#include "hopper.h"
using namespace bench;

enum Products { none, ss128x4, rs128x4 };
constexpr int bursts = 200, period = 4000, shared_bytes = 112 * 1024;

struct State {
  uint32_t address;
  const uint8_t *from;
  int zero;
  uint32_t r[8];
  uint64_t w;
  float x[8];
};

/* One instruction of each kind, the i-th of a burst, in eight chains. STS: lanes 16 bytes apart, four wavefronts. */
#define INST(Name, ...)                                             \
  struct Name {                                                     \
    static constexpr const char *name = #Name;                      \
    static __device__ __forceinline__ void go(State &s, int i) {    \
      __VA_ARGS__;                                                  \
    }                                                               \
  };
INST(NONE, (void)s; (void)i)
INST(LDGSTS, asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(s.address + (uint32_t)i % 16 * 2048),
                          "l"(s.from + i % 16 * 2048)
                          : "memory"))
INST(LDGSTS_sized, asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(s.address + (uint32_t)i % 16 * 2048),
                                "l"(s.from + i % 16 * 2048), "r"(s.zero < 1 ? 16 : 0)
                                : "memory"))
INST(STS, asm volatile("st.shared.u32 [%0], %1;" ::"r"(s.address + (uint32_t)i % 16 * 2048), "r"(s.zero) : "memory"))
INST(FMUL, asm volatile("mul.rn.f32 %0, %0, %1;" : "+f"(s.x[i % 8]) : "f"(s.x[(i + 1) % 8])))
INST(IADD3, asm volatile("add.u32 %0, %0, %1;" : "+r"(s.r[i % 8]) : "r"(s.r[(i + 1) % 8])))
INST(IMAD, asm volatile("mad.lo.u32 %0, %1, %2, %0;" : "+r"(s.r[i % 8]) : "r"(s.r[(i + 1) % 8]), "r"(s.r[(i + 2) % 8])))
/* As where a row becomes an address. */
INST(IMAD_WIDE, asm volatile("{ .reg .b32 l, h; .reg .b64 q; mad.wide.s32 q, %0, 48, %1; mov.b64 {l, h}, q; xor.b32 %0, l, h; }"
                             : "+r"(s.r[i % 8])
                             : "l"(s.w)))
INST(IMAD_HI, asm volatile("mul.hi.u32 %0, %0, %1;" : "+r"(s.r[i % 8]) : "r"(s.r[(i + 1) % 8])))

/* n of the first, and one of the second behind each. */
template <class First, class Second, int n>
struct Burst {
  static __device__ __forceinline__ void go(State &s) {
#pragma unroll
    for (int i = 0; i < n; i++) {
      First::go(s, i);
      Second::go(s, i);
    }
  }
};

template <Products products>
struct Sums {
  float d[products == none ? 1 : 64];
};
struct Operands {
  uint64_t a, b;
  uint32_t p[4][4];
};

template <Products products>
__device__ __forceinline__ void multiply(Sums<products> &s, Operands &o) {
  if constexpr (products == none) return;
  hopper::wgmma_fence();
#pragma unroll
  for (int i = 0; i < 4; i++) {
    if constexpr (products == ss128x4) Wgmma<128>::ss<0>(s.d, o.a + i % 4 * 2, o.b + i % 4 * 2, 1);
    if constexpr (products == rs128x4) Wgmma<128>::rs<1>(s.d, o.p[i], o.b + i % 4 * 128, 1);
  }
  hopper::wgmma_commit();
}

template <Products products, class Sequence>
__device__ __forceinline__ void act(Operands &o, const uint8_t *from, int zero, uint32_t tiles, uint64_t *issued,
                                    float *sink) {
  uint32_t thread = threadIdx.x % 128;
  State s;
  s.address = tiles + 65536 + thread * 16, s.from = from + thread * 16, s.zero = zero, s.w = (uint64_t)from;
  for (uint32_t i = 0; i < 8; i++) s.r[i] = (uint32_t)zero * i, s.x[i] = 1.0f + (float)zero * (float)i;
  Sums<products> sums;
  for (float &d : sums.d) d = 0;
  uint64_t cycles = 0;
  uint32_t next = clock32() + period;
#pragma unroll 1
  for (int i = 0; i < bursts; i++) {
    while ((int)(clock32() - next) < 0) __nanosleep(100);
    while ((int)(clock32() - next) < 300) {
    }
    next += period;
    asm volatile("bar.sync 1, 128;" ::: "memory");
    hopper::keep(sums.d);
    multiply<products>(sums, o);
    uint32_t start = clock32();
    Sequence::go(s);
    uint32_t end = clock32();
    cycles += end - start;
    if constexpr (products != none) hopper::wgmma_wait<0>();
    hopper::keep(sums.d);
    asm volatile("cp.async.wait_all;" ::: "memory");
  }
  float sum = 0;
  for (float d : sums.d) sum += d;
  for (int i = 0; i < 8; i++) sum += (float)s.r[i] + s.x[i];
  sink[threadIdx.x] = sum;
  if (thread % 32 == 0) issued[thread / 32] = cycles;
}

/* Rounds of 64 FADDs until told to stop: cycles of a round times 2^16. */
template <bool with_mufu>
__device__ __forceinline__ void listen(const volatile int *stop, uint64_t *took, float *sink) {
  float x = 1.0f + (float)threadIdx.x * 0.001f;
  uint64_t start = cycles64(), rounds = 0;
#pragma unroll 1
  while (!*stop) {
#pragma unroll
    for (int i = 0; i < 64; i++) {
      if (with_mufu && i % 4 == 0) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
      asm volatile("add.rn.f32 %0, %0, 0f3F800000;" : "+f"(x));
    }
    rounds++;
  }
  uint64_t end = cycles64();
  sink[threadIdx.x] = x;
  if (threadIdx.x % 32 == 0) took[threadIdx.x / 32 % 4] = ((end - start) << 16) / rounds;
}

template <Products products, class Sequence, bool with_mufu>
__global__ __launch_bounds__(256) void run(const uint8_t *from, int zero, uint64_t *issued, uint64_t *took, float *sink) {
  extern __shared__ __align__(1024) uint8_t tiles[];
  __shared__ volatile int stop;
  for (uint32_t i = threadIdx.x; i < 64 * 1024 / 4; i += blockDim.x) ((uint32_t *)tiles)[i] = 0x2C002C00;
  if (threadIdx.x == 0) stop = 0;
  hopper::proxy_fence();
  __syncthreads();
  if (threadIdx.x >= 128) return listen<with_mufu>(&stop, took, sink);
  Operands o;
  o.a = hopper::descriptor(hopper::smem(tiles), 16, 1024);
  o.b = hopper::descriptor(hopper::smem(tiles) + 16384, 8192, 1024);
  for (int i = 0; i < 16; i++) o.p[i / 4][i % 4] = 0x2C002C00;
  act<products, Sequence>(o, from, zero, hopper::smem(tiles), issued, sink);
  asm volatile("bar.sync 1, 128;" ::: "memory");
  if (threadIdx.x == 0) stop = 1;
}

struct Result {
  double issued, round;
};

template <Products products, class Sequence, bool with_mufu>
static Result take() {
  static uint64_t *issued = device_alloc<uint64_t>(4), *took = device_alloc<uint64_t>(4);
  static float *sink = device_alloc<float>(256);
  static uint8_t *from = device_alloc<uint8_t>(1 << 16);
  auto kernel = run<products, Sequence, with_mufu>;
  allow_shared(kernel, shared_bytes);
  for (int warm = 0; warm < 2; warm++) kernel<<<1, 256, shared_bytes>>>(from, 0, issued, took, sink);
  finish();
  Result r = {0, 0};
  for (uint64_t c : to_host(issued, 4)) r.issued += (double)c / bursts / 4;
  for (uint64_t c : to_host(took, 4)) r.round += (double)c / 65536 / 4;
  return r;
}

/* In a period of `period` cycles a round that takes `round` for `quiet` loses its share. */
static double lost(double round, double quiet) { return period * (1 - quiet / round); }

template <Products products, class First, class Second, int n>
static void measure() {
  static const char *const names[] = {"none", "ss128x4", "rs128x4"};
  using Sequence = Burst<First, Second, n>;
  static const double quiet = take<none, Burst<NONE, NONE, 0>, false>().round,
                      quiet_mufu = take<none, Burst<NONE, NONE, 0>, true>().round;
  char variant[64];
  snprintf(variant, sizeof variant, "%s_and_%s_behind_%s", First::name, Second::name, names[products]);
  Result plain = take<products, Sequence, false>(), mufu = take<products, Sequence, true>();
  row("dispatch_beside", variant, "count", n, "issued", plain.issued, "cycles");
  row("dispatch_beside", variant, "count", n, "lost_FADD", lost(plain.round, quiet), "cycles");
  row("dispatch_beside", variant, "count", n, "lost_MUFU_FADD", lost(mufu.round, quiet_mufu), "cycles");
}

template <Products products, class First, int n>
static void pairs() {
  measure<products, First, NONE, n>();
  measure<products, First, FMUL, n>();
  measure<products, First, IADD3, n>();
  measure<products, First, IMAD, n>();
  measure<products, First, IMAD_WIDE, n>();
  measure<products, First, IMAD_HI, n>();
}

template <Products products>
static void sweep() {
  measure<products, NONE, NONE, 0>();
  pairs<products, NONE, 16>();
  pairs<products, LDGSTS, 16>();
  pairs<products, STS, 16>();
  measure<products, LDGSTS, NONE, 8>();
  measure<products, LDGSTS, NONE, 32>();
  measure<products, LDGSTS, IMAD_WIDE, 8>();
  measure<products, LDGSTS, IMAD_WIDE, 32>();
  measure<products, LDGSTS_sized, NONE, 16>();
}

int main() {
  sweep<none>();
  sweep<ss128x4>();
  sweep<rs128x4>();
  return 0;
}
