/* A sum or a maximum of doubles over a CTA of reference_threads threads, for the references. */
#pragma once

constexpr int reference_threads = 256;

__device__ inline double block_reduce(double value, bool is_max) {
  __shared__ double parts[reference_threads];
  parts[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = reference_threads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      double a = parts[threadIdx.x], b = parts[threadIdx.x + half];
      parts[threadIdx.x] = is_max ? fmax(a, b) : a + b;
    }
    __syncthreads();
  }
  double result = parts[0];
  __syncthreads();
  return result;
}
