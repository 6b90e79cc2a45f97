/* Split-KV and paged decoding with mma.sync and cp.async, one new token: the query heads of a GQA group are the rows of
 * one 16-row MMA tile. CTA = (split, kv head, sequence). Every warp takes BN/NW keys of each tile and keeps its own
 * running softmax and 16 x D accumulator; they are merged through shared memory at the end. A second kernel merges the
 * splits. ST buffers of K and V, one barrier a tile. */
#pragma once

#include "ptx.h"

struct DecodeArgs {
  const void *q, *k, *v; /* q [batch][heads][D] */
  void* o;
  float* lse;             /* final results [batch][heads][D], [batch][heads] */
  float *opart, *lsepart; /* [split][batch*heads][D], [split][batch*heads] */
  const int* table;
  int max_pages; /* paged only: [batch][max_pages] */
  int page_shift;
  size_t s_seq, s_head, s_tok; /* strides in elements of k, v: sequence (page, when paged), kv head, token */
  int batch, heads, kv_heads, seqlen, splits;
  float scale;
};

template <int D, int BN, int NW, int ST>
constexpr int decode_smem() {
  constexpr int kv = 2 * ST * BN * D * 2 + 16 * D * 2;
  constexpr int merge = NW * 16 * (D + 8) * 4 + NW * 32 * 4;
  return kv > merge ? kv : merge;
}

template <typename T, int D, int BN, int NW, int ST, bool PAGED>
__global__ void __launch_bounds__(NW * 32) decode_split(const DecodeArgs p) {
  constexpr int NT = NW * 32, KW = BN / NW, CH = D / 8, TILE = BN * D * 2;
  static_assert(KW % 16 == 0, "16 keys a warp at least");
  DYN_SMEM(smem);
  const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
  const int split = blockIdx.x, kvh = blockIdx.y, b = blockIdx.z;
  const int G = p.heads / p.kv_heads;
  const uint32_t sK = smem_addr(smem), sV = sK + ST * TILE, sQ = sV + ST * TILE;

  const int tiles = p.seqlen / BN, per = (tiles + p.splits - 1) / p.splits;
  const int t0 = min(split * per, tiles), n = min(t0 + per, tiles) - t0;

  const T* kbase = (const T*)p.k + kvh * p.s_head + (PAGED ? 0 : b * p.s_seq);
  const T* vbase = (const T*)p.v + kvh * p.s_head + (PAGED ? 0 : b * p.s_seq);
  const int* table = PAGED ? p.table + (size_t)b * p.max_pages : nullptr;

  auto load = [&](int t) { /* tile t of this split into its stage */
                           const uint32_t dk = sK + (t % ST) * TILE, dv = sV + (t % ST) * TILE;
                           const int tok0 = (t0 + t) * BN;
#pragma unroll
                           for (int i = 0; i < BN * CH / NT; i++) {
                             int idx = tid + i * NT, r = idx / CH, c = idx % CH;
                             size_t off;
                             if constexpr (PAGED) {
                               int tok = tok0 + r;
                               off = (size_t)__ldg(table + (tok >> p.page_shift)) * p.s_seq +
                                     (size_t)(tok & ((1 << p.page_shift) - 1)) * p.s_tok;
                             } else {
                               off = (size_t)(tok0 + r) * p.s_tok;
                             }
                             cp16(dk + sw<D>(r, c), kbase + off + c * 8);
                             cp16(dv + sw<D>(r, c), vbase + off + c * 8);
                           }
  };

#pragma unroll
  for (int s = 0; s < ST - 1; s++) {
    if (s < n) load(s);
    cp_commit();
  }
  /* Q while the first tiles are copied; rows without a head are zero */
  const T* q = (const T*)p.q + ((size_t)b * p.heads + (size_t)kvh * G) * D;
  for (int i = tid; i < 16 * CH; i += NT) {
    int r = i / CH, c = i % CH;
    uint4 x = make_uint4(0, 0, 0, 0);
    if (r < G) x = *reinterpret_cast<const uint4*>(q + (size_t)r * D + c * 8);
    sts128(sQ + sw<D>(r, c), x);
  }
  __syncthreads();
  uint32_t qf[D / 16][4];
#pragma unroll
  for (int k = 0; k < D / 16; k++) ldsm4(qf[k], fa<D>(sQ, 0, 2 * k, lane));

  float o[D / 8][4];
#pragma unroll
  for (int i = 0; i < D / 8; i++) o[i][0] = o[i][1] = o[i][2] = o[i][3] = 0.f;
  float m0 = -INFINITY, m1 = -INFINITY, l0 = 0.f, l1 = 0.f; /* rows lane/4 and lane/4 + 8; m of the raw scores */
  const float sc = p.scale * LOG2E;

  for (int t = 0; t < n; t++) {
    cp_wait<ST - 2>();
    __syncthreads();
    if (t + ST - 1 < n) load(t + ST - 1);
    cp_commit();
    const uint32_t kt = sK + (t % ST) * TILE, vt = sV + (t % ST) * TILE;

    float s[KW / 8][4];
#pragma unroll
    for (int i = 0; i < KW / 8; i++) s[i][0] = s[i][1] = s[i][2] = s[i][3] = 0.f;
#pragma unroll
    for (int k = 0; k < D / 16; k++)
#pragma unroll
      for (int j = 0; j < KW / 16; j++) {
        uint32_t bf[4];
        ldsm4(bf, fb<D>(kt, warp * KW + j * 16, 2 * k, lane));
        mma<T>(s[2 * j], qf[k], bf[0], bf[1]);
        mma<T>(s[2 * j + 1], qf[k], bf[2], bf[3]);
      }

    float x0 = m0, x1 = m1;
#pragma unroll
    for (int i = 0; i < KW / 8; i++) {
      x0 = fmaxf(x0, fmaxf(s[i][0], s[i][1]));
      x1 = fmaxf(x1, fmaxf(s[i][2], s[i][3]));
    }
    x0 = fmaxf(x0, __shfl_xor_sync(0xffffffffu, x0, 1));
    x0 = fmaxf(x0, __shfl_xor_sync(0xffffffffu, x0, 2));
    x1 = fmaxf(x1, __shfl_xor_sync(0xffffffffu, x1, 1));
    x1 = fmaxf(x1, __shfl_xor_sync(0xffffffffu, x1, 2));
    const float a0 = exp2f((m0 - x0) * sc), a1 = exp2f((m1 - x1) * sc);
    m0 = x0;
    m1 = x1;
    l0 *= a0;
    l1 *= a1;
#pragma unroll
    for (int i = 0; i < D / 8; i++) {
      o[i][0] *= a0;
      o[i][1] *= a0;
      o[i][2] *= a1;
      o[i][3] *= a1;
    }
    const float ms0 = m0 * sc, ms1 = m1 * sc;
    uint32_t pf[KW / 16][4];
#pragma unroll
    for (int i = 0; i < KW / 8; i++) {
      float e0 = exp2f(s[i][0] * sc - ms0), e1 = exp2f(s[i][1] * sc - ms0);
      float e2 = exp2f(s[i][2] * sc - ms1), e3 = exp2f(s[i][3] * sc - ms1);
      l0 += e0 + e1;
      l1 += e2 + e3;
      pf[i / 2][(i & 1) * 2] = pack2<T>(e0, e1);
      pf[i / 2][(i & 1) * 2 + 1] = pack2<T>(e2, e3);
    }
#pragma unroll
    for (int j = 0; j < KW / 16; j++)
#pragma unroll
      for (int d = 0; d < D / 16; d++) {
        uint32_t bf[4];
        ldsm4t(bf, fa<D>(vt, warp * KW + j * 16, 2 * d, lane));
        mma<T>(o[2 * d], pf[j], bf[0], bf[1]);
        mma<T>(o[2 * d + 1], pf[j], bf[2], bf[3]);
      }
  }
  cp_wait<0>();
  l0 += __shfl_xor_sync(0xffffffffu, l0, 1);
  l0 += __shfl_xor_sync(0xffffffffu, l0, 2);
  l1 += __shfl_xor_sync(0xffffffffu, l1, 1);
  l1 += __shfl_xor_sync(0xffffffffu, l1, 2);
  __syncthreads(); /* tiles are free: merge area over them */

  constexpr int LD = D + 8;
  float* so = reinterpret_cast<float*>(smem); /* [NW][16][LD] */
  float* sm = so + NW * 16 * LD;              /* [NW][16] */
  float* sl = sm + NW * 16;                   /* [NW][16] */
  const int r = lane >> 2, c2 = (lane & 3) * 2;
#pragma unroll
  for (int i = 0; i < D / 8; i++) {
    *reinterpret_cast<float2*>(so + (warp * 16 + r) * LD + i * 8 + c2) = make_float2(o[i][0], o[i][1]);
    *reinterpret_cast<float2*>(so + (warp * 16 + r + 8) * LD + i * 8 + c2) = make_float2(o[i][2], o[i][3]);
  }
  if ((lane & 3) == 0) {
    sm[warp * 16 + r] = m0;
    sm[warp * 16 + r + 8] = m1;
    sl[warp * 16 + r] = l0;
    sl[warp * 16 + r + 8] = l1;
  }
  __syncthreads();
  for (int i = tid; i < G * (D / 4); i += NT) {
    const int row = i / (D / 4), c = (i % (D / 4)) * 4;
    float mx = -INFINITY;
#pragma unroll
    for (int w = 0; w < NW; w++) mx = fmaxf(mx, sm[w * 16 + row]);
    float4 acc = make_float4(0.f, 0.f, 0.f, 0.f);
    float l = 0.f;
    if (n > 0) {
#pragma unroll
      for (int w = 0; w < NW; w++) {
        const float f = exp2f((sm[w * 16 + row] - mx) * sc);
        const float4 x = *reinterpret_cast<const float4*>(so + (w * 16 + row) * LD + c);
        l += f * sl[w * 16 + row];
        acc.x += f * x.x;
        acc.y += f * x.y;
        acc.z += f * x.z;
        acc.w += f * x.w;
      }
      const float inv = 1.f / l;
      acc.x *= inv;
      acc.y *= inv;
      acc.z *= inv;
      acc.w *= inv;
    }
    const float lse = n > 0 ? mx * p.scale + logf(l) : -INFINITY;
    const size_t head = (size_t)b * p.heads + kvh * G + row;
    if (p.splits == 1) {
      uint2 w2 = make_uint2(pack2<T>(acc.x, acc.y), pack2<T>(acc.z, acc.w));
      *reinterpret_cast<uint2*>((T*)p.o + head * D + c) = w2;
      if (c == 0) p.lse[head] = lse;
    } else {
      const size_t at = (size_t)split * p.batch * p.heads + head;
      *reinterpret_cast<float4*>(p.opart + at * D + c) = acc;
      if (c == 0) p.lsepart[at] = lse;
    }
  }
}

/* One warp a (sequence, head); a lane holds D/32 neighbouring columns. */
template <typename T, int D>
__global__ void __launch_bounds__(128) decode_combine(const DecodeArgs p) {
  constexpr int E = D / 32;
  const int lane = threadIdx.x & 31, rows = p.batch * p.heads;
  const int row = blockIdx.x * 4 + (threadIdx.x >> 5);
  if (row >= rows) return;
  float mx = -INFINITY;
  for (int s = lane; s < p.splits; s += 32) mx = fmaxf(mx, p.lsepart[(size_t)s * rows + row]);
#pragma unroll
  for (int i = 16; i; i >>= 1) mx = fmaxf(mx, __shfl_xor_sync(0xffffffffu, mx, i));
  float sum = 0.f;
  for (int s = lane; s < p.splits; s += 32) sum += exp2f((p.lsepart[(size_t)s * rows + row] - mx) * LOG2E);
#pragma unroll
  for (int i = 16; i; i >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, i);
  const float lse = mx + logf(sum);
  float acc[E];
#pragma unroll
  for (int e = 0; e < E; e++) acc[e] = 0.f;
#pragma unroll 4
  for (int s = 0; s < p.splits; s++) {
    const float f = exp2f((p.lsepart[(size_t)s * rows + row] - lse) * LOG2E);
    const float* x = p.opart + ((size_t)s * rows + row) * D + lane * E;
    if constexpr (E == 4) {
      float4 y = *reinterpret_cast<const float4*>(x);
      acc[0] += f * y.x;
      acc[1] += f * y.y;
      acc[2] += f * y.z;
      acc[3] += f * y.w;
    } else {
      float2 y = *reinterpret_cast<const float2*>(x);
      acc[0] += f * y.x;
      acc[1] += f * y.y;
    }
  }
  T* o = (T*)p.o + (size_t)row * D + lane * E;
  if constexpr (E == 4)
    *reinterpret_cast<uint2*>(o) = make_uint2(pack2<T>(acc[0], acc[1]), pack2<T>(acc[2], acc[3]));
  else
    *reinterpret_cast<uint32_t*>(o) = pack2<T>(acc[0], acc[1]);
  if (lane == 0) p.lse[row] = lse;
}
