/* Gradients of attention: what a backward kernel is given, and what they must be, in float64 from the definition. */
#pragma once

#include <vector>

#include "attention.h"
#include "pool.h"

/* What a problem's backward pass reads and writes, in device memory that grows and never shrinks. */
class GradientMemory {
 public:
  /* Fills O and LSE of the problem (f32 sums, from its Q, K and V), takes d_o as it is, and everything that a kernel
   * must write with NaN. */
  void fill(Problem &p, const __half *d_o);

 private:
  Pool delta_, d_q_sum_, d_q_, d_k_, d_v_;
  Gradients gradients_;
};

/* How far a kernel's results are off, over sampled heads, rows of dQ and rows of dK and dV. */
struct GradientErrors {
  double gradients; /* the largest ||x - ref|| / ||ref|| of dQ, dK and dV; NaN stays NaN */
  double lse;       /* of the LSE that the kernel was given */
};
GradientErrors check_gradients(const Problem &p);

/* The device's reference against the CPU's. */
bool gradient_reference_agrees();
