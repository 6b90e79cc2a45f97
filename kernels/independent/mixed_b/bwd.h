/* FlashAttention-2 backward with mma.sync and cp.async in three launches: delta, main (one CTA a block of BN keys, over
 * blocks of BM queries in ST buffers, two barriers each; dQ by reductions in memory), dQ from fp32 to 16 bits. */
#pragma once

#include "ptx.h"

struct BwdParams {
  const void *q, *k, *v, *o, *dout;
  const float* lse;
  float *delta, *dq_acc;
  void *dq, *dk, *dv;
  int batch, heads, kv_heads, sq, skv;
  float scale;
};

/* delta[row] = sum_d dO * O ; D/8 lanes a row, 16 bytes a lane */
template <typename T, int D>
__global__ void __launch_bounds__(256)
    bwd_delta(const T* __restrict__ o, const T* __restrict__ dout, float* __restrict__ delta, int rows) {
  constexpr int L = D / 8;
  int row = blockIdx.x * (256 / L) + threadIdx.x / L, c = threadIdx.x % L;
  if (row >= rows) return; /* rows is a multiple of 64: whole blocks */
  uint4 a = reinterpret_cast<const uint4*>(o + (size_t)row * D)[c];
  uint4 b = reinterpret_cast<const uint4*>(dout + (size_t)row * D)[c];
  uint32_t ua[4] = {a.x, a.y, a.z, a.w}, ub[4] = {b.x, b.y, b.z, b.w};
  float s = 0;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    float2 x = Num<T>::unpack(ua[i]), y = Num<T>::unpack(ub[i]);
    s += x.x * y.x + x.y * y.y;
  }
#pragma unroll
  for (int d = L / 2; d; d >>= 1) s += __shfl_xor_sync(~0u, s, d);
  if (c == 0) delta[row] = s;
}

template <typename T>
__global__ void __launch_bounds__(256)
    bwd_convert(const float* __restrict__ acc, T* __restrict__ dq, float scale, size_t n8) {
  size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
  if (i >= n8) return;
  float4 a = reinterpret_cast<const float4*>(acc)[2 * i], b = reinterpret_cast<const float4*>(acc)[2 * i + 1];
  uint4 r;
  r.x = Num<T>::pack(a.x * scale, a.y * scale);
  r.y = Num<T>::pack(a.z * scale, a.w * scale);
  r.z = Num<T>::pack(b.x * scale, b.y * scale);
  r.w = Num<T>::pack(b.z * scale, b.w * scale);
  reinterpret_cast<uint4*>(dq)[i] = r;
}

/* Everything is kept transposed: a warp owns 16*MT keys (rows of S^T = K Q^T), so that P^T and dS^T are, as they
 * come out of the mma, the A operands of dV += P^T dO and dK += dS^T Q. Only dS goes through shared memory, for dQ.
 * With fewer than NW*16 keys the remaining warps split the queries (QW groups) and dK, dV are summed at the end. */
template <int D, int BM, int BN, int NW, int ST>
struct BwdShape {
  static constexpr int KW = BN / 16 < NW ? BN / 16 : NW, QW = NW / KW, MT = BN / (16 * KW);
  static constexpr int QPW = BM / QW;
  static constexpr int QC = MT > 1 || (D == 64 && NW == 8) || QPW < 64 ? 32 : 64; /* queries handled at a time */
  static constexpr int RB = D * 2, SB = BM * 2;
  static constexpr int oK = 0, oV = BN * RB, oQ = 2 * BN * RB, oO = oQ + ST * BM * RB, oS = oO + ST * BM * RB,
                       oL = oS + BN * SB, oD = oL + ST * BM * 4, BYTES = oD + ST * BM * 4;
  /* CTAs a multiprocessor should hold: what shared memory allows, as long as registers can follow */
  static constexpr int FIT = 227 * 1024 / (BYTES + 1024),
                       WANT = D == 64 && MT == 1 ? (NW == 8 ? 2 : 3) : (NW == 8 ? 1 : 2);
  static constexpr int CTAS = FIT < WANT ? FIT : WANT;
};

template <typename T, int D, int BM, int BN, int NW, int ST, bool CAUSAL>
__global__ void __launch_bounds__(NW * 32, BwdShape<D, BM, BN, NW, ST>::CTAS) bwd_main(const BwdParams p) {
  using N = Num<T>;
  using C = BwdShape<D, BM, BN, NW, ST>;
  constexpr int KW = C::KW, QW = C::QW, MT = C::MT, QPW = C::QPW, QC = C::QC, RB = C::RB, SB = C::SB, NT = NW * 32;
  extern __shared__ __align__(1024) unsigned char smem[];
  const uint32_t s0 = smem_u32(smem);
  const uint32_t sK = s0 + C::oK, sV = s0 + C::oV, sQ = s0 + C::oQ, sO = s0 + C::oO, sS = s0 + C::oS, sL = s0 + C::oL,
                 sD = s0 + C::oD;

  const int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31, g = lane >> 2, t = lane & 3;
  const int kw = warp % KW, qw = warp / KW;
  const LaneAddr la(lane);

  const int n0 = blockIdx.x * BN, hk = blockIdx.y, b = blockIdx.z;
  const int group = p.heads / p.kv_heads;
  const int off = p.skv - p.sq;
  const int m_end = p.sq / BM;
  int m_begin = 0;
  if (CAUSAL) {
    m_begin = n0 - off;
    m_begin = m_begin > 0 ? m_begin / BM : 0;
  }
  const int total = (m_end - m_begin) * group;

  const T* gq = (const T*)p.q;
  const T* go = (const T*)p.dout;
  int ld_m = m_begin, ld_h = hk * group, ld_n = 0; /* next tile to fetch */
  auto fetch = [&](int stage) {
    if (ld_n < total) {
      size_t row = ((size_t)b * p.heads + ld_h) * p.sq + (size_t)ld_m * BM;
      copy_tile<T, BM, D, NT>(sQ + stage * BM * RB, gq + row * D, tid);
      copy_tile<T, BM, D, NT>(sO + stage * BM * RB, go + row * D, tid);
      if (tid < BM / 4)
        cp16(sL + stage * BM * 4 + tid * 16, p.lse + row + tid * 4);
      else if (tid < BM / 2)
        cp16(sD + stage * BM * 4 + (tid - BM / 4) * 16, p.delta + row + (tid - BM / 4) * 4);
      ld_n++;
      if (++ld_m == m_end) {
        ld_m = m_begin;
        ld_h++;
      }
    }
    cp_commit();
  };

  {
    size_t row = ((size_t)b * p.kv_heads + hk) * p.skv + n0;
    copy_tile<T, BN, D, NT>(sK, (const T*)p.k + row * D, tid);
    copy_tile<T, BN, D, NT>(sV, (const T*)p.v + row * D, tid);
  }
  fetch(0);
  if (ST == 2) fetch(1);

  float dk[MT][D / 8][4], dv[MT][D / 8][4];
#pragma unroll
  for (int i = 0; i < MT; i++)
#pragma unroll
    for (int j = 0; j < D / 8; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) dk[i][j][e] = dv[i][j][e] = 0.f;

  const float c2 = p.scale * kLog2e;
  int m = m_begin, h = hk * group;
  const uint32_t aK = sK + (kw * MT * 16 + la.r_lo16) * RB, aV = sV + (kw * MT * 16 + la.r_lo16) * RB;

  for (int it = 0; it < total; it++) {
    const int stage = ST == 2 ? (it & 1) : 0;
    const uint32_t tQ = sQ + stage * BM * RB, tO = sO + stage * BM * RB, tL = sL + stage * BM * 4,
                   tD = sD + stage * BM * 4;
    cp_wait<ST - 1>();
    __syncthreads();
    const bool need_mask = CAUSAL && (n0 + BN - 1 > m * BM + off);

#pragma unroll 1
    for (int qc = 0; qc < QPW / QC; qc++) {
      const int q0 = qw * QPW + qc * QC;
      float s[MT][QC / 8][4], dp[MT][QC / 8][4];
#pragma unroll
      for (int i = 0; i < MT; i++)
#pragma unroll
        for (int j = 0; j < QC / 8; j++)
#pragma unroll
          for (int e = 0; e < 4; e++) s[i][j][e] = dp[i][j][e] = 0.f;

      /* S^T = K Q^T */
      const uint32_t bQ = tQ + (q0 + la.r_split) * RB, bO = tO + (q0 + la.r_split) * RB;
#pragma unroll
      for (int kk = 0; kk < D / 16; kk++) {
        uint32_t a[MT][4];
#pragma unroll
        for (int i = 0; i < MT; i++) ldsm4(a[i], aK + i * 16 * RB + ((kk * 32) ^ la.x_lo16));
#pragma unroll
        for (int j = 0; j < QC / 16; j++) {
          uint32_t bf[4];
          ldsm4(bf, bQ + j * 16 * RB + ((kk * 32) ^ la.x_split));
#pragma unroll
          for (int i = 0; i < MT; i++) {
            N::mma(s[i][2 * j], a[i], bf[0], bf[1]);
            N::mma(s[i][2 * j + 1], a[i], bf[2], bf[3]);
          }
        }
      }
      /* dP^T = V dO^T */
#pragma unroll
      for (int kk = 0; kk < D / 16; kk++) {
        uint32_t a[MT][4];
#pragma unroll
        for (int i = 0; i < MT; i++) ldsm4(a[i], aV + i * 16 * RB + ((kk * 32) ^ la.x_lo16));
#pragma unroll
        for (int j = 0; j < QC / 16; j++) {
          uint32_t bf[4];
          ldsm4(bf, bO + j * 16 * RB + ((kk * 32) ^ la.x_split));
#pragma unroll
          for (int i = 0; i < MT; i++) {
            N::mma(dp[i][2 * j], a[i], bf[0], bf[1]);
            N::mma(dp[i][2 * j + 1], a[i], bf[2], bf[3]);
          }
        }
      }
      if (CAUSAL && need_mask) {
#pragma unroll
        for (int i = 0; i < MT; i++)
#pragma unroll
          for (int j = 0; j < QC / 8; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
              int key = n0 + kw * MT * 16 + i * 16 + g + (e >> 1) * 8;
              int qry = m * BM + q0 + j * 8 + 2 * t + (e & 1) + off;
              if (key > qry) s[i][j][e] = -INFINITY;
            }
      }
      /* P = exp(S - LSE), dS = P (dP - delta); queries are columns */
      uint32_t pp[MT][QC / 8][2], ds[MT][QC / 8][2];
#pragma unroll
      for (int j = 0; j < QC / 8; j++) {
        float2 l = lds_f2(tL + (q0 + j * 8 + 2 * t) * 4), de = lds_f2(tD + (q0 + j * 8 + 2 * t) * 4);
        l.x *= kLog2e;
        l.y *= kLog2e;
#pragma unroll
        for (int i = 0; i < MT; i++) {
          float p0 = ex2(fmaf(s[i][j][0], c2, -l.x)), p1 = ex2(fmaf(s[i][j][1], c2, -l.y));
          float p2 = ex2(fmaf(s[i][j][2], c2, -l.x)), p3 = ex2(fmaf(s[i][j][3], c2, -l.y));
          pp[i][j][0] = N::pack(p0, p1);
          pp[i][j][1] = N::pack(p2, p3);
          ds[i][j][0] = N::pack(p0 * (dp[i][j][0] - de.x), p1 * (dp[i][j][1] - de.y));
          ds[i][j][1] = N::pack(p2 * (dp[i][j][2] - de.x), p3 * (dp[i][j][3] - de.y));
          const uint32_t w = sS + (kw * MT * 16 + i * 16 + g) * SB + (((q0 / 8 + j) ^ g) << 4) + t * 4;
          sts32(w, ds[i][j][0]);
          sts32(w + 8 * SB, ds[i][j][1]);
        }
      }
      /* dV += P^T dO */
      const uint32_t tbO = tO + (q0 + la.r_lo16) * RB, tbQ = tQ + (q0 + la.r_lo16) * RB;
#pragma unroll
      for (int kk = 0; kk < QC / 16; kk++)
#pragma unroll
        for (int j = 0; j < D / 16; j++) {
          uint32_t bf[4];
          ldsm4t(bf, tbO + kk * 16 * RB + ((j * 32) ^ la.x_lo16));
#pragma unroll
          for (int i = 0; i < MT; i++) {
            const uint32_t a[4] = {pp[i][2 * kk][0], pp[i][2 * kk][1], pp[i][2 * kk + 1][0], pp[i][2 * kk + 1][1]};
            N::mma(dv[i][2 * j], a, bf[0], bf[1]);
            N::mma(dv[i][2 * j + 1], a, bf[2], bf[3]);
          }
        }
        /* dK += dS^T Q */
#pragma unroll
      for (int kk = 0; kk < QC / 16; kk++)
#pragma unroll
        for (int j = 0; j < D / 16; j++) {
          uint32_t bf[4];
          ldsm4t(bf, tbQ + kk * 16 * RB + ((j * 32) ^ la.x_lo16));
#pragma unroll
          for (int i = 0; i < MT; i++) {
            const uint32_t a[4] = {ds[i][2 * kk][0], ds[i][2 * kk][1], ds[i][2 * kk + 1][0], ds[i][2 * kk + 1][1]};
            N::mma(dk[i][2 * j], a, bf[0], bf[1]);
            N::mma(dk[i][2 * j + 1], a, bf[2], bf[3]);
          }
        }
    }

    __syncthreads(); /* dS complete; this stage's Q, dO, LSE, delta are read */
    fetch(stage);

    /* dQ = dS K in pieces of 16 queries x 64 columns (registers); with more warps than strips, a warp takes a part of
     * the columns */
    constexpr int RW = BM / 16 < NW ? BM / 16 : NW, CW = NW / RW, STRIPS = BM / 16 / RW;
    constexpr int DC = D / CW < 64 ? D / CW : 64, PARTS = D / CW / DC;
    const int rw = warp % RW, cw = warp / RW;
#pragma unroll 1
    for (int piece = 0; piece < STRIPS * PARTS; piece++) {
      const int strip = piece / PARTS * RW + rw, col = (cw * PARTS + piece % PARTS) * DC;
      float acc[DC / 8][4];
#pragma unroll
      for (int j = 0; j < DC / 8; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) acc[j][e] = 0.f;
      const uint32_t aS = sS + la.r_split * SB + ((strip * 32) ^ la.x_split);
      const uint32_t bK = sK + la.r_lo16 * RB;
#pragma unroll
      for (int kk = 0; kk < BN / 16; kk++) {
        uint32_t a[4];
        ldsm4t(a, aS + kk * 16 * SB);
#pragma unroll
        for (int j = 0; j < DC / 16; j++) {
          uint32_t bf[4];
          ldsm4t(bf, bK + kk * 16 * RB + ((col * 2 + j * 32) ^ la.x_lo16));
          N::mma(acc[2 * j], a, bf[0], bf[1]);
          N::mma(acc[2 * j + 1], a, bf[2], bf[3]);
        }
      }
      float* dst = p.dq_acc + (((size_t)b * p.heads + h) * p.sq + (size_t)m * BM + strip * 16 + g) * D + col + 2 * t;
#pragma unroll
      for (int j = 0; j < DC / 8; j++) {
        red_add2(dst + j * 8, acc[j][0], acc[j][1]);
        red_add2(dst + 8 * D + j * 8, acc[j][2], acc[j][3]);
      }
    }
    if (++m == m_end) {
      m = m_begin;
      h++;
    }
  }

  cp_wait<0>();
  __syncthreads();
  if (QW > 1) { /* sum the query groups through shared memory (K, V, Q, dO are not needed any more) */
    static_assert(QW <= 2, "");
    static_assert(QW == 1 || BN * D * 8 <= C::BYTES, "");
    float* red = reinterpret_cast<float*>(smem);
    const int slot = kw * 32 + lane;
    if (qw == 1) {
#pragma unroll
      for (int i = 0; i < MT; i++)
#pragma unroll
        for (int j = 0; j < D / 8; j++)
#pragma unroll
          for (int e = 0; e < 4; e++) {
            int r = (i * (D / 8) + j) * 4 + e;
            red[(2 * r) * (KW * 32) + slot] = dk[i][j][e];
            red[(2 * r + 1) * (KW * 32) + slot] = dv[i][j][e];
          }
    }
    __syncthreads();
    if (qw == 0) {
#pragma unroll
      for (int i = 0; i < MT; i++)
#pragma unroll
        for (int j = 0; j < D / 8; j++)
#pragma unroll
          for (int e = 0; e < 4; e++) {
            int r = (i * (D / 8) + j) * 4 + e;
            dk[i][j][e] += red[(2 * r) * (KW * 32) + slot];
            dv[i][j][e] += red[(2 * r + 1) * (KW * 32) + slot];
          }
    }
    __syncthreads();
  }
  if (qw == 0) {
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
      for (int j = 0; j < D / 8; j++) {
        const uint32_t o = (kw * MT * 16 + i * 16 + g) * RB + ((j ^ g) << 4) + t * 4;
        sts32(sK + o, N::pack(dk[i][j][0] * p.scale, dk[i][j][1] * p.scale));
        sts32(sK + o + 8 * RB, N::pack(dk[i][j][2] * p.scale, dk[i][j][3] * p.scale));
        sts32(sV + o, N::pack(dv[i][j][0], dv[i][j][1]));
        sts32(sV + o + 8 * RB, N::pack(dv[i][j][2], dv[i][j][3]));
      }
  }
  __syncthreads();
  {
    size_t row = ((size_t)b * p.kv_heads + hk) * p.skv + n0;
    T* gk = (T*)p.dk + row * D;
    T* gv = (T*)p.dv + row * D;
    constexpr int CH = D / 8;
#pragma unroll
    for (int i = 0; i < BN * CH / NT; i++) {
      int idx = tid + i * NT, r = idx / CH, c = idx % CH;
      *reinterpret_cast<uint4*>(gk + (size_t)r * D + c * 8) = lds128(sK + swz<RB>(r, c));
      *reinterpret_cast<uint4*>(gv + (size_t)r * D + c * 8) = lds128(sV + swz<RB>(r, c));
    }
  }
}

template <typename T, int D, int BM, int BN, int NW, int ST, bool CAUSAL>
cudaError_t bwd_launch(const BwdParams& p) {
  using C = BwdShape<D, BM, BN, NW, ST>;
  auto kern = bwd_main<T, D, BM, BN, NW, ST, CAUSAL>;
  cudaError_t e = cudaFuncSetAttribute(kern, cudaFuncAttributeMaxDynamicSharedMemorySize, C::BYTES);
  if (e != cudaSuccess) return e;
  int rows = p.batch * p.heads * p.sq, per = 256 / (D / 8);
  bwd_delta<T, D><<<(rows + per - 1) / per, 256>>>((const T*)p.o, (const T*)p.dout, p.delta, rows);
  kern<<<dim3(p.skv / BN, p.kv_heads, p.batch), NW * 32, C::BYTES>>>(p);
  size_t n8 = (size_t)rows * D / 8;
  bwd_convert<T><<<(unsigned)((n8 + 255) / 256), 256>>>(p.dq_acc, (T*)p.dq, p.scale, n8);
  return cudaGetLastError();
}
