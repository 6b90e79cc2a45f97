/* Gradients of attention from the definition, in fp32, given O and LSE; tensors in bhsd. One CTA of 128 threads a query
 * for dQ, one a key for dK and dV. */
#pragma once

#include "reference_attention.h"

namespace independent {

template <class T>
struct Backward {
  const T *q, *k, *v, *o, *d_o;
  const float *lse;
};

/* P and dS of one query row and one key; query and key: where they begin. */
template <class T>
__device__ void probability(const Backward<T> &b, size_t query, size_t key, float lse, int head_dim, float scale,
                            bool seen, float &p, float &ds) {
  float score = 0, dp = 0, delta = 0;
  for (int d = 0; d < head_dim; d++) {
    float d_o = as_float(b.d_o[query + d]);
    score += as_float(b.q[query + d]) * as_float(b.k[key + d]);
    dp += d_o * as_float(b.v[key + d]);
    delta += d_o * as_float(b.o[query + d]);
  }
  p = seen ? expf(score * scale - lse) : 0.f;
  ds = p * (dp - delta);
}

/* Grid (seqlen_q, heads, batch); dynamic shared memory: seqlen_kv floats. */
template <class T>
__global__ void gradient_of_query(Attention a, Backward<T> b, float scale, float *d_q) {
  extern __shared__ __align__(128) unsigned char row_gradients[];
  float *ds = (float *)row_gradients;
  int row = blockIdx.x, kv_head = blockIdx.y / (a.heads / a.kv_heads);
  size_t query = ((size_t)blockIdx.z * a.heads + blockIdx.y) * a.seqlen_q + row,
         keys = ((size_t)blockIdx.z * a.kv_heads + kv_head) * a.seqlen_kv;
  for (int t = threadIdx.x; t < a.seqlen_kv; t += blockDim.x) {
    float p;
    probability(b, query * a.head_dim, (keys + t) * a.head_dim, b.lse[query], a.head_dim, scale,
                !a.causal || t <= row + a.seqlen_kv - a.seqlen_q, p, ds[t]);
  }
  __syncthreads();
  for (int d = threadIdx.x; d < a.head_dim; d += blockDim.x) {
    float sum = 0;
    for (int t = 0; t < a.seqlen_kv; t++) sum += ds[t] * as_float(b.k[(keys + t) * a.head_dim + d]);
    d_q[query * a.head_dim + d] = sum * scale;
  }
}

/* Grid (seqlen_kv, kv_heads, batch); dynamic shared memory: two floats a query row of the head's group. */
template <class T>
__global__ void gradients_of_key(Attention a, Backward<T> b, float scale, float *d_k, float *d_v) {
  extern __shared__ __align__(128) unsigned char row_gradients[];
  int t = blockIdx.x, group = a.heads / a.kv_heads, rows = group * a.seqlen_q;
  float *p = (float *)row_gradients, *ds = p + rows;
  size_t first_query = ((size_t)blockIdx.z * a.heads + blockIdx.y * group) * a.seqlen_q,
         key = ((size_t)blockIdx.z * a.kv_heads + blockIdx.y) * a.seqlen_kv + t;
  for (int row = threadIdx.x; row < rows; row += blockDim.x)
    probability(b, (first_query + row) * a.head_dim, key * a.head_dim, b.lse[first_query + row], a.head_dim, scale,
                !a.causal || t <= row % a.seqlen_q + a.seqlen_kv - a.seqlen_q, p[row], ds[row]);
  __syncthreads();
  for (int d = threadIdx.x; d < a.head_dim; d += blockDim.x) {
    float k_sum = 0, v_sum = 0;
    for (int row = 0; row < rows; row++) {
      v_sum += p[row] * as_float(b.d_o[(first_query + row) * a.head_dim + d]);
      k_sum += ds[row] * as_float(b.q[(first_query + row) * a.head_dim + d]);
    }
    d_v[key * a.head_dim + d] = v_sum;
    d_k[key * a.head_dim + d] = k_sum * scale;
  }
}

template <class T>
void reference_gradients(const Attention &a, const Backward<T> &b, float *d_q, float *d_k, float *d_v) {
  dim3 queries((unsigned)a.seqlen_q, (unsigned)a.heads, (unsigned)a.batch),
      keys((unsigned)a.seqlen_kv, (unsigned)a.kv_heads, (unsigned)a.batch);
  gradient_of_query<T><<<queries, 128, a.seqlen_kv * sizeof(float)>>>(a, b, a.scale(), d_q);
  CUDA_CHECK(cudaGetLastError());
  gradients_of_key<T>
      <<<keys, 128, 2 * (a.heads / a.kv_heads) * a.seqlen_q * sizeof(float)>>>(a, b, a.scale(), d_k, d_v);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace independent
