/* A backward pass with its tensors; O and LSE by the reference forward. */
#pragma once

#include "compare.h"
#include "dq_kernel.h"
#include "main_kernels.h"
#include "problem.h"
#include "reference_gradients.h"

namespace backward_a {

using independent::Attention;

template <class C>
class BackwardProblem : public independent::Problem {
  typedef typename C::T T;

 public:
  static constexpr int LAUNCHES = C::FORM == Form::split ? 2 : 3;

  explicit BackwardProblem(const Attention &shape) : shape_(shape), a_() {
    if (shape.heads % shape.kv_heads) throw std::runtime_error("heads are no multiple of kv_heads");
    size_t q_count = shape.q_count(), kv_count = shape.kv_count();
    m_blocks_ = (shape.seqlen_q + C::BM - 1) / C::BM;
    n_blocks_ = (shape.seqlen_kv + C::BN - 1) / C::BN;
    size_t padded = (size_t)shape.batch * shape.heads * m_blocks_ * C::BM;
    T *o = alloc<T>(q_count);
    float *lse = alloc<float>(shape.rows());
    a_.q = normal<T>(q_count, 1);
    a_.k = normal<T>(kv_count, 2);
    a_.v = normal<T>(kv_count, 3);
    a_.d_o = normal<T>(q_count, 4);
    independent::reference_attention<T>(shape, a_.q, a_.k, a_.v, nullptr, o, lse);
    a_.o = o, a_.lse = lse;
    a_.lse_log2 = alloc<float>(padded);
    a_.delta = alloc<float>(padded);
    if (C::FORM != Form::split) a_.dq_sum = alloc<float>(padded * C::D);
    a_.dq = alloc<T>(q_count);
    a_.dk = alloc<T>(kv_count);
    a_.dv = alloc<T>(kv_count);
    a_.heads = shape.heads, a_.kv_heads = shape.kv_heads;
    a_.seqlen_q = shape.seqlen_q, a_.seqlen_kv = shape.seqlen_kv;
    a_.m_blocks = m_blocks_;
    a_.scale = shape.scale(), a_.scale_log2 = shape.scale() * 1.4426950408889634f;
    if constexpr (C::FORM == Form::shared) {
      independent::allow_shared(backward_shared<C>, main_bytes());
    } else {
      independent::allow_shared(backward_registers<C>, main_bytes());
      if constexpr (C::FORM == Form::split) independent::allow_shared(backward_dq<C>, DqMemory<C>::BYTES);
    }
  }

  void launch() override {
    const int bytes = main_bytes();
    dim3 query_blocks((unsigned)m_blocks_, (unsigned)shape_.heads, (unsigned)shape_.batch),
        key_blocks((unsigned)n_blocks_, (unsigned)shape_.kv_heads, (unsigned)shape_.batch);
    if constexpr (C::FORM == Form::split) {
      backward_dq<C><<<query_blocks, C::THREADS, DqMemory<C>::BYTES>>>(a_);
      CUDA_CHECK(cudaGetLastError());
      backward_registers<C><<<key_blocks, C::THREADS, bytes>>>(a_);
      CUDA_CHECK(cudaGetLastError());
    } else {
      preprocess<T, C::D, C::BM><<<query_blocks, PREPROCESS_THREADS>>>(a_);
      CUDA_CHECK(cudaGetLastError());
      if constexpr (C::FORM == Form::shared)
        backward_shared<C><<<key_blocks, C::THREADS, bytes>>>(a_);
      else
        backward_registers<C><<<key_blocks, C::THREADS, bytes>>>(a_);
      CUDA_CHECK(cudaGetLastError());
      convert_dq<C><<<query_blocks, C::THREADS>>>(a_);
      CUDA_CHECK(cudaGetLastError());
    }
  }

  bool check(std::string &report) override {
    float *dq = alloc<float>(shape_.q_count()), *dk = alloc<float>(shape_.kv_count()),
          *dv = alloc<float>(shape_.kv_count());
    independent::reference_gradients<T>(shape_, {a_.q, a_.k, a_.v, a_.o, a_.d_o, a_.lse}, dq, dk, dv);
    bool ok = near(report, "dQ", a_.dq, dq, shape_.q_count());
    ok = near(report, "dK", a_.dk, dk, shape_.kv_count()) && ok;
    return near(report, "dV", a_.dv, dv, shape_.kv_count()) && ok;
  }

 private:
  static constexpr int main_bytes() {
    if constexpr (C::FORM == Form::shared)
      return shared_form_bytes<C>;
    else
      return register_form_bytes<C>;
  }
  static bool near(std::string &report, const char *name, const T *values, const float *reference, size_t count) {
    constexpr bool bf16 = independent::is_bf16<T>;
    independent::Errors errors =
        independent::errors_of(independent::fetch(values, count), independent::fetch(reference, count));
    bool ok = independent::within(report, name, errors.scaled, bf16 ? 4e-2 : 6e-3);
    return independent::within(report, "rms", errors.relative_rms, bf16 ? 1.2e-2 : 2e-3) && ok;
  }

  Attention shape_;
  Arguments<T> a_;
  int m_blocks_ = 0, n_blocks_ = 0;
};

}  // namespace backward_a
