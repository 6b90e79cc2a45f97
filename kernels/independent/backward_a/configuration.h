/* What the kernels of a case are compiled for, and what they are given. Tensors are bhsd. */
#pragma once

#include "tiles.h"

namespace backward_a {

enum class Overlap {
  none,        /* one buffer each of Q and dO, filled at the beginning of a step */
  interleaved, /* one buffer each, refilled as soon as its last product of the step is done */
  two_stages   /* two buffers each, the next step's filled during this one */
};

enum class Form {
  shared,    /* P and dS go through shared memory, dQ is added up by atomics */
  registers, /* S transposed: P and dS are operands out of registers, dS goes through shared memory for dQ (atomics) */
  split      /* no atomics: a kernel for dQ, which computes D too, then one for dK and dV */
};

template <class T_, Form FORM_, int D_, int BM_, int BN_, int WARPS_, Overlap OVERLAP_, bool CAUSAL_>
struct Configuration {
  typedef T_ T;
  static constexpr Form FORM = FORM_;
  static constexpr int D = D_, BM = BM_, BN = BN_, WARPS = WARPS_, THREADS = 32 * WARPS_;
  static constexpr Overlap OVERLAP = OVERLAP_;
  static constexpr bool CAUSAL = CAUSAL_;
  static constexpr int STAGES = OVERLAP_ == Overlap::two_stages ? 2 : 1;

  /* Warps along the rows of each product; the others go along its columns. */
  static constexpr int S_WARPS_M = WARPS == 8 && BM >= 128 ? 4 : 2, S_WARPS_N = WARPS / S_WARPS_M;
  static constexpr int KV_WARPS_N = WARPS / 2, KV_WARPS_D = 2;
  static constexpr int Q_WARPS_M = S_WARPS_M, Q_WARPS_D = WARPS / Q_WARPS_M;
  /* Fragments of the dQ product. */
  static constexpr int Q_MT = BM / (16 * Q_WARPS_M), Q_NT = D / (8 * Q_WARPS_D);

  static constexpr int KV_BYTES = BN * D * 2, Q_BYTES = BM * D * 2, P_BYTES = BM * BN * 2;
  static constexpr int STATISTICS_BYTES = 2 * BM * 4; /* LSE and D of a step's rows */
};

template <class T>
struct Arguments {
  const T *q, *k, *v, *o, *d_o;
  const float *lse;
  float *lse_log2; /* [batch][heads][m_blocks * BM], in base 2; infinite where there is no row or no key */
  float *delta;    /* the same shape */
  float *dq_sum;   /* [batch][heads][m_blocks][BM * D], in the order of the dQ product's registers */
  T *dq, *dk, *dv;
  int heads, kv_heads, seqlen_q, seqlen_kv, m_blocks;
  float scale, scale_log2;
};

/* Row block `m` of head `head` of those that a CTA walks. */
struct Step {
  int head, m;
  __device__ __forceinline__ void advance(int first_m, int m_blocks) {
    if (++m == m_blocks) m = first_m, head++;
  }
};

/* LSE as the kernels want it. */
__device__ __forceinline__ float lse_in_base_2(float lse) {
  return lse == -INFINITY ? INFINITY : lse * 1.4426950408889634f;
}

/* Adds the dQ product of a warp to the sums. */
template <class C>
__device__ __forceinline__ void add_dq(const float (&dq)[C::Q_MT][C::Q_NT][4], float *block) {
#pragma unroll
  for (int i = 0; i < C::Q_MT; i++)
#pragma unroll
    for (int j = 0; j < C::Q_NT; j++)
#pragma unroll
      for (int e = 0; e < 4; e++)
        atomicAdd(block + ((i * C::Q_NT + j) * 4 + e) * C::THREADS + threadIdx.x, dq[i][j][e]);
}

}  // namespace backward_a
