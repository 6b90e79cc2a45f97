/* A failed call of the CUDA runtime as an exception that names the call. */
#pragma once

#include <stdexcept>
#include <string>

#include <cuda_runtime.h>

#define CUDA_CHECK(call)                                                                                           \
  do {                                                                                                             \
    cudaError_t status_ = (call);                                                                                  \
    if (status_ != cudaSuccess) throw std::runtime_error(std::string(#call) + ": " + cudaGetErrorString(status_)); \
  } while (0)
