/* C[m][n] = A[m][k] B, fp16 in, fp32 accumulate, fp16 out, batched over blockIdx.z. cp.async ring of ST buffers, one
 * barrier per k-tile. BT false: B is [k][n]. BT true: B is [n][k] (attention scores): C = alpha * A B^T, optionally
 * causal-masked with -inf. WM x WN warps. */
#pragma once

#include "ptx.h"

template <int BM, int BN, int BK, int ST>
constexpr int gemm_smem() {
  return ST * (BM + BN) * BK * 2 > BM * (BN + 8) * 2 ? ST * (BM + BN) * BK * 2 : BM * (BN + 8) * 2;
}

template <int BM, int BN, int BK, int WM, int WN, int ST, bool BT>
__global__ __launch_bounds__(WM* WN * 32) void gemm_kernel(const half* __restrict__ A, const half* __restrict__ B,
                                                           half* __restrict__ C, int k, int lda, int ldb, int ldc,
                                                           size_t sA, size_t sB, size_t sC, int group, float alpha,
                                                           int causal) {
  constexpr int NT = WM * WN * 32, TM = BM / WM, TN = BN / WN, MI = TM / 16, NI = TN / 16;
  constexpr int NA = BM * BK / 8 / NT, NB = BN * BK / 8 / NT;
  constexpr int BW = BT ? BK : BN; /* width of a row of B's tile */
  static_assert(NA * NT * 8 == BM * BK && NB * NT * 8 == BN * BK, "tile/threads");
  extern __shared__ __align__(128) unsigned char smem_raw[];
  half* As = reinterpret_cast<half*>(smem_raw);
  half* Bs = As + ST * BM * BK;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int m0 = blockIdx.x * BM, n0 = blockIdx.y * BN;
  const int wm = (warp % WM) * TM, wn = (warp / WM) * TN;
  A += blockIdx.z * sA + (size_t)m0 * lda;
  B += (blockIdx.z / group) * sB + (BT ? (size_t)n0 * ldb : (size_t)n0);
  C += blockIdx.z * sC + (size_t)m0 * ldc + n0;
  const int KT = k / BK;

  auto load = [&](int kt, int slot) {
    half* a = As + slot * BM * BK;
    half* b = Bs + slot * BN * BK;
#pragma unroll
    for (int i = 0; i < NA; i++) {
      int idx = threadIdx.x + i * NT, r = idx / (BK / 8), c = idx % (BK / 8);
      cp16(a + swz<BK>(r, c), A + (size_t)r * lda + kt * BK + c * 8);
    }
#pragma unroll
    for (int i = 0; i < NB; i++) {
      int idx = threadIdx.x + i * NT, r = idx / (BW / 8), c = idx % (BW / 8);
      if constexpr (BT)
        cp16(b + swz<BW>(r, c), B + (size_t)r * ldb + kt * BK + c * 8);
      else
        cp16(b + swz<BW>(r, c), B + (size_t)(kt * BK + r) * ldb + c * 8);
    }
  };

  float acc[MI][2 * NI][4] = {};
#pragma unroll
  for (int s = 0; s < ST - 1; s++) {
    if (s < KT) load(s, s);
    cp_commit();
  }
  int rd = 0, wr = ST - 1;
  for (int kt = 0; kt < KT; kt++) {
    cp_wait<ST - 2>();
    __syncthreads();
    if (kt + ST - 1 < KT) load(kt + ST - 1, wr);
    cp_commit();
    const half* a = As + rd * BM * BK;
    const half* b = Bs + rd * BN * BK;
#pragma unroll
    for (int kk = 0; kk < BK / 16; kk++) {
      uint32_t af[MI][4], bf[NI][4];
#pragma unroll
      for (int i = 0; i < MI; i++) ldsm4(af[i], a + swz<BK>(wm + i * 16 + (lane & 15), kk * 2 + (lane >> 4)));
#pragma unroll
      for (int n = 0; n < NI; n++) {
        if constexpr (BT)
          ldsm4(bf[n], b + swz<BW>(wn + n * 16 + (lane & 7) + ((lane >> 4) << 3), kk * 2 + ((lane >> 3) & 1)));
        else
          ldsm4t(bf[n], b + swz<BW>(kk * 16 + (lane & 15), (wn + n * 16) / 8 + (lane >> 4)));
      }
#pragma unroll
      for (int i = 0; i < MI; i++)
#pragma unroll
        for (int n = 0; n < NI; n++) {
          mma16816(acc[i][2 * n], af[i], bf[n][0], bf[n][1]);
          mma16816(acc[i][2 * n + 1], af[i], bf[n][2], bf[n][3]);
        }
    }
    rd = rd + 1 == ST ? 0 : rd + 1;
    wr = wr + 1 == ST ? 0 : wr + 1;
  }
  cp_wait<0>();
  __syncthreads();

  /* epilogue through shared memory (padded rows), 16-byte stores */
  constexpr int LDC = BN + 8;
  half* Cs = As;
#pragma unroll
  for (int i = 0; i < MI; i++)
#pragma unroll
    for (int n = 0; n < 2 * NI; n++)
#pragma unroll
      for (int r = 0; r < 2; r++) {
        int row = wm + i * 16 + (lane >> 2) + r * 8, col = wn + n * 8 + (lane & 3) * 2;
        float x = acc[i][n][2 * r], y = acc[i][n][2 * r + 1];
        if constexpr (BT) {
          x *= alpha, y *= alpha;
          if (causal) {
            if (n0 + col > m0 + row) x = -INFINITY;
            if (n0 + col + 1 > m0 + row) y = -INFINITY;
          }
        }
        *reinterpret_cast<uint32_t*>(Cs + row * LDC + col) = pack2(x, y);
      }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < BM * BN / 8 / NT; i++) {
    int idx = threadIdx.x + i * NT, r = idx / (BN / 8), c = idx % (BN / 8);
    *reinterpret_cast<uint4*>(C + (size_t)r * ldc + c * 8) = *reinterpret_cast<const uint4*>(Cs + r * LDC + c * 8);
  }
}
