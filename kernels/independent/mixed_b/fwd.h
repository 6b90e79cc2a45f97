/* FlashAttention-2 forward with mma.sync and cp.async, split over queries, software-pipelined: S of block j+1 is issued
 * before P_j V_j, and the softmax of block j+1 follows P_j V_j. K and V double buffered; one barrier a block. */
#pragma once

#include "ptx.h"

struct FwdParams {
  const void *q, *k, *v;
  void* o;
  float* lse;
  int batch, heads, kv_heads, sq, skv;
  float scale;
};

template <int D, int BM, int BN>
struct FwdShape {
  static constexpr int RB = D * 2, oQ = 0, oK = BM * RB, oV = oK + 2 * BN * RB, BYTES = oV + 2 * BN * RB;
};

template <typename T, int D, int BM, int BN, int NW, bool CAUSAL>
__global__ void __launch_bounds__(NW * 32) fwd_pipe(const FwdParams p) {
  using N = Num<T>;
  using C = FwdShape<D, BM, BN>;
  constexpr int RB = C::RB, NT = NW * 32, MT = BM / (16 * NW);
  constexpr bool QREG = MT * (D / 16) * 4 <= 32; /* keep Q fragments in registers when they are few */
  extern __shared__ __align__(1024) unsigned char smem[];
  const uint32_t s0 = smem_u32(smem), sQ = s0 + C::oQ, sK = s0 + C::oK, sV = s0 + C::oV;
  const int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31, g = lane >> 2, t = lane & 3;
  const LaneAddr la(lane);

  const int mb = CAUSAL ? gridDim.x - 1 - blockIdx.x : blockIdx.x; /* longest tiles first */
  const int h = blockIdx.y, b = blockIdx.z, hk = h / (p.heads / p.kv_heads);
  const int m0 = mb * BM, off = p.skv - p.sq;
  int nb = p.skv / BN;
  if (CAUSAL) {
    int lim = (m0 + BM + off + BN - 1) / BN;
    nb = lim < nb ? lim : nb;
  }

  const T* gq = (const T*)p.q + (((size_t)b * p.heads + h) * p.sq + m0) * D;
  const T* gk = (const T*)p.k + ((size_t)b * p.kv_heads + hk) * p.skv * D;
  const T* gv = (const T*)p.v + ((size_t)b * p.kv_heads + hk) * p.skv * D;

  copy_tile<T, BM, D, NT>(sQ, gq, tid);
  copy_tile<T, BN, D, NT>(sK, gk, tid);
  cp_commit();
  if (nb > 1) copy_tile<T, BN, D, NT>(sK + BN * RB, gk + (size_t)BN * D, tid);
  copy_tile<T, BN, D, NT>(sV, gv, tid);
  cp_commit();

  float o[MT][D / 8][4], mx[MT][2], sum[MT][2];
#pragma unroll
  for (int i = 0; i < MT; i++) {
    mx[i][0] = mx[i][1] = -INFINITY;
    sum[i][0] = sum[i][1] = 0.f;
#pragma unroll
    for (int j = 0; j < D / 8; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) o[i][j][e] = 0.f;
  }
  const float c2 = p.scale * kLog2e;
  const int wrow = warp * MT * 16;
  const uint32_t aQ = sQ + (wrow + la.r_lo16) * RB;
  uint32_t qf[QREG ? MT : 1][QREG ? D / 16 : 1][4];

  cp_wait<1>();
  __syncthreads();
  if constexpr (QREG) {
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
      for (int kk = 0; kk < D / 16; kk++) ldsm4(qf[i][kk], aQ + i * 16 * RB + ((kk * 32) ^ la.x_lo16));
  }

  float s[MT][BN / 8][4];
  uint32_t pf[MT][BN / 8][2];

  auto scores = [&](int stage) {
    const uint32_t bK = sK + stage * BN * RB + la.r_split * RB;
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
      for (int j = 0; j < BN / 8; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) s[i][j][e] = 0.f;
#pragma unroll
    for (int kk = 0; kk < D / 16; kk++) {
      uint32_t a[MT][4];
#pragma unroll
      for (int i = 0; i < MT; i++) {
        if constexpr (QREG) {
#pragma unroll
          for (int e = 0; e < 4; e++) a[i][e] = qf[i][kk][e];
        } else {
          ldsm4(a[i], aQ + i * 16 * RB + ((kk * 32) ^ la.x_lo16));
        }
      }
#pragma unroll
      for (int j = 0; j < BN / 16; j++) {
        uint32_t bf[4];
        ldsm4(bf, bK + j * 16 * RB + ((kk * 32) ^ la.x_split));
#pragma unroll
        for (int i = 0; i < MT; i++) {
          N::mma(s[i][2 * j], a[i], bf[0], bf[1]);
          N::mma(s[i][2 * j + 1], a[i], bf[2], bf[3]);
        }
      }
    }
  };
  auto values = [&](int stage) {
    const uint32_t bV = sV + stage * BN * RB + la.r_lo16 * RB;
#pragma unroll
    for (int kk = 0; kk < BN / 16; kk++)
#pragma unroll
      for (int j = 0; j < D / 16; j++) {
        uint32_t bf[4];
        ldsm4t(bf, bV + kk * 16 * RB + ((j * 32) ^ la.x_lo16));
#pragma unroll
        for (int i = 0; i < MT; i++) {
          const uint32_t a[4] = {pf[i][2 * kk][0], pf[i][2 * kk][1], pf[i][2 * kk + 1][0], pf[i][2 * kk + 1][1]};
          N::mma(o[i][2 * j], a, bf[0], bf[1]);
          N::mma(o[i][2 * j + 1], a, bf[2], bf[3]);
        }
      }
  };
  auto softmax = [&](int blk) {
    if (CAUSAL && (blk * BN + BN - 1 > m0 + wrow + off)) {
#pragma unroll
      for (int i = 0; i < MT; i++)
#pragma unroll
        for (int j = 0; j < BN / 8; j++)
#pragma unroll
          for (int e = 0; e < 4; e++) {
            int key = blk * BN + j * 8 + 2 * t + (e & 1), qry = m0 + wrow + i * 16 + g + (e >> 1) * 8 + off;
            if (key > qry) s[i][j][e] = -INFINITY;
          }
    }
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
      for (int r = 0; r < 2; r++) {
        float v = mx[i][r];
#pragma unroll
        for (int j = 0; j < BN / 8; j++) v = fmaxf(v, fmaxf(s[i][j][2 * r], s[i][j][2 * r + 1]));
        v = fmaxf(v, __shfl_xor_sync(~0u, v, 1));
        v = fmaxf(v, __shfl_xor_sync(~0u, v, 2));
        const float alpha = ex2((mx[i][r] - v) * c2), neg = -v * c2;
        mx[i][r] = v;
        float l = 0.f;
#pragma unroll
        for (int j = 0; j < BN / 8; j++) {
          float p0 = ex2(fmaf(s[i][j][2 * r], c2, neg)), p1 = ex2(fmaf(s[i][j][2 * r + 1], c2, neg));
          l += p0 + p1;
          pf[i][j][r] = N::pack(p0, p1);
        }
        sum[i][r] = sum[i][r] * alpha + l;
#pragma unroll
        for (int j = 0; j < D / 8; j++) {
          o[i][j][2 * r] *= alpha;
          o[i][j][2 * r + 1] *= alpha;
        }
      }
  };

  scores(0);
  softmax(0);
  for (int j = 0; j + 1 < nb; j++) {
    cp_wait<0>();    /* K_{j+1}, V_j */
    __syncthreads(); /* and all warps have read K_j and V_{j-1} */
    if (j + 2 < nb) copy_tile<T, BN, D, NT>(sK + (j & 1) * BN * RB, gk + (size_t)(j + 2) * BN * D, tid);
    copy_tile<T, BN, D, NT>(sV + ((j + 1) & 1) * BN * RB, gv + (size_t)(j + 1) * BN * D, tid);
    cp_commit();
    scores((j + 1) & 1);
    values(j & 1);
    softmax(j + 1);
  }
  cp_wait<0>();
  __syncthreads();
  values((nb - 1) & 1);

  /* a warp writes back only its own rows, through its own rows of sQ */
  float* lse = p.lse + ((size_t)b * p.heads + h) * p.sq + m0;
#pragma unroll
  for (int i = 0; i < MT; i++)
#pragma unroll
    for (int r = 0; r < 2; r++) {
      float l = sum[i][r];
      l += __shfl_xor_sync(~0u, l, 1);
      l += __shfl_xor_sync(~0u, l, 2);
      const float inv = 1.f / l;
      const int row = wrow + i * 16 + g + r * 8;
      if (t == 0) lse[row] = mx[i][r] * p.scale + __logf(l);
#pragma unroll
      for (int j = 0; j < D / 8; j++)
        sts32(sQ + row * RB + ((j ^ g) << 4) + t * 4, N::pack(o[i][j][2 * r] * inv, o[i][j][2 * r + 1] * inv));
    }
  __syncwarp();
  T* go = (T*)p.o + (((size_t)b * p.heads + h) * p.sq + m0) * D;
  constexpr int CH = D / 8;
#pragma unroll
  for (int i = 0; i < MT * 16 * CH / 32; i++) {
    int idx = lane + i * 32, r = wrow + idx / CH, c = idx % CH;
    *reinterpret_cast<uint4*>(go + (size_t)r * D + c * 8) = lds128(sQ + swz<RB>(r, c));
  }
}

template <typename T, int D, int BM, int BN, int NW, bool CAUSAL>
cudaError_t fwd_launch(const FwdParams& p) {
  using C = FwdShape<D, BM, BN>;
  auto kern = fwd_pipe<T, D, BM, BN, NW, CAUSAL>;
  cudaError_t e = cudaFuncSetAttribute(kern, cudaFuncAttributeMaxDynamicSharedMemorySize, C::BYTES);
  if (e != cudaSuccess) return e;
  kern<<<dim3(p.sq / BM, p.heads, p.batch), NW * 32, C::BYTES>>>(p);
  return cudaGetLastError();
}
