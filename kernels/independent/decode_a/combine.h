/* O and LSE of each row from those of its splits: a warp a row. */
#pragma once

#include "ptx.h"

namespace decode_a {

constexpr int combine_warps = 4, most_splits = 128;

template <class T, int D>
__global__ void __launch_bounds__(combine_warps * 32)
    combine_splits(const float *partial_o, const float *partial_lse, T *o, float *lse, int rows, int splits) {
  __shared__ float weights[combine_warps][most_splits];
  constexpr int each = D / 32;
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, row = blockIdx.x * combine_warps + warp;
  if (row >= rows) return; /* whole warps */
  float m = -INFINITY;
  for (int s = lane; s < splits; s += 32) {
    const float x = partial_lse[(size_t)s * rows + row];
    weights[warp][s] = x;
    m = fmaxf(m, x);
  }
#pragma unroll
  for (int step = 16; step > 0; step >>= 1) m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, step));
  const float safe = finite_top(m);
  float sum = 0.f;
  for (int s = lane; s < splits; s += 32) {
    const float x = ex2((weights[warp][s] - safe) * log2e);
    weights[warp][s] = x;
    sum += x;
  }
#pragma unroll
  for (int step = 16; step > 0; step >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  __syncwarp();
  float all[each];
#pragma unroll
  for (int d = 0; d < each; d++) all[d] = 0.f;
#pragma unroll 4
  for (int s = 0; s < splits; s++) {
    const float w = weights[warp][s];
    if (w > 0.f) { /* an empty split has written no O */
      const float *from = partial_o + ((size_t)s * rows + row) * D + lane * each;
      if constexpr (each == 4) {
        const float4 x = *(const float4 *)from;
        all[0] += w * x.x, all[1] += w * x.y, all[2] += w * x.z, all[3] += w * x.w;
      } else {
        const float2 x = *(const float2 *)from;
        all[0] += w * x.x, all[1] += w * x.y;
      }
    }
  }
  const float inverse = sum > 0.f ? 1.f / sum : 0.f;
  T *to = o + (size_t)row * D + lane * each;
  if constexpr (each == 4)
    *(uint2 *)to = make_uint2(pack2<T>(all[0] * inverse, all[1] * inverse), pack2<T>(all[2] * inverse, all[3] * inverse));
  else
    *(uint32_t *)to = pack2<T>(all[0] * inverse, all[1] * inverse);
  if (lane == 0) lse[row] = sum > 0.f ? m + __logf(sum) : -INFINITY;
}

}  // namespace decode_a
