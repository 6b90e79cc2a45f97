/* Times one case: CUDA events around one launch, `flush` (256 MiB) written before each, median; and the clock that the
 * SMs held. */
#pragma once

#include <algorithm>
#include <functional>

#include "bench.h"
#include "nvml.h"

struct Times {
  double median_us, min_us, p10_us, p90_us;
  int repeats;
  double sm_mhz;
  int nvml_mhz;
  double watts;
};

/* SM cycles over wall time between delay_ns and delay_ns + span_ns after its start. */
static __global__ void clock_probe(uint64_t delay_ns, uint64_t span_ns, double *mhz) {
  uint64_t begin = bench::global_ns() + delay_ns;
  while (bench::global_ns() < begin)
    ;
  uint64_t cycles = bench::cycles64(), ns = bench::global_ns();
  while (bench::global_ns() < ns + span_ns)
    ;
  *mhz = (double)(bench::cycles64() - cycles) * 1e3 / (double)(bench::global_ns() - ns);
}

static __global__ void spin(uint64_t ns) {
  uint64_t begin = bench::global_ns();
  while (bench::global_ns() < begin + ns)
    ;
}

/* The clock that the SMs hold while the kernel runs after a fill: one warp on one SM counts beside it. That launch is
 * not timed, because the counting warp may cost the kernel a CTA. */
inline double probe_clock(const std::function<void()> &run, void *flush, double kernel_us) {
  static cudaStream_t beside;
  static cudaEvent_t filled;
  static double *mhz;
  if (!mhz) {
    CUDA_CHECK(cudaStreamCreateWithFlags(&beside, cudaStreamNonBlocking));
    CUDA_CHECK(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));
    mhz = bench::device_alloc<double>(1);
  }
  const uint64_t head_start_ns = 20000;
  CUDA_CHECK(cudaMemsetAsync(flush, 1, (size_t)256 << 20));
  CUDA_CHECK(cudaEventRecord(filled));
  CUDA_CHECK(cudaStreamWaitEvent(beside, filled));
  clock_probe<<<1, 1, 0, beside>>>(head_start_ns + 2000, (uint64_t)(kernel_us * 800), mhz);
  spin<<<1, 1>>>(head_start_ns);
  run();
  CUDA_CHECK(cudaDeviceSynchronize());
  return bench::to_host(mhz, 1)[0];
}

inline Times time_runs(const std::function<void()> &run, void *flush, const Nvml &nvml) {
  const size_t flush_bytes = (size_t)256 << 20;
  cudaEvent_t start, stop;
  CUDA_CHECK(cudaEventCreate(&start));
  CUDA_CHECK(cudaEventCreate(&stop));
  float first_ms;
  for (int warm = 0; warm < 2; warm++) {
    CUDA_CHECK(cudaEventRecord(start));
    run();
    CUDA_CHECK(cudaEventRecord(stop));
    CUDA_CHECK(cudaEventSynchronize(stop));
    CUDA_CHECK(cudaEventElapsedTime(&first_ms, start, stop));
  }
  int repeats = (int)std::min(21.0f, std::max(5.0f, 150.0f / first_ms));
  std::vector<cudaEvent_t> starts((size_t)repeats), stops((size_t)repeats);
  for (int i = 0; i < repeats; i++) {
    CUDA_CHECK(cudaEventCreate(&starts[(size_t)i]));
    CUDA_CHECK(cudaEventCreate(&stops[(size_t)i]));
  }
  for (int i = 0; i < repeats; i++) {
    CUDA_CHECK(cudaMemsetAsync(flush, i, flush_bytes));
    CUDA_CHECK(cudaEventRecord(starts[(size_t)i]));
    run();
    CUDA_CHECK(cudaEventRecord(stops[(size_t)i]));
  }
  CUDA_CHECK(cudaEventSynchronize(stops[(size_t)repeats / 2]));
  Times t;
  t.nvml_mhz = nvml.sm_mhz();
  t.watts = nvml.watts();
  CUDA_CHECK(cudaDeviceSynchronize());
  std::vector<double> us;
  for (int i = 0; i < repeats; i++) {
    float ms;
    CUDA_CHECK(cudaEventElapsedTime(&ms, starts[(size_t)i], stops[(size_t)i]));
    us.push_back(ms * 1e3);
    CUDA_CHECK(cudaEventDestroy(starts[(size_t)i]));
    CUDA_CHECK(cudaEventDestroy(stops[(size_t)i]));
  }
  CUDA_CHECK(cudaEventDestroy(start));
  CUDA_CHECK(cudaEventDestroy(stop));
  t.median_us = bench::median(us);
  t.min_us = *std::min_element(us.begin(), us.end());
  t.p10_us = bench::percentile(us, 0.1);
  t.p90_us = bench::percentile(us, 0.9);
  t.repeats = repeats;
  t.sm_mhz = probe_clock(run, flush, t.median_us);
  return t;
}
