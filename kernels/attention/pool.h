/* Device memory that grows and never shrinks, so that many cases share one allocation. */
#pragma once

#include "bench.h"

struct Pool {
  void *data = nullptr;
  size_t bytes = 0;
  void *at_least(size_t wanted) {
    if (wanted > bytes) {
      CUDA_CHECK(cudaFree(data));
      CUDA_CHECK(cudaMalloc(&data, wanted));
      bytes = wanted;
    }
    return data;
  }
};
