/* C[m][n] = A[m][k] * B, B given [n][k] (BT) or [k][n]. mma.sync, ST buffers filled by cp.async, one barrier a
 * step of BK; C goes out through shared memory. */
#pragma once

#include "ptx.h"

struct GemmArgs {
  const void *a, *b;
  void* c;
  int m, n, k;
};

template <int BM, int BN, int BK, int ST>
constexpr int gemm_smem() {
  constexpr int in = ST * (BM + BN) * BK * 2, out = BM * BN * 2;
  return in > out ? in : out;
}

template <typename T, int BM, int BN, int BK, int WM, int WN, int ST, bool BT>
__global__ void __launch_bounds__(WM* WN * 32) gemm(const GemmArgs p) {
  constexpr int NT = WM * WN * 32, TM = BM / WM, TN = BN / WN, MI = TM / 16, NI = TN / 16;
  constexpr int ABYTES = BM * BK * 2, BBYTES = BN * BK * 2;
  DYN_SMEM(smem);
  const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
  const int wm = (warp / WN) * TM, wn = (warp % WN) * TN;
  const int n0 = blockIdx.x * BN, m0 = blockIdx.y * BM;
  const uint32_t sA = smem_addr(smem), sB = sA + ST * ABYTES;
  const T* A = (const T*)p.a + (size_t)m0 * p.k;
  const T* B = (const T*)p.b + (BT ? (size_t)n0 * p.k : (size_t)n0);
  const int steps = p.k / BK;

  auto load = [&](int t) {
    copy_tile<BM, BK, NT>(sA + (t % ST) * ABYTES, A + (size_t)t * BK, p.k, tid);
    if constexpr (BT)
      copy_tile<BN, BK, NT>(sB + (t % ST) * BBYTES, B + (size_t)t * BK, p.k, tid);
    else
      copy_tile<BK, BN, NT>(sB + (t % ST) * BBYTES, B + (size_t)t * BK * p.n, p.n, tid);
  };
#pragma unroll
  for (int s = 0; s < ST - 1; s++) {
    if (s < steps) load(s);
    cp_commit();
  }
  float acc[MI][2 * NI][4];
#pragma unroll
  for (int i = 0; i < MI; i++)
#pragma unroll
    for (int j = 0; j < 2 * NI; j++) acc[i][j][0] = acc[i][j][1] = acc[i][j][2] = acc[i][j][3] = 0.f;

  for (int t = 0; t < steps; t++) {
    cp_wait<ST - 2>();
    __syncthreads();
    if (t + ST - 1 < steps) load(t + ST - 1);
    cp_commit();
    const uint32_t at = sA + (t % ST) * ABYTES, bt = sB + (t % ST) * BBYTES;
#pragma unroll
    for (int k = 0; k < BK / 16; k++) {
      uint32_t af[MI][4], bf[NI][4];
#pragma unroll
      for (int i = 0; i < MI; i++) ldsm4(af[i], fa<BK>(at, wm + i * 16, 2 * k, lane));
#pragma unroll
      for (int j = 0; j < NI; j++) {
        if constexpr (BT)
          ldsm4(bf[j], fb<BK>(bt, wn + j * 16, 2 * k, lane));
        else
          ldsm4t(bf[j], fa<BN>(bt, k * 16, wn / 8 + 2 * j, lane));
      }
#pragma unroll
      for (int i = 0; i < MI; i++)
#pragma unroll
        for (int j = 0; j < NI; j++) {
          mma<T>(acc[i][2 * j], af[i], bf[j][0], bf[j][1]);
          mma<T>(acc[i][2 * j + 1], af[i], bf[j][2], bf[j][3]);
        }
    }
  }
  cp_wait<0>();
  __syncthreads();
  const int r = lane >> 2, c2 = (lane & 3) * 2;
#pragma unroll
  for (int i = 0; i < MI; i++)
#pragma unroll
    for (int j = 0; j < 2 * NI; j++) {
      const int row = wm + i * 16 + r, ch = wn / 8 + j;
      sts32(sA + sw<BN>(row, ch) + c2 * 2, pack2<T>(acc[i][j][0], acc[i][j][1]));
      sts32(sA + sw<BN>(row + 8, ch) + c2 * 2, pack2<T>(acc[i][j][2], acc[i][j][3]));
    }
  __syncthreads();
  T* C = (T*)p.c + (size_t)m0 * p.n + n0;
  constexpr int CH = BN / 8;
#pragma unroll
  for (int i = 0; i < BM * CH / NT; i++) {
    const int idx = tid + i * NT, row = idx / CH, c = idx % CH;
    *reinterpret_cast<uint4*>(C + (size_t)row * p.n + c * 8) = lds128(sA + sw<BN>(row, c));
  }
}
