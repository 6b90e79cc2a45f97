/* DRAM bandwidth of reads and writes in any proportion: CTAs of 256 threads read some chunks of 4 KiB and write others,
 * 16 bytes a thread and chunk, by 1 to 8 CTAs an SM. The variant is chunks read : chunks written, x the bytes of one
 * SM's reads and writes in flight at most, the value bytes read plus bytes written over the time of 6 GiB of both. */
#include "bench.h"
using namespace bench;

enum { THREADS = 256 };

template <int reads, int writes>
__global__ __launch_bounds__(THREADS) void mix(const uint4 *from, uint4 *to, int steps, uint4 *sink) {
  uint32_t sum = 0;
  for (int step = 0; step < steps; step++) {
    size_t group = (size_t)step * gridDim.x + blockIdx.x;
    uint4 v[reads > 0 ? reads : 1];
#pragma unroll
    for (int k = 0; k < reads; k++)
      asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                   : "=r"(v[k].x), "=r"(v[k].y), "=r"(v[k].z), "=r"(v[k].w)
                   : "l"(from + (group * reads + k) * THREADS + threadIdx.x));
#pragma unroll
    for (int k = 0; k < reads; k++) sum ^= v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
#pragma unroll
    for (int k = 0; k < writes; k++)
      to[(group * writes + k) * THREADS + threadIdx.x] = make_uint4(sum, (uint32_t)k, 2, 3);
  }
  if (sum == 0x12345678) sink->x = sum;
}

static uint4 *from, *to, *sink;
static const size_t total_bytes = (size_t)6 << 30;

template <int reads, int writes>
static void measure() {
  for (int ctas : {1, 2, 4, 8}) {
    int grid = num_sms() * ctas;
    size_t step_bytes = (size_t)grid * THREADS * 16 * (reads + writes);
    int steps = (int)(total_bytes / step_bytes);
    EventTimer timer;
    std::vector<float> ms;
    for (int i = 0; i < 7; i++) {
      timer.start();
      mix<reads, writes><<<grid, THREADS>>>(from, to, steps, sink);
      ms.push_back(timer.stop_ms());
    }
    char variant[16];
    snprintf(variant, sizeof variant, "%d:%d", reads, writes);
    row("dram_mixture", variant, "bytes_per_sm", ctas * THREADS * 16. * (reads + writes), "bandwidth",
        (double)steps * (double)step_bytes / median(ms) * 1e-6, "GB/s");
  }
}

int main() {
  from = device_alloc<uint4>(total_bytes / 16 + 1);
  to = device_alloc<uint4>(total_bytes / 16 + 1);
  sink = device_alloc<uint4>(1);
  measure<1, 0>();
  measure<4, 0>();
  measure<16, 1>();
  measure<8, 1>();
  measure<4, 1>();
  measure<3, 1>();
  measure<2, 1>();
  measure<4, 2>();
  measure<3, 2>();
  measure<1, 1>();
  measure<2, 2>();
  measure<2, 3>();
  measure<1, 2>();
  measure<1, 4>();
  measure<0, 1>();
  finish();
  return 0;
}
