/* Attention forward from the definition, sums in double: one CTA of 128 threads a query row. */
#pragma once

#include <cstdint>

#include "error.h"
#include "number.h"

namespace independent {

/* In elements. Of a paged cache, `batch` is that of a page. */
struct Strides {
  int64_t batch, head, row;
};
inline Strides bhsd(int64_t heads, int64_t rows, int64_t head_dim) {
  return {heads * rows * head_dim, rows * head_dim, head_dim};
}
inline Strides bshd(int64_t heads, int64_t rows, int64_t head_dim) {
  return {heads * rows * head_dim, head_dim, heads * head_dim};
}

struct Attention {
  int batch, heads, kv_heads, seqlen_q, seqlen_kv, head_dim;
  bool causal; /* aligned to the bottom right */
  Strides q, kv;
  const int *pages = nullptr; /* [batch][seqlen_kv >> page_shift], or null */
  int page_shift = 0;

  size_t rows() const { return (size_t)batch * heads * seqlen_q; }
  size_t q_count() const { return rows() * head_dim; }
  size_t kv_count() const { return (size_t)batch * kv_heads * seqlen_kv * head_dim; }
  float scale() const { return 1.f / sqrtf((float)head_dim); }
};

inline Attention attention(int batch, int heads, int kv_heads, int seqlen_q, int seqlen_kv, int head_dim, bool causal,
                           bool is_bshd = false) {
  auto layout = is_bshd ? bshd : bhsd;
  return {batch,
          heads,
          kv_heads,
          seqlen_q,
          seqlen_kv,
          head_dim,
          causal,
          layout(heads, seqlen_q, head_dim),
          layout(kv_heads, seqlen_kv, head_dim)};
}

/* Where token t of a sequence's kv head begins. */
__device__ inline int64_t token_offset(const Attention &a, int sequence, int kv_head, int t) {
  if (!a.pages) return sequence * a.kv.batch + kv_head * a.kv.head + t * a.kv.row;
  int page = a.pages[(int64_t)sequence * (a.seqlen_kv >> a.page_shift) + (t >> a.page_shift)];
  return page * a.kv.batch + kv_head * a.kv.head + (t & ((1 << a.page_shift) - 1)) * a.kv.row;
}

/* Grid (seqlen_q, heads, batch); dynamic shared memory: seqlen_kv floats. O, with the strides of Q, as floats or in T:
 * either may be null. A row without keys has O 0 and LSE minus infinity. */
template <class T>
__global__ void attention_rows(Attention a, const T *q, const T *k, const T *v, float *o, T *o_rounded, float *lse) {
  extern __shared__ __align__(128) unsigned char row_scores[];
  float *scores = (float *)row_scores;
  __shared__ double lse_of_row;
  int row = blockIdx.x, head = blockIdx.y, sequence = blockIdx.z, kv_head = head / (a.heads / a.kv_heads);
  int keys = a.causal ? max(0, min(a.seqlen_kv, row + 1 + a.seqlen_kv - a.seqlen_q)) : a.seqlen_kv;
  int64_t q_offset = sequence * a.q.batch + head * a.q.head + row * a.q.row;
  double scale = 1 / sqrt((double)a.head_dim);
  for (int t = threadIdx.x; t < keys; t += blockDim.x) {
    const T *key = k + token_offset(a, sequence, kv_head, t);
    double sum = 0;
    for (int d = 0; d < a.head_dim; d++) sum += (double)as_float(q[q_offset + d]) * (double)as_float(key[d]);
    scores[t] = (float)(sum * scale);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    double top = -INFINITY, sum = 0;
    for (int t = 0; t < keys; t++) top = fmax(top, (double)scores[t]);
    for (int t = 0; t < keys; t++) sum += exp(scores[t] - top);
    lse_of_row = keys ? top + log(sum) : -INFINITY;
    lse[((size_t)sequence * a.heads + head) * a.seqlen_q + row] = (float)lse_of_row;
  }
  __syncthreads();
  for (int t = threadIdx.x; t < keys; t += blockDim.x) scores[t] = (float)exp(scores[t] - lse_of_row);
  __syncthreads();
  for (int d = threadIdx.x; d < a.head_dim; d += blockDim.x) {
    double sum = 0;
    for (int t = 0; t < keys; t++) sum += (double)scores[t] * as_float(v[token_offset(a, sequence, kv_head, t) + d]);
    if (o) o[q_offset + d] = (float)sum;
    if (o_rounded) o_rounded[q_offset + d] = T((float)sum);
  }
}

template <class T>
void reference_attention(const Attention &a, const T *q, const T *k, const T *v, float *o, T *o_rounded, float *lse) {
  dim3 grid((unsigned)a.seqlen_q, (unsigned)a.heads, (unsigned)a.batch);
  attention_rows<T><<<grid, 128, a.seqlen_kv * sizeof(float)>>>(a, q, k, v, o, o_rounded, lse);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
}
inline void reference_attention16(const Attention &a, bool bf16, const void *q, const void *k, const void *v, float *o,
                                  float *lse) {
  typedef __nv_bfloat16 B;
  typedef __half H;
  if (bf16)
    reference_attention<B>(a, (const B *)q, (const B *)k, (const B *)v, o, nullptr, lse);
  else
    reference_attention<H>(a, (const H *)q, (const H *)k, (const H *)v, o, nullptr, lse);
}

}  // namespace independent
