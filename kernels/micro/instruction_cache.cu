/* What instruction fetch costs: straight-line code of x KiB (FFMA, 16 bytes each, independent), run over and over.
 * Cycles an instruction and warp: with code that fits the nearest cache 1 a sub-core; knees show the capacities. One
 * warp; four (one a sub-core, in step); sixteen; and all SMs. `first` is the first pass after another kernel has
 * filled the caches with its own code. */
#include "bench.h"
using namespace bench;

constexpr int num_passes = 16;

#define X4(t) t t t t
#define X8(t) X4(t) X4(t)
/* 64 instructions on 8 registers: 1 KiB. */
#define KIB_1                                                                                  \
  X8("fma.rn.f32 %0, %0, %8, %9;\n fma.rn.f32 %1, %1, %8, %9;\n fma.rn.f32 %2, %2, %8, %9;\n " \
     "fma.rn.f32 %3, %3, %8, %9;\n fma.rn.f32 %4, %4, %8, %9;\n fma.rn.f32 %5, %5, %8, %9;\n " \
     "fma.rn.f32 %6, %6, %8, %9;\n fma.rn.f32 %7, %7, %8, %9;\n")

template <int kib>
__device__ __forceinline__ void body(float (&x)[8], float a, float b) {
  static_assert(kib % 4 == 0);
  if constexpr (kib > 8) {
    body<kib - 8>(x, a, b);
    body<8>(x, a, b);
  } else if constexpr (kib == 8) {
    asm volatile(X8(KIB_1)
                 : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3]), "+f"(x[4]), "+f"(x[5]), "+f"(x[6]), "+f"(x[7])
                 : "f"(a), "f"(b));
  } else {
    asm volatile(X4(KIB_1)
                 : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3]), "+f"(x[4]), "+f"(x[5]), "+f"(x[6]), "+f"(x[7])
                 : "f"(a), "f"(b));
  }
}

template <int kib>
__global__ void run(uint32_t *first, uint32_t *rest, float *sink, float a, float b) {
  float x[8];
  for (int k = 0; k < 8; k++) x[k] = a * (float)(threadIdx.x + (unsigned)k);
  uint32_t before = clock32();
#pragma unroll 1
  for (int pass = 0; pass < num_passes; pass++) {
    if (pass == 1) {
      uint32_t now = clock32();
      if (blockIdx.x + threadIdx.x == 0) *first = now - before;
      before = now;
    }
    body<kib>(x, a, b);
  }
  uint32_t stop = clock32();
  if (blockIdx.x + threadIdx.x == 0) *rest = stop - before;
  sink[threadIdx.x] = x[0] + x[1] + x[2] + x[3] + x[4] + x[5] + x[6] + x[7];
}

__global__ void flush(char *to, size_t bytes) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < bytes / 16; i += (size_t)gridDim.x * blockDim.x)
    ((uint4 *)to)[i] = make_uint4(1, 2, 3, 4);
}

template <int kib>
static void measure() {
  static uint32_t *first = device_alloc<uint32_t>(1), *rest = device_alloc<uint32_t>(1);
  static float *sink = device_alloc<float>(1024);
  static char *other = device_alloc<char>((size_t)256 << 20);
  const struct {
    const char *name;
    int warps, ctas;
  } loads[] = {{"1_warp", 1, 1}, {"4_warps", 4, 1}, {"16_warps", 16, 1}, {"4_warps_all_sms", 4, num_sms()}};
  for (const auto &load : loads) {
    flush<<<1024, 256>>>(other, (size_t)256 << 20);
    run<kib><<<load.ctas, load.warps * 32>>>(first, rest, sink, 1.0f, 2.0f);
    double instructions = kib * 64., warps_a_subcore = load.warps > 4 ? load.warps / 4 : 1;
    row("instruction_cache", load.name, "code_kib", kib, "first_pass", to_host(first, 1)[0] / instructions,
        "cycles/instr");
    row("instruction_cache", load.name, "code_kib", kib, "later_passes",
        to_host(rest, 1)[0] / instructions / (num_passes - 1) / warps_a_subcore, "cycles/warp_instr/subcore");
  }
  finish();
}

int main() {
  measure<4>();
  measure<8>();
  measure<16>();
  measure<24>();
  measure<32>();
  measure<40>();
  measure<48>();
  measure<64>();
  measure<96>();
  measure<112>();
  measure<128>();
  measure<144>();
  measure<160>();
  measure<192>();
  measure<256>();
  measure<512>();
  return 0;
}
