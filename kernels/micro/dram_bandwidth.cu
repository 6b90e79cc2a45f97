/* DRAM bandwidth over footprints far past L2: read only, copy (bytes read plus bytes written), write only; and by
 * number of CTAs and bytes in flight for reads. */
#include "bench.h"
using namespace bench;

__global__ __launch_bounds__(512) void read_only(const uint4 *from, size_t count, uint4 *sink) {
  uint4 sum = {};
  size_t step = (size_t)gridDim.x * blockDim.x;
#pragma unroll 8
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += step) {
    uint4 v = __ldcg(from + i);
    sum.x ^= v.x ^ v.y ^ v.z ^ v.w;
  }
  if (sum.x == 0x12345678) *sink = sum;
}

__global__ __launch_bounds__(512) void copy(const uint4 *from, size_t count, uint4 *to) {
  size_t step = (size_t)gridDim.x * blockDim.x;
#pragma unroll 4
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += step) to[i] = __ldcg(from + i);
}

__global__ __launch_bounds__(512) void write_only(const uint4 *, size_t count, uint4 *to) {
  size_t step = (size_t)gridDim.x * blockDim.x;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += step)
    to[i] = make_uint4((uint32_t)i, 1, 2, 3);
}

/* One warp's loads in flight: unroll x 512 bytes. */
template <int unroll>
__global__ void read_in_flight(const uint4 *from, size_t count, uint4 *sink) {
  uint32_t sum = 0;
  size_t step = (size_t)gridDim.x * blockDim.x;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i + step * (unroll - 1) < count; i += step * unroll) {
    uint4 v[unroll];
#pragma unroll
    for (int k = 0; k < unroll; k++)
      asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                   : "=r"(v[k].x), "=r"(v[k].y), "=r"(v[k].z), "=r"(v[k].w)
                   : "l"(from + i + step * k));
#pragma unroll
    for (int k = 0; k < unroll; k++) sum ^= v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
  }
  if (sum == 0x12345678) sink->x = sum;
}

template <typename Launch>
static double best_gbps(double bytes, Launch launch) {
  EventTimer timer;
  std::vector<float> ms;
  for (int i = 0; i < 7; i++) {
    timer.start();
    launch();
    ms.push_back(timer.stop_ms());
  }
  return bytes / median(ms) * 1e-6;
}

template <int unroll>
static void in_flight(const uint4 *from, size_t bytes, uint4 *sink) {
  for (int warps : {1, 2, 4, 8, 16, 32}) {
    double gbps =
        best_gbps((double)bytes, [&] { read_in_flight<unroll><<<num_sms(), warps * 32>>>(from, bytes / 16, sink); });
    row("dram_bandwidth", "read_in_flight", "bytes_per_sm", warps * unroll * 512., "bandwidth", gbps, "GB/s");
  }
}

int main() {
  const size_t max_bytes = (size_t)8 << 30;
  uint4 *from = device_alloc<uint4>(max_bytes / 16), *to = device_alloc<uint4>(max_bytes / 16);
  int grid = num_sms() * 4;
  for (double mib : {256., 512., 1024., 2048., 4096., 8192.}) {
    size_t bytes = (size_t)(mib * 1048576), count = bytes / 16;
    row("dram_bandwidth", "read", "footprint_bytes", (double)bytes, "bandwidth",
        best_gbps((double)bytes, [&] { read_only<<<grid, 512>>>(from, count, to); }), "GB/s");
    row("dram_bandwidth", "copy", "footprint_bytes", (double)bytes, "bandwidth",
        best_gbps(2. * (double)bytes, [&] { copy<<<grid, 512>>>(from, count, to); }), "GB/s");
    row("dram_bandwidth", "write", "footprint_bytes", (double)bytes, "bandwidth",
        best_gbps((double)bytes, [&] { write_only<<<grid, 512>>>(from, count, to); }), "GB/s");
  }
  in_flight<1>(from, (size_t)1 << 30, to);
  in_flight<4>(from, (size_t)1 << 30, to);
  finish();
  return 0;
}
