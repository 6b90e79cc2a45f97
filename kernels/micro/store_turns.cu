/* Whose stores go first: the warps of a CTA, one an SM, load and multiply as the last step of attention does (ldmatrix,
 * mma.sync), then store 32 instructions each, `words` (4 bytes of every 16, four in a row fill four lines) or `halves`
 * (16 bytes of 8 rows, two in a row fill 8 sectors); `_in_step`: after a barrier. x: the warp; `begins`, `ends`: cycles
 * from a common barrier to its first store and to its last one's issue, means over SMs and bursts; of `one` those of
 * one burst of one SM. */
#include "bench.h"
using namespace bench;

constexpr int num_bursts = 8, num_warps = 8, stores = 32, row_bytes = 256, pause_cycles = 6000;

__device__ __forceinline__ void store(char *to, uint32_t value) {
  asm volatile("st.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}

/* 16 keys x 128 columns: V by ldmatrix, its products. */
__device__ __forceinline__ void step(float (&c)[16][4], const uint32_t (&a)[4], uint32_t shared, int first_row) {
  int lane = (int)threadIdx.x % 32;
#pragma unroll
  for (int d = 0; d < 16; d += 2) {
    uint32_t b[4], row = (uint32_t)(first_row + lane % 16);
    uint32_t from = shared + row * row_bytes + (((uint32_t)(d + lane / 16)) ^ (row & 7)) * 16;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                 : "r"(from));
#pragma unroll
    for (int i = 0; i < 2; i++)
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
          : "+f"(c[d + i][0]), "+f"(c[d + i][1]), "+f"(c[d + i][2]), "+f"(c[d + i][3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[2 * i]), "r"(b[2 * i + 1]));
  }
}

template <bool words, bool in_step>
__global__ __launch_bounds__(num_warps * 32) void run(char *buffer, uint32_t *times) {
  extern __shared__ __align__(128) uint8_t raw[];
  uint32_t shared = (uint32_t)__cvta_generic_to_shared(raw);
  int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  float c[16][4] = {};
  uint32_t a[4] = {};
  for (int burst = 0; burst < num_bursts; burst++) {
    size_t place = ((size_t)blockIdx.x * num_bursts + (size_t)burst) * num_warps + (size_t)warp;
    char *to =
        buffer + (words ? place * 4096 + (size_t)lane * 16 : (place * 8 + (size_t)(lane / 4)) * 512 + lane % 4 * 4);
    __syncthreads();
    uint32_t start = clock32();
    for (int k = 0; k < 4; k++) step(c, a, shared, k * 16);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 16; i++) sum += c[i][0] + c[i][1] + c[i][2] + c[i][3];
    uint32_t begins = clock32() - start + (sum == 1.25f);
    if (in_step) __syncthreads();
#pragma unroll
    for (int i = 0; i < stores; i++) store(to + (words ? i / 4 * 512 + i % 4 * 4 : i * 16), begins);
    uint32_t ends = clock32() - start;
    if (lane == 0) {
      times[place * 2] = begins;
      times[place * 2 + 1] = ends;
    }
    for (uint32_t begin = clock32(); clock32() - begin < pause_cycles;)
      ;
  }
}

template <typename Kernel>
static void measure(const char *name, Kernel kernel, char *buffer, uint32_t *times) {
  constexpr int first_burst = 2, one_sm = 5;
  allow_shared(kernel, whole_sm_bytes);
  kernel<<<num_sms(), num_warps * 32, whole_sm_bytes>>>(buffer, times);
  finish();
  std::vector<uint32_t> all = to_host(times, (size_t)num_sms() * num_bursts * num_warps * 2);
  auto at = [&](int sm, int burst, int warp, int what) {
    return (double)all[(((size_t)sm * num_bursts + (size_t)burst) * num_warps + (size_t)warp) * 2 + (size_t)what];
  };
  const char *const whats[] = {"begins", "ends"};
  for (int what = 0; what < 2; what++)
    for (int warp = 0; warp < num_warps; warp++) {
      double sum = 0;
      for (int sm = 0; sm < num_sms(); sm++)
        for (int burst = first_burst; burst < num_bursts; burst++) sum += at(sm, burst, warp, what);
      row("store_turns", name, "warp", warp, whats[what], sum / num_sms() / (num_bursts - first_burst), "cycles");
    }
  char one[64];
  snprintf(one, sizeof one, "%s_one", name);
  for (int warp = 0; warp < num_warps; warp++)
    row("store_turns", one, "warp", warp, "ends", at(one_sm, num_bursts / 2, warp, 1), "cycles");
}

int main() {
  char *buffer = device_alloc<char>((size_t)num_sms() * num_bursts * num_warps * 4096);
  uint32_t *times = device_alloc<uint32_t>((size_t)num_sms() * num_bursts * num_warps * 2);
  measure("words", run<true, false>, buffer, times);
  measure("words_in_step", run<true, true>, buffer, times);
  measure("halves", run<false, false>, buffer, times);
  measure("halves_in_step", run<false, true>, buffer, times);
  return 0;
}
