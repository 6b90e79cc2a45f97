/* The two 16-bit formats by type and by name, and their values as floats. */
#pragma once

#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace independent {

template <class T>
constexpr bool is_bf16 = std::is_same<T, __nv_bfloat16>::value;

inline const char *dtype_name(bool bf16) { return bf16 ? "bf16" : "fp16"; }

__host__ __device__ inline float as_float(__half x) { return __half2float(x); }
__host__ __device__ inline float as_float(__nv_bfloat16 x) { return __bfloat162float(x); }
__host__ __device__ inline float as_float(float x) { return x; }

}  // namespace independent
