/* FlashAttention-2 forward with mma.sync and plain loads, tiles of BM queries and BN keys: K/V tiles go global ->
 * registers -> padded shared memory. STAGES == 1: one buffer that K and V use in turn, four barriers a tile. STAGES ==
 * 2: two K and two V buffers, next tile held in registers while the products of the present one run, one barrier a
 * tile. */
#pragma once

#include "ptx.h"

template <int N, int NT>
__device__ __forceinline__ void ldg_tile(uint4 (&r)[N], const half* g) {
  const uint4* p = reinterpret_cast<const uint4*>(g) + threadIdx.x;
#pragma unroll
  for (int i = 0; i < N; i++) r[i] = p[i * NT];
}
template <int N, int NT, int HD>
__device__ __forceinline__ void sts_tile(half* s, const uint4 (&r)[N]) {
  constexpr int CPR = HD / 8;
#pragma unroll
  for (int i = 0; i < N; i++) {
    int idx = threadIdx.x + i * NT;
    *reinterpret_cast<uint4*>(s + (idx / CPR) * (HD + 8) + (idx % CPR) * 8) = r[i];
  }
}

template <int HD, int BM, int BN, int NW, int STAGES>
struct Flash2Cfg {
  static constexpr int LD = HD + 8, MT = BM / (16 * NW);
  static constexpr bool QREG = MT == 1; /* Q fragments stay in registers; Q's staging area is then reused by K/V */
  static constexpr int BUFS = STAGES == 1 ? 1 : 4;
  static constexpr int ROWS = QREG ? (BM > BUFS * BN ? BM : BUFS * BN) : BM + BUFS * BN;
  static constexpr int SMEM = ROWS * LD * 2;
};

template <int HD, int BM, int BN, int NW, int STAGES>
__global__ __launch_bounds__(NW * 32) void flash2_ldg(const half* Q, const half* K, const half* V, half* O, float* LSE,
                                                      int H, int Hkv, int Sq, int Sk, float sl2, int causal, int rev) {
  using C = Flash2Cfg<HD, BM, BN, NW, STAGES>;
  constexpr int LD = C::LD, MT = C::MT, NT = NW * 32;
  constexpr bool QREG = C::QREG;
  constexpr int KV_N = BN * HD / 8 / NT, Q_N = BM * HD / 8 / NT;
  static_assert(KV_N * NT * 8 == BN * HD && MT >= 1, "tile/threads");
  extern __shared__ __align__(128) unsigned char smem_raw[];
  half* sQ = reinterpret_cast<half*>(smem_raw);
  half* sKV = QREG ? sQ : sQ + BM * LD;

  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int mt_idx = rev ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
  const int m0 = mt_idx * BM, bh = blockIdx.y;
  const int b = bh / H, h = bh % H;
  const size_t kvh = (size_t)b * Hkv + h / (H / Hkv);
  const half* gQ = Q + ((size_t)bh * Sq + m0) * HD;
  const half* gK = K + kvh * Sk * HD;
  const half* gV = V + kvh * Sk * HD;
  const int off = Sk - Sq; /* causal: key <= query + off */
  int ntiles = Sk / BN;
  if (causal) ntiles = min(ntiles, (m0 + BM + off + BN - 1) / BN);

  {
    uint4 t[Q_N];
    ldg_tile<Q_N, NT>(t, gQ);
    sts_tile<Q_N, NT, HD>(sQ, t);
  }
  const int wrow = warp * 16 * MT;
  const half* aQ = sQ + (wrow + (lane & 15)) * LD + (lane >> 4) * 8;             /* A operand (Q) */
  const int bK = ((lane & 7) + ((lane >> 4) << 3)) * LD + ((lane >> 3) & 1) * 8; /* B operand, stored [n][k] */
  const int bV = (lane & 15) * LD + (lane >> 4) * 8;                             /* B operand, stored [k][n] */

  uint32_t qf[QREG ? HD / 16 : 1][4];
  if constexpr (QREG) {
    __syncthreads();
#pragma unroll
    for (int kk = 0; kk < HD / 16; kk++) ldsm4(qf[kk], aQ + kk * 16);
    __syncthreads();
  }

  float o[MT][HD / 8][4] = {};
  float mrow[MT][2], lrow[MT][2];
#pragma unroll
  for (int i = 0; i < MT; i++) mrow[i][0] = mrow[i][1] = -INFINITY, lrow[i][0] = lrow[i][1] = 0.f;
  float s[MT][BN / 8][4];

  auto qk = [&](const half* sK) {
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
      for (int n = 0; n < BN / 8; n++) s[i][n][0] = s[i][n][1] = s[i][n][2] = s[i][n][3] = 0.f;
#pragma unroll
    for (int kk = 0; kk < HD / 16; kk++) {
      uint32_t a[MT][4];
#pragma unroll
      for (int i = 0; i < MT; i++) {
        if constexpr (QREG) {
#pragma unroll
          for (int q = 0; q < 4; q++) a[i][q] = qf[kk][q];
        } else {
          ldsm4(a[i], aQ + i * 16 * LD + kk * 16);
        }
      }
#pragma unroll
      for (int n = 0; n < BN / 16; n++) {
        uint32_t bf[4];
        ldsm4(bf, sK + bK + n * 16 * LD + kk * 16);
#pragma unroll
        for (int i = 0; i < MT; i++) {
          mma16816(s[i][2 * n], a[i], bf[0], bf[1]);
          mma16816(s[i][2 * n + 1], a[i], bf[2], bf[3]);
        }
      }
    }
  };
  auto softmax = [&](int j) {
    if (causal && j * BN + BN - 1 > m0 + wrow + off) {
#pragma unroll
      for (int i = 0; i < MT; i++)
#pragma unroll
        for (int n = 0; n < BN / 8; n++)
#pragma unroll
          for (int e = 0; e < 4; e++) {
            int row = m0 + wrow + i * 16 + (lane >> 2) + (e >> 1) * 8;
            int col = j * BN + n * 8 + (lane & 3) * 2 + (e & 1);
            if (col > row + off) s[i][n][e] = -INFINITY;
          }
    }
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
      for (int r = 0; r < 2; r++) {
        float mx = mrow[i][r];
#pragma unroll
        for (int n = 0; n < BN / 8; n++) mx = fmaxf(mx, fmaxf(s[i][n][2 * r], s[i][n][2 * r + 1]));
        mx = fmaxf(mx, __shfl_xor_sync(0xffffffffu, mx, 1));
        mx = fmaxf(mx, __shfl_xor_sync(0xffffffffu, mx, 2));
        float ms = mx == -INFINITY ? 0.f : mx * sl2;
        float alpha = ex2(mrow[i][r] * sl2 - ms);
        mrow[i][r] = mx;
        float sum = 0.f;
#pragma unroll
        for (int n = 0; n < BN / 8; n++) {
          s[i][n][2 * r] = ex2(fmaf(s[i][n][2 * r], sl2, -ms));
          s[i][n][2 * r + 1] = ex2(fmaf(s[i][n][2 * r + 1], sl2, -ms));
          sum += s[i][n][2 * r] + s[i][n][2 * r + 1];
        }
        lrow[i][r] = lrow[i][r] * alpha + sum;
#pragma unroll
        for (int n = 0; n < HD / 8; n++) {
          o[i][n][2 * r] *= alpha;
          o[i][n][2 * r + 1] *= alpha;
        }
      }
  };
  auto pv = [&](const half* sV) {
#pragma unroll
    for (int kk = 0; kk < BN / 16; kk++) {
      uint32_t a[MT][4];
#pragma unroll
      for (int i = 0; i < MT; i++) {
        a[i][0] = pack2(s[i][2 * kk][0], s[i][2 * kk][1]);
        a[i][1] = pack2(s[i][2 * kk][2], s[i][2 * kk][3]);
        a[i][2] = pack2(s[i][2 * kk + 1][0], s[i][2 * kk + 1][1]);
        a[i][3] = pack2(s[i][2 * kk + 1][2], s[i][2 * kk + 1][3]);
      }
#pragma unroll
      for (int n = 0; n < HD / 16; n++) {
        uint32_t bf[4];
        ldsm4t(bf, sV + bV + kk * 16 * LD + n * 16);
#pragma unroll
        for (int i = 0; i < MT; i++) {
          mma16816(o[i][2 * n], a[i], bf[0], bf[1]);
          mma16816(o[i][2 * n + 1], a[i], bf[2], bf[3]);
        }
      }
    }
  };

  if constexpr (STAGES == 1) {
    for (int j = 0; j < ntiles; j++) {
      {
        uint4 t[KV_N];
        ldg_tile<KV_N, NT>(t, gK + (size_t)j * BN * HD);
        sts_tile<KV_N, NT, HD>(sKV, t);
      }
      __syncthreads();
      qk(sKV);
      softmax(j);
      __syncthreads(); /* all warps have read K */
      {
        uint4 t[KV_N];
        ldg_tile<KV_N, NT>(t, gV + (size_t)j * BN * HD);
        sts_tile<KV_N, NT, HD>(sKV, t);
      }
      __syncthreads();
      pv(sKV);
      __syncthreads(); /* all warps have read V */
    }
  } else {
    half* sK = sKV;
    half* sV = sKV + 2 * BN * LD;
    uint4 t[KV_N];
    ldg_tile<KV_N, NT>(t, gK);
    sts_tile<KV_N, NT, HD>(sK, t);
    ldg_tile<KV_N, NT>(t, gV);
    sts_tile<KV_N, NT, HD>(sV, t);
    __syncthreads();
    for (int j = 0; j < ntiles; j++) {
      const int cur = (j & 1) * BN * LD, nxt = BN * LD - cur;
      const bool more = j + 1 < ntiles;
      if (more) ldg_tile<KV_N, NT>(t, gK + (size_t)(j + 1) * BN * HD);
      qk(sK + cur);
      if (more) {
        sts_tile<KV_N, NT, HD>(sK + nxt, t);
        ldg_tile<KV_N, NT>(t, gV + (size_t)(j + 1) * BN * HD);
      }
      softmax(j);
      pv(sV + cur);
      if (more) sts_tile<KV_N, NT, HD>(sV + nxt, t);
      __syncthreads();
    }
  }

  /* epilogue: normalise, stage the warp's own rows in shared memory, write 16 bytes a lane */
#pragma unroll
  for (int i = 0; i < MT; i++)
#pragma unroll
    for (int r = 0; r < 2; r++) {
      float l = lrow[i][r];
      l += __shfl_xor_sync(0xffffffffu, l, 1);
      l += __shfl_xor_sync(0xffffffffu, l, 2);
      float inv = l > 0.f ? 1.f / l : 0.f;
      int row = wrow + i * 16 + (lane >> 2) + r * 8;
      if ((lane & 3) == 0) LSE[(size_t)bh * Sq + m0 + row] = l > 0.f ? (mrow[i][r] * sl2 + log2f(l)) * LN2 : -INFINITY;
#pragma unroll
      for (int n = 0; n < HD / 8; n++)
        *reinterpret_cast<uint32_t*>(sQ + row * LD + n * 8 + (lane & 3) * 2) =
            pack2(o[i][n][2 * r] * inv, o[i][n][2 * r + 1] * inv);
    }
  __syncwarp();
  constexpr int CPR = HD / 8;
  half* gO = O + ((size_t)bh * Sq + m0 + wrow) * HD;
#pragma unroll
  for (int i = 0; i < 16 * MT * CPR / 32; i++) {
    int idx = lane + i * 32;
    *reinterpret_cast<uint4*>(gO + (size_t)idx * 8) =
        *reinterpret_cast<const uint4*>(sQ + (wrow + idx / CPR) * LD + (idx % CPR) * 8);
  }
}
