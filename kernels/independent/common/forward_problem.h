/* A forward pass or decoding step with its tensors, and how far its O and LSE are from the reference. */
#pragma once

#include "compare.h"
#include "problem.h"
#include "reference_attention.h"

namespace independent {

class ForwardProblem : public Problem {
 public:
  ForwardProblem(const Attention &a, bool bf16)
      : a_(a),
        bf16_(bf16),
        q_(normal16(a.q_count(), bf16, 1)),
        k_(normal16(a.kv_count(), bf16, 2)),
        v_(normal16(a.kv_count(), bf16, 3)),
        o_(alloc16(a.q_count())),
        lse_(alloc<float>(a.rows())) {
    if (a.heads % a.kv_heads) throw std::runtime_error("heads are no multiple of kv_heads");
  }

  /* O in |x - r| / (1 + |r|). */
  bool check(std::string &report) override {
    ForwardErrors errors = forward_errors();
    bool ok = within(report, "O", errors.o.scaled, bf16_ ? tolerance_bf16_ : 2e-3);
    return within(report, "LSE", errors.lse.absolute, lse_tolerance_) && ok;
  }

 protected:
  struct ForwardErrors {
    Errors o, lse;
  };
  ForwardErrors forward_errors() {
    float *o = alloc<float>(a_.q_count()), *lse = alloc<float>(a_.rows());
    reference_attention16(a_, bf16_, q_, k_, v_, o, lse);
    return {errors_of(fetch16(o_, a_.q_count(), bf16_), fetch(o, a_.q_count())),
            errors_of(fetch(lse_, a_.rows()), fetch(lse, a_.rows()))};
  }

  Attention a_;
  bool bf16_;
  void *q_, *k_, *v_, *o_;
  float *lse_;
  double tolerance_bf16_ = 1e-2, lse_tolerance_ = 1e-3;
};

}  // namespace independent
