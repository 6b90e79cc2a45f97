/* The clocks of GPCs where few SMs work: SM cycles (clock64) over wall time (globaltimer) of every SM, from 0.3 ms
 * after the kernel's start to its end at 1.5 ms. The first x CTAs issue mma.sync m16n8k16 for `busy` percent of the
 * time by four warps, as a small launch's do, the others sleep and only read the time. Each run starts after a pause of
 * 50 ms. working, sleeping: mean of the SMs that work, that do not; beside: of those that do not, in a GPC that has one
 * that does. */
#include <chrono>
#include <thread>

#include "gpc_map.h"
#include "hopper.h"
using namespace bench;

constexpr uint64_t begin_ns = 300000, run_ns = 1500000;

struct Clock {
  uint64_t cycles, ns;
  uint32_t sm, works;
};

__global__ __launch_bounds__(128) void load(int working, int busy_pct, Clock *clocks, float *sink) {
  extern __shared__ uint8_t shared[];
  __shared__ bool goes_on;
  bool works = (int)blockIdx.x < working;
  float d[32];
  for (int i = 0; i < 32; i++) d[i] = (float)threadIdx.x;
  uint32_t a = threadIdx.x * 0x3c00, b = threadIdx.x * 0x3a01;
  uint64_t start = global_ns(), first_cycle = 0, first_ns = 0;
  for (;;) {
    __syncthreads();
    if (threadIdx.x == 0) {
      uint64_t now = global_ns();
      goes_on = now < start + run_ns;
      if (first_ns == 0 && now >= start + begin_ns) first_ns = now, first_cycle = cycles64();
      if (!goes_on) clocks[blockIdx.x] = {cycles64() - first_cycle, now - first_ns, sm_id(), works};
    }
    __syncthreads();
    if (!goes_on) break;
    if (!works) {
      __nanosleep(2000);
      continue;
    }
    uint64_t begin = cycles64();
    for (int i = 0; i < 4; i++)
#pragma unroll
      for (int k = 0; k < 8; k++)
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%5}, {%0,%1,%2,%3};"
            : "+f"(d[k * 4]), "+f"(d[k * 4 + 1]), "+f"(d[k * 4 + 2]), "+f"(d[k * 4 + 3])
            : "r"(a), "r"(b));
    uint64_t end = cycles64(), idle = (end - begin) * (uint64_t)(100 - busy_pct) / (uint64_t)busy_pct;
    while (cycles64() < end + idle)
      ;
  }
  float sum = 0;
  for (int i = 0; i < 32; i++) sum += d[i];
  sink[threadIdx.x] = sum;
}

int main() {
  GpcMap map;
  const int sms = num_sms();
  Clock *clocks = device_alloc<Clock>((size_t)sms);
  float *sink = device_alloc<float>(128);
  allow_shared(load, 131072);
  for (int busy_pct : {10, 40, 100})
    for (int working : {0, 1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 132}) {
      double mhz[3] = {}, count[3] = {};
      for (int repeat = 0; repeat < 4; repeat++) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        load<<<sms, 128, 131072>>>(working, busy_pct, clocks, sink);
        finish();
        std::vector<Clock> all = to_host(clocks, (size_t)sms);
        std::vector<bool> has_work(64);
        for (const Clock &c : all)
          if (c.works) has_work[(size_t)map.gpc_of(c.sm)] = true;
        for (const Clock &c : all) {
          int kind = c.works ? 0 : has_work[(size_t)map.gpc_of(c.sm)] ? 1 : 2;
          mhz[kind] += 1000.0 * (double)c.cycles / (double)c.ns, count[kind] += 1;
        }
      }
      const char *names[] = {"working", "beside", "sleeping"};
      char variant[32];
      snprintf(variant, sizeof variant, "mma_%d_pct", busy_pct);
      for (int kind = 0; kind < 3; kind++)
        if (count[kind] > 0)
          row("few_clocks", variant, "working_sms", working, names[kind], mhz[kind] / count[kind], "MHz");
    }
}
