/* Split-KV decoding with mma.sync and cp.async, two buffers. One CTA per (split, kv head, batch); the query heads of
 * the group are the rows of one 16-row mma tile. Each warp owns BN/NW keys of every tile and its own running max/sum/O;
 * warps are merged at the end of the split. */
#pragma once

#include "ptx.h"

template <int HD, int BN>
constexpr int decode_smem() {
  return 4 * BN * HD * 2;
}

template <int HD, int BN, int NW>
__global__ __launch_bounds__(NW * 32) void decode_split(const half* __restrict__ Q, const half* __restrict__ K,
                                                        const half* __restrict__ V, float* __restrict__ Op,
                                                        float* __restrict__ Lp, int H, int Hkv, int S, int splits,
                                                        float sl2) {
  constexpr int NT = NW * 32, KW = BN / NW, CPR = HD / 8, N = BN * CPR / NT;
  static_assert(KW % 16 == 0 && N * NT == BN * CPR, "keys per warp");
  extern __shared__ __align__(128) unsigned char smem_raw[];
  half* sK = reinterpret_cast<half*>(smem_raw);
  half* sV = sK + 2 * BN * HD;
  __shared__ float sM[NW][16], sL[NW][16];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  const int split = blockIdx.x, hk = blockIdx.y, b = blockIdx.z, G = H / Hkv;
  const half* gQ = Q + ((size_t)b * H + hk * G) * HD;
  const half* gK = K + ((size_t)b * Hkv + hk) * S * HD;
  const half* gV = V + ((size_t)b * Hkv + hk) * S * HD;
  const int tiles = S / BN, per = (tiles + splits - 1) / splits;
  const int t0 = split * per, t1 = min(tiles, t0 + per);

  auto load = [&](int tile, int buf) {
    const half* k = gK + (size_t)tile * BN * HD;
    const half* v = gV + (size_t)tile * BN * HD;
#pragma unroll
    for (int i = 0; i < N; i++) {
      int idx = threadIdx.x + i * NT;
      cp16(sK + buf * BN * HD + swz<HD>(idx / CPR, idx % CPR), k + (size_t)idx * 8);
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
      int idx = threadIdx.x + i * NT;
      cp16(sV + buf * BN * HD + swz<HD>(idx / CPR, idx % CPR), v + (size_t)idx * 8);
    }
  };
  if (t0 < t1) load(t0, 0);
  cp_commit();

  uint32_t qf[HD / 16][4];
#pragma unroll
  for (int kk = 0; kk < HD / 16; kk++)
#pragma unroll
    for (int e = 0; e < 4; e++) {
      int row = g + (e & 1) * 8, col = kk * 16 + t * 2 + (e >> 1) * 8;
      qf[kk][e] = row < G ? *reinterpret_cast<const uint32_t*>(gQ + row * HD + col) : 0u;
    }

  float o[HD / 8][4] = {};
  float m[2] = {-INFINITY, -INFINITY}, l[2] = {0.f, 0.f};
  for (int j = t0; j < t1; j++) {
    const int buf = (j - t0) & 1;
    if (j + 1 < t1) {
      load(j + 1, buf ^ 1);
      cp_commit();
      cp_wait<1>();
    } else {
      cp_wait<0>();
    }
    __syncthreads();
    const half* k = sK + buf * BN * HD;
    const half* v = sV + buf * BN * HD;
    float s[KW / 8][4] = {};
#pragma unroll
    for (int kk = 0; kk < HD / 16; kk++)
#pragma unroll
      for (int n = 0; n < KW / 16; n++) {
        uint32_t bf[4];
        ldsm4(bf, k + swz<HD>(warp * KW + n * 16 + (lane & 7) + ((lane >> 4) << 3), kk * 2 + ((lane >> 3) & 1)));
        mma16816(s[2 * n], qf[kk], bf[0], bf[1]);
        mma16816(s[2 * n + 1], qf[kk], bf[2], bf[3]);
      }
#pragma unroll
    for (int r = 0; r < 2; r++) {
      float mx = m[r];
#pragma unroll
      for (int n = 0; n < KW / 8; n++) mx = fmaxf(mx, fmaxf(s[n][2 * r], s[n][2 * r + 1]));
      mx = fmaxf(mx, __shfl_xor_sync(0xffffffffu, mx, 1));
      mx = fmaxf(mx, __shfl_xor_sync(0xffffffffu, mx, 2));
      float ms = mx * sl2, alpha = ex2(m[r] * sl2 - ms), sum = 0.f;
      m[r] = mx;
#pragma unroll
      for (int n = 0; n < KW / 8; n++) {
        s[n][2 * r] = ex2(fmaf(s[n][2 * r], sl2, -ms));
        s[n][2 * r + 1] = ex2(fmaf(s[n][2 * r + 1], sl2, -ms));
        sum += s[n][2 * r] + s[n][2 * r + 1];
      }
      l[r] = l[r] * alpha + sum;
#pragma unroll
      for (int n = 0; n < HD / 8; n++) o[n][2 * r] *= alpha, o[n][2 * r + 1] *= alpha;
    }
#pragma unroll
    for (int kk = 0; kk < KW / 16; kk++) {
      uint32_t a[4] = {pack2(s[2 * kk][0], s[2 * kk][1]), pack2(s[2 * kk][2], s[2 * kk][3]),
                       pack2(s[2 * kk + 1][0], s[2 * kk + 1][1]), pack2(s[2 * kk + 1][2], s[2 * kk + 1][3])};
#pragma unroll
      for (int n = 0; n < HD / 16; n++) {
        uint32_t bf[4];
        ldsm4t(bf, v + swz<HD>(warp * KW + kk * 16 + (lane & 15), n * 2 + (lane >> 4)));
        mma16816(o[2 * n], a, bf[0], bf[1]);
        mma16816(o[2 * n + 1], a, bf[2], bf[3]);
      }
    }
    __syncthreads();
  }

  /* merge the warps: sO is [NW][16][HD] fp32 over the (now free) K/V buffers */
  float* sO = reinterpret_cast<float*>(smem_raw);
#pragma unroll
  for (int r = 0; r < 2; r++) {
    l[r] += __shfl_xor_sync(0xffffffffu, l[r], 1);
    l[r] += __shfl_xor_sync(0xffffffffu, l[r], 2);
    int row = g + r * 8;
    if (t == 0) sM[warp][row] = m[r], sL[warp][row] = l[r];
    if (row < G) {
#pragma unroll
      for (int n = 0; n < HD / 8; n++)
        *reinterpret_cast<float2*>(sO + (warp * 16 + row) * HD + n * 8 + t * 2) =
            make_float2(o[n][2 * r], o[n][2 * r + 1]);
    }
  }
  __syncthreads();
  const size_t BH = (size_t)gridDim.z * H, row0 = (size_t)split * BH + (size_t)b * H + hk * G;
  if (threadIdx.x < G) {
    int row = threadIdx.x;
    float M = -INFINITY, L = 0.f;
#pragma unroll
    for (int w = 0; w < NW; w++) M = fmaxf(M, sM[w][row]);
    float Ms = M == -INFINITY ? 0.f : M * sl2;
#pragma unroll
    for (int w = 0; w < NW; w++) L += sL[w][row] * ex2(sM[w][row] * sl2 - Ms);
    float inv = L > 0.f ? 1.f / L : 0.f;
#pragma unroll
    for (int w = 0; w < NW; w++) sM[w][row] = ex2(sM[w][row] * sl2 - Ms) * inv; /* weight of warp w */
    Lp[row0 + row] = L > 0.f ? Ms + log2f(L) : -INFINITY;                       /* base-2 LSE */
  }
  __syncthreads();
  for (int i = threadIdx.x; i < G * HD; i += NT) {
    int row = i / HD, d = i % HD;
    float acc = 0.f;
#pragma unroll
    for (int w = 0; w < NW; w++) acc += sM[w][row] * sO[(w * 16 + row) * HD + d];
    Op[row0 * HD + i] = acc;
  }
}

/* one CTA of HD threads per (batch, head) */
__global__ void decode_combine(const float* __restrict__ Op, const float* __restrict__ Lp, half* __restrict__ O,
                               float* __restrict__ LSE, int splits) {
  const size_t BH = gridDim.x, bh = blockIdx.x;
  const int d = threadIdx.x, HD = blockDim.x;
  float mx = -INFINITY;
  for (int s = 0; s < splits; s++) mx = fmaxf(mx, Lp[s * BH + bh]);
  float sum = 0.f, acc = 0.f;
#pragma unroll 4
  for (int s = 0; s < splits; s++) {
    float w = ex2(Lp[s * BH + bh] - mx);
    sum += w;
    acc += w * Op[(s * BH + bh) * HD + d];
  }
  O[bh * HD + d] = __float2half_rn(acc / sum);
  if (d == 0) LSE[bh] = (mx + log2f(sum)) * LN2;
}
