/* The two passes as problems of the common commands. */
#pragma once

#include "forward.h"
#include "forward_problem.h"
#include "reference_gradients.h"
#include "rows.h"

namespace backward_b {

using independent::Errors;
using independent::Strides;

inline unsigned tiles_of(size_t count, size_t size) { return (unsigned)((count + size - 1) / size); }

template <class S, class T>
class Forward : public independent::ForwardProblem {
 public:
  explicit Forward(const Attention &a) : ForwardProblem(a, independent::is_bf16<T>) {
    independent::allow_shared(forward<S, T>, S::bytes);
  }
  void launch() override {
    Tensors<T> t{(const T *)q_, (const T *)k_, (const T *)v_, (T *)o_, lse_, a_.scale()};
    dim3 grid(tiles_of(a_.seqlen_q, S::block_m), (unsigned)a_.heads, (unsigned)a_.batch);
    forward<S, T><<<grid, S::threads, S::bytes>>>(a_, t);
    CUDA_CHECK(cudaGetLastError());
  }
};

/* Grid (rows, heads, batch): a tensor in other strides. */
template <class T>
__global__ void restride(T *to, Strides to_strides, const T *from, Strides from_strides) {
  int64_t row = blockIdx.x, head = blockIdx.y, sequence = blockIdx.z;
  to += sequence * to_strides.batch + head * to_strides.head + row * to_strides.row;
  from += sequence * from_strides.batch + head * from_strides.head + row * from_strides.row;
  to[threadIdx.x] = from[threadIdx.x];
}

template <class S, class T>
class Backward : public independent::Problem {
 public:
  explicit Backward(const Attention &a) : a_(a) {
    independent::allow_shared(gradients<S, T>, S::bytes);
    T *q = normal<T>(a.q_count(), 1), *k = normal<T>(a.kv_count(), 2), *v = normal<T>(a.kv_count(), 3);
    T *d_o = normal<T>(a.q_count(), 4), *o = alloc<T>(a.q_count());
    float *lse = alloc<float>(a.rows());
    independent::reference_attention<T>(a, q, k, v, nullptr, o, lse);
    g_ = {q, k, v, o, d_o, lse, alloc<float2>(a.rows()), alloc<float>(a.q_count())};
    g_.dq = alloc<T>(a.q_count()), g_.dk = alloc<T>(a.kv_count()), g_.dv = alloc<T>(a.kv_count());
    g_.scale = a.scale();
  }

  void launch() override {
    unsigned row_blocks = tiles_of(a_.q_count() / 8, threads_of_rows);
    before_gradients<S::head_dim, T><<<row_blocks, threads_of_rows>>>(a_, g_);
    CUDA_CHECK(cudaGetLastError());
    dim3 grid(tiles_of(a_.seqlen_kv, S::block_n), (unsigned)a_.kv_heads, (unsigned)a_.batch);
    gradients<S, T><<<grid, S::threads, S::bytes>>>(a_, g_);
    CUDA_CHECK(cudaGetLastError());
    behind_gradients<S::head_dim, T><<<row_blocks, threads_of_rows>>>(a_, g_);
    CUDA_CHECK(cudaGetLastError());
  }

  bool check(std::string &report) override {
    independent::Backward<T> b{queries_in_bhsd(g_.q), keys_in_bhsd(g_.k),      keys_in_bhsd(g_.v),
                               queries_in_bhsd(g_.o), queries_in_bhsd(g_.d_o), g_.lse};
    float *dq = alloc<float>(a_.q_count()), *dk = alloc<float>(a_.kv_count()), *dv = alloc<float>(a_.kv_count());
    independent::reference_gradients<T>(a_, b, dq, dk, dv);
    bool ok = is_close(report, "dQ", queries_in_bhsd(g_.dq), dq, a_.q_count());
    ok = is_close(report, "dK", keys_in_bhsd(g_.dk), dk, a_.kv_count()) && ok;
    return is_close(report, "dV", keys_in_bhsd(g_.dv), dv, a_.kv_count()) && ok;
  }

 private:
  /* By the largest |x - r| / (1 + |r|) and by the root mean square of x - r. */
  static bool is_close(std::string &report, const char *name, const T *values, const float *reference, size_t count) {
    constexpr bool bf16 = independent::is_bf16<T>;
    Errors errors = independent::errors_of(independent::fetch(values, count), independent::fetch(reference, count));
    bool ok = independent::within(report, name, errors.scaled, bf16 ? 3e-2 : 4e-3);
    return independent::within(report, "rms", errors.relative_rms, bf16 ? 1e-2 : 2e-3) && ok;
  }

  const T *in_bhsd(const T *from, const Strides &strides, int heads, int rows) {
    T *to = alloc<T>((size_t)a_.batch * heads * rows * a_.head_dim);
    restride<T><<<dim3((unsigned)rows, (unsigned)heads, (unsigned)a_.batch), (unsigned)a_.head_dim>>>(
        to, independent::bhsd(heads, rows, a_.head_dim), from, strides);
    CUDA_CHECK(cudaGetLastError());
    return to;
  }
  const T *queries_in_bhsd(const T *from) { return in_bhsd(from, a_.q, a_.heads, a_.seqlen_q); }
  const T *keys_in_bhsd(const T *from) { return in_bhsd(from, a_.kv, a_.kv_heads, a_.seqlen_kv); }

  Attention a_;
  Gradients<T> g_{};
};

}  // namespace backward_b
