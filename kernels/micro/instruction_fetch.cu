/* What instructions that are not in the nearest cache cost where several warps fetch at different places, and where
 * they issue slowly. Straight-line code of x KiB (FFMA, 16 bytes each), walked in laps, `phases` groups of four warps
 * (one a sub-core) that start equal parts of a lap apart: a port that is busy for each line takes as many times as
 * long as there are groups, a latency does not. `own`: SMs start different parts of eight apart, which a cache that SMs
 * share would show, or of 32, so that nearly all of a GPC's are at places of their own. `dependent`: each FFMA waits for the one before, four cycles; what is fetched ahead costs nothing.
 * `wander`: blocks of 2 KiB in an order of each group's own. `first`: the lap after other code has filled the caches, by one group of warps. Cycles an instruction of one warp. */
#include <string>

#include "bench.h"
using namespace bench;

constexpr int laps_timed = 8, laps_after = 5, few_parts = 8, many_parts = 32;

#define X4(t) t t t t
#define X8(t) X4(t) X4(t)
#define KIB_APART                                                                              \
  X8("fma.rn.f32 %0, %0, %8, %9;\n fma.rn.f32 %1, %1, %8, %9;\n fma.rn.f32 %2, %2, %8, %9;\n " \
     "fma.rn.f32 %3, %3, %8, %9;\n fma.rn.f32 %4, %4, %8, %9;\n fma.rn.f32 %5, %5, %8, %9;\n " \
     "fma.rn.f32 %6, %6, %8, %9;\n fma.rn.f32 %7, %7, %8, %9;\n")
#define KIB_CHAIN X8(X8("fma.rn.f32 %0, %0, %8, %9;\n"))

template <int kib, bool chain>
__device__ __forceinline__ void body(float (&x)[8], float a, float b) {
  static_assert(kib % 2 == 0);
  if constexpr (kib > 2) {
    body<kib - 2, chain>(x, a, b);
    body<2, chain>(x, a, b);
  } else if constexpr (chain) {
    asm volatile(KIB_CHAIN KIB_CHAIN
                 : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3]), "+f"(x[4]), "+f"(x[5]), "+f"(x[6]), "+f"(x[7])
                 : "f"(a), "f"(b));
  } else {
    asm volatile(KIB_APART KIB_APART
                 : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3]), "+f"(x[4]), "+f"(x[5]), "+f"(x[6]), "+f"(x[7])
                 : "f"(a), "f"(b));
  }
}

struct Load {
  int groups, phases, sms;
  bool own;  // SMs are apart too
};

template <int kib, int from, int parts, bool chain>
__device__ __forceinline__ void lap_from(int skip, float (&x)[8], float a, float b) {
  if constexpr (from < parts) {
    if (skip <= from) body<kib / parts, chain>(x, a, b);
    lap_from<kib, from + 1, parts, chain>(skip, x, a, b);
  }
}

/* cycles[warp] of SM 0's laps 1 .. laps_timed; first: of the first lap of its warp 0, if that skips nothing. */
template <int kib, int num_parts, bool chain>
__global__ void run(Load load, uint32_t *cycles, uint32_t *first, float *sink, float a, float b) {
  uint32_t sm = sm_id();
  if ((int)sm >= load.sms) return;
  float x[8];
  for (int k = 0; k < 8; k++) x[k] = a * (float)(threadIdx.x + (unsigned)k);
  int group = (int)threadIdx.x / 128, apart = load.phases > 1 ? group % load.phases * (num_parts / load.phases) : 0;
  int skip = (apart + (load.own ? (int)sm * 3 : 0)) % num_parts;
  uint32_t begin = clock32(), before = 0, after = 0;
#pragma unroll 1
  for (int lap = 0; lap < 1 + laps_timed + laps_after; lap++) {
    if (lap == 1) before = clock32();
    if (lap == 1 + laps_timed) after = clock32();
    lap_from<kib, 0, num_parts, chain>(skip, x, a, b);
    skip = 0;
  }
  if (sm == 0 && threadIdx.x % 32 == 0) cycles[threadIdx.x / 32] = after - before;
  if (sm == 0 && threadIdx.x == 0) *first = before - begin;
  sink[threadIdx.x] = x[0] + x[1] + x[2] + x[3] + x[4] + x[5] + x[6] + x[7];
}

/* Blocks of 2 KiB in an order of each group's own, so that no SM follows another: group g of SM s takes those of a linear
 * congruential generator. cycles[warp] of SM 0's blocks after the first ones. */
constexpr int blocks_timed = 256, blocks_before = 64;

template <int block, int num_blocks, bool chain>
__device__ __forceinline__ void run_block(uint32_t which, float (&x)[8], float a, float b) {
  if constexpr (num_blocks == 1) {
    body<2, chain>(x, a, b);
  } else {
    constexpr int half = num_blocks / 2;
    if (which < block + half)
      run_block<block, half, chain>(which, x, a, b);
    else
      run_block<block + half, num_blocks - half, chain>(which, x, a, b);
  }
}

template <int num_blocks, bool chain>
__global__ void wander(Load load, uint32_t *cycles, float *sink, float a, float b) {
  uint32_t sm = sm_id(), group = threadIdx.x / 128, state = (sm * 8 + group) * 2654435761u + 1, before = 0;
  if ((int)sm >= load.sms) return;
  float x[8];
  for (int k = 0; k < 8; k++) x[k] = a * (float)(threadIdx.x + (unsigned)k);
#pragma unroll 1
  for (int i = 0; i < blocks_before + blocks_timed; i++) {
    if (i == blocks_before) before = clock32();
    state = state * 1664525u + 1013904223u;
    run_block<0, num_blocks, chain>(__umulhi(state, num_blocks), x, a, b);
  }
  if (sm == 0 && threadIdx.x % 32 == 0) cycles[threadIdx.x / 32] = clock32() - before;
  sink[threadIdx.x] = x[0] + x[1] + x[2] + x[3] + x[4] + x[5] + x[6] + x[7];
}

__global__ void flush(char *to, size_t bytes) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < bytes / 16; i += (size_t)gridDim.x * blockDim.x)
    ((uint4 *)to)[i] = make_uint4(1, 2, 3, 4);
}

constexpr int largest_kib = 192;

template <int kib, int parts, bool chain>
static void measure() {
  static uint32_t *cycles = device_alloc<uint32_t>(32), *first = device_alloc<uint32_t>(1);
  static float *sink = device_alloc<float>(1024);
  static char *other = device_alloc<char>((size_t)256 << 20);
  const struct {
    const char *name;
    Load load;
  } loads[] = {{"1_group", {1, 1, 1, false}},
               {"2_groups", {2, 1, 1, false}},
               {"2_groups_apart", {2, 2, 1, false}},
               {"4_groups_apart", {4, 4, 1, false}},
               {"1_group_2_sms_own", {1, 1, 2, true}},
               {"1_group_all_sms", {1, 1, num_sms(), false}},
               {"1_group_all_sms_own", {1, 1, num_sms(), true}},
               {"2_groups_apart_all_sms_own", {2, 2, num_sms(), true}}};
  for (const auto &l : loads) {
    run<largest_kib, few_parts, !chain><<<num_sms(), 128>>>({1, 1, num_sms(), false}, cycles, first, sink, 1.0f, 2.0f);
    flush<<<1024, 256>>>(other, (size_t)256 << 20);
    run<kib, parts, chain><<<num_sms(), l.load.groups * 128>>>(l.load, cycles, first, sink, 1.0f, 2.0f);
    double instructions = kib * 64., sum = 0;
    auto each = to_host(cycles, l.load.groups * 4);
    for (uint32_t c : each) sum += c;
    if (parts == many_parts && !l.load.own) continue;
    std::string name = std::string(l.name) + (parts == many_parts ? "_32_places" : "") + (chain ? "_dependent" : "");
    if (l.load.groups == 1)
      row("instruction_fetch", name.c_str(), "code_kib", kib, "first", to_host(first, 1)[0] / instructions,
          "cycles/instr");
    row("instruction_fetch", name.c_str(), "code_kib", kib, "later",
        sum / (double)each.size() / instructions / laps_timed, "cycles/instr");
  }
  finish();
}

template <int kib, bool chain>
static void measure_wandering() {
  static uint32_t *cycles = device_alloc<uint32_t>(32);
  static float *sink = device_alloc<float>(1024);
  for (int sms : {1, num_sms()})
    for (int groups : {1, 2, 4}) {
      char name[48];
      snprintf(name, sizeof name, "%d_groups_wander%s%s", groups, sms > 1 ? "_all_sms" : "", chain ? "_dependent" : "");
      for (int warm = 0; warm < 2; warm++) wander<kib / 2, chain><<<num_sms(), groups * 128>>>({groups, 1, sms, true}, cycles, sink, 1.0f, 2.0f);
      double sum = 0;
      auto each = to_host(cycles, groups * 4);
      for (uint32_t c : each) sum += c;
      row("instruction_fetch", name, "code_kib", kib, "later", sum / (double)each.size() / (blocks_timed * 128.), "cycles/instr");
    }
  finish();
}

template <bool chain>
static void measure_sizes() {
  measure<16, few_parts, chain>();
  measure<48, few_parts, chain>();
  measure<64, few_parts, chain>();
  measure<80, few_parts, chain>();
  measure<96, few_parts, chain>();
  measure<112, few_parts, chain>();
  measure<144, few_parts, chain>();
  measure<largest_kib, few_parts, chain>();
}

int main() {
  measure_sizes<false>();
  measure<64, many_parts, false>();
  measure<128, many_parts, false>();
  measure<largest_kib, many_parts, false>();
  measure_sizes<true>();
  measure_wandering<16, false>();
  measure_wandering<64, false>();
  measure_wandering<112, false>();
  measure_wandering<16, true>();
  measure_wandering<64, true>();
  measure_wandering<112, true>();
  return 0;
}
