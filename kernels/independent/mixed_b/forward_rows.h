/* Attention forward in fp32 for the inputs of backward passes, fast enough for whole cases: one warp a query, 32 keys
 * at a time from shared memory. Writes O and LSE. */
#pragma once

#include "ptx.h"

/* Grid (seqlen_q / 8, heads, batch), 256 threads. */
template <typename T>
__global__ void __launch_bounds__(256)
    forward_rows(const T *q, const T *k, const T *v, T *o, float *lse, int heads, int kv_heads, int seqlen_q,
                 int seqlen_kv, int head_dim, int causal, float scale) {
  __shared__ float keys[32][129], values[32][129], query[8][128];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, kv_head = blockIdx.y / (heads / kv_heads);
  const int row = blockIdx.x * 8 + warp, offset = seqlen_kv - seqlen_q;
  const int last = causal ? row + offset : seqlen_kv - 1,
            last_of_cta = causal ? blockIdx.x * 8 + 7 + offset : seqlen_kv - 1;
  const size_t q_row = ((size_t)blockIdx.z * heads + blockIdx.y) * seqlen_q + row,
               kv_row = ((size_t)blockIdx.z * kv_heads + kv_head) * seqlen_kv;
  for (int d = lane; d < head_dim; d += 32) query[warp][d] = Num<T>::f(q[q_row * head_dim + d]);
  float top = -INFINITY, sum = 0.f, acc[4] = {0.f, 0.f, 0.f, 0.f};
  for (int first = 0; first <= last_of_cta; first += 32) {
    __syncthreads();
    for (int e = threadIdx.x; e < 32 * head_dim; e += 256) {
      keys[e / head_dim][e % head_dim] = Num<T>::f(k[(kv_row + first) * head_dim + e]);
      values[e / head_dim][e % head_dim] = Num<T>::f(v[(kv_row + first) * head_dim + e]);
    }
    __syncthreads();
    float score = 0.f;
    for (int d = 0; d < head_dim; d++) score += query[warp][d] * keys[lane][d];
    score = first + lane <= last ? score * scale : -INFINITY;
    float new_top = score;
    for (int x = 16; x; x >>= 1) new_top = fmaxf(new_top, __shfl_xor_sync(~0u, new_top, x));
    new_top = fmaxf(new_top, top);
    if (new_top == -INFINITY) continue;
    const float alpha = __expf(top - new_top), p = __expf(score - new_top);
    top = new_top;
    float p_sum = p;
    for (int x = 16; x; x >>= 1) p_sum += __shfl_xor_sync(~0u, p_sum, x);
    sum = sum * alpha + p_sum;
    for (int c = 0; c < 4; c++) acc[c] *= alpha;
    for (int t = 0; t < 32; t++) {
      const float p_of_key = __shfl_sync(~0u, p, t);
#pragma unroll
      for (int c = 0; c < 4; c++)
        if (c * 32 < head_dim) acc[c] += p_of_key * values[t][c * 32 + lane];
    }
  }
#pragma unroll
  for (int c = 0; c < 4; c++)
    if (c * 32 < head_dim) o[q_row * head_dim + c * 32 + lane] = Num<T>::t(acc[c] / sum);
  if (lane == 0) lse[q_row] = top + logf(sum);
}
