/* Reductions in memory, RED.ADD.F32 without a result, by what the lanes of a warp add to: `line` (32 adjacent words),
 * `fragment` (8 rows 512 bytes apart, 4 words each, 8 bytes apart, as accumulators of mma.sync lie: every other word of
 * 8 sectors), `pairs` (the same two words at once, red.v2.f32). 8 warps an SM, each over 32 rows of its own (`own`), or
 * all CTAs over the same rows, each at its own time (`same`), or all at once (`together`). x: SMs. Metrics: cycles from
 * one instruction of an SM to its next. */
#include "bench.h"
using namespace bench;

constexpr int num_warps = 8, row_words = 128, tile_words = 32 * row_words, num_rounds = 64;

enum class Lanes { line, fragment, pairs };

__device__ __forceinline__ void add(float *to, float value) {
  asm volatile("red.global.add.f32 [%0], %1;" ::"l"(to), "f"(value) : "memory");
}

__device__ __forceinline__ void add_pair(float *to, float value) {
  asm volatile("red.global.add.v2.f32 [%0], {%1, %1};" ::"l"(to), "f"(value) : "memory");
}

/* Instructions a round: what adds to each word of a warp's 8 rows of 128 words once. */
template <Lanes lanes>
constexpr int insts_a_round = lanes == Lanes::pairs ? 16 : 32;

template <Lanes lanes>
__device__ __forceinline__ void round_of(float *rows) {
  int lane = (int)threadIdx.x % 32;
  if (lanes == Lanes::line)
#pragma unroll
    for (int i = 0; i < 32; i++) add(rows + i / 4 * row_words + i % 4 * 32 + lane, 1.0f);
  float *own = rows + lane / 4 * row_words + lane % 4 * 2;
  if (lanes == Lanes::fragment)
#pragma unroll
    for (int i = 0; i < 32; i++) add(own + i / 2 * 8 + i % 2, 1.0f);
  if (lanes == Lanes::pairs)
#pragma unroll
    for (int i = 0; i < 16; i++) add_pair(own + i * 8, 1.0f);
}

/* stride_words: from a CTA's rows to the next one's; apart: CTAs begin in different rounds. */
template <Lanes lanes>
__global__ __launch_bounds__(num_warps * 32) void reduce(float *sums, int stride_words, int apart, uint64_t *took) {
  int warp = (int)threadIdx.x / 32, tiles = num_warps * tile_words;
  float *own = sums + (size_t)blockIdx.x * (size_t)stride_words + warp * tile_words;
  __syncthreads();
  uint64_t begin = clock64();
  for (int i = 0; i < num_rounds; i++) {
    int round = i + (apart ? (int)blockIdx.x : 0);
    round_of<lanes>(own + round % 4 * 8 * row_words + (apart ? round / 4 % 8 * tiles : 0));
  }
  __syncthreads();
  if (threadIdx.x == 0) took[blockIdx.x] = clock64() - begin;
}

template <Lanes lanes>
static void measure(const char *name, float *sums, uint64_t *took) {
  const int insts = num_rounds * num_warps * insts_a_round<lanes>;
  const struct {
    const char *name;
    int stride_words, apart;
  } places[] = {{"own", 8 * num_warps * tile_words, 0}, {"same", 0, 1}, {"together", 0, 0}};
  for (const auto &place : places)
    for (int num_ctas : {1, 16, num_sms()}) {
      for (int repeat = 0; repeat < 2; repeat++) {
        reduce<lanes><<<num_ctas, num_warps * 32>>>(sums, place.stride_words, place.apart, took);
        finish();
      }
      std::vector<double> each;
      for (uint64_t cycles : to_host(took, (size_t)num_ctas)) each.push_back((double)cycles / insts);
      char variant[64];
      snprintf(variant, sizeof variant, "%s_%s", name, place.name);
      row("red_patterns", variant, "sms", num_ctas, "interval", median(each), "cycles");
    }
}

int main() {
  float *sums = device_alloc<float>((size_t)(num_sms() + 1) * 8 * num_warps * tile_words);
  uint64_t *took = device_alloc<uint64_t>((size_t)num_sms());
  measure<Lanes::line>("line", sums, took);
  measure<Lanes::fragment>("fragment", sums, took);
  measure<Lanes::pairs>("pairs", sums, took);
  return 0;
}
