/* What both kernels do with a tile of 64 rows in a warpgroup: S = Q K^T, online softmax, O += P V, and O into shared
 * memory. A thread holds rows lane / 4 and lane / 4 + 8 of its warp's 16: elements 4i, 4i+1 and 4i+2, 4i+3. */
#pragma once

#include "hopper.h"

struct Params {
  void *o;
  float *lse;
  int64_t o_batch, o_head, o_row;
  int seqlen_q, seqlen_kv, heads, kv_group, m_tiles;
  int causal, reverse, head_first;
  float scale, scale_log2;
};

/* Which tile this CTA has. */
struct Tile {
  int m0, head, batch, kv_head, offset, blocks;
};
template <int BM, int BN>
__device__ __forceinline__ Tile tile_of_cta(const Params &p) {
  Tile t;
  int m = p.head_first ? blockIdx.z : blockIdx.x;
  t.head = p.head_first ? blockIdx.x : blockIdx.y;
  t.batch = p.head_first ? blockIdx.y : blockIdx.z;
  if (p.reverse) m = p.m_tiles - 1 - m;
  t.m0 = m * BM;
  t.kv_head = t.head / p.kv_group;
  t.offset = p.seqlen_kv - p.seqlen_q;
  int end = p.seqlen_kv;
  if (p.causal) end = max(0, min(end, t.m0 + BM + t.offset));
  t.blocks = (end + BN - 1) / BN;
  return t;
}

template <int N, int D, class T>
struct WarpgroupTile {
  static constexpr bool bf16 = independent::is_bf16<T>;
  float m[2] = {-INFINITY, -INFINITY}, l[2] = {0.f, 0.f};
  float o[D / 2];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < D / 2; i++) o[i] = 0.f;
  }

  /* q: descriptor of this tile's 64 rows, whose panels are q_panel bytes apart. */
  template <int QPanel>
  static __device__ __forceinline__ void scores(float (&s)[N / 2], uint64_t q, uint64_t k) {
#pragma unroll
    for (int step = 0; step < D / 16; step++) {
      int panel = step / 4, within = step % 4 * 32;
      Wgmma<N, bf16>::mma_ss(s, q + ((panel * QPanel + within) >> 4), k + ((panel * N * 128 + within) >> 4), step != 0);
    }
  }
  __device__ __forceinline__ void accumulate(uint32_t (&p)[N / 16][4], uint64_t v) {
#pragma unroll
    for (int step = 0; step < N / 16; step++) Wgmma<D, bf16>::mma_rs(o, p[step], v + (step * 2048 >> 4), 1);
  }

  /* limit: the first column that the thread's upper and lower row don't see, less the block's and thread's first. */
  static __device__ __forceinline__ void mask(float (&s)[N / 2], int limit_up, int limit_low) {
#pragma unroll
    for (int i = 0; i < N / 8; i++)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        if (8 * i + e >= limit_up) s[4 * i + e] = -INFINITY;
        if (8 * i + e >= limit_low) s[4 * i + 2 + e] = -INFINITY;
      }
  }

  /* S becomes P; alpha is what O is to be scaled by. */
  __device__ __forceinline__ void softmax(float (&s)[N / 2], float (&alpha)[2], float scale_log2) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
      float top = m[r];
#pragma unroll
      for (int i = 0; i < N / 8; i++) top = fmaxf(top, fmaxf(s[4 * i + 2 * r], s[4 * i + 2 * r + 1]));
      top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
      top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
      float shift = top == -INFINITY ? 0.f : top * scale_log2;
      alpha[r] = exp2_fast(m[r] * scale_log2 - shift);
      m[r] = top;
      float sum = 0;
#pragma unroll
      for (int i = 0; i < N / 8; i++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
          float &x = s[4 * i + 2 * r + e];
          x = exp2_fast(fmaf(x, scale_log2, -shift));
          sum += x;
        }
      l[r] = l[r] * alpha[r] + sum;
    }
  }
  __device__ __forceinline__ void rescale(const float (&alpha)[2]) {
#pragma unroll
    for (int i = 0; i < D / 8; i++) {
      o[4 * i] *= alpha[0], o[4 * i + 1] *= alpha[0];
      o[4 * i + 2] *= alpha[1], o[4 * i + 3] *= alpha[1];
    }
  }
  static __device__ __forceinline__ void convert(uint32_t (&p)[N / 16][4], const float (&s)[N / 2]) {
#pragma unroll
    for (int step = 0; step < N / 16; step++)
#pragma unroll
      for (int e = 0; e < 4; e++) p[step][e] = pack<T>(s[8 * step + 2 * e], s[8 * step + 2 * e + 1]);
  }

  /* Divides by the sums and writes LSE; lse: of the warp's first row, of which `rows` exist. */
  __device__ __forceinline__ void finish(float *lse, int rows, float scale, int lane) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
      l[r] += __shfl_xor_sync(~0u, l[r], 1);
      l[r] += __shfl_xor_sync(~0u, l[r], 2);
      int row = lane / 4 + 8 * r;
      if (lane % 4 == 0 && row < rows) lse[row] = l[r] > 0 ? m[r] * scale + __logf(l[r]) : -INFINITY;
    }
    float inverse[2] = {l[0] > 0 ? 1.f / l[0] : 0.f, l[1] > 0 ? 1.f / l[1] : 0.f};
    rescale(inverse);
  }
  /* O into shared memory, swizzled; to: where the warp's 16 rows begin (8-row aligned), Panel bytes apart a panel. */
  template <int Panel>
  __device__ __forceinline__ void stage(uint32_t to, int lane) const {
    int row = lane % 16;
#pragma unroll
    for (int step = 0; step < D / 16; step++) {
      int chunk = step % 4 * 2 + lane / 16;
      stmatrix4(to + step / 4 * Panel + row * 128 + ((chunk ^ (row & 7)) << 4), pack<T>(o[8 * step], o[8 * step + 1]),
                pack<T>(o[8 * step + 2], o[8 * step + 3]), pack<T>(o[8 * step + 4], o[8 * step + 5]),
                pack<T>(o[8 * step + 6], o[8 * step + 7]));
    }
  }
};

/* A tile of `Rows` rows and D columns through TMA, a box a panel. */
template <int Rows, int D>
__device__ __forceinline__ void load_tile(uint32_t to, const CUtensorMap *map, uint32_t bar, int row, int head,
                                          int batch) {
  barrier_expect(bar, Rows * D * 2);
#pragma unroll
  for (int panel = 0; panel < D / 64; panel++)
    tma_load(to + panel * Rows * 128, map, bar, panel * 64, row, head, batch);
}
