/* Attention forward with wgmma in tiles of BM queries and BN keys; O leaves through Q's shared memory.
 *
 * flash2_cp_async: all warps copy and compute; K and V have NS buffers, a group of copies each, two CTA barriers a
 * tile.
 *
 * flash2_tma: thread 0 copies by TMA into NS buffers, waited for by mbarriers; one CTA barrier a tile, behind which the
 * buffers are filled again.
 *
 * flash3_pingpong: a producer warpgroup copies by TMA, two consumers of 64 rows take turns at issuing products; full
 * and empty mbarriers for every buffer. */
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cstdint>
#include <cmath>
#include "wgmma_ops.h"

__device__ __forceinline__ uint32_t smem_addr(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void cp_async16(uint32_t dst, const void* src) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(dst), "l"(src) : "memory");
}
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
__device__ __forceinline__ void fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ __forceinline__ void mbar_init(uint32_t bar, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}
__device__ __forceinline__ void mbar_expect(uint32_t bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
__device__ __forceinline__ void mbar_arrive(uint32_t bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}
__device__ __forceinline__ bool mbar_try(uint32_t bar, uint32_t parity) {
  uint32_t ok;
  asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}\n"
               : "=r"(ok)
               : "r"(bar), "r"(parity)
               : "memory");
  return ok;
}
__device__ __forceinline__ void mbar_wait(uint32_t bar, uint32_t parity) {
  if (mbar_try(bar, parity)) return;
  const long long t0 = clock64();
  while (!mbar_try(bar, parity))
    if (clock64() - t0 > 6000000000ll) /* some four seconds: ends by a store to address 0, since a trap here changes the
                                          registers that ptxas uses */
      asm volatile("st.global.u32 [%0], %1;" ::"l"(0ull), "r"(0) : "memory");
}

__device__ __forceinline__ void tma_load(uint32_t dst, const CUtensorMap* map, int x, int y, uint32_t bar) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          dst),
      "l"(map), "r"(x), "r"(y), "r"(bar)
      : "memory");
}
__device__ __forceinline__ void tma_store(const CUtensorMap* map, int x, int y, uint32_t src) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(x), "r"(y),
               "r"(src)
               : "memory");
}
__device__ __forceinline__ void tma_store_finish() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
template <int N>
__device__ __forceinline__ void pin(float (&x)[N]) { /* keeps the compiler from moving accesses across */
#pragma unroll
  for (int i = 0; i < N; i++) asm volatile("" : "+f"(x[i])::"memory");
}

__device__ __forceinline__ void bar_sync(int id, int n) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(n) : "memory");
}
__device__ __forceinline__ void bar_arrive(int id, int n) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(n) : "memory");
}

__device__ __forceinline__ float ex2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
template <class T>
__device__ __forceinline__ uint32_t pack2(float lo, float hi);
template <>
__device__ __forceinline__ uint32_t pack2<__half>(float lo, float hi) {
  __half2 h = __floats2half2_rn(lo, hi);
  return *reinterpret_cast<uint32_t*>(&h);
}
template <>
__device__ __forceinline__ uint32_t pack2<__nv_bfloat16>(float lo, float hi) {
  __nv_bfloat162 h = __floats2bfloat162_rn(lo, hi);
  return *reinterpret_cast<uint32_t*>(&h);
}

/* tiles
 * A tile of R rows and D columns lies in shared memory as D/64 panels of R rows of 128 bytes each, 128-byte swizzled.
 * Descriptor: address, leading and stride byte offset, swizzle mode 1 (128 bytes). */
__device__ __forceinline__ uint64_t make_desc(uint32_t addr, uint32_t lbo, uint32_t sbo) {
  return (uint64_t)((addr & 0x3ffff) >> 4) | ((uint64_t)(lbo >> 4) << 16) | ((uint64_t)(sbo >> 4) << 32) | (1ull << 62);
}

/* s = Q K^T; q and k: descriptors of the first panel at the right row */
template <class T, int D, int BM, int BN>
__device__ __forceinline__ void qk_issue(float (&s)[BN / 2], uint64_t q, uint64_t k) {
#pragma unroll
  for (int kk = 0; kk < D / 16; kk++)
    Wgmma<T, BN>::ss(s, q + (((kk / 4) * BM * 128 + (kk % 4) * 32) >> 4),
                     k + (((kk / 4) * BN * 128 + (kk % 4) * 32) >> 4), kk != 0);
}
/* o += P V; v: descriptor of the tile with N contiguous */
template <class T, int D, int BN>
__device__ __forceinline__ void pv_issue(float (&o)[D / 2], const uint32_t (&p)[BN / 16][4], uint64_t v) {
#pragma unroll
  for (int kk = 0; kk < BN / 16; kk++) Wgmma<T, D>::rs_t(o, p[kk], v + ((kk * 2048) >> 4));
}

/* Accumulators: x[4i], x[4i+1] are row lane/4, columns 8i + 2(lane%4) and the next; x[4i+2], x[4i+3] eight rows below.
 */
template <int BN>
__device__ __forceinline__ void causal_mask(float (&s)[BN / 2], int row, int col) {
#pragma unroll
  for (int i = 0; i < BN / 8; i++) {
    const int c = col + 8 * i;
    if (c > row) s[4 * i] = -INFINITY;
    if (c + 1 > row) s[4 * i + 1] = -INFINITY;
    if (c > row + 8) s[4 * i + 2] = -INFINITY;
    if (c + 1 > row + 8) s[4 * i + 3] = -INFINITY;
  }
}
__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}
/* s becomes exp(s - max); running max and (this thread's part of) the sum are updated; alpha: what the old output is to
 * be scaled with */
template <int BN>
__device__ __forceinline__ void softmax_tile(float (&s)[BN / 2], float (&mx)[2], float (&sum)[2], float (&alpha)[2],
                                             float scale_log2) {
  float n0 = s[0], n1 = s[2];
#pragma unroll
  for (int i = 0; i < BN / 8; i++) {
    n0 = fmaxf(n0, fmaxf(s[4 * i], s[4 * i + 1]));
    n1 = fmaxf(n1, fmaxf(s[4 * i + 2], s[4 * i + 3]));
  }
  n0 = fmaxf(mx[0], quad_max(n0));
  n1 = fmaxf(mx[1], quad_max(n1));
  alpha[0] = ex2((mx[0] - n0) * scale_log2);
  alpha[1] = ex2((mx[1] - n1) * scale_log2);
  mx[0] = n0;
  mx[1] = n1;
  const float b0 = n0 * scale_log2, b1 = n1 * scale_log2;
  float t0 = 0.f, t1 = 0.f;
#pragma unroll
  for (int i = 0; i < BN / 8; i++) {
    s[4 * i] = ex2(fmaf(s[4 * i], scale_log2, -b0));
    s[4 * i + 1] = ex2(fmaf(s[4 * i + 1], scale_log2, -b0));
    s[4 * i + 2] = ex2(fmaf(s[4 * i + 2], scale_log2, -b1));
    s[4 * i + 3] = ex2(fmaf(s[4 * i + 3], scale_log2, -b1));
    t0 += s[4 * i] + s[4 * i + 1];
    t1 += s[4 * i + 2] + s[4 * i + 3];
  }
  sum[0] = fmaf(sum[0], alpha[0], t0);
  sum[1] = fmaf(sum[1], alpha[1], t1);
}
template <int D>
__device__ __forceinline__ void rescale(float (&o)[D / 2], const float (&alpha)[2]) {
#pragma unroll
  for (int i = 0; i < D / 8; i++) {
    o[4 * i] *= alpha[0];
    o[4 * i + 1] *= alpha[0];
    o[4 * i + 2] *= alpha[1];
    o[4 * i + 3] *= alpha[1];
  }
}
template <class T, int BN>
__device__ __forceinline__ void pack_p(uint32_t (&p)[BN / 16][4], const float (&s)[BN / 2]) {
#pragma unroll
  for (int kk = 0; kk < BN / 16; kk++)
#pragma unroll
    for (int i = 0; i < 4; i++) p[kk][i] = pack2<T>(s[8 * kk + 2 * i], s[8 * kk + 2 * i + 1]);
}
/* normalised output to shared memory (swizzled panels of BM rows); row: this thread's row in the tile */
template <class T, int D, int BM>
__device__ __forceinline__ void stage_output(uint32_t tile, const float (&o)[D / 2], int row, int lane, float inv0,
                                             float inv1) {
#pragma unroll
  for (int i = 0; i < D / 8; i++) {
    const uint32_t a = tile + (i / 8) * (BM * 128) + row * 128 + (((i % 8) ^ (row & 7)) << 4) + (lane % 4) * 4;
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(a), "r"(pack2<T>(o[4 * i] * inv0, o[4 * i + 1] * inv0)) : "memory");
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(a + 8 * 128), "r"(pack2<T>(o[4 * i + 2] * inv1, o[4 * i + 3] * inv1))
                 : "memory");
  }
}

struct Params {
  const void *q, *k, *v;
  void* o;
  float* lse;
  int heads, kv_heads, seq_q, seq_kv;
  float scale, scale_log2;
  int head_first, reverse;
};
struct Tile {
  int m0;     /* first query row */
  int q_row;  /* of the head's first row in [batch*heads*seq_q] */
  int kv_row; /* likewise of K and V */
};
__device__ __forceinline__ Tile which_tile(const Params& p, int block_m) {
  int m = p.head_first ? blockIdx.y : blockIdx.x;
  const int bh = p.head_first ? blockIdx.x : blockIdx.y;
  if (p.reverse) m = (p.head_first ? gridDim.y : gridDim.x) - 1 - m;
  const int b = bh / p.heads, h = bh % p.heads;
  return {m * block_m, bh * p.seq_q, (b * p.kv_heads + h / (p.heads / p.kv_heads)) * p.seq_kv};
}

constexpr int CP_ASYNC = 0, TMA = 1, PINGPONG = 2;

/* flash2 with wgmma
 * BM/64/(NW/4) blocks of 64 rows a warpgroup. K and V have NS buffers each. Memory: Q (later O), K buffers, V buffers,
 * barriers. */
template <int D, int BM, int BN, int NS>
constexpr int smem_bytes() {
  return (BM * D + 2 * NS * BN * D) * 2 + 128;
}

template <int ROWS, int D, int NT>
__device__ __forceinline__ void load_tile(uint32_t dst, const char* src,
                                          int tid) { /* cp.async, 16 bytes a thread at a time */
  constexpr int CPR = D / 8, RPI = NT / CPR;
  static_assert(RPI % 8 == 0 && ROWS % RPI == 0, "rows");
  const int r = tid / CPR, c = tid % CPR;
  dst += (c / 8) * (ROWS * 128) + r * 128 + (((c % 8) ^ (r & 7)) << 4);
  src += (r * D + c * 8) * 2;
#pragma unroll
  for (int i = 0; i < ROWS / RPI; i++) cp_async16(dst + i * RPI * 128, src + i * RPI * D * 2);
}

template <class T, int D, int BM, int BN, int NW, int NS, bool CAUSAL>
__global__ void __launch_bounds__(NW * 32) flash2_cp_async(const Params prm) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL /* a plain compute_90 version has no wgmma */
  constexpr int NT = NW * 32, MT = BM / (NW * 16), TB = BN * D * 2;
  static_assert(MT >= 1 && BM % (NW * 16) == 0, "rows of a warpgroup");
  extern __shared__ __align__(1024) char smem[];
  const uint32_t sq = smem_addr(smem), sk = sq + BM * D * 2, sv = sk + NS * TB;
  if (sq & 1023) __trap();
  const int tid = threadIdx.x, lane = tid % 32, wg = __shfl_sync(~0u, tid / 128, 0), warp = (tid / 32) % 4;
  const Tile t = which_tile(prm, BM);
  int n = prm.seq_kv / BN;
  if (CAUSAL) n = min(n, (t.m0 + BM + BN - 1) / BN);
  const char* gq = (const char*)prm.q + (size_t)(t.q_row + t.m0) * D * 2;
  const char* gk = (const char*)prm.k + (size_t)t.kv_row * D * 2;
  const char* gv = (const char*)prm.v + (size_t)t.kv_row * D * 2;

  load_tile<BM, D, NT>(sq, gq, tid);
#pragma unroll
  for (int i = 0; i < NS - 1; i++) { /* groups: (Q) K0 | V0 | K1 | V1 ... */
    if (i < n) load_tile<BN, D, NT>(sk + i * TB, gk + (size_t)i * TB, tid);
    cp_async_commit();
    if (i < n) load_tile<BN, D, NT>(sv + i * TB, gv + (size_t)i * TB, tid);
    cp_async_commit();
  }

  float o[MT][D / 2], s[MT][BN / 2], mx[MT][2], sum[MT][2];
#pragma unroll
  for (int a = 0; a < MT; a++) {
#pragma unroll
    for (int i = 0; i < D / 2; i++) o[a][i] = 0.f;
    mx[a][0] = mx[a][1] = -INFINITY;
    sum[a][0] = sum[a][1] = 0.f;
  }
  const uint64_t dq = make_desc(sq + wg * MT * 8192, 16, 1024);
  const int row0 = wg * MT * 64 + warp * 16 + lane / 4; /* this thread's first row in the tile */
  int buf = 0, fill = NS - 1;

  for (int j = 0; j < n; j++) {
    cp_async_wait<2 * NS - 3>(); /* K_j is here; V_j and later tiles may be on their way */
    fence_async_proxy();
    __syncthreads(); /* for all threads; and the buffers of tile j-1 are read */

    const uint64_t dk = make_desc(sk + buf * TB, 16, 1024);
#pragma unroll
    for (int a = 0; a < MT; a++) pin(s[a]);
    wgmma_fence();
#pragma unroll
    for (int a = 0; a < MT; a++) qk_issue<T, D, BM, BN>(s[a], dq + ((a * 8192) >> 4), dk);
    wgmma_commit();
    if (j + NS - 1 < n) load_tile<BN, D, NT>(sk + fill * TB, gk + (size_t)(j + NS - 1) * TB, tid);
    cp_async_commit();
    if (j + NS - 1 < n) load_tile<BN, D, NT>(sv + fill * TB, gv + (size_t)(j + NS - 1) * TB, tid);
    cp_async_commit();
    wgmma_wait<0>();

    uint32_t p[MT][BN / 16][4];
#pragma unroll
    for (int a = 0; a < MT; a++) {
      pin(s[a]);
      if (CAUSAL && (j + 1) * BN - 1 > t.m0 + (wg * MT + a) * 64)
        causal_mask<BN>(s[a], t.m0 + row0 + a * 64, j * BN + 2 * (lane % 4));
      float alpha[2];
      softmax_tile<BN>(s[a], mx[a], sum[a], alpha, prm.scale_log2);
      rescale<D>(o[a], alpha);
      pack_p<T, BN>(p[a], s[a]);
    }

    cp_async_wait<2 * NS - 2>(); /* V_j */
    fence_async_proxy();
    __syncthreads();
    const uint64_t dv = make_desc(sv + buf * TB, BN * 128, 1024);
#pragma unroll
    for (int a = 0; a < MT; a++) pin(o[a]);
    wgmma_fence();
#pragma unroll
    for (int a = 0; a < MT; a++) pv_issue<T, D, BN>(o[a], p[a], dv);
    wgmma_commit();
    wgmma_wait<0>();
#pragma unroll
    for (int a = 0; a < MT; a++) pin(o[a]);
    buf = buf + 1 == NS ? 0 : buf + 1;
    fill = fill + 1 == NS ? 0 : fill + 1;
  }

  __syncthreads(); /* Q's place is free */
#pragma unroll
  for (int a = 0; a < MT; a++) {
    const float l0 = quad_sum(sum[a][0]), l1 = quad_sum(sum[a][1]);
    stage_output<T, D, BM>(sq, o[a], row0 + a * 64, lane, 1.f / l0, 1.f / l1);
    if (lane % 4 == 0) {
      float* lse = prm.lse + t.q_row + t.m0 + row0 + a * 64;
      lse[0] = mx[a][0] * prm.scale + logf(l0);
      lse[8] = mx[a][1] * prm.scale + logf(l1);
    }
  }
  __syncthreads();
  {
    constexpr int CPR = D / 8, RPI = NT / CPR;
    const int r = tid / CPR, c = tid % CPR;
    const char* src = smem + (c / 8) * (BM * 128) + r * 128 + (((c % 8) ^ (r & 7)) << 4);
    char* dst = (char*)prm.o + (size_t)(t.q_row + t.m0 + r) * D * 2 + c * 16;
#pragma unroll
    for (int i = 0; i < BM / RPI; i++) *(uint4*)(dst + i * RPI * D * 2) = *(const uint4*)(src + i * RPI * 128);
  }
#endif
}

template <int ROWS, int D>
__device__ __forceinline__ void tma_tile(uint32_t dst, const CUtensorMap* map, int row, uint32_t bar) {
  mbar_expect(bar, ROWS * D * 2);
#pragma unroll
  for (int c = 0; c < D / 64; c++) tma_load(dst + c * ROWS * 128, map, c * 64, row, bar);
}

template <class T, int D, int BM, int BN, int NW, int NS, bool CAUSAL>
__global__ void __launch_bounds__(NW * 32)
    flash2_tma(const Params prm, const __grid_constant__ CUtensorMap map_q, const __grid_constant__ CUtensorMap map_k,
               const __grid_constant__ CUtensorMap map_v, const __grid_constant__ CUtensorMap map_o) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL /* a plain compute_90 version has no wgmma */
  constexpr int MT = BM / (NW * 16), TB = BN * D * 2;
  static_assert(MT >= 1 && BM % (NW * 16) == 0, "rows of a warpgroup");
  extern __shared__ __align__(1024) char smem[];
  const uint32_t sq = smem_addr(smem), sk = sq + BM * D * 2, sv = sk + NS * TB, bars = sv + NS * TB;
  const uint32_t bar_q = bars, bar_k = bars + 8, bar_v = bar_k + 8 * NS;
  if (sq & 1023) __trap();
  const int tid = threadIdx.x, lane = tid % 32, wg = __shfl_sync(~0u, tid / 128, 0), warp = (tid / 32) % 4;
  const Tile t = which_tile(prm, BM);
  int n = prm.seq_kv / BN;
  if (CAUSAL) n = min(n, (t.m0 + BM + BN - 1) / BN);

  if (tid == 0) {
    for (int i = 0; i < 1 + 2 * NS; i++) mbar_init(bars + 8 * i, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    fence_async_proxy();
    tma_tile<BM, D>(sq, &map_q, t.q_row + t.m0, bar_q);
    for (int i = 0; i < NS && i < n; i++) {
      tma_tile<BN, D>(sk + i * TB, &map_k, t.kv_row + i * BN, bar_k + 8 * i);
      tma_tile<BN, D>(sv + i * TB, &map_v, t.kv_row + i * BN, bar_v + 8 * i);
    }
  }
  __syncthreads();

  float o[MT][D / 2], s[MT][BN / 2], mx[MT][2], sum[MT][2];
#pragma unroll
  for (int a = 0; a < MT; a++) {
#pragma unroll
    for (int i = 0; i < D / 2; i++) o[a][i] = 0.f;
    mx[a][0] = mx[a][1] = -INFINITY;
    sum[a][0] = sum[a][1] = 0.f;
  }
  const uint64_t dq = make_desc(sq + wg * MT * 8192, 16, 1024);
  const int row0 = wg * MT * 64 + warp * 16 + lane / 4;
  int buf = 0;
  uint32_t phase = 0;
  mbar_wait(bar_q, 0);

  for (int j = 0; j < n; j++) {
    mbar_wait(bar_k + 8 * buf, phase);
    const uint64_t dk = make_desc(sk + buf * TB, 16, 1024);
#pragma unroll
    for (int a = 0; a < MT; a++) pin(s[a]);
    wgmma_fence();
#pragma unroll
    for (int a = 0; a < MT; a++) qk_issue<T, D, BM, BN>(s[a], dq + ((a * 8192) >> 4), dk);
    wgmma_commit();
    wgmma_wait<0>();

    uint32_t p[MT][BN / 16][4];
#pragma unroll
    for (int a = 0; a < MT; a++) {
      pin(s[a]);
      if (CAUSAL && (j + 1) * BN - 1 > t.m0 + (wg * MT + a) * 64)
        causal_mask<BN>(s[a], t.m0 + row0 + a * 64, j * BN + 2 * (lane % 4));
      float alpha[2];
      softmax_tile<BN>(s[a], mx[a], sum[a], alpha, prm.scale_log2);
      rescale<D>(o[a], alpha);
      pack_p<T, BN>(p[a], s[a]);
    }

    mbar_wait(bar_v + 8 * buf, phase);
    const uint64_t dv = make_desc(sv + buf * TB, BN * 128, 1024);
#pragma unroll
    for (int a = 0; a < MT; a++) pin(o[a]);
    wgmma_fence();
#pragma unroll
    for (int a = 0; a < MT; a++) pv_issue<T, D, BN>(o[a], p[a], dv);
    wgmma_commit();
    wgmma_wait<0>();
#pragma unroll
    for (int a = 0; a < MT; a++) pin(o[a]);

    __syncthreads(); /* all have read tile j */
    if (tid == 0 && j + NS < n) {
      tma_tile<BN, D>(sk + buf * TB, &map_k, t.kv_row + (j + NS) * BN, bar_k + 8 * buf);
      tma_tile<BN, D>(sv + buf * TB, &map_v, t.kv_row + (j + NS) * BN, bar_v + 8 * buf);
    }
    if (++buf == NS) buf = 0, phase ^= 1;
  }

  /* Q's place is free since the last barrier */
#pragma unroll
  for (int a = 0; a < MT; a++) {
    const float l0 = quad_sum(sum[a][0]), l1 = quad_sum(sum[a][1]);
    stage_output<T, D, BM>(sq, o[a], row0 + a * 64, lane, 1.f / l0, 1.f / l1);
    if (lane % 4 == 0) {
      float* lse = prm.lse + t.q_row + t.m0 + row0 + a * 64;
      lse[0] = mx[a][0] * prm.scale + logf(l0);
      lse[8] = mx[a][1] * prm.scale + logf(l1);
    }
  }
  fence_async_proxy();
  __syncthreads();
  if (tid == 0) {
    for (int c = 0; c < D / 64; c++)
      for (int r = 0; r < BM; r += 64)
        tma_store(&map_o, c * 64, t.q_row + t.m0 + r, sq + c * BM * 128 + r * 128); /* boxes of 64 rows */
    tma_store_finish();
  }
#endif
}

/* flash3, ping-pong
 * Warpgroup 0 produces with TMA, 1 and 2 have 64 rows each. Barriers: Q full, K full, V full, K empty, V empty. */
template <class T, int D, int BN, int NS, bool CAUSAL>
__global__ void __launch_bounds__(384, 1)
    flash3_pingpong(const Params prm, const __grid_constant__ CUtensorMap map_q,
                    const __grid_constant__ CUtensorMap map_k, const __grid_constant__ CUtensorMap map_v,
                    const __grid_constant__ CUtensorMap map_o) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL /* a plain compute_90 version has no wgmma */
  constexpr int BM = 128, TB = BN * D * 2;
  extern __shared__ __align__(1024) char smem[];
  const uint32_t sq = smem_addr(smem), sk = sq + BM * D * 2, sv = sk + NS * TB, bars = sv + NS * TB;
  const uint32_t bar_q = bars, k_full = bars + 8, v_full = k_full + 8 * NS, k_empty = v_full + 8 * NS,
                 v_empty = k_empty + 8 * NS;
  if (sq & 1023) __trap();
  const int tid = threadIdx.x, lane = tid % 32, wg = __shfl_sync(~0u, tid / 128, 0), warp = (tid / 32) % 4;
  const Tile t = which_tile(prm, BM);
  int n = prm.seq_kv / BN;
  if (CAUSAL) n = min(n, (t.m0 + BM + BN - 1) / BN);

  if (tid == 0) {
    for (int i = 0; i < 1 + 2 * NS; i++) mbar_init(bars + 8 * i, 1);
    for (int i = 0; i < 2 * NS; i++) mbar_init(k_empty + 8 * i, 8); /* one arrival of each consumer warp */
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    fence_async_proxy();
  }
  __syncthreads();

  if (wg == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (tid == 0) {
      int kb = 0, vb = 0;
      uint32_t kp = 1, vp = 1; /* an empty barrier's phase before the first counts as done */
      tma_tile<BM, D>(sq, &map_q, t.q_row + t.m0, bar_q);
      for (int j = 0; j <= n; j++) { /* K_j, then V_{j-1}, as they are used */
        if (j < n) {
          mbar_wait(k_empty + 8 * kb, kp);
          tma_tile<BN, D>(sk + kb * TB, &map_k, t.kv_row + j * BN, k_full + 8 * kb);
          if (++kb == NS) kb = 0, kp ^= 1;
        }
        if (j > 0) {
          mbar_wait(v_empty + 8 * vb, vp);
          tma_tile<BN, D>(sv + vb * TB, &map_v, t.kv_row + (j - 1) * BN, v_full + 8 * vb);
          if (++vb == NS) vb = 0, vp ^= 1;
        }
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    const int w = wg - 1;
    const int my_turn = 1 + w, other_turn = 2 - w, my_bar = 3 + w; /* named barriers */
    const int row0 = w * 64 + warp * 16 + lane / 4;
    const uint64_t dq = make_desc(sq + w * 8192, 16, 1024);
    float o[D / 2], s[BN / 2], mx[2] = {-INFINITY, -INFINITY}, sum[2] = {0.f, 0.f}, alpha[2];
    uint32_t p[BN / 16][4];
#pragma unroll
    for (int i = 0; i < D / 2; i++) o[i] = 0.f;
    int kb = 0, vb = 0;
    uint32_t kp = 0, vp = 0;

    if (w == 1) bar_arrive(other_turn, 256); /* the first turn is warpgroup 1's */
    mbar_wait(bar_q, 0);

    mbar_wait(k_full, 0);
    bar_sync(my_turn, 256);
    pin(s);
    wgmma_fence();
    qk_issue<T, D, BM, BN>(s, dq, make_desc(sk, 16, 1024));
    wgmma_commit();
    if (w == 0 || n > 1) bar_arrive(other_turn, 256); /* after the last turn nothing waits */
    wgmma_wait<0>();
    pin(s);
    if (lane == 0) mbar_arrive(k_empty);
    if (NS == 1)
      kp ^= 1;
    else
      kb = 1;
    if (CAUSAL && BN - 1 > t.m0 + w * 64) causal_mask<BN>(s, t.m0 + row0, 2 * (lane % 4));
    softmax_tile<BN>(s, mx, sum, alpha, prm.scale_log2);
    pack_p<T, BN>(p, s);

    for (int j = 1; j < n; j++) {
      mbar_wait(k_full + 8 * kb, kp);
      bar_sync(my_turn, 256);
      pin(s);
      pin(o);
      wgmma_fence();
      qk_issue<T, D, BM, BN>(s, dq, make_desc(sk + kb * TB, 16, 1024));
      wgmma_commit();
      mbar_wait(v_full + 8 * vb, vp);
      wgmma_fence();
      pv_issue<T, D, BN>(o, p, make_desc(sv + vb * TB, BN * 128, 1024));
      wgmma_commit();
      if (w == 0 || j + 1 < n) bar_arrive(other_turn, 256);
      wgmma_wait<1>();
      pin(s);
      if (lane == 0) mbar_arrive(k_empty + 8 * kb);
      if (++kb == NS) kb = 0, kp ^= 1;
      if (CAUSAL && (j + 1) * BN - 1 > t.m0 + w * 64) causal_mask<BN>(s, t.m0 + row0, j * BN + 2 * (lane % 4));
      softmax_tile<BN>(s, mx, sum, alpha, prm.scale_log2);
      wgmma_wait<0>();
      pin(o);
      if (lane == 0) mbar_arrive(v_empty + 8 * vb);
      if (++vb == NS) vb = 0, vp ^= 1;
      rescale<D>(o, alpha);
      pack_p<T, BN>(p, s);
    }

    mbar_wait(v_full + 8 * vb, vp);
    pin(o);
    wgmma_fence();
    pv_issue<T, D, BN>(o, p, make_desc(sv + vb * TB, BN * 128, 1024));
    wgmma_commit();
    const float l0 = quad_sum(sum[0]), l1 = quad_sum(sum[1]);
    wgmma_wait<0>();
    pin(o);

    bar_sync(my_bar, 128); /* the warpgroup has read its rows of Q */
    stage_output<T, D, BM>(sq, o, row0, lane, 1.f / l0, 1.f / l1);
    if (lane % 4 == 0) {
      float* lse = prm.lse + t.q_row + t.m0 + row0;
      lse[0] = mx[0] * prm.scale + logf(l0);
      lse[8] = mx[1] * prm.scale + logf(l1);
    }
    fence_async_proxy();
    bar_sync(my_bar, 128);
    if (tid % 128 == 0) {
      for (int c = 0; c < D / 64; c++) tma_store(&map_o, c * 64, t.q_row + t.m0 + w * 64, sq + c * BM * 128 + w * 8192);
      tma_store_finish();
    }
  }
#endif
}
