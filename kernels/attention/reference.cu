#include <cmath>

#include "block_reduce.h"
#include "reference.h"

namespace {

struct Keys {
  int64_t first, end;
};

/* The keys that a row sees. */
__host__ __device__ Keys keys_of(const Problem &p, int64_t seqlen_kv, int64_t row) {
  int64_t diagonal = row + seqlen_kv - p.seqlen_q;
  Keys keys = {0, p.causal ? diagonal + 1 : seqlen_kv};
  if (p.window > 0) {
    if (diagonal - p.window + 1 > 0) keys.first = diagonal - p.window + 1;
    if (!p.causal && diagonal + p.window < seqlen_kv) keys.end = diagonal + p.window;
  }
  if (keys.end < keys.first) keys.end = keys.first;
  return keys;
}

/* Whether a token of a tree sees a key; without a tree all do. */
__device__ bool tree_sees(const Tree &tree, int64_t row, int64_t key) {
  if (!tree.words || key < tree.first_key) return true;
  int64_t bit = key - tree.first_key;
  return tree.words[row * tree.row_words + bit / 32] >> bit % 32 & 1;
}

/* Of an element of P: 0 if dropout drops it, else what makes up for the others. */
__host__ __device__ double kept_weight(const Problem &p, int64_t head, int64_t row, int64_t key) {
  if (p.dropout_p == 0) return 1;
  bool is_kept = dropout_keeps((uint32_t)head, (uint32_t)row, (uint32_t)key, (uint32_t)(255 * (1 - p.dropout_p)));
  return is_kept ? 1 / (1 - p.dropout_p) : 0;
}

__global__ void rows_kernel(Problem p, const int64_t *rows, double *scratch, double *o, double *lse) {
  int64_t head = rows[blockIdx.x] / p.seqlen_q, row = rows[blockIdx.x] % p.seqlen_q;
  int64_t kv_head = head / p.heads * p.kv_heads + head % p.heads / (p.heads / p.kv_heads);
  const __half *q = p.q + (head * p.seqlen_q + row) * p.head_dim;
  const __half *k = p.k + kv_head * p.seqlen_kv * p.head_dim, *v = p.v + kv_head * p.seqlen_kv * p.head_dim_v();
  Keys keys = keys_of(p, p.lengths ? p.lengths[head / p.heads] : p.seqlen_kv, row);
  double *s = scratch + (int64_t)blockIdx.x * p.seqlen_kv, top = -INFINITY, sum = 0;
  for (int64_t j = keys.first + threadIdx.x; j < keys.end; j += reference_threads) {
    double dot = 0;
    for (int d = 0; d < p.head_dim; d++)
      dot += (double)__half2float(q[d]) * (double)__half2float(k[j * p.head_dim + d]);
    s[j] = tree_sees(p.tree, row, j) ? dot / sqrt((double)p.head_dim) : -INFINITY;
    top = fmax(top, s[j]);
  }
  top = block_reduce(top, true);
  for (int64_t j = keys.first + threadIdx.x; j < keys.end; j += reference_threads) {
    s[j] = exp(s[j] - top);
    sum += s[j];
    s[j] *= kept_weight(p, head, row, j);
  }
  sum = block_reduce(sum, false);
  for (int d = (int)threadIdx.x; d < p.head_dim_v(); d += reference_threads) {
    double value = 0;
    for (int64_t j = keys.first; j < keys.end; j++) value += s[j] * (double)__half2float(v[j * p.head_dim_v() + d]);
    o[(int64_t)blockIdx.x * p.head_dim_v() + d] = keys.end > keys.first ? value / sum : 0;
  }
  if (threadIdx.x == 0) lse[blockIdx.x] = keys.end > keys.first ? top + log(sum) : -INFINITY;
}

}  // namespace

void reference_rows(const Problem &p, const int64_t *rows, int count, double *scratch, double *o, double *lse) {
  rows_kernel<<<count, reference_threads>>>(p, rows, scratch, o, lse);
}

void reference_row_cpu(const Problem &p, const __half *q, const __half *k, const __half *v, int64_t index, double *o,
                       double *lse) {
  int64_t head = index / p.seqlen_q, row = index % p.seqlen_q;
  int64_t kv_head = head / p.heads * p.kv_heads + head % p.heads / (p.heads / p.kv_heads);
  Keys keys = keys_of(p, p.seqlen_kv, row);
  std::vector<double> s((size_t)p.seqlen_kv);
  double top = -INFINITY, sum = 0;
  for (int64_t j = keys.first; j < keys.end; j++) {
    double dot = 0;
    for (int d = 0; d < p.head_dim; d++)
      dot += (double)__half2float(q[(head * p.seqlen_q + row) * p.head_dim + d]) *
             (double)__half2float(k[(kv_head * p.seqlen_kv + j) * p.head_dim + d]);
    s[(size_t)j] = dot / sqrt((double)p.head_dim);
    top = std::fmax(top, s[(size_t)j]);
  }
  for (int d = 0; d < p.head_dim_v(); d++) o[d] = 0;
  for (int64_t j = keys.first; j < keys.end; j++) {
    double weight = std::exp(s[(size_t)j] - top);
    sum += weight;
    for (int d = 0; d < p.head_dim_v(); d++)
      o[d] += weight * kept_weight(p, head, row, j) *
              (double)__half2float(v[(kv_head * p.seqlen_kv + j) * p.head_dim_v() + d]);
  }
  for (int d = 0; d < p.head_dim_v(); d++) o[d] = keys.end > keys.first ? o[d] / sum : 0;
  *lse = keys.end > keys.first ? top + std::log(sum) : -INFINITY;
}
