/* Who goes first between two warps of a sub-core that both have rows of mma.sync to issue.
 *
 * Two warps of one sub-core, of one CTA or of two, each with a row of 64 products, by turns in 16 accumulators
 * (`alone`: HMMA; `loads`: an LDSM for every fourth, three ahead). The second begins x cycles after the first, `apart`
 * as it came about. `first` and `second`: cycles from the begin of each one's row to its end, some 60 of them for the
 * clock and the branch. Where both take turns product by product, both lose as long as both are at it; where one goes
 * on until it has to wait, one loses alone. */
#include "bench.h"
using namespace bench;

constexpr int row_products = 64;
enum class Row { alone, loads };

__device__ __forceinline__ void product(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void load(uint32_t (&b)[4], uint32_t at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
               : "r"(at)
               : "memory");
}

template <Row kind>
__device__ __forceinline__ void run(float (&d)[16][4], const uint32_t (&a)[4], uint32_t at, int times) {
  uint32_t b[3][4];
  for (int i = 0; i < 3; i++) load(b[i], at + (uint32_t)i * 512);
#pragma unroll 1
  for (int time = 0; time < times; time++) /* once: a block of its own, which the clock stays out of */
#pragma unroll
    for (int i = 0; i < row_products; i++) {
      int k = kind == Row::loads ? i / 4 % 3 : 0;
      product(d[i % 16], a, b[k][i % 2 * 2], b[k][i % 2 * 2 + 1]);
      if (kind == Row::loads && i % 4 == 3) load(b[k], at + (uint32_t)(i + 3) % 16 * 512);
    }
}

/* Warps 0 and 4 of a CTA, or the four warps of each of two CTAs on one SM (told by the order in which they come). */
template <Row kind>
__global__ __launch_bounds__(160, 2) void turns(int delay, bool two_ctas, int times, uint32_t *arrivals,
                                                uint32_t *cycles, float *sink, uint32_t zero) {
  __shared__ __align__(128) uint32_t words[4096];
  for (int i = (int)threadIdx.x; i < 4096; i += (int)blockDim.x) words[i] = zero;
  __syncthreads();
  int warp = (int)threadIdx.x / 32;
  if (!two_ctas && warp != 0 && warp != 4) return;
  uint32_t sm = sm_id(), which = two_ctas ? 0 : (uint32_t)warp / 4;
  if (two_ctas) {
    __shared__ uint32_t order;
    if (threadIdx.x == 0) order = atomicAdd(arrivals + sm, 1);
    __syncthreads();
    which = order;
  }
  float d[16][4] = {};
  uint32_t a[4] = {zero, zero, zero, zero}, at = (uint32_t)__cvta_generic_to_shared(words) + threadIdx.x % 32 * 16;
  run<kind>(d, a, at, times); /* code into the cache */
  uint32_t slot = 1u << 16;
  uint32_t begin = (clock32() / slot + 2) * slot + (which ? (uint32_t)delay : 0);
  while ((int32_t)(clock32() - begin) < 0)
    ;
  uint32_t start = clock32();
  run<kind>(d, a, at, times);
  uint32_t stop = clock32();
  float sum = 0;
  for (int i = 0; i < 16; i++)
    for (int k = 0; k < 4; k++) sum += d[i][k];
  sink[threadIdx.x] = sum;
  if (threadIdx.x % 128 == 0 && sm == 0 && which < 2) {
    cycles[2 * which] = stop - start;
    cycles[2 * which + 1] = start - begin;
  }
}

template <Row kind>
static void measure(const char *name, bool two_ctas, uint32_t *arrivals, uint32_t *cycles, float *sink) {
  char variant[64];
  snprintf(variant, sizeof variant, "%s_%s", name, two_ctas ? "two_ctas" : "one_cta");
  for (int delay : {0, 1, 2, 3, 5, 7, 12, 20, 40, 41, 42, 43, 44, 45, 46, 80, 120, 160, 240, 320, 400, 1000}) {
    for (int warm = 0; warm < 2; warm++) {
      CUDA_CHECK(cudaMemset(arrivals, 0, 256 * sizeof(uint32_t)));
      turns<kind><<<two_ctas ? 2 * num_sms() : num_sms(), two_ctas ? 128 : 160>>>(delay, two_ctas, 1, arrivals, cycles,
                                                                                  sink, 0);
      finish();
    }
    std::vector<uint32_t> c = to_host(cycles, 4);
    row("mma_turns", variant, "delay_cycles", delay, "first", c[0], "cycles");
    row("mma_turns", variant, "delay_cycles", delay, "second", c[2], "cycles");
    row("mma_turns", variant, "delay_cycles", delay, "apart", (double)c[3] - c[1] + delay, "cycles");
  }
}

int main() {
  uint32_t *arrivals = device_alloc<uint32_t>(256), *cycles = device_alloc<uint32_t>(4);
  float *sink = device_alloc<float>(1024);
  for (bool two_ctas : {false, true}) {
    measure<Row::alone>("alone", two_ctas, arrivals, cycles, sink);
    measure<Row::loads>("loads", two_ctas, arrivals, cycles, sink);
  }
  return 0;
}
