/* Attention forward with wgmma and TMA, in tiles of 16 rows a warp and BN keys; mbarriers for every buffer of K and V.
 *
 * flash_stages: every warp computes, thread 0 also issues the copies; ST buffers of K and of V.
 *
 * flash_ws: one producer warpgroup, two or three consumers of 64 rows each, two buffers of K and of V, from the last
 * tile of keys to the first, persistent if there are fewer CTAs than tiles; O leaves by TMA. */
#pragma once

#include "hopper_ptx.h"

struct AttnP {
  int heads, kv_heads, sq, skv;
  int m_tiles, bh, num_tiles;
  int head_first, reverse;
  float scale_log2;
  void* o;
  long long o_sb, o_sh, o_ss; /* strides of O in elements */
  float* lse;                 /* [batch][heads][sq] */
};

struct Tile {
  int m0, h, b, hk;
};
template <int BM>
DEV Tile tile_of(const AttnP& p, int t) {
  int m, bh;
  if (p.head_first) {
    m = t / p.bh;
    bh = t - m * p.bh;
  } else {
    bh = t / p.m_tiles;
    m = t - bh * p.m_tiles;
  }
  if (p.reverse) m = p.m_tiles - 1 - m;
  Tile r;
  r.m0 = m * BM;
  r.b = bh / p.heads;
  r.h = bh - r.b * p.heads;
  r.hk = r.h / (p.heads / p.kv_heads);
  return r;
}
template <int BM, int BN, bool CAUSAL>
DEV int kv_blocks(const AttnP& p, int m0) {
  int last = p.skv;
  if (CAUSAL) last = min(last, m0 + BM + p.skv - p.sq);
  return max(0, (last + BN - 1) / BN);
}

/* S[64][BN] = Q K^T: q points at the warpgroup's first row of panel 0 */
template <class T, int HD, int BM, int BN>
DEV void gemm_qk(float (&s)[BN / 2], uint32_t q, uint32_t k) {
#pragma unroll
  for (int kk = 0; kk < HD / 16; kk++) {
    const int panel = kk / 4, in = (kk % 4) * 32;
    wgmma_ss<T, 0>(s, desc_k(q + panel * BM * 128 + in), desc_k(k + panel * BN * 128 + in), kk > 0);
  }
}
/* O[64][HD] += P V */
template <class T, int HD, int BN>
DEV void gemm_pv(float (&o)[HD / 2], const uint32_t (&pr)[BN / 16][4], uint32_t v) {
#pragma unroll
  for (int kk = 0; kk < BN / 16; kk++) wgmma_rs<T, 1>(o, pr[kk], desc_mn(v + kk * 2048, BN * 128));
}

/* keys beyond the sequence or (causal) after the row; col0 = first column of the block, row = this thread's first row
 */
template <int BN, bool CAUSAL>
DEV void mask_block(float (&s)[BN / 2], const AttnP& p, int row, int col0, int lane) {
  int lim0 = p.skv, lim1 = p.skv; /* first column not allowed */
  if (CAUSAL) {
    lim0 = min(lim0, row + 1 + p.skv - p.sq);
    lim1 = min(lim1, row + 9 + p.skv - p.sq);
  }
  const int c = col0 + (lane & 3) * 2;
#pragma unroll
  for (int j = 0; j < BN / 8; j++) {
    if (c + 8 * j >= lim0) s[4 * j] = -INFINITY;
    if (c + 8 * j + 1 >= lim0) s[4 * j + 1] = -INFINITY;
    if (c + 8 * j >= lim1) s[4 * j + 2] = -INFINITY;
    if (c + 8 * j + 1 >= lim1) s[4 * j + 3] = -INFINITY;
  }
}
template <int BN, bool CAUSAL>
DEV void maybe_mask(float (&s)[BN / 2], const AttnP& p, int wg_row, int row, int j, int lane) {
  const bool tail = (j + 1) * BN > p.skv;
  const bool diag = CAUSAL && (j + 1) * BN - 1 > wg_row + p.skv - p.sq;
  if (tail || diag) mask_block<BN, CAUSAL>(s, p, row, j * BN, lane);
}

/* online softmax: s becomes exp2((s - max) * scale); alpha is what the old sums and O must be multiplied by */
template <int BN>
DEV void softmax_step(float (&s)[BN / 2], float (&m)[2], float (&l)[2], float (&alpha)[2], float sc) {
#pragma unroll
  for (int r = 0; r < 2; r++) {
    float mx = m[r];
#pragma unroll
    for (int j = 0; j < BN / 8; j++) mx = fmaxf(mx, fmaxf(s[4 * j + 2 * r], s[4 * j + 2 * r + 1]));
    mx = fmaxf(mx, __shfl_xor_sync(0xffffffffu, mx, 1));
    mx = fmaxf(mx, __shfl_xor_sync(0xffffffffu, mx, 2));
    const float ms = mx == -INFINITY ? 0.f : mx * sc;
    alpha[r] = ex2(m[r] * sc - ms);
    m[r] = mx;
    float sum = 0.f;
#pragma unroll
    for (int j = 0; j < BN / 8; j++) {
      float& a = s[4 * j + 2 * r];
      float& b = s[4 * j + 2 * r + 1];
      a = ex2(fmaf(a, sc, -ms));
      b = ex2(fmaf(b, sc, -ms));
      sum += a + b;
    }
    l[r] = l[r] * alpha[r] + sum;
  }
}
template <int N>
DEV void scale_rows(float (&o)[N], const float (&f)[2]) {
#pragma unroll
  for (int j = 0; j < N / 4; j++) {
    o[4 * j] *= f[0];
    o[4 * j + 1] *= f[0];
    o[4 * j + 2] *= f[1];
    o[4 * j + 3] *= f[1];
  }
}
/* the accumulator layout of S is the A-operand layout of P, 16 columns at a time */
template <class T, int BN>
DEV void to_p(uint32_t (&pr)[BN / 16][4], const float (&s)[BN / 2]) {
#pragma unroll
  for (int kk = 0; kk < BN / 16; kk++)
#pragma unroll
    for (int i = 0; i < 4; i++) pr[kk][i] = pack2<T>(s[8 * kk + 2 * i], s[8 * kk + 2 * i + 1]);
}
/* finishes the sums over the quad, writes LSE, returns 1/l */
DEV void finish_rows(const AttnP& p, const Tile& t, int row, int lane, const float (&m)[2], float (&l)[2],
                     float (&inv)[2]) {
#pragma unroll
  for (int r = 0; r < 2; r++) {
    l[r] += __shfl_xor_sync(0xffffffffu, l[r], 1);
    l[r] += __shfl_xor_sync(0xffffffffu, l[r], 2);
    inv[r] = l[r] > 0.f ? 1.f / l[r] : 0.f;
    const int rr = row + 8 * r;
    if ((lane & 3) == 0 && rr < p.sq) {
      const float lse = l[r] > 0.f ? (m[r] * p.scale_log2 + __log2f(l[r])) * 0.69314718056f : -INFINITY;
      p.lse[((long long)t.b * p.heads + t.h) * p.sq + rr] = lse;
    }
  }
}

/* flash_stages: every warp computes; thread 0 also issues the TMA copies into ST buffers of K and V */
template <int HD, int BN, int NW, int ST>
constexpr int stages_smem() {
  return NW * 16 * HD * 2 + 2 * ST * BN * HD * 2 + 8 * (1 + 3 * ST);
}

template <class T, int HD, int BN, int NW, int ST, bool CAUSAL>
__global__ void __launch_bounds__(NW * 32)
    flash_stages(const __grid_constant__ CUtensorMap tq, const __grid_constant__ CUtensorMap tk,
                 const __grid_constant__ CUtensorMap tv, const __grid_constant__ CUtensorMap /*to*/, const AttnP p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL /* nvcc may also build a plain compute_90 version, which has no wgmma */
  constexpr int BM = NW * 16, PANELS = HD / 64;
  constexpr uint32_t QB = BM * HD * 2, KVB = BN * HD * 2;
  extern __shared__ __align__(1024) uint8_t smem[];
  const uint32_t sQ = smem_u32(smem), sK = sQ + QB, sV = sK + ST * KVB, bars = sV + ST * KVB;
  const uint32_t q_full = bars, k_full = bars + 8, v_full = k_full + 8 * ST, empty = v_full + 8 * ST;

  const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32, wg = tid / 128;
  const Tile t = tile_of<BM>(p, blockIdx.x);
  const int n = kv_blocks<BM, BN, CAUSAL>(p, t.m0);

  auto load_kv = [&](int j, int s) {
    mbar_expect_tx(k_full + 8 * s, KVB);
#pragma unroll
    for (int c = 0; c < PANELS; c++)
      tma_load_4d(sK + s * KVB + c * BN * 128, &tk, k_full + 8 * s, c * 64, j * BN, t.hk, t.b);
    mbar_expect_tx(v_full + 8 * s, KVB);
#pragma unroll
    for (int c = 0; c < PANELS; c++)
      tma_load_4d(sV + s * KVB + c * BN * 128, &tv, v_full + 8 * s, c * 64, j * BN, t.hk, t.b);
  };

  if (tid == 0) {
    tma_prefetch_map(&tq);
    tma_prefetch_map(&tk);
    tma_prefetch_map(&tv);
    mbar_init(q_full, 1);
    for (int s = 0; s < ST; s++) {
      mbar_init(k_full + 8 * s, 1);
      mbar_init(v_full + 8 * s, 1);
      mbar_init(empty + 8 * s, NW);
    }
    mbar_init_fence();
  }
  __syncthreads();
  if (tid == 0) {
    mbar_expect_tx(q_full, QB);
#pragma unroll
    for (int c = 0; c < PANELS; c++) tma_load_4d(sQ + c * BM * 128, &tq, q_full, c * 64, t.m0, t.h, t.b);
    for (int s = 0; s < ST; s++)
      if (s < n) load_kv(s, s);
  }
  __syncwarp();

  const int wg_row = t.m0 + wg * 64, row = t.m0 + warp * 16 + lane / 4;
  const uint32_t q_wg = sQ + wg * 64 * 128;
  float o[HD / 2], m[2] = {-INFINITY, -INFINITY}, l[2] = {0.f, 0.f};
#pragma unroll
  for (int i = 0; i < HD / 2; i++) o[i] = 0.f;

  mbar_wait(q_full, 0);
  int s_idx = 0, phase = 0;   /* buffer of block j */
  int p_idx = 0, p_phase = 0; /* buffer of block j - 1 */
  for (int j = 0; j < n; j++) {
    float s[BN / 2], alpha[2];
    uint32_t pr[BN / 16][4];
    mbar_wait(k_full + 8 * s_idx, phase);
    pin(s);
    wg_fence();
    gemm_qk<T, HD, BM, BN>(s, q_wg, sK + s_idx * KVB);
    wg_commit();
    /* while the product runs: refill the buffers that block j-1 has left */
    if (tid == 0 && j > 0 && j - 1 + ST < n) {
      mbar_wait(empty + 8 * p_idx, p_phase);
      load_kv(j - 1 + ST, p_idx);
    }
    __syncwarp();
    wg_wait<0>();
    pin(s);
    maybe_mask<BN, CAUSAL>(s, p, wg_row, row, j, lane);
    softmax_step<BN>(s, m, l, alpha, p.scale_log2);
    scale_rows(o, alpha);
    to_p<T, BN>(pr, s);
    mbar_wait(v_full + 8 * s_idx, phase);
    pin(o);
    pin(pr);
    wg_fence();
    gemm_pv<T, HD, BN>(o, pr, sV + s_idx * KVB);
    wg_commit();
    wg_wait<0>();
    pin(o);
    pin(pr);
    if (lane == 0) mbar_arrive(empty + 8 * s_idx);
    p_idx = s_idx;
    p_phase = phase;
    if (++s_idx == ST) {
      s_idx = 0;
      phase ^= 1;
    }
  }

  float inv[2];
  finish_rows(p, t, row, lane, m, l, inv);
  scale_rows(o, inv);
  T* out = (T*)p.o + t.b * p.o_sb + t.h * p.o_sh + (lane & 3) * 2;
#pragma unroll
  for (int r = 0; r < 2; r++)
    if (row + 8 * r < p.sq) {
      T* orow = out + (row + 8 * r) * p.o_ss;
#pragma unroll
      for (int j = 0; j < HD / 8; j++) *(uint32_t*)(orow + 8 * j) = pack2<T>(o[4 * j + 2 * r], o[4 * j + 2 * r + 1]);
    }
#endif
}

/* flash_ws: warpgroup 0 copies, NW/4 consumer warpgroups compute; S of the next block
 * is issued before PV of this block is waited for. PP: the consumers take turns at the tensor cores. */
template <int HD, int BN, int NW>
constexpr int ws_smem() {
  return NW * 16 * HD * 2 + 4 * BN * HD * 2 + 8 * 10;
}

template <class T, int HD, int BN, int NW, bool CAUSAL, bool PP>
__global__ void __launch_bounds__(NW * 32 + 128, 1)
    flash_ws(const __grid_constant__ CUtensorMap tq, const __grid_constant__ CUtensorMap tk,
             const __grid_constant__ CUtensorMap tv, const __grid_constant__ CUtensorMap to, const AttnP p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int NC = NW / 4, BM = NC * 64, PANELS = HD / 64;
  constexpr uint32_t QB = BM * HD * 2, KVB = BN * HD * 2;
  extern __shared__ __align__(1024) uint8_t smem[];
  const uint32_t sQ = smem_u32(smem), sK = sQ + QB, sV = sK + 2 * KVB, bars = sV + 2 * KVB;
  const uint32_t q_full = bars, q_empty = bars + 8, k_full = bars + 16, k_empty = bars + 32, v_full = bars + 48,
                 v_empty = bars + 64;

  const int tid = threadIdx.x, wg = __shfl_sync(0xffffffffu, tid / 128, 0);
  if (tid == 0) {
    tma_prefetch_map(&tq);
    tma_prefetch_map(&tk);
    tma_prefetch_map(&tv);
    tma_prefetch_map(&to);
    mbar_init(q_full, 1);
    mbar_init(q_empty, NC);
    for (int s = 0; s < 2; s++) {
      mbar_init(k_full + 8 * s, 1);
      mbar_init(v_full + 8 * s, 1);
      mbar_init(k_empty + 8 * s, NW);
      mbar_init(v_empty + 8 * s, NW);
    }
    mbar_init_fence();
  }
  __syncthreads();

  if (wg == 0) {
    /* producer */
    reg_dec<NC == 2 ? 24 : 32>();
    if (tid == 0) {
      uint32_t ik = 0, iv = 0, tp = 0; /* blocks of K, of V issued; tile parity */
      for (int tile = blockIdx.x; tile < p.num_tiles; tile += gridDim.x) {
        const Tile t = tile_of<BM>(p, tile);
        const int n = kv_blocks<BM, BN, CAUSAL>(p, t.m0);
        mbar_wait(q_empty, tp ^ 1);
        tp ^= 1;
        mbar_expect_tx(q_full, QB);
#pragma unroll
        for (int c = 0; c < PANELS; c++) tma_load_4d(sQ + c * BM * 128, &tq, q_full, c * 64, t.m0, t.h, t.b);
        /* order: K(n-1), K(n-2), V(n-1), K(n-3), V(n-2), ... , V(0) */
        for (int j = n - 1; j >= -1; j--) {
          if (j >= 0) {
            const uint32_t s = ik & 1;
            mbar_wait(k_empty + 8 * s, ((ik >> 1) & 1) ^ 1);
            mbar_expect_tx(k_full + 8 * s, KVB);
#pragma unroll
            for (int c = 0; c < PANELS; c++)
              tma_load_4d(sK + s * KVB + c * BN * 128, &tk, k_full + 8 * s, c * 64, j * BN, t.hk, t.b);
            ik++;
          }
          if (j < n - 1) {
            const uint32_t s = iv & 1;
            mbar_wait(v_empty + 8 * s, ((iv >> 1) & 1) ^ 1);
            mbar_expect_tx(v_full + 8 * s, KVB);
#pragma unroll
            for (int c = 0; c < PANELS; c++)
              tma_load_4d(sV + s * KVB + c * BN * 128, &tv, v_full + 8 * s, c * 64, (j + 1) * BN, t.hk, t.b);
            iv++;
          }
        }
      }
      /* waits until the consumers have left every buffer */
      for (int e = 0; e < 2; e++, ik++, iv++) {
        mbar_wait(k_empty + 8 * (ik & 1), ((ik >> 1) & 1) ^ 1);
        mbar_wait(v_empty + 8 * (iv & 1), ((iv >> 1) & 1) ^ 1);
      }
    }
  } else {
    /* consumers */
    reg_inc<NC == 2 ? 240 : 160>();
    const int cw = wg - 1, lane = tid % 32, warp = (tid - 128) / 32;
    const int my_bar = 1 + cw, next_bar = 1 + (cw + 1) % NC, epi_bar = 5 + cw;
    const uint32_t q_wg = sQ + cw * 64 * 128;
    if (PP && cw == NC - 1) bar_arrive(next_bar, 256); /* consumer 0 has the first turn */
    uint32_t ib = 0, tp = 0;                           /* blocks consumed so far; tile parity */
    for (int tile = blockIdx.x; tile < p.num_tiles; tile += gridDim.x) {
      const Tile t = tile_of<BM>(p, tile);
      const int n = kv_blocks<BM, BN, CAUSAL>(p, t.m0);
      const int wg_row = t.m0 + cw * 64, row = t.m0 + warp * 16 + lane / 4;
      float o[HD / 2], s[BN / 2], m[2] = {-INFINITY, -INFINITY}, l[2] = {0.f, 0.f}, alpha[2];
      uint32_t pr[BN / 16][4];
#pragma unroll
      for (int i = 0; i < HD / 2; i++) o[i] = 0.f;

      mbar_wait(q_full, tp);
      tp ^= 1;
      if (n > 0) {
        mbar_wait(k_full + 8 * (ib & 1), (ib >> 1) & 1);
        pin(s);
        wg_fence();
        gemm_qk<T, HD, BM, BN>(s, q_wg, sK + (ib & 1) * KVB);
        wg_commit();
        wg_wait<0>();
        pin(s);
        if (lane == 0) mbar_arrive(k_empty + 8 * (ib & 1));
        maybe_mask<BN, CAUSAL>(s, p, wg_row, row, n - 1, lane);
        softmax_step<BN>(s, m, l, alpha, p.scale_log2);
        to_p<T, BN>(pr, s);

        for (int j = n - 2; j >= 0; j--) {
          const uint32_t sv = ib & 1, pv = (ib >> 1) & 1; /* buffer and phase of V(j+1) */
          ib++;
          const uint32_t sk = ib & 1, pk = (ib >> 1) & 1; /* of K(j) */
          mbar_wait(k_full + 8 * sk, pk);
          if (PP) bar_sync(my_bar, 256);
          pin(s);
          pin(o);
          pin(pr);
          wg_fence();
          gemm_qk<T, HD, BM, BN>(s, q_wg, sK + sk * KVB);
          wg_commit();
          mbar_wait(v_full + 8 * sv, pv);
          wg_fence();
          gemm_pv<T, HD, BN>(o, pr, sV + sv * KVB);
          wg_commit();
          if (PP) bar_arrive(next_bar, 256); /* the next consumer may issue */
          wg_wait<1>();
          pin(s);
          if (lane == 0) mbar_arrive(k_empty + 8 * sk);
          maybe_mask<BN, CAUSAL>(s, p, wg_row, row, j, lane);
          softmax_step<BN>(s, m, l, alpha, p.scale_log2);
          wg_wait<0>();
          pin(o);
          pin(pr);
          if (lane == 0) mbar_arrive(v_empty + 8 * sv);
          scale_rows(o, alpha);
          to_p<T, BN>(pr, s);
        }
        mbar_wait(v_full + 8 * (ib & 1), (ib >> 1) & 1);
        pin(o);
        pin(pr);
        wg_fence();
        gemm_pv<T, HD, BN>(o, pr, sV + (ib & 1) * KVB);
        wg_commit();
        wg_wait<0>();
        pin(o);
        pin(pr);
        if (lane == 0) mbar_arrive(v_empty + 8 * (ib & 1));
        ib++;
      }

      float inv[2];
      finish_rows(p, t, row, lane, m, l, inv);
      scale_rows(o, inv);
      /* O goes out through this warpgroup's rows of the Q buffer, in the same swizzled panels */
      bar_sync(epi_bar, 128); /* no warp of the group still reads Q */
#pragma unroll
      for (int j = 0; j < HD / 8; j++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
          const int rr = warp % 4 * 16 + lane / 4 + 8 * r;
          const uint32_t addr = q_wg + (j / 8) * BM * 128 + rr * 128 + (((j % 8) ^ (rr & 7)) * 16) + (lane & 3) * 4;
          asm volatile("st.shared.b32 [%0], %1;" ::"r"(addr), "r"(pack2<T>(o[4 * j + 2 * r], o[4 * j + 2 * r + 1]))
                       : "memory");
        }
      proxy_fence();
      bar_sync(epi_bar, 128);
      if (tid % 128 == 0) {
        if (wg_row < p.sq) {
#pragma unroll
          for (int c = 0; c < PANELS; c++) tma_store_4d(&to, q_wg + c * BM * 128, c * 64, wg_row, t.h, t.b);
        }
        tma_store_commit();
        tma_store_wait_read();
        mbar_arrive(q_empty);
      }
      __syncwarp();
    }
    /* the last turn handed to consumer 0 stays unused */
  }
#endif
}
