/* Paged decoding with mma.sync and cp.async, head_dim 128: CTA = (split, kv head, sequence). The query heads of the
 * group are rows of one 16-row mma. Four warps, each takes BN/4 keys of every tile and fetches them itself into its own
 * ring of ST buffers: no CTA barrier until the warps' partial results are merged at the end. */
#pragma once

#include "ptx.h"

struct PagedParams {
  const void *q, *k, *v; /* q [batch][heads][128]; caches of pages */
  const int* table;      /* [batch][pages_per_seq] */
  void* o;
  float* lse;               /* [batch][heads] */
  float *part_o, *part_lse; /* [batch][heads][splits][128], [batch][heads][splits] */
  int batch, heads, kv_heads, skv, page_shift, pages_per_seq, splits;
  long long page_stride, tok_stride, head_stride; /* elements */
  float scale;
};

template <int BN, int ST>
struct PagedShape {
  static constexpr int KPW = BN / 4, STAGE = 2 * KPW * 256, BYTES = 4 * ST * STAGE;
};

template <typename T, int BN, int ST>
__global__ void __launch_bounds__(128) paged_main(const PagedParams p) {
  using N = Num<T>;
  using C = PagedShape<BN, ST>;
  constexpr int D = 128, RB = 256, KPW = C::KPW, CK = KPW / 16;
  extern __shared__ __align__(1024) unsigned char smem[];
  const int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31, g = lane >> 2, t = lane & 3;
  const uint32_t ring = smem_u32(smem) + warp * ST * C::STAGE;
  const LaneAddr la(lane);
  const int split = blockIdx.x, hk = blockIdx.y, b = blockIdx.z, group = p.heads / p.kv_heads; /* group <= 8 */

  const int tiles = p.skv / BN / p.splits; /* exact */
  const int key0 = split * tiles * BN + warp * KPW;
  const int* table = p.table + (size_t)b * p.pages_per_seq;
  const T* gk = (const T*)p.k + hk * p.head_stride;
  const T* gv = (const T*)p.v + hk * p.head_stride;
  const int mask = (1 << p.page_shift) - 1;
  const int lrow = lane >> 4, lch = lane & 15;

  int page[CK], ld = 0; /* pages of the next tile to fetch; a run of 16 keys lies in one page */
  auto lookup = [&](int tile) {
    if (tile < tiles) {
#pragma unroll
      for (int c = 0; c < CK; c++) page[c] = __ldg(table + ((key0 + tile * BN + c * 16) >> p.page_shift));
    }
  };
  auto fetch = [&](int stage) {
    if (ld < tiles) {
      const uint32_t dK = ring + stage * C::STAGE, dV = dK + KPW * RB;
#pragma unroll
      for (int c = 0; c < CK; c++) {
        const int key = key0 + ld * BN + c * 16;
        const long long base = page[c] * p.page_stride + ((key & mask) + lrow) * p.tok_stride + lch * 8;
#pragma unroll
        for (int i = 0; i < 8; i++) cp16(dK + swz<RB>(c * 16 + i * 2 + lrow, lch), gk + base + i * 2 * p.tok_stride);
#pragma unroll
        for (int i = 0; i < 8; i++) cp16(dV + swz<RB>(c * 16 + i * 2 + lrow, lch), gv + base + i * 2 * p.tok_stride);
      }
      ld++;
      lookup(ld);
    }
    cp_commit();
  };
  lookup(0);
#pragma unroll
  for (int s = 0; s < ST - 1; s++) fetch(s);

  uint32_t qf[D / 16][4];
  {
    const T* q = (const T*)p.q + ((size_t)b * p.heads + hk * group + g) * D + 2 * t;
#pragma unroll
    for (int kk = 0; kk < D / 16; kk++) {
      qf[kk][0] = g < group ? *reinterpret_cast<const uint32_t*>(q + kk * 16) : 0u;
      qf[kk][2] = g < group ? *reinterpret_cast<const uint32_t*>(q + kk * 16 + 8) : 0u;
      qf[kk][1] = qf[kk][3] = 0u;
    }
  }
  float o[D / 8][4];
#pragma unroll
  for (int j = 0; j < D / 8; j++)
#pragma unroll
    for (int e = 0; e < 4; e++) o[j][e] = 0.f;
  float mx = -INFINITY, sum = 0.f;
  const float c2 = p.scale * kLog2e;

  int stage = 0, fstage = ST - 1;
  for (int it = 0; it < tiles; it++) {
    cp_wait<ST - 2>();
    __syncwarp();
    fetch(fstage); /* the buffer that the tile before this one was read from */
    fstage = fstage + 1 == ST ? 0 : fstage + 1;
    const uint32_t bK = ring + stage * C::STAGE + la.r_split * RB,
                   bV = ring + stage * C::STAGE + (KPW + la.r_lo16) * RB;
    stage = stage + 1 == ST ? 0 : stage + 1;

    float s[KPW / 8][4];
#pragma unroll
    for (int j = 0; j < KPW / 8; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) s[j][e] = 0.f;
#pragma unroll
    for (int kk = 0; kk < D / 16; kk++)
#pragma unroll
      for (int c = 0; c < CK; c++) {
        uint32_t bf[4];
        ldsm4(bf, bK + c * 16 * RB + ((kk * 32) ^ la.x_split));
        N::mma(s[2 * c], qf[kk], bf[0], bf[1]);
        N::mma(s[2 * c + 1], qf[kk], bf[2], bf[3]);
      }
    float v = mx; /* rows 8..15 are padding: only elements 0 and 1 matter */
#pragma unroll
    for (int j = 0; j < KPW / 8; j++) v = fmaxf(v, fmaxf(s[j][0], s[j][1]));
    v = fmaxf(v, __shfl_xor_sync(~0u, v, 1));
    v = fmaxf(v, __shfl_xor_sync(~0u, v, 2));
    const float alpha = ex2((mx - v) * c2), neg = -v * c2;
    mx = v;
    sum *= alpha;
    uint32_t pf[KPW / 8];
#pragma unroll
    for (int j = 0; j < KPW / 8; j++) {
      float p0 = ex2(fmaf(s[j][0], c2, neg)), p1 = ex2(fmaf(s[j][1], c2, neg));
      sum += p0 + p1;
      pf[j] = N::pack(p0, p1);
    }
#pragma unroll
    for (int j = 0; j < D / 8; j++) {
      o[j][0] *= alpha;
      o[j][1] *= alpha;
    }
#pragma unroll
    for (int c = 0; c < CK; c++) {
      const uint32_t a[4] = {pf[2 * c], 0u, pf[2 * c + 1], 0u};
#pragma unroll
      for (int j = 0; j < D / 16; j++) {
        uint32_t bf[4];
        ldsm4t(bf, bV + c * 16 * RB + ((j * 32) ^ la.x_lo16));
        N::mma(o[2 * j], a, bf[0], bf[1]);
        N::mma(o[2 * j + 1], a, bf[2], bf[3]);
      }
    }
  }
  cp_wait<0>();
  sum += __shfl_xor_sync(~0u, sum, 1);
  sum += __shfl_xor_sync(~0u, sum, 2);

  __syncthreads();
  float* so = reinterpret_cast<float*>(smem); /* [4 warps][8 rows][128] */
  float* sm = so + 4 * 8 * D;                 /* [4][8] maxima, [4][8] sums */
  float* sl = sm + 32;
  if (g < group) {
#pragma unroll
    for (int j = 0; j < D / 8; j++)
      *reinterpret_cast<float2*>(so + (warp * 8 + g) * D + j * 8 + 2 * t) = make_float2(o[j][0], o[j][1]);
    if (t == 0) {
      sm[warp * 8 + g] = mx;
      sl[warp * 8 + g] = sum;
    }
  }
  __syncthreads();
  for (int r = 0; r < group; r++) {
    float M = fmaxf(fmaxf(sm[r], sm[8 + r]), fmaxf(sm[16 + r], sm[24 + r])), L = 0.f, acc = 0.f;
#pragma unroll
    for (int w = 0; w < 4; w++) {
      const float f = ex2((sm[w * 8 + r] - M) * c2);
      L += f * sl[w * 8 + r];
      acc += f * so[(w * 8 + r) * D + tid];
    }
    acc /= L;
    const size_t head = (size_t)b * p.heads + hk * group + r;
    const float lse = M * p.scale + __logf(L);
    if (p.splits == 1) {
      ((T*)p.o)[head * D + tid] = N::t(acc);
      if (tid == 0) p.lse[head] = lse;
    } else {
      p.part_o[(head * p.splits + split) * D + tid] = acc;
      if (tid == 0) p.part_lse[head * p.splits + split] = lse;
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(128)
    paged_combine(const float* __restrict__ part_o, const float* __restrict__ part_lse, T* __restrict__ o,
                  float* __restrict__ lse, int splits) {
  const size_t head = blockIdx.x;
  const float* pl = part_lse + head * splits;
  const float* po = part_o + head * splits * 128 + threadIdx.x;
  float M = -INFINITY;
  for (int s = 0; s < splits; s++) M = fmaxf(M, pl[s]);
  float L = 0.f, acc = 0.f;
  for (int s = 0; s < splits; s++) {
    const float w = __expf(pl[s] - M);
    L += w;
    acc += w * po[s * 128];
  }
  o[head * 128 + threadIdx.x] = Num<T>::t(acc / L);
  if (threadIdx.x == 0) lse[head] = M + __logf(L);
}

template <typename T, int BN, int ST>
cudaError_t paged_launch(const PagedParams& p) {
  using C = PagedShape<BN, ST>;
  auto kern = paged_main<T, BN, ST>;
  cudaError_t e = cudaFuncSetAttribute(kern, cudaFuncAttributeMaxDynamicSharedMemorySize, C::BYTES);
  if (e != cudaSuccess) return e;
  if (p.skv % (BN * p.splits)) return cudaErrorInvalidValue;
  kern<<<dim3(p.splits, p.kv_heads, p.batch), 128, C::BYTES>>>(p);
  if (p.splits > 1) paged_combine<T><<<p.batch * p.heads, 128>>>(p.part_o, p.part_lse, (T*)p.o, p.lse, p.splits);
  return cudaGetLastError();
}
