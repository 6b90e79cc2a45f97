/* C[m][n] = A[m][k] B[k][n], row-major, with wgmma and TMA: a producer warp, two consumer warpgroups, ST buffers of 64
 * columns of A and rows of B with a full and an empty mbarrier each; C is written from registers. */
#pragma once

#include "hopper_ptx.h"

struct GemmP {
  int m, n, k, m_tiles;
  void* c;
};
template <int BM, int BN, int ST>
constexpr int gemm_smem() {
  return ST * (BM + BN) * 128 + 16 * ST;
}

template <class T, int BM, int BN, int ST>
__global__ void __launch_bounds__(288, 1)
    gemm_ws(const __grid_constant__ CUtensorMap ta, const __grid_constant__ CUtensorMap tb, const GemmP p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int MI = BM / 128; /* 64-row products of a warpgroup */
  constexpr uint32_t AB = BM * 128, BB = BN * 128;
  extern __shared__ __align__(1024) uint8_t smem[];
  const uint32_t sA = smem_u32(smem), sB = sA + ST * AB, full = sB + ST * BB, empty = full + 8 * ST;
  const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
  const int nt = blockIdx.x / p.m_tiles, mt = blockIdx.x - nt * p.m_tiles;
  const int m0 = mt * BM, n0 = nt * BN, kt_end = (p.k + 63) / 64;
  if (tid == 0) {
    for (int s = 0; s < ST; s++) {
      mbar_init(full + 8 * s, 1);
      mbar_init(empty + 8 * s, 8);
    }
    mbar_init_fence();
  }
  __syncthreads();
  if (warp == 8) {
    if (lane == 0) {
      tma_prefetch_map(&ta);
      tma_prefetch_map(&tb);
      int s = 0, ph = 1;
      for (int kt = 0; kt < kt_end + ST; kt++) { /* the last ST turns only wait for the buffers to be left */
        mbar_wait(empty + 8 * s, ph);
        if (kt < kt_end) {
          mbar_expect_tx(full + 8 * s, AB + BB);
          tma_load_2d(sA + s * AB, &ta, full + 8 * s, kt * 64, m0);
#pragma unroll
          for (int c = 0; c < BN / 64; c++)
            tma_load_2d(sB + s * BB + c * 64 * 128, &tb, full + 8 * s, n0 + c * 64, kt * 64);
        }
        if (++s == ST) {
          s = 0;
          ph ^= 1;
        }
      }
    }
  } else {
    const int wg = warp / 4;
    float acc[MI][BN / 2];
#pragma unroll
    for (int i = 0; i < MI; i++)
#pragma unroll
      for (int j = 0; j < BN / 2; j++) acc[i][j] = 0.f;
    int s = 0, ph = 0, prev = 0;
    for (int kt = 0; kt < kt_end; kt++) {
      mbar_wait(full + 8 * s, ph);
#pragma unroll
      for (int i = 0; i < MI; i++) pin(acc[i]);
      wg_fence();
#pragma unroll
      for (int kk = 0; kk < 4; kk++) {
#pragma unroll
        for (int i = 0; i < MI; i++)
          wgmma_ss<T, 1>(acc[i], desc_k(sA + s * AB + (wg * MI + i) * 64 * 128 + kk * 32),
                         desc_mn(sB + s * BB + kk * 2048, 64 * 128), 1);
      }
      wg_commit();
      wg_wait<1>(); /* the products of the step before are done */
      if (kt > 0 && lane == 0) mbar_arrive(empty + 8 * prev);
      prev = s;
      if (++s == ST) {
        s = 0;
        ph ^= 1;
      }
    }
    wg_wait<0>();
#pragma unroll
    for (int i = 0; i < MI; i++) pin(acc[i]);
    if (lane == 0) mbar_arrive(empty + 8 * prev);
    T* c = (T*)p.c;
#pragma unroll
    for (int i = 0; i < MI; i++)
#pragma unroll
      for (int r = 0; r < 2; r++) {
        const int row = m0 + (wg * MI + i) * 64 + warp % 4 * 16 + lane / 4 + 8 * r;
        if (row < p.m) {
          T* crow = c + (long long)row * p.n;
#pragma unroll
          for (int j = 0; j < BN / 8; j++) {
            const int col = n0 + 8 * j + (lane & 3) * 2;
            if (col < p.n) *(uint32_t*)(crow + col) = pack2<T>(acc[i][4 * j + 2 * r], acc[i][4 * j + 2 * r + 1]);
          }
        }
      }
  }
#endif
}
