/* What a CTA waits for before its first data: cycles of one thread for its first kernel parameters, first loads of a
 * page and of pages further on, first pass over straight code and jumps ahead in it; then the same code once more; and
 * of parameters one after another, 16 bytes apart, twice.
 * Under `ncu --cache-control all` caches are as a profile has them; by itself, what the launch before has left. */
#include "bench.h"
using namespace bench;
constexpr int num_steps = 28;
struct Params {
  char *from;
  uint32_t *marks, *sink;
  uint32_t one, pad[400], far;
};
__device__ __forceinline__ void wait_for(uint32_t v) {
  asm volatile("{ .reg .pred p; setp.eq.u32 p, %0, 0x12345677; @p trap; }" ::"r"(v));
}
#define X4(t) t t t t
#define X8(t) X4(t) X4(t)
#define KIB_1                                                                                                         \
  X8("fma.rn.f32 %0, %0, %8, %9;\n fma.rn.f32 %1, %1, %8, %9;\n fma.rn.f32 %2, %2, %8, %9;\n fma.rn.f32 %3, %3, %8, " \
     "%9;\n fma.rn.f32 %4, %4, %8, %9;\n fma.rn.f32 %5, %5, %8, %9;\n fma.rn.f32 %6, %6, %8, %9;\n fma.rn.f32 %7, "   \
     "%7, %8, %9;\n")
#define BODY(t)                                                                                                 \
  asm volatile(t                                                                                                \
               : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3]), "+f"(x[4]), "+f"(x[5]), "+f"(x[6]), "+f"(x[7]) \
               : "f"(a), "f"(b))
__device__ __forceinline__ uint32_t load(const char *p) {
  uint32_t v;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__global__ void __launch_bounds__(1024) cold(__grid_constant__ const Params p) {
  uint32_t t[num_steps];
  int n = 0;
#define MARK t[n++] = clock32()
  MARK;  // 0 entry
  wait_for(p.one);
  MARK;  // 1 first parameter line
  wait_for(p.far);
  MARK;  // 2 another constant line
  wait_for(p.one);
  MARK;  // 3 again
  const char *from = p.from + (size_t)blockIdx.x * 8192;
  wait_for(load(from));
  MARK;  // 4 first global
  wait_for(load(from + 256));
  MARK;  // 5 next line
  wait_for(load(from + 4096));
  MARK;  // 6
  wait_for(load(from + (2u << 20)));
  MARK;  // 7 next 2 MiB page
  wait_for(load(from + (2u << 20) + 256));
  MARK;  // 8
  wait_for(load(from + (66u << 20)));
  MARK;  // 9
  wait_for(load(from + (66u << 20) + 256));
  MARK;  // 10
  wait_for(load(from + (2ull << 30)));
  MARK;  // 11
  wait_for(load(from + (2ull << 30) + 256));
  MARK;  // 12
  wait_for(load(from + 512));
  MARK;  // 13
  float x[8];
  float a = __uint_as_float(p.one), b = a;
  for (int k = 0; k < 8; k++) x[k] = a * (float)(threadIdx.x + (unsigned)k);
#pragma unroll 1
  for (int pass = 0; pass < 2; pass++) {
    uint32_t u[8];
    u[0] = clock32();
    BODY(KIB_1);
    u[1] = clock32();  // straight code
    BODY(X4(KIB_1));
    u[2] = clock32();
    BODY(X8(KIB_1));
    u[3] = clock32();
    if (p.one == 77) {
      BODY(X8(KIB_1));
      BODY(X8(KIB_1));
    }
    u[4] = clock32();  // a jump over 16 KiB
    BODY(KIB_1);
    u[5] = clock32();
    if (p.one == 77) {
      BODY(X8(KIB_1));
      BODY(X8(KIB_1));
    }
    u[6] = clock32();
    if (pass == 0) {
      for (int i = 0; i < 7; i++) t[14 + i] = u[i];
    } else {
      for (int i = 0; i < 7; i++) t[21 + i] = u[i];
    }
  }
  float sum = 0;
  for (int k = 0; k < 8; k++) sum += x[k];
  if (sum == 123.f) p.sink[0] = 1;
  if (threadIdx.x == 0) {
    for (int i = 0; i < num_steps; i++) p.marks[blockIdx.x * num_steps + i] = t[i] - t[0];
  }
}
constexpr int num_words = 32, words_apart = 4;
struct Words {
  uint32_t *marks, pad[2], word[num_words * words_apart];
};
__global__ void __launch_bounds__(1024) parameters(__grid_constant__ const Words p) {
  uint32_t t[2][num_words + 1];
#pragma unroll
  for (int pass = 0; pass < 2; pass++) {
    t[pass][0] = clock32();
#pragma unroll
    for (int i = 0; i < num_words; i++) {
      wait_for(p.word[i * words_apart]);
      t[pass][i + 1] = clock32();
    }
  }
  if (threadIdx.x) return;
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < num_words; i++) p.marks[(blockIdx.x * 2 + pass) * num_words + i] = t[pass][i + 1] - t[pass][i];
}
/* With 100 KiB two fit an SM: CTAs from 264 on come after others. */
static void measure_parameters(int grid, int threads, int later_from) {
  static Words p = {device_alloc<uint32_t>(396 * 2 * num_words), {0, 0}, {0}};
  p.word[0]++;
  parameters<<<grid, threads, 100 * 1024>>>(p);
  std::vector<uint32_t> marks = to_host(p.marks, (size_t)grid * 2 * num_words);
  for (int from = 0; from < grid; from += later_from)
    for (int pass = 0; pass < 2; pass++)
      for (int i = 0; i < num_words; i++) {
        std::vector<uint32_t> took;
        for (int cta = from; cta < grid && cta < from + later_from; cta++)
          took.push_back(marks[(size_t)(cta * 2 + pass) * num_words + i]);
        char variant[64];
        snprintf(variant, sizeof variant, "parameters_grid%d_thr%d%s", grid, threads, from ? "_later_ctas" : "");
        row("cold_start", variant, "byte", i * words_apart * 4, pass ? "again" : "first", median(took), "cycles");
      }
}
int main() {
  static const char *const names[num_steps] = {nullptr,
                                               "first_parameter",
                                               "parameter_in_another_line",
                                               nullptr,
                                               "first_load",
                                               "next_line",
                                               "same_page",
                                               "next_2MiB",
                                               "next_2MiB_again",
                                               "64MiB_on",
                                               "64MiB_on_again",
                                               "2GiB_on",
                                               "2GiB_on_again",
                                               nullptr,
                                               nullptr,
                                               "code_64_insts",
                                               "code_256_insts",
                                               "code_512_insts",
                                               "jump_over_16KiB",
                                               nullptr,
                                               "second_jump_over_16KiB",
                                               nullptr,
                                               "code_64_insts_again",
                                               "code_256_insts_again",
                                               "code_512_insts_again",
                                               "jump_again",
                                               nullptr,
                                               "second_jump_again"};
  const int most_ctas = 396;
  Params p = {};
  p.one = 3;
  p.far = 5;
  p.from = device_alloc<char>((size_t)3 << 30);
  p.marks = device_alloc<uint32_t>((size_t)most_ctas * num_steps);
  p.sink = device_alloc<uint32_t>(1);
  CUDA_CHECK(cudaFuncSetAttribute(cold, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 * 1024));
  const struct {
    int grid, threads, shared_bytes;
  } runs[] = {{1, 32, 0},    {1, 256, 0},   {132, 32, 0},           {132, 128, 0},
              {132, 256, 0}, {264, 128, 0}, {396, 256, 100 * 1024}, {1, 32, 0},
              {132, 128, 0}};
  for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
    cold<<<runs[r].grid, runs[r].threads, runs[r].shared_bytes>>>(p);
    std::vector<uint32_t> marks = to_host(p.marks, (size_t)most_ctas * num_steps);
    /* With 100 KiB two fit an SM: CTAs from 264 on come after others. */
    for (int from = 0; from < runs[r].grid; from += 264) {
      char variant[64];
      snprintf(variant, sizeof variant, "grid%d_thr%d_run%d%s", runs[r].grid, runs[r].threads, (int)r,
               from ? "_later_ctas" : "");
      for (int step = 1; step < num_steps; step++) {
        if (!names[step]) continue;
        std::vector<uint32_t> took;
        for (int cta = from; cta < runs[r].grid && cta < from + 264; cta++)
          took.push_back(marks[(size_t)(cta * num_steps + step)] - marks[(size_t)(cta * num_steps + step - 1)]);
        row("cold_start", variant, "step", step, names[step], median(took), "cycles");
      }
    }
  }
  CUDA_CHECK(cudaFuncSetAttribute(parameters, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 * 1024));
  measure_parameters(132, 32, 264);
  measure_parameters(132, 128, 264);
  measure_parameters(396, 128, 264);
  finish();
}
