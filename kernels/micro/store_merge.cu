/* How many sector writes reach L2 when a sector is stored in parts. Each warp stores 32 instructions in a burst:
 * `halves_*`: 8 rows of 16 bytes an instruction, as MMA fragments lie, the rest of each sector `between` instructions
 * later; `words_*`: 16 sectors side by side, 4 bytes of each half of every sector an instruction, so that four in a
 * row fill them; `chain_*`: the same of one warp, its stores apart by a loop of x additions. The warps of a CTA, one
 * CTA an SM, begin a burst together. Run under ncu: lts__t_sectors_srcunit_tex_op_write.sum against `sectors`, what was
 * stored. */
#include "bench.h"
using namespace bench;

constexpr int num_bursts = 16, stores = 32;

__device__ __forceinline__ void store(char *to) {
  asm volatile("st.global.u32 [%0], %1;" ::"l"(to), "r"(threadIdx.x) : "memory");
}

/* Instructions `between` the two halves of a sector: between + 1 sectors a row are begun before the first is whole. */
template <int between>
__global__ void passes_halves(char *buffer, int pitch, int pause) {
  constexpr int begun = between + 1;
  int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, num_warps = (int)blockDim.x / 32;
  for (int burst = 0; burst < num_bursts; burst++) {
    size_t row =
        (((size_t)blockIdx.x * num_bursts + (size_t)burst) * (size_t)num_warps + (size_t)warp) * 8 + (size_t)(lane / 4);
    char *to = buffer + row * (size_t)pitch + lane % 4 * 4;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < stores; i++) {
      store(to + i / (2 * begun) * begun * 32 + i % begun * 32 + i / begun % 2 * 16);
      if (pause)
        for (uint32_t begin = clock32(); clock32() - begin < (uint32_t)pause;)
          ;
    }
    for (uint32_t begin = clock32(); clock32() - begin < 8000u;)
      ;
  }
}

__global__ void passes_words(char *buffer, int pause) {
  int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, num_warps = (int)blockDim.x / 32;
  for (int burst = 0; burst < num_bursts; burst++) {
    size_t place = ((size_t)blockIdx.x * num_bursts + (size_t)burst) * (size_t)num_warps + (size_t)warp;
    char *to = buffer + place * (stores / 4 * 512) + lane * 16;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < stores; i++) {
      store(to + i / 4 * 512 + i % 4 * 4);
      if (pause)
        for (uint32_t begin = clock32(); clock32() - begin < (uint32_t)pause;)
          ;
    }
    for (uint32_t begin = clock32(); clock32() - begin < 8000u;)
      ;
  }
}

template <bool words>
__global__ void passes_chain(char *buffer, int additions) {
  int lane = (int)threadIdx.x % 32;
  for (int burst = 0; burst < num_bursts; burst++) {
    size_t place = (size_t)blockIdx.x * num_bursts + (size_t)burst;
    char *to = words ? buffer + place * (stores / 4 * 512) + lane * 16
                     : buffer + (place * 8 + (size_t)(lane / 4)) * 8192 + lane % 4 * 4;
    uint32_t zero = 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < stores; i++) {
      store(to + (words ? i / 4 * 512 + i % 4 * 4 : i * 16) + zero);
#pragma unroll 1
      for (int k = 0; k < additions; k++) asm volatile("add.u32 %0, %0, %0;" : "+r"(zero));
    }
    for (uint32_t begin = clock32(); clock32() - begin < 8000u;)
      ;
  }
}

static char *buffer;

static void report(const char *variant, const char *parameter, int x, int warps, int sectors_a_warp) {
  finish();
  row("store_merge", variant, parameter, x, "sectors", (double)num_sms() * num_bursts * warps * sectors_a_warp, "1");
}

template <int between>
static void measure_halves(int warps, int pitch, int pause, const char *parameter, int x) {
  char variant[64];
  snprintf(variant, sizeof variant, "halves_%d_warps_between_%d", warps, between);
  allow_shared(passes_halves<between>, whole_sm_bytes);
  passes_halves<between><<<num_sms(), warps * 32, whole_sm_bytes>>>(buffer, pitch, pause);
  report(variant, parameter, x, warps, stores / 2 * 8);
}

static void measure_words(int warps, int pause, const char *parameter, int x) {
  char variant[64];
  snprintf(variant, sizeof variant, "words_%d_warps", warps);
  allow_shared(passes_words, whole_sm_bytes);
  passes_words<<<num_sms(), warps * 32, whole_sm_bytes>>>(buffer, pause);
  report(variant, parameter, x, warps, stores / 4 * 16);
}

template <bool words>
static void measure_chain(int additions) {
  allow_shared(passes_chain<words>, whole_sm_bytes);
  passes_chain<words><<<num_sms(), 32, whole_sm_bytes>>>(buffer, additions);
  report(words ? "chain_words" : "chain_halves", "additions", additions, 1, words ? stores / 4 * 16 : stores / 2 * 8);
}

int main() {
  buffer = device_alloc<char>((size_t)6 << 30);
  for (int warps : {1, 2, 4, 8, 16}) {
    measure_halves<0>(warps, 8192, 0, "warps", warps);
    measure_words(warps, 0, "warps", warps);
  }
  for (int warps : {1, 4, 8}) {
    measure_halves<1>(warps, 8192, 0, "between", 1);
    measure_halves<3>(warps, 8192, 0, "between", 3);
    measure_halves<7>(warps, 8192, 0, "between", 7);
    measure_halves<15>(warps, 8192, 0, "between", 15);
  }
  for (int pitch : {512, 2048, 6144, 12288, 16384})
    for (int warps : {1, 4, 8}) measure_halves<0>(warps, pitch, 0, "pitch_bytes", pitch);
  for (int pause : {16, 32, 64, 128, 256, 512, 1024, 4096})
    for (int warps : {1, 8}) {
      measure_halves<0>(warps, 8192, pause, "pause_cycles", pause);
      measure_words(warps, pause, "pause_cycles", pause);
    }
  for (int additions : {0, 1, 2, 4, 8}) {
    measure_chain<false>(additions);
    measure_chain<true>(additions);
  }
  return 0;
}
