/* Bytes a cycle that SMs store: x SMs write 64 KiB each, over and over, with 4-byte and 16-byte stores of whole lines;
 * the lines stay in L2. The same for float reductions (red.add).
 *
 * `rows_*`: 8 rows an instruction, 512 bytes apart, of 32 bytes each (whole sectors) or of 16 as MMA fragments lie: all
 * first halves of a round's sectors, then all second ones, so that no sector is made whole on its way. */
#include "bench.h"
using namespace bench;

constexpr int region_bytes = 65536, num_rounds = 32;

enum class Kind { store4, store16, reduce4 };

template <Kind kind>
__global__ __launch_bounds__(1024) void store(char *to, int num_writers, uint64_t *span) {
  if ((int)sm_id() >= num_writers) return;
  char *own = to + (size_t)sm_id() * region_bytes;
  constexpr int width = kind == Kind::store16 ? 16 : 4;
  __syncthreads();
  uint64_t start = cycles64();
  for (int round = 0; round < num_rounds; round++)
#pragma unroll 4
    for (int at = (int)threadIdx.x * width; at < region_bytes; at += 1024 * width) {
      if (kind == Kind::store16)
        asm volatile("st.global.v4.u32 [%0], {%1,%1,%1,%1};" ::"l"(own + at), "r"(round) : "memory");
      else if (kind == Kind::store4)
        asm volatile("st.global.u32 [%0], %1;" ::"l"(own + at), "r"(round) : "memory");
      else
        asm volatile("red.global.add.f32 [%0], %1;" ::"l"(own + at), "f"(1.0f) : "memory");
    }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) span[sm_id()] = cycles64() - start;
}

/* A quarter of a row is 4 or 8 bytes; a warp goes through 8 rows of 512 bytes, its first and its second parts. */
template <typename Word>
__global__ __launch_bounds__(1024) void store_rows(char *to, int num_writers, uint64_t *span) {
  if ((int)sm_id() >= num_writers) return;
  constexpr int piece = 4 * (int)sizeof(Word), slab = 8 * 512;
  int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  char *own = to + (size_t)sm_id() * region_bytes + lane / 4 * 512 + lane % 4 * (int)sizeof(Word);
  __syncthreads();
  uint64_t start = cycles64();
  for (int round = 0; round < num_rounds; round++)
    for (int part = 0; part < 32; part += piece)
#pragma unroll 4
      for (int at = warp; at < region_bytes / 32 / 8; at += 32)
        *(volatile Word *)(own + at % 16 * slab + at / 16 * 32 + part) = (Word)round;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) span[sm_id()] = cycles64() - start;
}

template <typename Kernel>
static void measure(const char *name, Kernel kernel) {
  const int sms = num_sms();
  static char *to = device_alloc<char>((size_t)132 * region_bytes);
  static uint64_t *span = device_alloc<uint64_t>(132);
  allow_shared(kernel, whole_sm_bytes);
  for (int writers : {1, 2, 4, 8, 16, 32, 66, 132}) {
    if (writers > sms) continue;
    for (int warm = 0; warm < 2; warm++) kernel<<<sms, 1024, whole_sm_bytes>>>(to, writers, span);
    std::vector<uint64_t> cycles = to_host(span, (size_t)writers);
    row("store_bandwidth", name, "sms", writers, "rate", (double)region_bytes * num_rounds / (double)median(cycles),
        "bytes/cycle/sm");
  }
  finish();
}

int main() {
  measure("store_4_bytes", store<Kind::store4>);
  measure("store_16_bytes", store<Kind::store16>);
  measure("red_add_f32", store<Kind::reduce4>);
  measure("rows_32_bytes", store_rows<uint64_t>);
  measure("rows_16_bytes", store_rows<uint32_t>);
  return 0;
}
