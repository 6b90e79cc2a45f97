/* The SM clock that a load lets the card hold: SM cycles (clock64) over wall time (globaltimer), in windows from the
 * kernel's start, and power as the driver reports it (an average over about a second: no use for short runs). The load
 * is clock_load.h's, on a region in DRAM. Operands are normally distributed, or zeros. Each run starts after a pause,
 * which the variant names, because the clock remembers the load before. */
#include <chrono>
#include <thread>

#include "clock_load.h"
#include "nvml.h"
using namespace clock_load;

int main() {
  const size_t region_count = ((size_t)8 << 30) / 16;
  uint4 *region = device_alloc<uint4>(region_count), *zeros = device_alloc<uint4>(49152 / 16),
        *normal = device_alloc<uint4>(49152 / 16);
  std::vector<uint16_t> halves = normal_halves((size_t)4 << 20);
  CUDA_CHECK(cudaMemcpy(normal, halves.data(), 49152, cudaMemcpyHostToDevice));
  for (size_t at = 0; at < region_count * 16; at += halves.size() * 2)
    CUDA_CHECK(cudaMemcpy((char *)region + at, halves.data(), halves.size() * 2, cudaMemcpyHostToDevice));
  Sample *samples = device_alloc<Sample>(max_samples);
  int *num_samples = device_alloc<int>(1);
  unsigned long long *work = device_alloc<unsigned long long>(2);
  uint32_t *sink = device_alloc<uint32_t>(1024);
  Nvml nvml;

  struct Load {
    Math math;
    int tensor_pct, memory_pct;
    bool is_normal;
    int run_ms, pause_ms;
  };
  std::vector<Load> loads;
  for (int memory_pct : {0, 50, 100})
    for (int tensor_pct : {0, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100})
      loads.push_back({Math::wgmma, tensor_pct, memory_pct, true, 400, 400});
  for (int memory_pct : {0, 100})
    for (int tensor_pct : {10, 25, 50, 75, 100}) loads.push_back({Math::mma, tensor_pct, memory_pct, true, 400, 400});
  for (Math math : {Math::ffma, Math::mufu})
    for (int tensor_pct : {25, 50, 100}) loads.push_back({math, tensor_pct, 0, true, 400, 400});
  for (int tensor_pct : {25, 50, 75, 100}) loads.push_back({Math::wgmma, tensor_pct, 0, false, 400, 400});
  for (int memory_pct : {0, 100}) loads.push_back({Math::wgmma, 100, memory_pct, true, 3000, 400});
  const char *names[] = {"wgmma", "mma", "ffma", "mufu"};

  for (const Load &l : loads) {
    auto kernel = l.math == Math::wgmma  ? mixed_load<Math::wgmma>
                  : l.math == Math::mma  ? mixed_load<Math::mma>
                  : l.math == Math::ffma ? mixed_load<Math::ffma>
                                         : mixed_load<Math::mufu>;
    allow_shared(kernel, whole_sm_bytes);
    std::this_thread::sleep_for(std::chrono::milliseconds(l.pause_ms));
    CUDA_CHECK(cudaMemset(work, 0, 16));
    kernel<<<num_sms(), tensor_threads + memory_threads + 32, whole_sm_bytes>>>(
        l.is_normal ? normal : zeros, region, region_count, l.tensor_pct, l.memory_pct, (uint64_t)l.run_ms * 1000000,
        samples, num_samples, work, sink);
    std::this_thread::sleep_for(std::chrono::milliseconds(l.run_ms * 3 / 4));
    double watts = nvml.watts(), nvml_mhz = nvml.sm_mhz(), celsius = nvml.celsius();
    finish();
    int n = to_host(num_samples, 1)[0];
    std::vector<Sample> s = to_host(samples, (size_t)n);
    std::vector<unsigned long long> done = to_host(work, 2);
    char variant[96];
    snprintf(variant, sizeof variant, "%s_%s_memory%d_run%dms_pause%dms", names[(int)l.math],
             l.is_normal ? "normal" : "zeros", l.memory_pct, l.run_ms, l.pause_ms);
    const uint64_t us = 1000, ms = 1000000;
    struct {
      const char *name;
      uint64_t from, to;
    } windows[] = {{"clock_0_100us", 0, 100 * us},
                   {"clock_100us_1ms", 100 * us, ms},
                   {"clock_1_10ms", ms, 10 * ms},
                   {"clock_10_100ms", 10 * ms, 100 * ms},
                   {"clock_100ms_end", 100 * ms, (uint64_t)l.run_ms * ms}};
    for (const auto &w : windows)
      row("sm_clock", variant, "tensor_pct", l.tensor_pct, w.name, mhz_between(s, w.from, w.to), "MHz");
    row("sm_clock", variant, "tensor_pct", l.tensor_pct, l.math == Math::mufu ? "exponentials" : "math_rate",
        (double)done[0] * operations_per_count(l.math) / l.run_ms * 1e-9, l.math == Math::mufu ? "T/s" : "TFLOP/s");
    row("sm_clock", variant, "tensor_pct", l.tensor_pct, "memory_rate", (double)done[1] / l.run_ms * 1e-6, "GB/s");
    row("sm_clock", variant, "tensor_pct", l.tensor_pct, "power", watts, "W");
    row("sm_clock", variant, "tensor_pct", l.tensor_pct, "nvml_sm_clock", nvml_mhz, "MHz");
    row("sm_clock", variant, "tensor_pct", l.tensor_pct, "temperature", celsius, "C");
  }
  return 0;
}
