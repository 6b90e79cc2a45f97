#include <cmath>

#include "reference.h"

namespace {

constexpr int num_threads = 256;

__device__ double block_reduce(double value, bool is_max) {
  __shared__ double parts[num_threads];
  parts[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = num_threads / 2; half > 0; half /= 2) {
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

__global__ void rows_kernel(Problem p, const int64_t *rows, double *scratch, double *o, double *lse) {
  int64_t head = rows[blockIdx.x] / p.seqlen_q, row = rows[blockIdx.x] % p.seqlen_q;
  int64_t kv_head = head / p.heads * p.kv_heads + head % p.heads / (p.heads / p.kv_heads);
  const __half *q = p.q + (head * p.seqlen_q + row) * p.head_dim;
  const __half *k = p.k + kv_head * p.seqlen_kv * p.head_dim, *v = p.v + kv_head * p.seqlen_kv * p.head_dim;
  int64_t visible = p.causal ? row + p.seqlen_kv - p.seqlen_q + 1 : p.seqlen_kv;
  double *s = scratch + (int64_t)blockIdx.x * p.seqlen_kv, top = -INFINITY, sum = 0;
  for (int64_t j = threadIdx.x; j < visible; j += num_threads) {
    double dot = 0;
    for (int d = 0; d < p.head_dim; d++)
      dot += (double)__half2float(q[d]) * (double)__half2float(k[j * p.head_dim + d]);
    s[j] = dot / sqrt((double)p.head_dim);
    top = fmax(top, s[j]);
  }
  top = block_reduce(top, true);
  for (int64_t j = threadIdx.x; j < visible; j += num_threads) {
    s[j] = exp(s[j] - top);
    sum += s[j];
  }
  sum = block_reduce(sum, false);
  for (int d = (int)threadIdx.x; d < p.head_dim; d += num_threads) {
    double value = 0;
    for (int64_t j = 0; j < visible; j++) value += s[j] * (double)__half2float(v[j * p.head_dim + d]);
    o[(int64_t)blockIdx.x * p.head_dim + d] = visible > 0 ? value / sum : 0;
  }
  if (threadIdx.x == 0) lse[blockIdx.x] = visible > 0 ? top + log(sum) : -INFINITY;
}

}  // namespace

void reference_rows(const Problem &p, const int64_t *rows, int count, double *scratch, double *o, double *lse) {
  rows_kernel<<<count, num_threads>>>(p, rows, scratch, o, lse);
}

void reference_row_cpu(const Problem &p, const __half *q, const __half *k, const __half *v, int64_t index, double *o,
                       double *lse) {
  int64_t head = index / p.seqlen_q, row = index % p.seqlen_q;
  int64_t kv_head = head / p.heads * p.kv_heads + head % p.heads / (p.heads / p.kv_heads);
  int64_t visible = p.causal ? row + p.seqlen_kv - p.seqlen_q + 1 : p.seqlen_kv;
  std::vector<double> s((size_t)p.seqlen_kv);
  double top = -INFINITY, sum = 0;
  for (int64_t j = 0; j < visible; j++) {
    double dot = 0;
    for (int d = 0; d < p.head_dim; d++)
      dot += (double)__half2float(q[(head * p.seqlen_q + row) * p.head_dim + d]) *
             (double)__half2float(k[(kv_head * p.seqlen_kv + j) * p.head_dim + d]);
    s[(size_t)j] = dot / sqrt((double)p.head_dim);
    top = std::fmax(top, s[(size_t)j]);
  }
  for (int d = 0; d < p.head_dim; d++) o[d] = 0;
  for (int64_t j = 0; j < visible; j++) {
    double weight = std::exp(s[(size_t)j] - top);
    sum += weight;
    for (int d = 0; d < p.head_dim; d++)
      o[d] += weight * (double)__half2float(v[(kv_head * p.seqlen_kv + j) * p.head_dim + d]);
  }
  for (int d = 0; d < p.head_dim; d++) o[d] = visible > 0 ? o[d] / sum : 0;
  *lse = visible > 0 ? top + std::log(sum) : -INFINITY;
}
