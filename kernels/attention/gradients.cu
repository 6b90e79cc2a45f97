#include <algorithm>
#include <cmath>

#include "block_reduce.h"
#include "gradients.h"
#include "reference.h"

namespace {

constexpr int warp = 32, most_head_dim = 256;

/* Keys that a query sees: those below. */
__host__ __device__ int end_of_keys(const Problem &p, int query) {
  return p.causal ? query + p.seqlen_kv - p.seqlen_q + 1 : p.seqlen_kv;
}

/* The first query that sees a key. */
__host__ __device__ int first_of_queries(const Problem &p, int key) {
  int first = p.causal ? key - (p.seqlen_kv - p.seqlen_q) : 0;
  return first > 0 ? first : 0;
}

/* ---- O and LSE, the inputs ---- */

/* A warp a query, eight queries a CTA, a key a lane; lengths are multiples of 32. */
__global__ void forward_rows(Problem p) {
  __shared__ __half2 k[warp][most_head_dim / 2 + 1], v[warp][most_head_dim / 2];
  __shared__ float q[reference_threads / warp][most_head_dim];
  int lane = (int)threadIdx.x % warp, which = (int)threadIdx.x / warp, pairs = p.head_dim / 2;
  int64_t row = (int64_t)blockIdx.x * (reference_threads / warp) + which;
  int query = (int)(row % p.seqlen_q), end = end_of_keys(p, query), last = query - which + reference_threads / warp - 1;
  const __half2 *keys = (const __half2 *)p.k + row / p.seqlen_q * p.seqlen_kv * pairs,
                *values = (const __half2 *)p.v + row / p.seqlen_q * p.seqlen_kv * pairs;
  for (int d = lane; d < p.head_dim; d += warp)
    q[which][d] = __half2float(p.q[row * p.head_dim + d]) * rsqrtf((float)p.head_dim);
  float top = -INFINITY, sum = 0;
  float2 o[most_head_dim / 2 / warp] = {};
  for (int first = 0; first < end_of_keys(p, last); first += warp) {
    __syncthreads();
    for (int i = (int)threadIdx.x; i < warp * pairs; i += reference_threads) {
      k[i / pairs][i % pairs] = keys[(int64_t)first * pairs + i];
      v[i / pairs][i % pairs] = values[(int64_t)first * pairs + i];
    }
    __syncthreads();
    float s = 0;
    for (int c = 0; c < pairs; c++) {
      float2 x = __half22float2(k[lane][c]);
      s += x.x * q[which][c * 2] + x.y * q[which][c * 2 + 1];
    }
    if (first + lane >= end) s = -INFINITY;
    float before = top;
    top = fmaxf(top, s);
    for (int step = warp / 2; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, step));
    float weight = expf(s - top), correction = expf(before - top);
    sum = sum * correction + weight;
#pragma unroll
    for (int i = 0; i < most_head_dim / 2 / warp; i++) {
      o[i].x *= correction;
      o[i].y *= correction;
    }
    for (int key = 0; key < warp; key++) {
      float of_key = __shfl_sync(0xffffffff, weight, key);
#pragma unroll
      for (int i = 0; i < most_head_dim / 2 / warp; i++)
        if (lane + i * warp < pairs) {
          float2 x = __half22float2(v[key][lane + i * warp]);
          o[i].x += of_key * x.x;
          o[i].y += of_key * x.y;
        }
    }
  }
  for (int step = warp / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
#pragma unroll
  for (int i = 0; i < most_head_dim / 2 / warp; i++)
    if (lane + i * warp < pairs)
      ((__half2 *)p.o)[row * pairs + lane + i * warp] = __floats2half2_rn(o[i].x / sum, o[i].y / sum);
  if (lane == 0) p.lse[row] = top + logf(sum);
}

void *filled(Pool &pool, size_t bytes) {
  void *data = pool.at_least(bytes);
  CUDA_CHECK(cudaMemset(data, 0xff, bytes));
  return data;
}

/* ---- the reference ---- */

struct Terms {
  double lse, delta;
};

__device__ double dot(const __half *a, const __half *b, int count) {
  double sum = 0;
  for (int i = 0; i < count / 2; i++) {
    float2 x = __half22float2(((const __half2 *)a)[i]), y = __half22float2(((const __half2 *)b)[i]);
    sum += (double)x.x * (double)y.x + (double)x.y * (double)y.y;
  }
  return sum;
}

/* Rows of a head's tensors. */
struct Head {
  const __half *q, *k, *v, *d_o;
  int head_dim;
  double scale;

  __device__ double score(int query, int key) const {
    return dot(q + (int64_t)query * head_dim, k + (int64_t)key * head_dim, head_dim) * scale;
  }
  __device__ double product(int query, int key) const {
    return dot(d_o + (int64_t)query * head_dim, v + (int64_t)key * head_dim, head_dim);
  }
};

__device__ Head head_of(const Problem &p, const __half *d_o, int64_t head) {
  int64_t queries = head * p.seqlen_q * p.head_dim, keys = head * p.seqlen_kv * p.head_dim;
  return {p.q + queries, p.k + keys, p.v + keys, d_o + queries, p.head_dim, 1 / sqrt((double)p.head_dim)};
}

/* A CTA a query: LSE, and delta as the sum of P dP. */
__global__ void terms_kernel(Problem p, const __half *d_o, int64_t head_idx, Terms *terms) {
  Head head = head_of(p, d_o, head_idx);
  int query = (int)blockIdx.x;
  double top = -INFINITY, sum = 0, weighted = 0;
  for (int key = (int)threadIdx.x; key < end_of_keys(p, query); key += reference_threads) {
    double s = head.score(query, key), higher = fmax(top, s), correction = exp(top - higher), weight = exp(s - higher);
    sum = sum * correction + weight;
    weighted = weighted * correction + weight * head.product(query, key);
    top = higher;
  }
  double highest = block_reduce(top, true), correction = exp(top - highest);
  sum = block_reduce(sum * correction, false);
  weighted = block_reduce(weighted * correction, false);
  if (threadIdx.x == 0) terms[query] = {highest + log(sum), weighted / sum};
}

/* A CTA a query. dQ = scale * sum of dS K over keys. */
__global__ void d_q_kernel(Problem p, const __half *d_o, int64_t head_idx, const Terms *terms, const int *queries,
                           double *scratch, double *d_q) {
  Head head = head_of(p, d_o, head_idx);
  int query = queries[blockIdx.x], end = end_of_keys(p, query);
  double *d_s = scratch + (int64_t)blockIdx.x * p.seqlen_kv;
  for (int key = (int)threadIdx.x; key < end; key += reference_threads)
    d_s[key] = exp(head.score(query, key) - terms[query].lse) * (head.product(query, key) - terms[query].delta);
  __syncthreads();
  for (int d = (int)threadIdx.x; d < p.head_dim; d += reference_threads) {
    double sum = 0;
    for (int key = 0; key < end; key++) sum += d_s[key] * (double)__half2float(head.k[(int64_t)key * p.head_dim + d]);
    d_q[(int64_t)blockIdx.x * p.head_dim + d] = sum * head.scale;
  }
}

/* A CTA a key. dV = sum of P dO over queries, dK = scale * sum of dS Q; scratch: two numbers a query. */
__global__ void d_kv_kernel(Problem p, const __half *d_o, int64_t head_idx, const Terms *terms, const int *keys,
                            double *scratch, double *d_k, double *d_v) {
  Head head = head_of(p, d_o, head_idx);
  int key = keys[blockIdx.x], first = first_of_queries(p, key);
  double *probs = scratch + (int64_t)blockIdx.x * 2 * p.seqlen_q, *d_s = probs + p.seqlen_q;
  for (int query = first + (int)threadIdx.x; query < p.seqlen_q; query += reference_threads) {
    probs[query] = exp(head.score(query, key) - terms[query].lse);
    d_s[query] = probs[query] * (head.product(query, key) - terms[query].delta);
  }
  __syncthreads();
  for (int d = (int)threadIdx.x; d < p.head_dim; d += reference_threads) {
    double of_k = 0, of_v = 0;
    for (int query = first; query < p.seqlen_q; query++) {
      of_k += d_s[query] * (double)__half2float(head.q[(int64_t)query * p.head_dim + d]);
      of_v += probs[query] * (double)__half2float(head.d_o[(int64_t)query * p.head_dim + d]);
    }
    d_k[(int64_t)blockIdx.x * p.head_dim + d] = of_k * head.scale;
    d_v[(int64_t)blockIdx.x * p.head_dim + d] = of_v;
  }
}

/* Gradients of chosen rows of one head, [row][head_dim], and the terms of all its queries. */
struct Reference {
  std::vector<Terms> terms;
  std::vector<double> d_q, d_k, d_v;
};

Reference reference_of(const Problem &p, const __half *d_o, int64_t head, const std::vector<int> &queries,
                       const std::vector<int> &keys) {
  static Pool terms_pool, rows_pool, scratch_pool, d_q_pool, d_k_pool, d_v_pool;
  size_t longest = (size_t)std::max(p.seqlen_kv, 2 * p.seqlen_q), columns = (size_t)p.head_dim;
  size_t q_count = queries.size() * columns, k_count = keys.size() * columns;
  Terms *terms = (Terms *)terms_pool.at_least((size_t)p.seqlen_q * sizeof(Terms));
  int *rows = (int *)rows_pool.at_least((queries.size() + keys.size()) * sizeof(int));
  double *scratch = (double *)scratch_pool.at_least(std::max(queries.size(), keys.size()) * longest * 8);
  double *d_q = (double *)d_q_pool.at_least(q_count * 8), *d_k = (double *)d_k_pool.at_least(k_count * 8),
         *d_v = (double *)d_v_pool.at_least(k_count * 8);
  CUDA_CHECK(cudaMemcpy(rows, queries.data(), queries.size() * sizeof(int), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(rows + queries.size(), keys.data(), keys.size() * sizeof(int), cudaMemcpyHostToDevice));
  terms_kernel<<<p.seqlen_q, reference_threads>>>(p, d_o, head, terms);
  d_q_kernel<<<(unsigned)queries.size(), reference_threads>>>(p, d_o, head, terms, rows, scratch, d_q);
  d_kv_kernel<<<(unsigned)keys.size(), reference_threads>>>(p, d_o, head, terms, rows + queries.size(), scratch, d_k, d_v);
  CUDA_CHECK(cudaGetLastError());
  return {bench::to_host(terms, (size_t)p.seqlen_q), bench::to_host(d_q, q_count), bench::to_host(d_k, k_count),
          bench::to_host(d_v, k_count)};
}

/* ---- comparing ---- */

struct Difference {
  double difference = 0, norm = 0;

  /* Rows of a head of a kernel's result against those expected. */
  void add(const __half *result, const std::vector<int> &rows, const std::vector<double> &expect, int columns) {
    for (size_t i = 0; i < rows.size(); i++) {
      std::vector<__half> row = bench::to_host(result + (int64_t)rows[i] * columns, (size_t)columns);
      for (int d = 0; d < columns; d++) {
        double e = expect[i * (size_t)columns + (size_t)d], x = (double)__half2float(row[(size_t)d]) - e;
        difference += x * x;
        norm += e * e;
      }
    }
  }
  double relative() const { return std::sqrt(difference / norm); }
};

/* At most `most` of `count`, the first and the last among them; all, if there are few. */
std::vector<int> sample(int count, int most, bench::Random &random) {
  std::vector<int> chosen((size_t)std::min(count, most));
  for (size_t i = 0; i < chosen.size(); i++)
    chosen[i] = count <= most            ? (int)i
                : i == 0                 ? 0
                : i == chosen.size() - 1 ? count - 1
                                         : (int)random.below((uint64_t)count);
  return chosen;
}

/* sum of dO * O for inputs in float64 on the CPU, one head: what the gradients are gradients of. */
double loss_of(const Problem &p, const std::vector<double> &q, const std::vector<double> &k,
               const std::vector<double> &v, const std::vector<double> &d_o) {
  size_t columns = (size_t)p.head_dim;
  double loss = 0;
  for (size_t i = 0; i < (size_t)p.seqlen_q; i++) {
    double sum = 0, weighted = 0;
    for (size_t j = 0; j < (size_t)end_of_keys(p, (int)i); j++) {
      double score = 0, product = 0;
      for (size_t d = 0; d < columns; d++) {
        score += q[i * columns + d] * k[j * columns + d];
        product += d_o[i * columns + d] * v[j * columns + d];
      }
      double weight = std::exp(score / std::sqrt((double)p.head_dim));
      sum += weight;
      weighted += weight * product;
    }
    loss += weighted / sum;
  }
  return loss;
}

/* Numbers of about -1.7 to 1.7, at `to` on the device too. */
std::vector<double> fill_random(__half *to, size_t count, bench::Random &random) {
  std::vector<__half> halves(count);
  std::vector<double> exact(count);
  for (size_t i = 0; i < count; i++) {
    halves[i] = __float2half((float)((double)random.below(4096) / 4096 - 0.5) * 3.4f);
    exact[i] = (double)__half2float(halves[i]);
  }
  CUDA_CHECK(cudaMemcpy(to, halves.data(), count * sizeof(__half), cudaMemcpyHostToDevice));
  return exact;
}

}  // namespace

void GradientMemory::fill(Problem &p, const __half *d_o) {
  size_t queries = (size_t)p.batch * (size_t)p.heads * (size_t)p.seqlen_q,
         keys = (size_t)p.batch * (size_t)p.heads * (size_t)p.seqlen_kv, columns = (size_t)p.head_dim;
  gradients_ = {d_o,
                (float *)filled(delta_, queries * 4),
                (float *)filled(d_q_sum_, queries * columns * 4),
                (__half *)filled(d_q_, queries * columns * 2),
                (__half *)filled(d_k_, keys * columns * 2),
                (__half *)filled(d_v_, keys * columns * 2)};
  p.gradients = &gradients_;
  forward_rows<<<(unsigned)(queries * warp / reference_threads), reference_threads>>>(p);
  CUDA_CHECK(cudaGetLastError());
}

GradientErrors check_gradients(const Problem &p) {
  const Gradients &g = *p.gradients;
  bench::Random random;
  Difference d_q, d_k, d_v;
  double lse_error = 0;
  int columns = p.head_dim;
  for (int head : sample(p.batch * p.heads, 4, random)) {
    std::vector<int> queries = sample(p.seqlen_q, 128, random), keys = sample(p.seqlen_kv, 128, random);
    Reference expect = reference_of(p, g.d_o, head, queries, keys);
    int64_t first_query = (int64_t)head * p.seqlen_q, first_key = (int64_t)head * p.seqlen_kv;
    d_q.add(g.d_q + first_query * columns, queries, expect.d_q, columns);
    d_k.add(g.d_k + first_key * columns, keys, expect.d_k, columns);
    d_v.add(g.d_v + first_key * columns, keys, expect.d_v, columns);
    std::vector<float> lse = bench::to_host((const float *)p.lse + first_query, (size_t)p.seqlen_q);
    for (size_t i = 0; i < lse.size(); i++)
      lse_error = worse(lse_error, std::fabs((double)lse[i] - expect.terms[i].lse));
  }
  return {worse(d_q.relative(), worse(d_k.relative(), d_v.relative())), lse_error};
}

/* Of one head against differences of the loss. */
bool gradient_reference_agrees() {
  Problem p = {1, 1, 1, 24, 40, 64, true, false, false, nullptr, nullptr, nullptr, nullptr, nullptr};
  size_t columns = (size_t)p.head_dim, q_count = (size_t)p.seqlen_q * columns, k_count = (size_t)p.seqlen_kv * columns;
  Pool memory;
  __half *q = (__half *)memory.at_least((q_count + k_count) * 2 * sizeof(__half)), *d_o = q + q_count,
         *k = d_o + q_count, *v = k + k_count;
  bench::Random random;
  std::vector<double> inputs[3] = {fill_random(q, q_count, random), fill_random(k, k_count, random),
                                   fill_random(v, k_count, random)};
  std::vector<double> gradient = fill_random(d_o, q_count, random);
  p.q = q;
  p.k = k;
  p.v = v;
  std::vector<int> queries = sample(p.seqlen_q, p.seqlen_q, random), keys = sample(p.seqlen_kv, p.seqlen_kv, random);
  Reference reference = reference_of(p, d_o, 0, queries, keys);
  const std::vector<double> *expected[3] = {&reference.d_q, &reference.d_k, &reference.d_v};
  double worst = 0, step = 1e-4;
  for (int which = 0; which < 3; which++)
    for (size_t at = 1; at < inputs[which].size(); at += inputs[which].size() / 16) {
      double &x = inputs[which][at], before = x;
      x = before + step;
      double above = loss_of(p, inputs[0], inputs[1], inputs[2], gradient);
      x = before - step;
      double below = loss_of(p, inputs[0], inputs[1], inputs[2], gradient);
      x = before;
      worst = worse(worst, std::fabs((above - below) / (2 * step) - (*expected[which])[at]));
    }
  CUDA_CHECK(cudaFree(memory.data));
  return worst < 1e-5;
}
