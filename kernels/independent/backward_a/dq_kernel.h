/* dQ without atomics: a CTA per block of queries, the keys pass by. Computes D on its way in and leaves it, with LSE in
 * base 2, to the kernel for dK and dV. */
#pragma once

#include "around.h"

namespace backward_a {

template <class C>
struct DqMemory {
  static constexpr int Q_AT = 0, DO_AT = C::Q_BYTES, K_AT = 2 * C::Q_BYTES, V_AT = K_AT + C::STAGES * C::KV_BYTES,
                       DELTA_AT = V_AT + C::STAGES * C::KV_BYTES, BYTES = DELTA_AT + C::BM * 4;
};

/* Grid (m_blocks, heads, batch). */
template <class C>
__global__ void __launch_bounds__(C::THREADS) backward_dq(Arguments<typename C::T> a) {
  typedef typename C::T T;
  typedef DqMemory<C> M;
  constexpr int D = C::D, BM = C::BM, BN = C::BN;
  constexpr int MT = BM / (16 * C::WARPS), S_NT = BN / 8, D_NT = D / 8;
  static_assert(MT >= 1, "each warp needs 16 rows");
  static_assert(C::OVERLAP != Overlap::interleaved, "one or two stages");
  extern __shared__ __align__(128) unsigned char memory[];
  const uint32_t base = shared_address(memory), q_at = base + M::Q_AT, do_at = base + M::DO_AT;
  float *deltas = (float *)(memory + M::DELTA_AT);
  const int warp = threadIdx.x / 32, lane = threadIdx.x & 31, own = warp * (MT * 16);
  const int m0 = blockIdx.x * BM, offset = a.seqlen_kv - a.seqlen_q;
  const size_t head = (size_t)blockIdx.z * a.heads + blockIdx.y, rows = head * a.seqlen_q,
               padded = (head * a.m_blocks + blockIdx.x) * BM,
               keys = ((size_t)blockIdx.z * a.kv_heads + blockIdx.y / (a.heads / a.kv_heads)) * a.seqlen_kv;
  const T *k = a.k + keys * D, *v = a.v + keys * D;
  int n_blocks = (a.seqlen_kv + BN - 1) / BN;
  if (C::CAUSAL) n_blocks = min(n_blocks, max(0, m0 + BM + offset + BN - 1) / BN);

  auto load_kv = [&](int block, int stage) {
    load_tile<BN, D, C::THREADS>(base + M::K_AT + stage * C::KV_BYTES, k, block * BN, a.seqlen_kv);
    load_tile<BN, D, C::THREADS>(base + M::V_AT + stage * C::KV_BYTES, v, block * BN, a.seqlen_kv);
    cp_async_commit();
  };
  load_tile<BM, D, C::THREADS>(q_at, a.q + rows * D, m0, a.seqlen_q);
  load_tile<BM, D, C::THREADS>(do_at, a.d_o + rows * D, m0, a.seqlen_q);
  cp_async_commit();
  if (C::STAGES == 2 && n_blocks > 0) load_kv(0, 0);

  row_deltas<T, D, BM, C::THREADS>(a.o + rows * D, a.d_o + rows * D, m0, a.seqlen_q, [&](int row, float delta) {
    deltas[row] = delta;
    a.delta[padded + row] = delta;
  });
  float lse[MT][2], delta[MT][2];
#pragma unroll
  for (int i = 0; i < MT; i++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      int row = own + i * 16 + half * 8 + (lane >> 2);
      lse[i][half] = m0 + row < a.seqlen_q ? lse_in_base_2(a.lse[rows + m0 + row]) : INFINITY;
      if ((lane & 3) == 0) a.lse_log2[padded + row] = lse[i][half];
    }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < MT; i++)
#pragma unroll
    for (int half = 0; half < 2; half++) delta[i][half] = deltas[own + i * 16 + half * 8 + (lane >> 2)];

  float dq[MT][D_NT][4];
  clear(dq);
  for (int block = 0; block < n_blocks; block++) {
    if constexpr (C::STAGES == 1) {
      __syncthreads();
      load_kv(block, 0);
    }
    cp_async_wait<0>();
    __syncthreads();
    if (C::STAGES == 2 && block + 1 < n_blocks) load_kv(block + 1, (block + 1) & 1);
    const int stage = C::STAGES == 2 ? block & 1 : 0, n0 = block * BN;
    const uint32_t k_at = base + M::K_AT + stage * C::KV_BYTES, v_at = base + M::V_AT + stage * C::KV_BYTES;

    float s[MT][S_NT][4], dp[MT][S_NT][4];
    clear(s);
    product<T, D, false, D, false, D>(s, q_at, own, k_at, 0);
    if (n0 + BN > a.seqlen_kv || (C::CAUSAL && m0 + offset < n0 + BN - 1)) {
#pragma unroll
      for (int i = 0; i < MT; i++)
#pragma unroll
        for (int j = 0; j < S_NT; j++)
#pragma unroll
          for (int e = 0; e < 4; e++) {
            int row = m0 + own + i * 16 + (lane >> 2) + (e >> 1) * 8, key = n0 + j * 8 + (lane & 3) * 2 + (e & 1);
            if (key >= a.seqlen_kv || (C::CAUSAL && key > row + offset)) s[i][j][e] = -INFINITY;
          }
    }
    clear(dp);
    product<T, D, false, D, false, D>(dp, do_at, own, v_at, 0);
    uint32_t ds[MT][BN / 16][4];
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
      for (int j = 0; j < S_NT; j++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
          float p0 = exp2_fast(s[i][j][half * 2] * a.scale_log2 - lse[i][half]),
                p1 = exp2_fast(s[i][j][half * 2 + 1] * a.scale_log2 - lse[i][half]);
          ds[i][j / 2][(j & 1) * 2 + half] =
              pack<T>(p0 * (dp[i][j][half * 2] - delta[i][half]), p1 * (dp[i][j][half * 2 + 1] - delta[i][half]));
        }
    product<T, true, D>(dq, ds, k_at, 0);
  }
  cp_async_wait<0>();
  __syncthreads();
  store_accumulator<T, D>(memory + M::Q_AT, dq, own, 0, a.scale);
  __syncthreads();
  store_tile<BM, D, C::THREADS>(memory + M::Q_AT, a.dq + rows * D, m0, a.seqlen_q);
}

}  // namespace backward_a
