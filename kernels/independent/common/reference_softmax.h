/* Softmax of rows from the definition, sums in double: one CTA of 128 threads a row. */
#pragma once

#include "error.h"
#include "number.h"

namespace independent {

template <class T>
__global__ void softmax_of_row(const T *x, float *y, int columns) {
  __shared__ double row_top, row_sum;
  size_t first = (size_t)blockIdx.x * columns;
  if (threadIdx.x == 0) {
    double top = -INFINITY, sum = 0;
    for (int i = 0; i < columns; i++) top = fmax(top, (double)as_float(x[first + i]));
    for (int i = 0; i < columns; i++) sum += exp(as_float(x[first + i]) - top);
    row_top = top, row_sum = sum;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < columns; i += blockDim.x)
    y[first + i] = (float)(exp(as_float(x[first + i]) - row_top) / row_sum);
}

template <class T>
void reference_softmax(const T *x, float *y, size_t rows, int columns) {
  softmax_of_row<T><<<(unsigned)rows, 128>>>(x, y, columns);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace independent
