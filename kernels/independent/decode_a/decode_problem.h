/* A decoding step, paged or not, by one of the split kernels and the combining kernel. */
#pragma once

#include "combine.h"
#include "decode_mma.h"
#include "decode_simt.h"
#include "forward_problem.h"
#include "page_table.h"

namespace decode_a {

struct DecodeSpec {
  int batch, heads, kv_heads, seqlen, splits;
  bool bshd = false;
  int page_size = 0; /* 0: not paged */
  bool scattered = false;
  std::vector<int> lengths = {}; /* empty: all `seqlen` */
};

/* A split kernel's instance. */
template <class T>
struct SplitKernel {
  void (*set_up)();
  void (*launch)(const Decode<T> &);
};

template <class T, int D, int BN, int WARPS, int STAGES, bool PAGED>
SplitKernel<T> mma_kernel() {
  return {[] {
            independent::allow_shared(decode_mma<T, D, BN, WARPS, STAGES, PAGED>, DecodeShape<D, BN, WARPS, STAGES>::bytes);
          },
          [](const Decode<T> &p) {
            dim3 grid(p.splits, p.heads / p.group * ((p.group + 15) / 16), p.batch);
            decode_mma<T, D, BN, WARPS, STAGES, PAGED>
                <<<grid, WARPS * 32, DecodeShape<D, BN, WARPS, STAGES>::bytes>>>(p);
          }};
}
template <int D, int HEADS, int LANES, int WARPS, int UNROLL>
SplitKernel<__half> simt_kernel() {
  return {[] {},
          [](const Decode<__half> &p) {
            if (p.group % HEADS) throw std::runtime_error("the heads of a CTA have different kv heads");
            dim3 grid(p.splits, p.heads / HEADS, p.batch);
            decode_simt<D, HEADS, LANES, WARPS, UNROLL><<<grid, WARPS * 32>>>(p);
          }};
}

template <class T, int D>
class DecodeProblem : public independent::ForwardProblem {
 public:
  DecodeProblem(const DecodeSpec &spec, SplitKernel<T> kernel)
      : ForwardProblem(independent::attention(spec.batch, spec.heads, spec.kv_heads, 1, spec.seqlen, D, false, spec.bshd),
                       independent::is_bf16<T>),
        spec_(spec),
        kernel_(kernel) {
    if (spec.splits > most_splits) throw std::runtime_error("too many splits");
    if (spec.page_size) {
      if (spec.seqlen % spec.page_size) throw std::runtime_error("seqlen is no multiple of page_size");
      size_t count = (size_t)spec.batch * (spec.seqlen / spec.page_size);
      std::vector<int> pages(count);
      std::iota(pages.begin(), pages.end(), 0);
      if (spec.scattered) pages = independent::shuffled_pages(count);
      a_.pages = upload(pages);
      a_.page_shift = independent::page_shift_of(spec.page_size);
      a_.kv = (spec.bshd ? independent::bshd : independent::bhsd)(spec.kv_heads, spec.page_size, D);
    }
    const int *lengths = spec.lengths.empty() ? nullptr : upload(spec.lengths);
    const bool split = spec.splits > 1;
    p_ = {(const T *)q_, (const T *)k_, (const T *)v_, a_.kv, a_.pages, a_.page_shift,
          spec.page_size ? spec.seqlen / spec.page_size : 0, lengths, spec.batch, spec.heads,
          spec.heads / spec.kv_heads, spec.seqlen, spec.splits, a_.scale() * log2e,
          split ? alloc<float>((size_t)spec.splits * a_.q_count()) : nullptr,
          split ? alloc<float>((size_t)spec.splits * a_.rows()) : nullptr, (T *)o_, lse_};
    kernel_.set_up();
  }

  void launch() override {
    kernel_.launch(p_);
    CUDA_CHECK(cudaGetLastError());
    if (p_.splits == 1) return;
    const int rows = (int)a_.rows();
    combine_splits<T, D><<<(rows + combine_warps - 1) / combine_warps, combine_warps * 32>>>(
        p_.partial_o, p_.partial_lse, p_.o, p_.lse, rows, p_.splits);
    CUDA_CHECK(cudaGetLastError());
  }

  bool check(std::string &report) override {
    if (spec_.lengths.empty()) return ForwardProblem::check(report);
    float *o = alloc<float>(a_.q_count()), *lse = alloc<float>(a_.rows());
    for (int b = 0; b < spec_.batch; b++) { /* the reference knows one length */
      independent::Attention one = a_;
      one.batch = 1;
      one.seqlen_kv = spec_.lengths[b];
      const T *k = (const T *)k_, *v = (const T *)v_;
      if (one.pages)
        one.pages += (size_t)b * p_.pages_of_sequence;
      else
        k += b * a_.kv.batch, v += b * a_.kv.batch;
      independent::reference_attention<T>(one, (const T *)q_ + b * a_.q.batch, k, v, o + b * a_.q.batch, nullptr,
                                          lse + (size_t)b * a_.heads);
    }
    auto e_o = independent::errors_of(independent::fetch16(o_, a_.q_count(), bf16_), independent::fetch(o, a_.q_count()));
    auto e_lse = independent::errors_of(independent::fetch(lse_, a_.rows()), independent::fetch(lse, a_.rows()));
    bool ok = independent::within(report, "O", e_o.scaled, bf16_ ? 1e-2 : 2e-3);
    return independent::within(report, "LSE", e_lse.absolute, 1e-3) && ok;
  }

 private:
  int *upload(const std::vector<int> &values) {
    int *to = alloc<int>(values.size());
    CUDA_CHECK(cudaMemcpy(to, values.data(), values.size() * sizeof(int), cudaMemcpyHostToDevice));
    return to;
  }
  DecodeSpec spec_;
  SplitKernel<T> kernel_;
  Decode<T> p_;
};

}  // namespace decode_a
