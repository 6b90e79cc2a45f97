/* How much of a row L1 still has when a CTA reads it again. 16 CTAs of 128 threads an SM, and 16 times as many in all;
 * each reads a row of x bytes, all of it at once, waits, meets the others of its CTA at a barrier and reads the row a
 * second time. L2 is asked for as many sectors as L1 has not (Nsight Compute).
 *
 *   read_dram     each CTA has a row of its own
 *   read_l2       CTAs share 2112 rows, which L2 has
 *   store_dram, store_l2   then it stores a row of as many bytes
 *   thrice_dram, thrice_l2 it reads the row three times and stores one, as a softmax that is safe */
#include "bench.h"
using namespace bench;

constexpr int threads = 128, ctas_an_sm = 16, most_loads = 8, rows_shared = 2112;

template <int loads>
__device__ __forceinline__ float sum_of(const uint4 *row) {
  uint4 values[loads];
#pragma unroll
  for (int i = 0; i < loads; i++)
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(values[i].x), "=r"(values[i].y), "=r"(values[i].z), "=r"(values[i].w)
                 : "l"(row + i * threads)
                 : "memory");
  float sum = 0;
#pragma unroll
  for (int i = 0; i < loads; i++) sum += __uint_as_float(values[i].x ^ values[i].y ^ values[i].z ^ values[i].w);
  return sum;
}

__device__ __forceinline__ float sum_of_cta(float sum) {
  __shared__ float parts[threads / 32];
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  return parts[0] + parts[1] + parts[2] + parts[3];
}

template <int loads, int num_passes, bool stores>
__global__ __launch_bounds__(threads, ctas_an_sm) void passes(const uint4 *from, uint4 *to, int num_rows) {
  const uint4 *row = from + (size_t)(blockIdx.x % (unsigned)num_rows) * (loads * threads) + threadIdx.x;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < num_passes; i++) sum = sum_of_cta(sum + sum_of<loads>(row));
  uint32_t word = __float_as_uint(sum);
  if (stores) {
#pragma unroll
    for (int i = 0; i < loads; i++)
      to[(size_t)blockIdx.x * (loads * threads) + threadIdx.x + i * threads] = make_uint4(word, word, word, word);
  } else if (word == 0x12345678) {
    to[0].x = word;
  }
}

static uint4 *from, *to;
static int num_ctas;

template <int loads, int num_passes, bool stores>
static void measure(const char *what) {
  for (bool is_l2 : {false, true}) {
    char variant[32];
    snprintf(variant, sizeof variant, "%s_%s", what, is_l2 ? "l2" : "dram");
    passes<loads, num_passes, stores><<<num_ctas, threads>>>(from, to, is_l2 ? rows_shared : num_ctas);
    row("l1_passes", variant, "row", loads * threads * 16, "sectors", (double)num_ctas * loads * threads / 2,
        "sectors");
  }
}

template <int loads>
static void measure_all() {
  measure<loads, 2, false>("read");
  measure<loads, 2, true>("store");
  measure<loads, 3, true>("thrice");
}

int main() {
  num_ctas = num_sms() * ctas_an_sm * 16;
  size_t most = (size_t)num_ctas * most_loads * threads;
  from = device_alloc<uint4>(most);
  to = device_alloc<uint4>(most);
  measure_all<1>();
  measure_all<2>();
  measure_all<3>();
  measure_all<4>();
  measure_all<5>();
  measure_all<6>();
  measure_all<8>();
  finish();
  return 0;
}
