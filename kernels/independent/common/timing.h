/* The median time of a case's launches over 15 turns, each after a flush of L2. */
#pragma once

#include <algorithm>

#include "flush.h"
#include "problem.h"

namespace independent {

class EventTimer {
 public:
  EventTimer() {
    CUDA_CHECK(cudaEventCreate(&start_));
    CUDA_CHECK(cudaEventCreate(&stop_));
  }
  ~EventTimer() {
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
  }
  EventTimer(const EventTimer &) = delete;
  float launch_us(Problem &problem) {
    float ms = 0;
    CUDA_CHECK(cudaEventRecord(start_));
    problem.launch();
    CUDA_CHECK(cudaEventRecord(stop_));
    CUDA_CHECK(cudaEventSynchronize(stop_));
    CUDA_CHECK(cudaEventElapsedTime(&ms, start_, stop_));
    return ms * 1000.f;
  }

 private:
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
};

inline float median_us(Problem &problem, L2Flush &flush, EventTimer &timer, int warm_up_runs) {
  for (int i = 0; i < warm_up_runs; i++) {
    problem.prepare();
    problem.launch();
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  std::vector<float> us;
  for (int i = 0; i < 15; i++) {
    problem.prepare();
    flush.run(i);
    us.push_back(timer.launch_us(problem));
  }
  std::sort(us.begin(), us.end());
  return us[us.size() / 2];
}

}  // namespace independent
