/* Softmax, matrix product and unfused attention. */
#pragma once

#include "compare.h"
#include "matmul.h"
#include "problem.h"
#include "reference_attention.h"
#include "reference_product.h"
#include "reference_softmax.h"
#include "softmax.h"

namespace decode_a {

template <class T>
struct SoftmaxKernel {
  void (*set_up)(int columns);
  void (*launch)(const T *x, T *y, int rows, int columns);
};

template <class T>
class SoftmaxProblem : public independent::Problem {
 public:
  SoftmaxProblem(int rows, int columns, SoftmaxKernel<T> kernel)
      : rows_(rows), columns_(columns), kernel_(kernel), x_(normal<T>(count(), 1)), y_(alloc<T>(count())) {
    if (columns % Vector<T>::n) throw std::runtime_error("columns are no whole words");
    kernel_.set_up(columns);
  }
  void launch() override {
    kernel_.launch(x_, y_, rows_, columns_);
    CUDA_CHECK(cudaGetLastError());
  }
  bool check(std::string &report) override {
    float *reference = alloc<float>(count());
    independent::reference_softmax(x_, reference, rows_, columns_);
    auto errors = independent::errors_of(independent::fetch(y_, count()), independent::fetch(reference, count()));
    return independent::within(report, "Y", errors.relative_rms, sizeof(T) == 4 ? 1e-5 : 1e-3);
  }

 private:
  size_t count() const { return (size_t)rows_ * columns_; }
  int rows_, columns_;
  SoftmaxKernel<T> kernel_;
  T *x_, *y_;
};

template <class T>
struct MatmulKernel {
  void (*set_up)();
  void (*launch)(const T *a, const T *b, T *c, int batch, int m, int n, int k, float alpha);
  int block_m, block_n, block_k;
};
template <class T, int BM, int BN, int BK, int WM, int WN, int STAGES, bool TRANSPOSE_B>
MatmulKernel<T> matmul_kernel() {
  using Shape = MatmulShape<BM, BN, BK, WM, WN, STAGES>;
  return {[] { independent::allow_shared(matmul_mma<T, BM, BN, BK, WM, WN, STAGES, TRANSPOSE_B>, Shape::bytes); },
          [](const T *a, const T *b, T *c, int batch, int m, int n, int k, float alpha) {
            dim3 grid(n / BN, m / BM, batch);
            matmul_mma<T, BM, BN, BK, WM, WN, STAGES, TRANSPOSE_B>
                <<<grid, Shape::threads, Shape::bytes>>>(a, b, c, m, n, k, alpha);
            CUDA_CHECK(cudaGetLastError());
          },
          BM, BN, BK};
}
template <class T>
void check_tiles(const MatmulKernel<T> &kernel, int m, int n, int k) {
  if (m % kernel.block_m || n % kernel.block_n || k % kernel.block_k)
    throw std::runtime_error("a matrix is no whole number of tiles");
}

/* C = A B^T of each of a batch. */
template <class T>
class MatmulProblem : public independent::Problem {
 public:
  MatmulProblem(int batch, int m, int n, int k, MatmulKernel<T> kernel, bool transpose_b)
      : batch_(batch), m_(m), n_(n), k_(k), kernel_(kernel), transpose_b_(transpose_b) {
    check_tiles(kernel, m, n, k);
    a_ = normal<T>((size_t)batch * m * k, 1);
    b_ = normal<T>((size_t)batch * n * k, 2);
    c_ = alloc<T>((size_t)batch * m * n);
    kernel_.set_up();
  }
  void launch() override { kernel_.launch(a_, b_, c_, batch_, m_, n_, k_, 1.f); }
  bool check(std::string &report) override {
    size_t count = (size_t)batch_ * m_ * n_;
    float *reference = alloc<float>(count);
    for (int i = 0; i < batch_; i++)
      independent::reference_product(a_ + (size_t)i * m_ * k_, b_ + (size_t)i * n_ * k_, reference + (size_t)i * m_ * n_,
                                     m_, n_, k_, transpose_b_);
    auto errors = independent::errors_of(independent::fetch(c_, count), independent::fetch(reference, count));
    return independent::within(report, "C", errors.relative_rms, independent::is_bf16<T> ? 5e-3 : 1e-3);
  }

 private:
  int batch_, m_, n_, k_;
  MatmulKernel<T> kernel_;
  bool transpose_b_;
  T *a_ = nullptr, *b_ = nullptr, *c_ = nullptr;
};

/* S = Q K^T scaled, P = softmax(S), O = P V, each a launch; heads = kv_heads, bhsd, S and P in T. */
template <class T>
class StandardProblem : public independent::Problem {
 public:
  StandardProblem(int batch, int heads, int seqlen, int head_dim, MatmulKernel<T> scores, SoftmaxKernel<T> softmax,
                  MatmulKernel<T> output)
      : a_(independent::attention(batch, heads, heads, seqlen, seqlen, head_dim, false)),
        scores_(scores),
        softmax_(softmax),
        output_(output) {
    check_tiles(scores, seqlen, seqlen, head_dim);
    check_tiles(output, seqlen, head_dim, seqlen);
    q_ = normal<T>(a_.q_count(), 1);
    k_ = normal<T>(a_.kv_count(), 2);
    v_ = normal<T>(a_.kv_count(), 3);
    o_ = alloc<T>(a_.q_count());
    s_ = alloc<T>(a_.rows() * seqlen);
    p_ = alloc<T>(a_.rows() * seqlen);
    scores_.set_up();
    softmax_.set_up(seqlen);
    output_.set_up();
  }
  void launch() override {
    const int all = a_.batch * a_.heads;
    scores_.launch(q_, k_, s_, all, a_.seqlen_q, a_.seqlen_kv, a_.head_dim, a_.scale());
    softmax_.launch(s_, p_, (int)a_.rows(), a_.seqlen_kv);
    CUDA_CHECK(cudaGetLastError());
    output_.launch(p_, v_, o_, all, a_.seqlen_q, a_.head_dim, a_.seqlen_kv, 1.f);
  }
  bool check(std::string &report) override {
    float *o = alloc<float>(a_.q_count()), *lse = alloc<float>(a_.rows());
    independent::reference_attention<T>(a_, q_, k_, v_, o, nullptr, lse);
    auto errors = independent::errors_of(independent::fetch(o_, a_.q_count()), independent::fetch(o, a_.q_count()));
    return independent::within(report, "O", errors.scaled, independent::is_bf16<T> ? 2e-2 : 3e-3);
  }

 private:
  independent::Attention a_;
  MatmulKernel<T> scores_;
  SoftmaxKernel<T> softmax_;
  MatmulKernel<T> output_;
  T *q_ = nullptr, *k_ = nullptr, *v_ = nullptr, *o_ = nullptr, *s_ = nullptr, *p_ = nullptr;
};

}  // namespace decode_a
