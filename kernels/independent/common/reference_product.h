/* C[m][n] = A[m][k] B from the definition, sums in double; B is [k][n], or [n][k] if `transpose_b`. */
#pragma once

#include "error.h"
#include "number.h"

namespace independent {

template <class T>
__global__ void product(const T *a, const T *b, float *c, int n, int k, bool transpose_b) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  if (column >= n) return;
  double sum = 0;
  for (int i = 0; i < k; i++)
    sum += (double)as_float(a[(size_t)row * k + i]) *
           (double)as_float(transpose_b ? b[(size_t)column * k + i] : b[(size_t)i * n + column]);
  c[(size_t)row * n + column] = (float)sum;
}

template <class T>
void reference_product(const T *a, const T *b, float *c, int m, int n, int k, bool transpose_b) {
  product<T><<<dim3((unsigned)(n + 127) / 128, (unsigned)m), 128>>>(a, b, c, n, k, transpose_b);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace independent
