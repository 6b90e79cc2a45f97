/* FlashAttention-2 backward in three launches: delta = rowsum(O*dO); main, a CTA per key block; dQ fp32 -> 16 bits.
 * The main kernel works on transposed scores: a warp owns BN/NW keys, so P^T and dS^T go from the accumulators straight
 * into the A operand of dV += P^T dO and dK += dS^T Q; only dS^T goes through shared memory, for dQ = dS K by
 * atomic additions. Q and dO are double-buffered by cp.async; two barriers a block of queries. */
#pragma once

#include "ptx.h"

struct BwdArgs {
  const void *q, *k, *v, *o, *dout; /* [batch][heads][seq][D] */
  const float* lse;                 /* [batch][heads][seqlen_q] */
  float *delta, *dqacc;             /* same; [batch][heads][seqlen_q][D], zeroed before */
  void *dq, *dk, *dv;
  int heads, seqlen_q, seqlen_kv;
  float scale;
};

template <typename T, int D>
__global__ void __launch_bounds__(256) bwd_delta(const BwdArgs p) { /* D/8 lanes a row */
  constexpr int L = D / 8;
  const size_t row = (size_t)blockIdx.x * (256 / L) + threadIdx.x / L;
  const int c = threadIdx.x % L;
  const uint4 a = *reinterpret_cast<const uint4*>((const T*)p.o + row * D + c * 8);
  const uint4 b = *reinterpret_cast<const uint4*>((const T*)p.dout + row * D + c * 8);
  const uint32_t av[4] = {a.x, a.y, a.z, a.w}, bv[4] = {b.x, b.y, b.z, b.w};
  float s = 0.f;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    float2 x = unpack2<T>(av[i]), y = unpack2<T>(bv[i]);
    s += x.x * y.x + x.y * y.y;
  }
#pragma unroll
  for (int i = L / 2; i; i >>= 1) s += __shfl_xor_sync(0xffffffffu, s, i);
  if (c == 0) p.delta[row] = s;
}

template <typename T>
__global__ void __launch_bounds__(256) bwd_convert(const BwdArgs p) { /* 8 elements a thread */
  const size_t i = ((size_t)blockIdx.x * 256 + threadIdx.x) * 8;
  const float4 a = *reinterpret_cast<const float4*>(p.dqacc + i), b = *reinterpret_cast<const float4*>(p.dqacc + i + 4);
  const float s = p.scale;
  *reinterpret_cast<uint4*>((T*)p.dq + i) = make_uint4(pack2<T>(a.x * s, a.y * s), pack2<T>(a.z * s, a.w * s),
                                                       pack2<T>(b.x * s, b.y * s), pack2<T>(b.z * s, b.w * s));
}

template <int D, int BM, int BN>
constexpr int bwd_smem() {
  return 2 * BN * D * 2 + 4 * BM * D * 2 + BN * BM * 2 +
         4 * BM * 4; /* K V | 2 stages of Q dO | dS^T | 2 stages of lse delta */
}

template <typename T, int D, int BM, int BN, int NW, bool CAUSAL>
__global__ void __launch_bounds__(NW * 32) bwd_main(const BwdArgs p) {
  constexpr int NT = NW * 32, KW = BN / NW, MI = KW / 16; /* keys of a warp, in 16-row tiles */
  constexpr int QT = BM * D * 2;
  static_assert(BM == 64 && KW % 16 == 0, "shape");
  DYN_SMEM(smem);
  const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
  const int nb = blockIdx.x, h = blockIdx.y, b = blockIdx.z;
  const size_t bh = (size_t)b * p.heads + h;
  const uint32_t sK = smem_addr(smem), sV = sK + BN * D * 2, sQ = sV + BN * D * 2, sO = sQ + 2 * QT, sS = sO + 2 * QT,
                 sL = sS + BN * BM * 2;
  const float* lsed =
      reinterpret_cast<const float*>(smem + 2 * BN * D * 2 + 4 * QT + BN * BM * 2); /* [stage][lse | delta][BM] */

  const T* q = (const T*)p.q + bh * p.seqlen_q * D;
  const T* dout = (const T*)p.dout + bh * p.seqlen_q * D;
  const size_t kvoff = (bh * p.seqlen_kv + (size_t)nb * BN) * D;
  const float* lse = p.lse + bh * p.seqlen_q;
  const float* delta = p.delta + bh * p.seqlen_q;
  float* dqacc = p.dqacc + bh * p.seqlen_q * D;

  const int shift = p.seqlen_kv - p.seqlen_q; /* key k is seen by query i when k <= i + shift */
  const int mblocks = p.seqlen_q / BM;
  const int mfirst = CAUSAL ? max(0, nb * BN - shift) / BM : 0;

  auto load_q = [&](int m) {
    const int st = m & 1;
    copy_tile<BM, D, NT>(sQ + st * QT, q + (size_t)m * BM * D, D, tid);
    copy_tile<BM, D, NT>(sO + st * QT, dout + (size_t)m * BM * D, D, tid);
    if (tid < 2 * BM / 4) {
      const int which = tid / (BM / 4), i = (tid % (BM / 4)) * 4;
      cp16(sL + ((st * 2 + which) * BM + i) * 4, (which ? delta : lse) + m * BM + i);
    }
  };

  float dk[MI][D / 8][4], dv[MI][D / 8][4];
#pragma unroll
  for (int a = 0; a < MI; a++)
#pragma unroll
    for (int i = 0; i < D / 8; i++)
#pragma unroll
      for (int e = 0; e < 4; e++) dk[a][i][e] = dv[a][i][e] = 0.f;

  copy_tile<BN, D, NT>(sK, (const T*)p.k + kvoff, D, tid);
  copy_tile<BN, D, NT>(sV, (const T*)p.v + kvoff, D, tid);
  if (mfirst < mblocks) load_q(mfirst);
  cp_commit();

  const float sc = p.scale * LOG2E;
  const int k0 = warp * KW, r = lane >> 2, c2 = (lane & 3) * 2;

  for (int m = mfirst; m < mblocks; m++) {
    cp_wait<0>();
    __syncthreads(); /* Q, dO, lse, delta of m are there; all warps have read those of m-1 */
    if (m + 1 < mblocks) load_q(m + 1);
    cp_commit();
    const uint32_t qt = sQ + (m & 1) * QT, ot = sO + (m & 1) * QT;
    const float* ls = lsed + (m & 1) * 2 * BM;
    const float* dl = ls + BM;

    /* S^T = K Q^T */
    float s[MI][BM / 8][4];
#pragma unroll
    for (int a = 0; a < MI; a++)
#pragma unroll
      for (int i = 0; i < BM / 8; i++) s[a][i][0] = s[a][i][1] = s[a][i][2] = s[a][i][3] = 0.f;
#pragma unroll
    for (int k = 0; k < D / 16; k++) {
      uint32_t af[MI][4];
#pragma unroll
      for (int a = 0; a < MI; a++) ldsm4(af[a], fa<D>(sK, k0 + a * 16, 2 * k, lane));
#pragma unroll
      for (int j = 0; j < BM / 16; j++) {
        uint32_t bf[4];
        ldsm4(bf, fb<D>(qt, j * 16, 2 * k, lane));
#pragma unroll
        for (int a = 0; a < MI; a++) {
          mma<T>(s[a][2 * j], af[a], bf[0], bf[1]);
          mma<T>(s[a][2 * j + 1], af[a], bf[2], bf[3]);
        }
      }
    }
    /* P^T = exp(S^T * scale - lse), lse by column */
    const bool diag = CAUSAL && (nb * BN + BN - 1 > m * BM + shift);
#pragma unroll
    for (int i = 0; i < BM / 8; i++) {
      const float2 L = *reinterpret_cast<const float2*>(ls + i * 8 + c2);
      const float lx = L.x * LOG2E, ly = L.y * LOG2E;
#pragma unroll
      for (int a = 0; a < MI; a++) {
        s[a][i][0] = exp2f(s[a][i][0] * sc - lx);
        s[a][i][1] = exp2f(s[a][i][1] * sc - ly);
        s[a][i][2] = exp2f(s[a][i][2] * sc - lx);
        s[a][i][3] = exp2f(s[a][i][3] * sc - ly);
        if (diag) {
          const int key = nb * BN + k0 + a * 16 + r, qry = m * BM + i * 8 + c2 + shift;
          if (key > qry) s[a][i][0] = 0.f;
          if (key > qry + 1) s[a][i][1] = 0.f;
          if (key + 8 > qry) s[a][i][2] = 0.f;
          if (key + 8 > qry + 1) s[a][i][3] = 0.f;
        }
      }
    }
    /* dV += P^T dO */
#pragma unroll
    for (int j = 0; j < BM / 16; j++) {
      uint32_t pf[MI][4];
#pragma unroll
      for (int a = 0; a < MI; a++) {
        pf[a][0] = pack2<T>(s[a][2 * j][0], s[a][2 * j][1]);
        pf[a][1] = pack2<T>(s[a][2 * j][2], s[a][2 * j][3]);
        pf[a][2] = pack2<T>(s[a][2 * j + 1][0], s[a][2 * j + 1][1]);
        pf[a][3] = pack2<T>(s[a][2 * j + 1][2], s[a][2 * j + 1][3]);
      }
#pragma unroll
      for (int d = 0; d < D / 16; d++) {
        uint32_t bf[4];
        ldsm4t(bf, fa<D>(ot, j * 16, 2 * d, lane));
#pragma unroll
        for (int a = 0; a < MI; a++) {
          mma<T>(dv[a][2 * d], pf[a], bf[0], bf[1]);
          mma<T>(dv[a][2 * d + 1], pf[a], bf[2], bf[3]);
        }
      }
    }
    /* dP^T = V dO^T */
    float dp[MI][BM / 8][4];
#pragma unroll
    for (int a = 0; a < MI; a++)
#pragma unroll
      for (int i = 0; i < BM / 8; i++) dp[a][i][0] = dp[a][i][1] = dp[a][i][2] = dp[a][i][3] = 0.f;
#pragma unroll
    for (int k = 0; k < D / 16; k++) {
      uint32_t af[MI][4];
#pragma unroll
      for (int a = 0; a < MI; a++) ldsm4(af[a], fa<D>(sV, k0 + a * 16, 2 * k, lane));
#pragma unroll
      for (int j = 0; j < BM / 16; j++) {
        uint32_t bf[4];
        ldsm4(bf, fb<D>(ot, j * 16, 2 * k, lane));
#pragma unroll
        for (int a = 0; a < MI; a++) {
          mma<T>(dp[a][2 * j], af[a], bf[0], bf[1]);
          mma<T>(dp[a][2 * j + 1], af[a], bf[2], bf[3]);
        }
      }
    }
    /* dS^T = P^T * (dP^T - delta), to 16 bits, into registers and shared memory ([key][query]) */
    uint32_t ds[MI][BM / 8][2];
#pragma unroll
    for (int i = 0; i < BM / 8; i++) {
      const float2 L = *reinterpret_cast<const float2*>(dl + i * 8 + c2);
#pragma unroll
      for (int a = 0; a < MI; a++) {
        ds[a][i][0] = pack2<T>(s[a][i][0] * (dp[a][i][0] - L.x), s[a][i][1] * (dp[a][i][1] - L.y));
        ds[a][i][1] = pack2<T>(s[a][i][2] * (dp[a][i][2] - L.x), s[a][i][3] * (dp[a][i][3] - L.y));
        sts32(sS + sw<BM>(k0 + a * 16 + r, i) + c2 * 2, ds[a][i][0]);
        sts32(sS + sw<BM>(k0 + a * 16 + r + 8, i) + c2 * 2, ds[a][i][1]);
      }
    }
    /* dK += dS^T Q */
#pragma unroll
    for (int j = 0; j < BM / 16; j++) {
      uint32_t af[MI][4];
#pragma unroll
      for (int a = 0; a < MI; a++) {
        af[a][0] = ds[a][2 * j][0];
        af[a][1] = ds[a][2 * j][1];
        af[a][2] = ds[a][2 * j + 1][0];
        af[a][3] = ds[a][2 * j + 1][1];
      }
#pragma unroll
      for (int d = 0; d < D / 16; d++) {
        uint32_t bf[4];
        ldsm4t(bf, fa<D>(qt, j * 16, 2 * d, lane));
#pragma unroll
        for (int a = 0; a < MI; a++) {
          mma<T>(dk[a][2 * d], af[a], bf[0], bf[1]);
          mma<T>(dk[a][2 * d + 1], af[a], bf[2], bf[3]);
        }
      }
    }
    __syncthreads(); /* dS^T of all warps */
    /* dQ = dS K: warps 4 x (NW/4) over [BM][D] */
    {
      constexpr int WD = NW / 4, DW = D / WD;
      const int m0 = (warp & 3) * 16, d0 = (warp >> 2) * DW;
      float dq[DW / 8][4];
#pragma unroll
      for (int i = 0; i < DW / 8; i++) dq[i][0] = dq[i][1] = dq[i][2] = dq[i][3] = 0.f;
#pragma unroll
      for (int k = 0; k < BN / 16; k++) {
        uint32_t af[4];
        ldsm4t(af, fb<BM>(sS, k * 16, m0 / 8, lane));
#pragma unroll
        for (int d = 0; d < DW / 16; d++) {
          uint32_t bf[4];
          ldsm4t(bf, fa<D>(sK, k * 16, d0 / 8 + 2 * d, lane));
          mma<T>(dq[2 * d], af, bf[0], bf[1]);
          mma<T>(dq[2 * d + 1], af, bf[2], bf[3]);
        }
      }
      float* g = dqacc + (size_t)(m * BM + m0 + r) * D + d0 + c2;
#pragma unroll
      for (int i = 0; i < DW / 8; i++) {
        atomicAdd(g + i * 8, dq[i][0]);
        atomicAdd(g + i * 8 + 1, dq[i][1]);
        atomicAdd(g + 8 * D + i * 8, dq[i][2]);
        atomicAdd(g + 8 * D + i * 8 + 1, dq[i][3]);
      }
    }
  }
  cp_wait<0>();
  __syncthreads();
  /* dK, dV over the K, V tiles (own rows of each warp), then out in 16-byte pieces */
#pragma unroll
  for (int a = 0; a < MI; a++)
#pragma unroll
    for (int i = 0; i < D / 8; i++) {
      const int row = k0 + a * 16 + r;
      sts32(sK + sw<D>(row, i) + c2 * 2, pack2<T>(dk[a][i][0] * p.scale, dk[a][i][1] * p.scale));
      sts32(sK + sw<D>(row + 8, i) + c2 * 2, pack2<T>(dk[a][i][2] * p.scale, dk[a][i][3] * p.scale));
      sts32(sV + sw<D>(row, i) + c2 * 2, pack2<T>(dv[a][i][0], dv[a][i][1]));
      sts32(sV + sw<D>(row + 8, i) + c2 * 2, pack2<T>(dv[a][i][2], dv[a][i][3]));
    }
  __syncthreads();
  constexpr int CH = D / 8;
#pragma unroll 4
  for (int i = 0; i < BN * CH / NT; i++) {
    const int idx = tid + i * NT, row = idx / CH, c = idx % CH;
    *reinterpret_cast<uint4*>((T*)p.dk + kvoff + (size_t)row * D + c * 8) = lds128(sK + sw<D>(row, c));
    *reinterpret_cast<uint4*>((T*)p.dv + kvoff + (size_t)row * D + c * 8) = lds128(sV + sw<D>(row, c));
  }
}
