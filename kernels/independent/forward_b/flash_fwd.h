/* FlashAttention-2 forward with mma.sync.m16n8k16 and cp.async; strided tensors, lengths of any size if RAGGED.
 *
 * One CTA per (query tile, head, batch). Warps split the rows of the query tile; every warp sees all keys, so the
 * softmax statistics never leave a quad of lanes. O, m and l live in registers, P goes from the accumulators of Q K^T
 * straight into the A operand of P V. Two stages: the next tile's K and V are copied during the whole step, one barrier
 * a tile. One stage: V is copied during Q K^T, the next K during softmax and P V, two barriers a tile. */
#pragma once

#include <cstdint>
#include <type_traits>
#include "ptx.h"

struct FwdParams {
  const void *q, *k, *v;
  void* o;
  float* lse;                                 /* [batch][heads][seqlen_q] */
  int seqlen_q, seqlen_kv, heads, group;      /* group = heads / kv_heads */
  int64_t q_batch, q_head, kv_batch, kv_head; /* strides in elements; O as Q, V as K */
  int q_row, kv_row;
  float scale, scale_log2;
  int reverse; /* last query tiles, the longest, first */
};

/* STAGES == 2: K and V double buffered.  STAGES == 1: one buffer each, copies interleaved with the two products. */
template <class T_, int HD_, int BM_, int BN_, int WARPS_, int STAGES_, bool CAUSAL_, bool RAGGED_>
struct FwdConfig {
  using T = T_;
  static constexpr int HD = HD_, BM = BM_, BN = BN_, WARPS = WARPS_, STAGES = STAGES_;
  static constexpr bool CAUSAL = CAUSAL_, RAGGED = RAGGED_;
  static constexpr int THREADS = WARPS * 32;
  static constexpr int MT = BM / (16 * WARPS); /* m16 tiles of a warp */
  static constexpr int ROW_BYTES = HD * 2;
  static constexpr int TPR = HD % 64 == 0 ? 8 : 4; /* threads that copy a row together */
  static constexpr int RPP = THREADS / TPR;        /* rows of one pass of the copy */
  static constexpr int Q_BYTES = BM * ROW_BYTES, KV_BYTES = BN * ROW_BYTES;
  static constexpr int SMEM = Q_BYTES + 2 * STAGES * KV_BYTES;
  /* Q stays in registers if there is room for it next to O and S */
  static constexpr bool Q_IN_REGS = MT == 1 && HD + BN <= 192;
  static_assert(MT >= 1 && BM == MT * 16 * WARPS, "rows of a warp");
  static_assert(BM % RPP == 0 && BN % RPP == 0, "copy passes");
  static_assert(HD == 64 || HD == 96 || HD == 128, "head_dim");
};

template <class C>
struct FwdTile {
  using T = typename C::T;
  static constexpr int HD = C::HD, BM = C::BM, BN = C::BN, MT = C::MT, RB = C::ROW_BYTES;
  static constexpr int KS = HD / 16, NT = BN / 8, DT = HD / 8;

  const FwdParams& p;
  int tid, lane, warp, m0, causal_off;
  uint32_t sQ, sK, sV;
  const T *gK, *gV;
  /* per-lane shared-memory offsets of ldmatrix: row part, and the swizzled 16-byte column */
  uint32_t q_row, q_col, k_row, k_col, v_row, v_col;
  /* copies */
  int c_row, c_chunk;
  uint32_t c_sw;

  float o[MT][DT][4];
  float s[MT][NT][4];
  float m[MT][2], l[MT][2];
  uint32_t qf[C::Q_IN_REGS ? KS : 1][4];

  /* XOR on the 16-byte column that makes 8 consecutive rows hit 8 different bank groups. Rows of 192 bytes already
   * alternate between two halves of the banks, so 2 bits are enough there (and 12 columns allow no more). */
  static __device__ __forceinline__ uint32_t swz(int row) { return HD == 96 ? (row >> 1) & 3 : row & 7; }

  __device__ __forceinline__ FwdTile(const FwdParams& p_, uint32_t smem) : p(p_) {
    tid = threadIdx.x;
    lane = tid & 31;
    warp = tid >> 5;
    int mb = p.reverse ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    m0 = mb * BM;
    causal_off = p.seqlen_kv - p.seqlen_q;
    sQ = smem;
    sK = sQ + C::Q_BYTES;
    sV = sK + C::STAGES * C::KV_BYTES;
    int64_t kv = blockIdx.z * p.kv_batch + (blockIdx.y / p.group) * p.kv_head;
    gK = (const T*)p.k + kv;
    gV = (const T*)p.v + kv;

    int r = warp * 16 * MT + (lane & 15);
    q_row = r * RB;
    q_col = ((lane >> 4) ^ swz(r)) << 4;
    r = (lane & 7) + ((lane >> 4) << 3); /* keys 0-7: k halves, then keys 8-15 */
    k_row = r * RB;
    k_col = (((lane >> 3) & 1) ^ swz(r)) << 4;
    r = lane & 15; /* keys 0-15 of columns 0-7, then of 8-15 */
    v_row = r * RB;
    v_col = ((lane >> 4) ^ swz(r)) << 4;

    c_row = tid / C::TPR;
    c_chunk = tid % C::TPR;
    c_sw = swz(c_row);
  }

  /* ROWS x HD elements; of a ragged tile, rows from `valid` on become zeros */
  template <int ROWS>
  __device__ __forceinline__ void copy_tile(uint32_t dst, const T* src, int stride, int valid) {
    const T* g = src + (int64_t)c_row * stride;
    uint32_t d = dst + c_row * RB;
#pragma unroll
    for (int i = 0; i < ROWS / C::RPP; ++i) {
      bool ok = c_row + i * C::RPP < valid;
#pragma unroll
      for (int j = 0; j < DT / C::TPR; ++j) {
        int ch = j * C::TPR + c_chunk;
        cp_async16<C::RAGGED>(d + i * C::RPP * RB + ((ch ^ c_sw) << 4), g + ch * 8, ok);
      }
      g += (int64_t)C::RPP * stride;
    }
  }
  __device__ __forceinline__ const T* q_tile() const {
    return (const T*)p.q + blockIdx.z * p.q_batch + blockIdx.y * p.q_head + (int64_t)m0 * p.q_row;
  }
  __device__ __forceinline__ void load_q() { copy_tile<BM>(sQ, q_tile(), p.q_row, p.seqlen_q - m0); }
  __device__ __forceinline__ void load_k(int n, int buf) {
    copy_tile<BN>(sK + buf * C::KV_BYTES, gK + (int64_t)n * BN * p.kv_row, p.kv_row, p.seqlen_kv - n * BN);
  }
  __device__ __forceinline__ void load_v(int n, int buf) {
    copy_tile<BN>(sV + buf * C::KV_BYTES, gV + (int64_t)n * BN * p.kv_row, p.kv_row, p.seqlen_kv - n * BN);
  }

  __device__ __forceinline__ void q_to_regs() {
    if constexpr (C::Q_IN_REGS) {
#pragma unroll
      for (int k = 0; k < KS; ++k) ldsm_x4(qf[k], sQ + q_row + (q_col ^ (k << 5)));
    }
  }

  __device__ __forceinline__ void qk(int buf) {
    uint32_t kb = sK + buf * C::KV_BYTES + k_row;
#pragma unroll
    for (int a = 0; a < MT; ++a)
#pragma unroll
      for (int j = 0; j < NT; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) s[a][j][e] = 0.f;
#pragma unroll
    for (int k = 0; k < KS; ++k) {
      uint32_t qa[MT][4];
#pragma unroll
      for (int a = 0; a < MT; ++a) {
        if constexpr (C::Q_IN_REGS) {
#pragma unroll
          for (int e = 0; e < 4; ++e) qa[a][e] = qf[k][e];
        } else {
          ldsm_x4(qa[a], sQ + q_row + a * 16 * RB + (q_col ^ (k << 5)));
        }
      }
      uint32_t kc = kb + (k_col ^ (k << 5));
#pragma unroll
      for (int j = 0; j < NT / 2; ++j) {
        uint32_t b[4];
        ldsm_x4(b, kc + j * 16 * RB);
#pragma unroll
        for (int a = 0; a < MT; ++a) {
          mma16816<T>(s[a][2 * j], qa[a], b[0], b[1]);
          mma16816<T>(s[a][2 * j + 1], qa[a], b[2], b[3]);
        }
      }
    }
  }

  __device__ __forceinline__ void mask(int n) {
#pragma unroll
    for (int a = 0; a < MT; ++a)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        int lim = p.seqlen_kv;
        if (C::CAUSAL) lim = min(lim, m0 + (warp * MT + a) * 16 + h * 8 + (lane >> 2) + causal_off + 1);
        lim -= n * BN + (lane & 3) * 2;
#pragma unroll
        for (int j = 0; j < NT; ++j) {
          if (j * 8 >= lim) s[a][j][2 * h] = -INFINITY;
          if (j * 8 + 1 >= lim) s[a][j][2 * h + 1] = -INFINITY;
        }
      }
  }

  template <bool MASK>
  __device__ __forceinline__ void softmax() {
#pragma unroll
    for (int a = 0; a < MT; ++a)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float mx = m[a][h];
#pragma unroll
        for (int j = 0; j < NT; ++j) mx = fmaxf(mx, fmaxf(s[a][j][2 * h], s[a][j][2 * h + 1]));
        mx = fmaxf(mx, quad_xor(mx, 1));
        mx = fmaxf(mx, quad_xor(mx, 2));
        float ms = mx * p.scale_log2;
        if (MASK) ms = mx == -INFINITY ? 0.f : ms; /* a row may see no key yet */
        float corr = ex2(m[a][h] * p.scale_log2 - ms);
        m[a][h] = mx;
        float sum = 0.f;
#pragma unroll
        for (int j = 0; j < NT; ++j) {
          s[a][j][2 * h] = ex2(fmaf(s[a][j][2 * h], p.scale_log2, -ms));
          s[a][j][2 * h + 1] = ex2(fmaf(s[a][j][2 * h + 1], p.scale_log2, -ms));
          sum += s[a][j][2 * h] + s[a][j][2 * h + 1];
        }
        l[a][h] = l[a][h] * corr + sum; /* this lane's columns only; quads are added at the end */
#pragma unroll
        for (int d = 0; d < DT; ++d) {
          o[a][d][2 * h] *= corr;
          o[a][d][2 * h + 1] *= corr;
        }
      }
  }

  static __device__ __forceinline__ uint32_t pack(float x, float y) {
    uint32_t r;
    if constexpr (std::is_same<T, __half>::value) {
      __half2 v = __floats2half2_rn(x, y);
      memcpy(&r, &v, 4);
    } else {
      __nv_bfloat162 v = __floats2bfloat162_rn(x, y);
      memcpy(&r, &v, 4);
    }
    return r;
  }

  __device__ __forceinline__ void pv(int buf) {
    uint32_t vb = sV + buf * C::KV_BYTES + v_row;
#pragma unroll
    for (int k = 0; k < BN / 16; ++k) {
      uint32_t pa[MT][4];
#pragma unroll
      for (int a = 0; a < MT; ++a) {
        pa[a][0] = pack(s[a][2 * k][0], s[a][2 * k][1]);
        pa[a][1] = pack(s[a][2 * k][2], s[a][2 * k][3]);
        pa[a][2] = pack(s[a][2 * k + 1][0], s[a][2 * k + 1][1]);
        pa[a][3] = pack(s[a][2 * k + 1][2], s[a][2 * k + 1][3]);
      }
#pragma unroll
      for (int d = 0; d < HD / 16; ++d) {
        uint32_t b[4];
        ldsm_x4_t(b, vb + k * 16 * RB + (v_col ^ (d << 5)));
#pragma unroll
        for (int a = 0; a < MT; ++a) {
          mma16816<T>(o[a][2 * d], pa[a], b[0], b[1]);
          mma16816<T>(o[a][2 * d + 1], pa[a], b[2], b[3]);
        }
      }
    }
  }

  template <bool MASK>
  __device__ __forceinline__ void step(int n, int n_end) {
    cp_async_wait<0>();
    __syncthreads();
    if constexpr (C::STAGES == 1) {
      load_v(n, 0); /* copied during Q K^T; all warps have read the last V */
      cp_async_commit();
      qk(0);
      if (MASK) mask(n);
      cp_async_wait<0>();
      __syncthreads();
      if (n + 1 < n_end) { /* copied during softmax and P V */
        load_k(n + 1, 0);
        cp_async_commit();
      }
      softmax<MASK>();
      pv(0);
    } else {
      if (n + 1 < n_end) { /* copied during the whole step */
        load_k(n + 1, (n + 1) & 1);
        load_v(n + 1, (n + 1) & 1);
        cp_async_commit();
      }
      qk(n & 1);
      if (MASK) mask(n);
      softmax<MASK>();
      pv(n & 1);
    }
  }

  __device__ __forceinline__ void run() {
    int n_end, n_full; /* key tiles [0, n_full) need no mask, [n_full, n_end) do */
    if (C::RAGGED) {
      n_end = (p.seqlen_kv + BN - 1) / BN;
      n_full = p.seqlen_kv / BN;
    } else {
      n_end = n_full = p.seqlen_kv / BN;
    }
    if (C::CAUSAL) {
      n_end = min(n_end, (max(m0 + BM + causal_off, 0) + BN - 1) / BN);
      n_full = min(n_full, max(m0 + causal_off + 1, 0) / BN);
    }

#pragma unroll
    for (int a = 0; a < MT; ++a) {
#pragma unroll
      for (int h = 0; h < 2; ++h) m[a][h] = -INFINITY, l[a][h] = 0.f;
#pragma unroll
      for (int d = 0; d < DT; ++d)
#pragma unroll
        for (int e = 0; e < 4; ++e) o[a][d][e] = 0.f;
    }

    if (!C::CAUSAL || n_end > 0) {
      load_q();
      if (C::Q_IN_REGS) cp_async_commit();
      load_k(0, 0);
      if (C::STAGES > 1) load_v(0, 0);
      cp_async_commit();
      if (C::Q_IN_REGS) {
        cp_async_wait<1>();
        __syncthreads();
        q_to_regs();
      }
      int n = 0;
#pragma unroll 1
      for (; n < n_full; ++n) step<false>(n, n_end);
      if (C::CAUSAL || C::RAGGED) {
#pragma unroll 1
        for (; n < n_end; ++n) step<true>(n, n_end);
      }
    }
    store();
  }

  __device__ __forceinline__ void store() {
    float* lse = p.lse + ((int64_t)blockIdx.z * p.heads + blockIdx.y) * p.seqlen_q;
    /* O through the shared memory of Q: a warp overwrites only rows that no other warp reads */
#pragma unroll
    for (int a = 0; a < MT; ++a)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float sum = l[a][h];
        sum += quad_xor(sum, 1);
        sum += quad_xor(sum, 2);
        int r = (warp * MT + a) * 16 + h * 8 + (lane >> 2);
        bool none = C::CAUSAL && sum == 0.f;
        float inv = none ? 0.f : 1.f / sum;
        if ((lane & 3) == 0 && (!C::RAGGED || m0 + r < p.seqlen_q))
          lse[m0 + r] = none ? -INFINITY : m[a][h] * p.scale + logf(sum);
        uint32_t base = sQ + r * RB + (lane & 3) * 4;
#pragma unroll
        for (int d = 0; d < DT; ++d)
          st_shared32(base + ((d ^ swz(r)) << 4), pack(o[a][d][2 * h] * inv, o[a][d][2 * h + 1] * inv));
      }
    __syncthreads();
    T* g = (T*)p.o + (q_tile() - (const T*)p.q);
#pragma unroll
    for (int i = 0; i < BM / C::RPP; ++i) {
      int r = c_row + i * C::RPP;
      if (!C::RAGGED || m0 + r < p.seqlen_q) {
#pragma unroll
        for (int j = 0; j < DT / C::TPR; ++j) {
          int ch = j * C::TPR + c_chunk;
          *(uint4*)(g + (int64_t)r * p.q_row + ch * 8) = ld_shared128(sQ + r * RB + ((ch ^ c_sw) << 4));
        }
      }
    }
  }
};

template <class C>
__global__ void __launch_bounds__(C::THREADS) flash_fwd_kernel(const __grid_constant__ FwdParams p) {
  extern __shared__ __align__(1024) unsigned char smem[];
  FwdTile<C> t(p, smem_addr(smem));
  t.run();
}
