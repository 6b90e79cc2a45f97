/* The kernels with a CTA per block of keys: dV and dK stay in registers, the rows of Q and dO pass by. */
#pragma once

#include "configuration.h"

namespace backward_a {

/* Common to both: the shared memory up to P and dS, the walk, the copies. */
template <class C>
struct Walk {
  typedef typename C::T T;
  static constexpr int K_AT = 0, V_AT = C::KV_BYTES, Q_AT = 2 * C::KV_BYTES, DO_AT = Q_AT + C::STAGES * C::Q_BYTES,
                       STATISTICS_AT = DO_AT + C::STAGES * C::Q_BYTES,
                       BYTES = STATISTICS_AT + C::STAGES * C::STATISTICS_BYTES;

  const Arguments<T> &a;
  uint32_t base;
  int n0, offset, first_m, steps;
  size_t kv_row;
  Step now, next;

  __device__ __forceinline__ Walk(const Arguments<T> &arguments, unsigned char *memory)
      : a(arguments), base(shared_address(memory)) {
    int group = a.heads / a.kv_heads;
    n0 = blockIdx.x * C::BN;
    offset = a.seqlen_kv - a.seqlen_q;
    first_m = C::CAUSAL ? max(0, n0 - offset) / C::BM : 0;
    steps = group * max(0, a.m_blocks - first_m);
    kv_row = ((size_t)blockIdx.z * a.kv_heads + blockIdx.y) * a.seqlen_kv;
    now = next = {(int)blockIdx.y * group, first_m};
  }

  __device__ __forceinline__ size_t head_of(const Step &step) const { return (size_t)blockIdx.z * a.heads + step.head; }
  __device__ __forceinline__ size_t block_of(const Step &step) const { return head_of(step) * a.m_blocks + step.m; }

  __device__ __forceinline__ void load_kv() const {
    load_tile<C::BN, C::D, C::THREADS>(base + K_AT, a.k + kv_row * C::D, n0, a.seqlen_kv);
    load_tile<C::BN, C::D, C::THREADS>(base + V_AT, a.v + kv_row * C::D, n0, a.seqlen_kv);
  }
  __device__ __forceinline__ void load_q(int stage) const {
    load_tile<C::BM, C::D, C::THREADS>(base + Q_AT + stage * C::Q_BYTES, a.q + head_of(next) * a.seqlen_q * C::D,
                                       next.m * C::BM, a.seqlen_q);
  }
  /* dO and the statistics. */
  __device__ __forceinline__ void load_do(int stage) const {
    load_tile<C::BM, C::D, C::THREADS>(base + DO_AT + stage * C::Q_BYTES, a.d_o + head_of(next) * a.seqlen_q * C::D,
                                       next.m * C::BM, a.seqlen_q);
    int i = threadIdx.x;
    if (i < C::BM / 2) {
      const float *from = i < C::BM / 4 ? a.lse_log2 + block_of(next) * C::BM + i * 4
                                        : a.delta + block_of(next) * C::BM + (i - C::BM / 4) * 4;
      cp_async16(base + STATISTICS_AT + stage * C::STATISTICS_BYTES + i * 16, from, true);
    }
  }

  __device__ __forceinline__ void begin() {
    load_kv();
    if constexpr (C::OVERLAP != Overlap::none)
      if (steps > 0) {
        load_q(0);
        load_do(0);
        next.advance(first_m, a.m_blocks);
      }
    cp_async_commit();
  }
  /* Behind it the step's tiles are there and the step before is over everywhere. */
  __device__ __forceinline__ void begin_step(int step) {
    if constexpr (C::OVERLAP == Overlap::none) {
      __syncthreads();
      load_q(0);
      load_do(0);
      cp_async_commit();
      next.advance(first_m, a.m_blocks);
    }
    cp_async_wait<0>();
    __syncthreads();
    if constexpr (C::OVERLAP == Overlap::two_stages)
      if (step + 1 < steps) {
        load_q((step + 1) & 1);
        load_do((step + 1) & 1);
        cp_async_commit();
        next.advance(first_m, a.m_blocks);
      }
  }
  /* Where every thread of the CTA is through with dO. */
  __device__ __forceinline__ void do_is_free(int step) const {
    if constexpr (C::OVERLAP == Overlap::interleaved)
      if (step + 1 < steps) {
        load_do(0);
        cp_async_commit();
      }
  }
  __device__ __forceinline__ void q_is_free(int step) {
    if constexpr (C::OVERLAP == Overlap::interleaved)
      if (step + 1 < steps) {
        load_q(0);
        cp_async_commit();
        next.advance(first_m, a.m_blocks);
      }
  }
  __device__ __forceinline__ void end_step() { now.advance(first_m, a.m_blocks); }

  /* Whether some pair of row and key of the step's block must be masked. */
  __device__ __forceinline__ bool at_edge() const {
    return n0 + C::BN > a.seqlen_kv || (C::CAUSAL && now.m * C::BM + offset < n0 + C::BN - 1);
  }
  __device__ __forceinline__ bool masked(int row, int key) const {
    return key >= a.seqlen_kv || (C::CAUSAL && key > row + offset);
  }
};

/* dK and dV by way of the buffers of K and V. */
template <class C, int MT, int NT>
__device__ __forceinline__ void store_dk_dv(const Walk<C> &walk, unsigned char *memory, const float (&dk)[MT][NT][4],
                                            const float (&dv)[MT][NT][4], int key, int column) {
  typedef typename C::T T;
  unsigned char *dk_tile = memory + Walk<C>::K_AT, *dv_tile = memory + Walk<C>::V_AT;
  cp_async_wait<0>();
  __syncthreads();
  store_accumulator<T, C::D>(dk_tile, dk, key, column, walk.a.scale);
  store_accumulator<T, C::D>(dv_tile, dv, key, column, 1.f);
  __syncthreads();
  store_tile<C::BN, C::D, C::THREADS>(dk_tile, walk.a.dk + walk.kv_row * C::D, walk.n0, walk.a.seqlen_kv);
  store_tile<C::BN, C::D, C::THREADS>(dv_tile, walk.a.dv + walk.kv_row * C::D, walk.n0, walk.a.seqlen_kv);
}

/* ---- P and dS through shared memory ---- */

template <class C>
constexpr int shared_form_bytes = Walk<C>::BYTES + 2 * C::P_BYTES;

/* Grid (n_blocks, kv_heads, batch). */
template <class C>
__global__ void __launch_bounds__(C::THREADS) backward_shared(Arguments<typename C::T> a) {
  typedef typename C::T T;
  typedef Walk<C> W;
  constexpr int D = C::D, BM = C::BM, BN = C::BN;
  constexpr int S_MT = BM / (16 * C::S_WARPS_M), S_NT = BN / (8 * C::S_WARPS_N);
  constexpr int KV_MT = BN / (16 * C::KV_WARPS_N), KV_NT = D / (8 * C::KV_WARPS_D);
  static_assert(S_MT >= 1 && S_NT >= 2 && KV_MT >= 1 && KV_NT >= 2 && C::Q_MT >= 1 && C::Q_NT >= 2, "tile too small");
  extern __shared__ __align__(128) unsigned char memory[];
  W walk(a, memory);
  unsigned char *p_tile = memory + W::BYTES, *ds_tile = p_tile + C::P_BYTES;
  const uint32_t k_at = walk.base + W::K_AT, v_at = walk.base + W::V_AT, p_at = walk.base + W::BYTES,
                 ds_at = p_at + C::P_BYTES;
  const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
  const int s_m = (warp % C::S_WARPS_M) * (S_MT * 16), s_n = (warp / C::S_WARPS_M) * (S_NT * 8);
  const int kv_n = (warp % C::KV_WARPS_N) * (KV_MT * 16), kv_d = (warp / C::KV_WARPS_N) * (KV_NT * 8);
  const int q_m = (warp % C::Q_WARPS_M) * (C::Q_MT * 16), q_d = (warp / C::Q_WARPS_M) * (C::Q_NT * 8);

  float dk[KV_MT][KV_NT][4], dv[KV_MT][KV_NT][4];
  clear(dk);
  clear(dv);

  walk.begin();
  for (int step = 0; step < walk.steps; step++) {
    walk.begin_step(step);
    const int stage = C::STAGES == 2 ? step & 1 : 0;
    const uint32_t q_at = walk.base + W::Q_AT + stage * C::Q_BYTES, do_at = walk.base + W::DO_AT + stage * C::Q_BYTES;
    const float *lse = (const float *)(memory + W::STATISTICS_AT + stage * C::STATISTICS_BYTES), *delta = lse + BM;
    {
      float s[S_MT][S_NT][4], dp[S_MT][S_NT][4];
      clear(s);
      product<T, D, false, D, false, D>(s, q_at, s_m, k_at, s_n);
      if (walk.at_edge()) {
#pragma unroll
        for (int i = 0; i < S_MT; i++)
#pragma unroll
          for (int j = 0; j < S_NT; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
              int row = walk.now.m * BM + s_m + i * 16 + (lane >> 2) + (e >> 1) * 8,
                  key = walk.n0 + s_n + j * 8 + (lane & 3) * 2 + (e & 1);
              if (walk.masked(row, key)) s[i][j][e] = -INFINITY;
            }
      }
      clear(dp);
      product<T, D, false, D, false, D>(dp, do_at, s_m, v_at, s_n);
#pragma unroll
      for (int i = 0; i < S_MT; i++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
          int row = s_m + i * 16 + half * 8 + (lane >> 2);
          float row_lse = lse[row], row_delta = delta[row];
#pragma unroll
          for (int j = 0; j < S_NT; j++) {
            float p0 = exp2_fast(s[i][j][half * 2] * a.scale_log2 - row_lse),
                  p1 = exp2_fast(s[i][j][half * 2 + 1] * a.scale_log2 - row_lse);
            uint32_t to = chunk_offset<BN>(row, (s_n >> 3) + j) + (lane & 3) * 4;
            *(uint32_t *)(p_tile + to) = pack<T>(p0, p1);
            *(uint32_t *)(ds_tile + to) =
                pack<T>(p0 * (dp[i][j][half * 2] - row_delta), p1 * (dp[i][j][half * 2 + 1] - row_delta));
          }
        }
    }
    __syncthreads();
    product<T, BM, true, BN, true, D>(dv, p_at, kv_n, do_at, kv_d);
    if constexpr (C::OVERLAP == Overlap::interleaved) __syncthreads();
    walk.do_is_free(step);
    product<T, BM, true, BN, true, D>(dk, ds_at, kv_n, q_at, kv_d);
    if constexpr (C::OVERLAP == Overlap::interleaved) __syncthreads();
    walk.q_is_free(step);

    float dq[C::Q_MT][C::Q_NT][4];
    clear(dq);
    product<T, BN, false, BN, true, D>(dq, ds_at, q_m, k_at, q_d);
    add_dq<C>(dq, a.dq_sum + walk.block_of(walk.now) * (BM * D));
    walk.end_step();
  }
  store_dk_dv<C>(walk, memory, dk, dv, kv_n, kv_d);
}

/* ---- S transposed, P and dS in registers; each warp has its own keys ---- */

template <class C>
constexpr int register_form_bytes = Walk<C>::BYTES + (C::FORM == Form::registers ? C::P_BYTES : 0);

/* Grid (n_blocks, kv_heads, batch). */
template <class C>
__global__ void __launch_bounds__(C::THREADS) backward_registers(Arguments<typename C::T> a) {
  typedef typename C::T T;
  typedef Walk<C> W;
  constexpr int D = C::D, BM = C::BM, BN = C::BN;
  constexpr int MT = BN / (16 * C::WARPS), S_NT = BM / 8, D_NT = D / 8;
  constexpr bool WITH_DQ = C::FORM == Form::registers;
  static_assert(MT >= 1, "each warp needs 16 keys");
  extern __shared__ __align__(128) unsigned char memory[];
  W walk(a, memory);
  unsigned char *ds_tile = memory + W::BYTES; /* [BN][BM] */
  const uint32_t k_at = walk.base + W::K_AT, v_at = walk.base + W::V_AT, ds_at = walk.base + W::BYTES;
  const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
  const int own = warp * (MT * 16);
  const int q_m = (warp % C::Q_WARPS_M) * (C::Q_MT * 16), q_d = (warp / C::Q_WARPS_M) * (C::Q_NT * 8);

  float dk[MT][D_NT][4], dv[MT][D_NT][4];
  clear(dk);
  clear(dv);

  walk.begin();
  for (int step = 0; step < walk.steps; step++) {
    walk.begin_step(step);
    const int stage = C::STAGES == 2 ? step & 1 : 0;
    const uint32_t q_at = walk.base + W::Q_AT + stage * C::Q_BYTES, do_at = walk.base + W::DO_AT + stage * C::Q_BYTES;
    const float *lse = (const float *)(memory + W::STATISTICS_AT + stage * C::STATISTICS_BYTES), *delta = lse + BM;

    uint32_t p[MT][BM / 16][4], ds[MT][BM / 16][4];
    {
      float s[MT][S_NT][4], dp[MT][S_NT][4]; /* rows: keys, columns: queries */
      clear(s);
      product<T, D, false, D, false, D>(s, k_at, own, q_at, 0);
      if (walk.at_edge()) {
#pragma unroll
        for (int i = 0; i < MT; i++)
#pragma unroll
          for (int j = 0; j < S_NT; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
              int key = walk.n0 + own + i * 16 + (lane >> 2) + (e >> 1) * 8,
                  row = walk.now.m * BM + j * 8 + (lane & 3) * 2 + (e & 1);
              if (walk.masked(row, key)) s[i][j][e] = -INFINITY;
            }
      }
      clear(dp);
      product<T, D, false, D, false, D>(dp, v_at, own, do_at, 0);
#pragma unroll
      for (int j = 0; j < S_NT; j++) {
        float2 l = *(const float2 *)(lse + j * 8 + (lane & 3) * 2), d = *(const float2 *)(delta + j * 8 + (lane & 3) * 2);
#pragma unroll
        for (int i = 0; i < MT; i++)
#pragma unroll
          for (int half = 0; half < 2; half++) {
            float p0 = exp2_fast(s[i][j][half * 2] * a.scale_log2 - l.x),
                  p1 = exp2_fast(s[i][j][half * 2 + 1] * a.scale_log2 - l.y);
            p[i][j / 2][(j & 1) * 2 + half] = pack<T>(p0, p1);
            ds[i][j / 2][(j & 1) * 2 + half] =
                pack<T>(p0 * (dp[i][j][half * 2] - d.x), p1 * (dp[i][j][half * 2 + 1] - d.y));
          }
      }
    }
    if constexpr (WITH_DQ) {
#pragma unroll
      for (int i = 0; i < MT; i++)
#pragma unroll
        for (int j = 0; j < S_NT; j++)
#pragma unroll
          for (int half = 0; half < 2; half++)
            *(uint32_t *)(ds_tile + chunk_offset<BM>(own + i * 16 + half * 8 + (lane >> 2), j) + (lane & 3) * 4) =
                ds[i][j / 2][(j & 1) * 2 + half];
    }
    product<T, true, D>(dv, p, do_at, 0);
    if constexpr (WITH_DQ || C::OVERLAP == Overlap::interleaved) __syncthreads();
    walk.do_is_free(step);
    product<T, true, D>(dk, ds, q_at, 0);
    if constexpr (C::OVERLAP == Overlap::interleaved) __syncthreads();
    walk.q_is_free(step);
    if constexpr (WITH_DQ) {
      float dq[C::Q_MT][C::Q_NT][4];
      clear(dq);
      product<T, BN, true, BM, true, D>(dq, ds_at, q_m, k_at, q_d);
      add_dq<C>(dq, a.dq_sum + walk.block_of(walk.now) * (BM * D));
    }
    walk.end_step();
  }
  store_dk_dv<C>(walk, memory, dk, dv, own, 0);
}

}  // namespace backward_a
