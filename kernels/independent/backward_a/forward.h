/* FlashAttention-2's forward pass: a CTA per block of queries, its warps along the rows, keys from the last block to the
 * first. */
#pragma once

#include "configuration.h"
#include "forward_problem.h"

namespace backward_a {

template <class T_, int D_, int BM_, int BN_, int WARPS_, Overlap OVERLAP_, bool CAUSAL_>
struct ForwardConfiguration {
  typedef T_ T;
  static constexpr int D = D_, BM = BM_, BN = BN_, WARPS = WARPS_, THREADS = 32 * WARPS_;
  static constexpr Overlap OVERLAP = OVERLAP_;
  static constexpr bool CAUSAL = CAUSAL_;
  static constexpr int STAGES = OVERLAP_ == Overlap::two_stages ? 2 : 1;
  static constexpr int KV_BYTES = BN * D * 2, K_AT = BM * D * 2, V_AT = K_AT + STAGES * KV_BYTES,
                       BYTES = V_AT + STAGES * KV_BYTES;
};

template <class T>
struct ForwardArguments {
  const T *q, *k, *v;
  T *o;
  float *lse;
  int heads, kv_heads, seqlen_q, seqlen_kv;
  float scale, scale_log2;
};

/* Grid (m_blocks, heads, batch). */
template <class C>
__global__ void __launch_bounds__(C::THREADS) forward(ForwardArguments<typename C::T> a) {
  typedef typename C::T T;
  constexpr int D = C::D, BM = C::BM, BN = C::BN;
  constexpr int MT = BM / (16 * C::WARPS), S_NT = BN / 8, D_NT = D / 8;
  static_assert(MT >= 1, "each warp needs 16 rows");
  static_assert(C::OVERLAP != Overlap::none, "interleaved or two stages");
  extern __shared__ __align__(128) unsigned char memory[];
  const uint32_t q_at = shared_address(memory);
  const int warp = threadIdx.x / 32, lane = threadIdx.x & 31, own = warp * (MT * 16);
  const int m0 = blockIdx.x * BM, offset = a.seqlen_kv - a.seqlen_q;
  const size_t rows = ((size_t)blockIdx.z * a.heads + blockIdx.y) * a.seqlen_q,
               keys = ((size_t)blockIdx.z * a.kv_heads + blockIdx.y / (a.heads / a.kv_heads)) * a.seqlen_kv;
  const T *k = a.k + keys * D, *v = a.v + keys * D;
  int n_blocks = (a.seqlen_kv + BN - 1) / BN;
  if (C::CAUSAL) n_blocks = min(n_blocks, max(0, m0 + BM + offset + BN - 1) / BN);

  auto load_k = [&](int block, int stage) {
    load_tile<BN, D, C::THREADS>(q_at + C::K_AT + stage * C::KV_BYTES, k, block * BN, a.seqlen_kv);
  };
  auto load_v = [&](int block, int stage) {
    load_tile<BN, D, C::THREADS>(q_at + C::V_AT + stage * C::KV_BYTES, v, block * BN, a.seqlen_kv);
  };
  load_tile<BM, D, C::THREADS>(q_at, a.q + rows * D, m0, a.seqlen_q);
  if (n_blocks > 0) {
    load_k(n_blocks - 1, (n_blocks - 1) & (C::STAGES - 1));
    if (C::STAGES == 2) load_v(n_blocks - 1, (n_blocks - 1) & 1);
  }
  cp_async_commit();

  float o[MT][D_NT][4], top[MT][2], sum[MT][2];
  clear(o);
#pragma unroll
  for (int i = 0; i < MT; i++) top[i][0] = top[i][1] = -INFINITY, sum[i][0] = sum[i][1] = 0.f;

  for (int block = n_blocks - 1; block >= 0; block--) {
    const int stage = block & (C::STAGES - 1), n0 = block * BN;
    cp_async_wait<0>();
    __syncthreads();
    if constexpr (C::STAGES == 2) {
      if (block > 0) {
        load_k(block - 1, stage ^ 1);
        load_v(block - 1, stage ^ 1);
        cp_async_commit();
      }
    } else {
      load_v(block, 0);
      cp_async_commit();
    }
    float s[MT][S_NT][4];
    clear(s);
    product<T, D, false, D, false, D>(s, q_at, own, q_at + C::K_AT + stage * C::KV_BYTES, 0);
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
    if constexpr (C::STAGES == 1) {
      cp_async_wait<0>();
      __syncthreads();
      if (block > 0) {
        load_k(block - 1, 0);
        cp_async_commit();
      }
    }
    uint32_t p[MT][BN / 16][4];
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
      for (int half = 0; half < 2; half++) {
        float largest = top[i][half];
#pragma unroll
        for (int j = 0; j < S_NT; j++) largest = fmaxf(largest, fmaxf(s[i][j][half * 2], s[i][j][half * 2 + 1]));
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
        float base = largest == -INFINITY ? 0.f : largest * a.scale_log2,
              shrink = exp2_fast(top[i][half] * a.scale_log2 - base);
        top[i][half] = largest;
        sum[i][half] *= shrink;
#pragma unroll
        for (int j = 0; j < D_NT; j++) o[i][j][half * 2] *= shrink, o[i][j][half * 2 + 1] *= shrink;
#pragma unroll
        for (int j = 0; j < S_NT; j++) {
          float p0 = exp2_fast(s[i][j][half * 2] * a.scale_log2 - base),
                p1 = exp2_fast(s[i][j][half * 2 + 1] * a.scale_log2 - base);
          sum[i][half] += p0 + p1;
          p[i][j / 2][(j & 1) * 2 + half] = pack<T>(p0, p1);
        }
      }
    product<T, true, D>(o, p, q_at + C::V_AT + stage * C::KV_BYTES, 0);
  }
  cp_async_wait<0>();
#pragma unroll
  for (int i = 0; i < MT; i++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      float total = sum[i][half];
      total += __shfl_xor_sync(0xffffffffu, total, 1);
      total += __shfl_xor_sync(0xffffffffu, total, 2);
      float inverse = total > 0.f ? 1.f / total : 0.f;
#pragma unroll
      for (int j = 0; j < D_NT; j++) o[i][j][half * 2] *= inverse, o[i][j][half * 2 + 1] *= inverse;
      int row = m0 + own + i * 16 + half * 8 + (lane >> 2);
      if ((lane & 3) == 0 && row < a.seqlen_q)
        a.lse[rows + row] = total > 0.f ? top[i][half] * a.scale + logf(total) : -INFINITY;
    }
  __syncthreads();
  store_accumulator<T, D>(memory, o, own, 0, 1.f);
  __syncthreads();
  store_tile<BM, D, C::THREADS>(memory, a.o + rows * D, m0, a.seqlen_q);
}

template <class C>
class Forward : public independent::ForwardProblem {
  typedef typename C::T T;

 public:
  explicit Forward(const independent::Attention &shape)
      : ForwardProblem(shape, independent::is_bf16<T>) {
    independent::allow_shared(forward<C>, C::BYTES);
  }
  void launch() override {
    const int bytes = C::BYTES;
    ForwardArguments<T> a = {(const T *)q_,  (const T *)k_, (const T *)v_, (T *)o_,       lse_,
                             a_.heads,       a_.kv_heads,   a_.seqlen_q,   a_.seqlen_kv,  a_.scale(),
                             a_.scale() * 1.4426950408889634f};
    dim3 grid((unsigned)(a_.seqlen_q + C::BM - 1) / C::BM, (unsigned)a_.heads, (unsigned)a_.batch);
    forward<C><<<grid, C::THREADS, bytes>>>(a);
    CUDA_CHECK(cudaGetLastError());
  }
};

}  // namespace backward_a
