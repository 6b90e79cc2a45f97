/* FlashAttention-2 forward with mma.sync.m16n8k16 and cp.async.
 *
 * One CTA computes BM query rows of one head; each warp owns MT*16 of those rows and all of head_dim. Tiles are
 * swizzled. Stages: K and V have S buffers each, a tile's K and V are one group, one barrier a tile; with one stage K
 * and V share one buffer. Interleaved: one buffer each, V is copied during Q K^T and the next K during softmax and P V,
 * two barriers a tile. O goes out through the warp's own rows of Q's memory. */
#pragma once

#include "ptx.h"
#include <math.h>

struct Params {
  const void *q, *k, *v; /* [batch][heads | kv_heads][seq][D] */
  void *o;               /* [batch][heads][seq_q][D] */
  float *lse;            /* [batch][heads][seq_q], natural logarithm */
  int heads, kv_heads, seq_q, seq_kv;
  float scale;
};

enum { STAGES = 0, INTERLEAVED = 1 };

template <class T_, int D_, int BM_, int BN_, int NW_, int S_, int SCHED_, bool CAUSAL_, bool QREG_>
struct Cfg {
  using T = T_;
  static constexpr int D = D_, BM = BM_, BN = BN_, NW = NW_, S = S_, SCHED = SCHED_;
  static constexpr bool CAUSAL = CAUSAL_, QREG = QREG_;
  static constexpr int NT = NW * 32;        /* threads */
  static constexpr int MT = BM / (16 * NW); /* 16-row tiles of a warp */
  static constexpr int CH = D / 8;          /* 16-byte chunks of a row */
  static constexpr int ROWB = D * 2;        /* bytes of a row */
  static constexpr int Q_BYTES = BM * ROWB;
  static constexpr int KV_BYTES = BN * ROWB; /* one K or V tile */
  static constexpr int KV_BUFS = SCHED == INTERLEAVED ? 2 : (S == 1 ? 1 : 2 * S);
  static constexpr int SMEM = Q_BYTES + KV_BUFS * KV_BYTES;
  static_assert(BM % (16 * NW) == 0 && D % 16 == 0 && BN % 16 == 0, "tile shape");
  static_assert(BM * CH % NT == 0 && BN * CH % NT == 0, "copies must divide evenly");
  static_assert(SCHED == STAGES || S == 1, "interleaved has one buffer each");
};

/* Position of 16-byte chunk c of row r, so that 8 consecutive rows of one chunk column touch all 32 banks. */
template <int CH>
__device__ __forceinline__ int swizzle(int r, int c) {
  if constexpr (CH % 8 == 0)
    return c ^ (r & 7);
  else if constexpr (CH % 4 == 0)
    return c ^ ((r >> 1) & 3); /* D = 96 */
  else
    return c ^ ((r >> 2) & 1); /* D = 80 */
}

/* ROWS x D tile, contiguous in global memory. */
template <class C, int ROWS>
__device__ __forceinline__ void load_tile(uint32_t dst, const typename C::T *src, int tid) {
#pragma unroll
  for (int i = 0; i < ROWS * C::CH / C::NT; ++i) {
    const int idx = tid + i * C::NT;
    const int r = idx / C::CH, c = idx % C::CH;
    cp_async16(dst + r * C::ROWB + swizzle<C::CH>(r, c) * 16, src + (size_t)idx * 8);
  }
}

template <class T>
__device__ __forceinline__ uint32_t pack2(float a, float b);
template <>
__device__ __forceinline__ uint32_t pack2<__half>(float a, float b) {
  __half2 h = __floats2half2_rn(a, b);
  return *reinterpret_cast<uint32_t *>(&h);
}
template <>
__device__ __forceinline__ uint32_t pack2<__nv_bfloat16>(float a, float b) {
  __nv_bfloat162 h = __floats2bfloat162_rn(a, b);
  return *reinterpret_cast<uint32_t *>(&h);
}

template <class C>
struct Tile {
  static constexpr int NS = C::BN / 8, NO = C::D / 8, KD = C::D / 16;
  uint32_t qf[C::QREG ? C::MT : 1][C::QREG ? KD : 1][4];
  float s[C::MT][NS][4];
  float o[C::MT][NO][4];
  float m[C::MT][2], l[C::MT][2]; /* rows lane/4 and lane/4 + 8; l is this thread's part of the sum */

  __device__ __forceinline__ void init() {
#pragma unroll
    for (int i = 0; i < C::MT; ++i) {
#pragma unroll
      for (int n = 0; n < NO; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) o[i][n][e] = 0.f;
      m[i][0] = m[i][1] = -INFINITY;
      l[i][0] = l[i][1] = 0.f;
    }
  }

  /* A operand: matrices (rows 0-7, k 0-7), (rows 8-15, k 0-7), (rows 0-7, k 8-15), (rows 8-15, k 8-15). */
  static __device__ __forceinline__ void load_q(uint32_t (&r)[4], uint32_t q_warp, int i, int kk, int lane) {
    ldmatrix_x4(r, q_warp + (i * 16 + (lane & 15)) * C::ROWB + swizzle<C::CH>(lane & 7, kk * 2 + (lane >> 4)) * 16);
  }
  __device__ __forceinline__ void load_q_regs(uint32_t q_warp, int lane) {
#pragma unroll
    for (int i = 0; i < C::MT; ++i)
#pragma unroll
      for (int kk = 0; kk < KD; ++kk) load_q(qf[i][kk], q_warp, i, kk, lane);
  }

  /* S = Q K^T */
  __device__ __forceinline__ void qk(uint32_t q_warp, uint32_t ks, int lane) {
#pragma unroll
    for (int i = 0; i < C::MT; ++i)
#pragma unroll
      for (int n = 0; n < NS; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) s[i][n][e] = 0.f;
    /* B operand: (n 0-7, k 0-7), (n 0-7, k 8-15), (n 8-15, k 0-7), (n 8-15, k 8-15); K rows are n. */
    const uint32_t krow = ks + ((lane & 7) + ((lane >> 4) << 3)) * C::ROWB;
#pragma unroll
    for (int kk = 0; kk < KD; ++kk) {
      uint32_t a[C::MT][4];
#pragma unroll
      for (int i = 0; i < C::MT; ++i) {
        if constexpr (C::QREG) {
#pragma unroll
          for (int e = 0; e < 4; ++e) a[i][e] = qf[i][kk][e];
        } else {
          load_q(a[i], q_warp, i, kk, lane);
        }
      }
      const uint32_t col = swizzle<C::CH>(lane & 7, kk * 2 + ((lane >> 3) & 1)) * 16;
#pragma unroll
      for (int n = 0; n < NS / 2; ++n) {
        uint32_t b[4];
        ldmatrix_x4(b, krow + n * 16 * C::ROWB + col);
#pragma unroll
        for (int i = 0; i < C::MT; ++i) {
          mma16816<typename C::T>(s[i][2 * n], a[i], b[0], b[1]);
          mma16816<typename C::T>(s[i][2 * n + 1], a[i], b[2], b[3]);
        }
      }
    }
  }

  /* row0: sequence position, on the key axis, of this warp's first query row */
  __device__ __forceinline__ void mask(int row0, int key0, int lane) {
#pragma unroll
    for (int i = 0; i < C::MT; ++i)
#pragma unroll
      for (int n = 0; n < NS; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int row = row0 + i * 16 + (lane >> 2) + (e >> 1) * 8;
          const int key = key0 + n * 8 + (lane & 3) * 2 + (e & 1);
          if (key > row) s[i][n][e] = -INFINITY;
        }
  }

  /* Online softmax; every row has at least one visible key in the first tile, so m is finite from then on. */
  __device__ __forceinline__ void softmax(float scale_log2) {
#pragma unroll
    for (int i = 0; i < C::MT; ++i)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float mx = m[i][h];
#pragma unroll
        for (int n = 0; n < NS; ++n) mx = fmaxf(mx, fmaxf(s[i][n][2 * h], s[i][n][2 * h + 1]));
        mx = fmaxf(mx, __shfl_xor_sync(0xffffffffu, mx, 1));
        mx = fmaxf(mx, __shfl_xor_sync(0xffffffffu, mx, 2));
        const float corr = ex2((m[i][h] - mx) * scale_log2);
        const float mxs = mx * scale_log2;
        m[i][h] = mx;
        float sum = 0.f;
#pragma unroll
        for (int n = 0; n < NS; ++n)
#pragma unroll
          for (int e = 2 * h; e < 2 * h + 2; ++e) {
            s[i][n][e] = ex2(fmaf(s[i][n][e], scale_log2, -mxs));
            sum += s[i][n][e];
          }
        l[i][h] = fmaf(l[i][h], corr, sum);
#pragma unroll
        for (int n = 0; n < NO; ++n) {
          o[i][n][2 * h] *= corr;
          o[i][n][2 * h + 1] *= corr;
        }
      }
  }

  /* O += P V; the accumulators of two neighbouring 8-column tiles of S are one A operand. */
  __device__ __forceinline__ void pv(uint32_t vs, int lane) {
    /* B operand, transposed on load: (k 0-7, n 0-7), (k 8-15, n 0-7), (k 0-7, n 8-15), (k 8-15, n 8-15); V rows are k.
     */
    const uint32_t vrow = vs + (lane & 15) * C::ROWB;
#pragma unroll
    for (int kk = 0; kk < C::BN / 16; ++kk) {
      uint32_t a[C::MT][4];
#pragma unroll
      for (int i = 0; i < C::MT; ++i) {
        a[i][0] = pack2<typename C::T>(s[i][2 * kk][0], s[i][2 * kk][1]);
        a[i][1] = pack2<typename C::T>(s[i][2 * kk][2], s[i][2 * kk][3]);
        a[i][2] = pack2<typename C::T>(s[i][2 * kk + 1][0], s[i][2 * kk + 1][1]);
        a[i][3] = pack2<typename C::T>(s[i][2 * kk + 1][2], s[i][2 * kk + 1][3]);
      }
#pragma unroll
      for (int n = 0; n < NO / 2; ++n) {
        uint32_t b[4];
        ldmatrix_x4_trans(b, vrow + kk * 16 * C::ROWB + swizzle<C::CH>(lane & 7, n * 2 + (lane >> 4)) * 16);
#pragma unroll
        for (int i = 0; i < C::MT; ++i) {
          mma16816<typename C::T>(o[i][2 * n], a[i], b[0], b[1]);
          mma16816<typename C::T>(o[i][2 * n + 1], a[i], b[2], b[3]);
        }
      }
    }
  }
};

template <class C>
__global__ void __launch_bounds__(C::NT) flash2_fwd(const Params p) {
  using T = typename C::T;
  extern __shared__ __align__(128) unsigned char smem_raw[];
  const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
  const int q0 = blockIdx.x * C::BM, head = blockIdx.y, batch = blockIdx.z;
  const int kv_head = head / (p.heads / p.kv_heads);

  const size_t q_off = ((size_t)batch * p.heads + head) * p.seq_q + q0;
  const size_t kv_off = ((size_t)batch * p.kv_heads + kv_head) * p.seq_kv;
  const T *gq = static_cast<const T *>(p.q) + q_off * C::D;
  const T *gk = static_cast<const T *>(p.k) + kv_off * C::D;
  const T *gv = static_cast<const T *>(p.v) + kv_off * C::D;

  const int shift = p.seq_kv - p.seq_q; /* causal: the last query sees the last key */
  int n_tiles = p.seq_kv / C::BN;
  if (C::CAUSAL) n_tiles = min(n_tiles, (q0 + C::BM + shift + C::BN - 1) / C::BN);

  const int warp_row = warp * C::MT * 16;
  const float scale_log2 = p.scale * 1.4426950408889634f;
  const uint32_t sq = smem_addr(smem_raw);
  const uint32_t sq_warp = sq + warp_row * C::ROWB;
  const uint32_t skv = sq + C::Q_BYTES;

  Tile<C> t;
  t.init();

  auto load_kv = [&](uint32_t dst, const T *src, int j) {
    load_tile<C, C::BN>(dst, src + (size_t)j * C::BN * C::D, tid);
  };
  auto mask_and_softmax = [&](int j) {
    const int key0 = j * C::BN;
    if (C::CAUSAL && key0 + C::BN - 1 > q0 + shift) t.mask(q0 + shift + warp_row, key0, lane);
    t.softmax(scale_log2);
  };

  load_tile<C, C::BM>(sq, gq, tid);
  cp_async_commit();

  if constexpr (C::SCHED == INTERLEAVED) {
    const uint32_t sk = skv, sv = skv + C::KV_BYTES;
    load_kv(sk, gk, 0);
    cp_async_commit();
    if constexpr (C::QREG) {
      cp_async_wait<1>();
      __syncthreads();
      t.load_q_regs(sq_warp, lane);
    }
    for (int j = 0; j < n_tiles; ++j) {
      cp_async_wait<0>(); /* K_j is here */
      __syncthreads();    /* for all threads; and V_{j-1} is no longer read */
      load_kv(sv, gv, j);
      cp_async_commit();
      t.qk(sq_warp, sk, lane);
      cp_async_wait<0>(); /* V_j is here */
      __syncthreads();    /* for all threads; and K_j is no longer read */
      if (j + 1 < n_tiles) {
        load_kv(sk, gk, j + 1);
        cp_async_commit();
      }
      mask_and_softmax(j);
      t.pv(sv, lane);
    }
  } else if constexpr (C::S == 1) {
    if constexpr (C::QREG) {
      cp_async_wait<0>();
      __syncthreads();
      t.load_q_regs(sq_warp, lane);
    }
    for (int j = 0; j < n_tiles; ++j) {
      if (j > 0) __syncthreads(); /* V_{j-1} is no longer read */
      load_kv(skv, gk, j);
      cp_async_commit();
      cp_async_wait<0>();
      __syncthreads();
      t.qk(sq_warp, skv, lane);
      mask_and_softmax(j);
      __syncthreads(); /* K_j is no longer read */
      load_kv(skv, gv, j);
      cp_async_commit();
      cp_async_wait<0>();
      __syncthreads();
      t.pv(skv, lane);
    }
  } else {
    const uint32_t sk = skv, sv = skv + C::S * C::KV_BYTES;
    /* Tile j lives in buffer j % S; K_j and V_j are one group. Groups are committed even when empty, to keep the count.
     */
#pragma unroll
    for (int j = 0; j < C::S - 1; ++j) {
      if (j < n_tiles) {
        load_kv(sk + j * C::KV_BYTES, gk, j);
        load_kv(sv + j * C::KV_BYTES, gv, j);
      }
      cp_async_commit();
    }
    if constexpr (C::QREG) {
      cp_async_wait<C::S - 1>();
      __syncthreads();
      t.load_q_regs(sq_warp, lane);
    }
    int rd = 0, wr = C::S - 1;
    for (int j = 0; j < n_tiles; ++j) {
      cp_async_wait<C::S - 2>(); /* K_j and V_j are here */
      __syncthreads();           /* for all threads; and buffer (j-1) % S is no longer read */
      if (j + C::S - 1 < n_tiles) {
        load_kv(sk + wr * C::KV_BYTES, gk, j + C::S - 1);
        load_kv(sv + wr * C::KV_BYTES, gv, j + C::S - 1);
      }
      cp_async_commit();
      t.qk(sq_warp, sk + rd * C::KV_BYTES, lane);
      mask_and_softmax(j);
      t.pv(sv + rd * C::KV_BYTES, lane);
      wr = rd;
      rd = rd + 1 == C::S ? 0 : rd + 1;
    }
  }

  /* Epilogue: normalise, stage O in this warp's own rows of the Q buffer, write 16 bytes a thread. */
  __syncwarp();
  float *glse = p.lse + q_off + warp_row;
#pragma unroll
  for (int i = 0; i < C::MT; ++i)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float sum = t.l[i][h];
      sum += __shfl_xor_sync(0xffffffffu, sum, 1);
      sum += __shfl_xor_sync(0xffffffffu, sum, 2);
      const float inv = 1.f / sum;
      const int r = i * 16 + h * 8 + (lane >> 2); /* within the warp's rows */
      if ((lane & 3) == 0) glse[r] = t.m[i][h] * p.scale + logf(sum);
      unsigned char *row = smem_raw + (warp_row + r) * C::ROWB + (lane & 3) * 4;
#pragma unroll
      for (int n = 0; n < C::CH; ++n)
        *reinterpret_cast<uint32_t *>(row + swizzle<C::CH>(r, n) * 16) =
            pack2<T>(t.o[i][n][2 * h] * inv, t.o[i][n][2 * h + 1] * inv);
    }
  __syncwarp();
  T *go = static_cast<T *>(p.o) + (q_off + warp_row) * C::D;
#pragma unroll
  for (int i = 0; i < C::MT * 16 * C::CH / 32; ++i) {
    const int idx = lane + i * 32;
    const int r = idx / C::CH, c = idx % C::CH;
    *reinterpret_cast<uint4 *>(go + (size_t)idx * 8) =
        *reinterpret_cast<const uint4 *>(smem_raw + (warp_row + r) * C::ROWB + swizzle<C::CH>(r, c) * 16);
  }
}
