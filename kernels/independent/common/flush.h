/* Writes 256 MiB, so that nothing of a case is left in L2. */
#pragma once

#include <cstdint>

#include "error.h"

namespace independent {

static __global__ void write_words(uint4 *to, size_t count, uint32_t value) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x)
    to[i] = make_uint4(value, value, value, value);
}

class L2Flush {
 public:
  L2Flush() { CUDA_CHECK(cudaMalloc(&words_, bytes)); }
  ~L2Flush() { cudaFree(words_); }
  L2Flush(const L2Flush &) = delete;
  void run(int value) {
    write_words<<<1024, 256>>>(words_, bytes / sizeof(uint4), (uint32_t)value);
    CUDA_CHECK(cudaGetLastError());
  }

 private:
  static constexpr size_t bytes = (size_t)256 << 20;
  uint4 *words_ = nullptr;
};

}  // namespace independent
