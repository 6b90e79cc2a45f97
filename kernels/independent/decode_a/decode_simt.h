/* Split-KV decoding without tensor cores, fp16: LANES lanes a key (32: a warp a key; D / 8: 16 bytes a lane and several
 * keys a warp), half2 products within a lane, floats beyond. A CTA serves HEADS query heads of one kv head, so that K and
 * V are loaded once for them. K and V go to registers; UNROLL keys of each at a time. */
#pragma once

#include "decode_params.h"
#include "ptx.h"

namespace decode_a {

template <int WORDS>
struct Words {
  uint32_t w[WORDS];
};
template <int WORDS>
__device__ __forceinline__ Words<WORDS> load_words(const __half *from) {
  Words<WORDS> x;
  if constexpr (WORDS == 4) {
    uint4 y = __ldg((const uint4 *)from);
    x.w[0] = y.x, x.w[1] = y.y, x.w[2] = y.z, x.w[3] = y.w;
  } else if constexpr (WORDS == 2) {
    uint2 y = __ldg((const uint2 *)from);
    x.w[0] = y.x, x.w[1] = y.y;
  } else {
    x.w[0] = __ldg((const unsigned *)from);
  }
  return x;
}
__device__ __forceinline__ __half2 as_half2(uint32_t word) { return *(__half2 *)&word; }

template <int D, int LANES, int WARPS, int UNROLL>
constexpr int simt_block_n = WARPS * (32 / LANES) * UNROLL;

template <int D, int HEADS, int LANES, int WARPS, int UNROLL>
__global__ void __launch_bounds__(WARPS * 32) decode_simt(const Decode<__half> p) {
  constexpr int words = D / LANES / 2, keys_of_warp = 32 / LANES, BN = simt_block_n<D, LANES, WARPS, UNROLL>;
  __shared__ float tops[WARPS][HEADS], sums[WARPS][HEADS];
  __shared__ __align__(16) float outputs[WARPS][HEADS][D];
  const int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31, part = lane % LANES, key_of_warp = lane / LANES;
  const int split = blockIdx.x, first_head = blockIdx.y * HEADS, sequence = blockIdx.z;
  const size_t first_row = (size_t)sequence * p.heads + first_head;
  const size_t split_row = (size_t)split * p.batch * p.heads + first_row;
  const int length = p.length_of(sequence);
  const TileRange range = tiles_of_split(length, BN, split, p.splits);
  if (range.first >= range.end) {
    if (tid < HEADS) p.partial_lse[split_row + tid] = -INFINITY;
    return;
  }

  Words<words> q[HEADS];
  float o[HEADS][2 * words], top[HEADS], sum[HEADS];
#pragma unroll
  for (int h = 0; h < HEADS; h++) {
    q[h] = load_words<words>(p.q + (first_row + h) * D + part * 2 * words);
    top[h] = -INFINITY, sum[h] = 0.f;
#pragma unroll
    for (int d = 0; d < 2 * words; d++) o[h][d] = 0.f;
  }

  const int64_t base = sequence * p.kv.batch + (first_head / p.group) * p.kv.head + part * 2 * words;
  for (int tile = range.first; tile < range.end; tile++) {
    Words<words> k[UNROLL], v[UNROLL];
    const int first_key = tile * BN + warp * keys_of_warp + key_of_warp;
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
      const int64_t t = min(first_key + u * WARPS * keys_of_warp, length - 1);
      k[u] = load_words<words>(p.k + base + t * p.kv.row);
    }
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
      const int64_t t = min(first_key + u * WARPS * keys_of_warp, length - 1);
      v[u] = load_words<words>(p.v + base + t * p.kv.row);
    }
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
      float s[UNROLL];
#pragma unroll
      for (int u = 0; u < UNROLL; u++) {
        __half2 product = __hmul2(as_half2(q[h].w[0]), as_half2(k[u].w[0]));
#pragma unroll
        for (int w = 1; w < words; w++) product = __hfma2(as_half2(q[h].w[w]), as_half2(k[u].w[w]), product);
        const float2 halves = __half22float2(product);
        s[u] = halves.x + halves.y;
      }
#pragma unroll
      for (int step = LANES / 2; step > 0; step >>= 1)
#pragma unroll
        for (int u = 0; u < UNROLL; u++) s[u] += __shfl_xor_sync(0xffffffffu, s[u], step);
      float m = top[h];
#pragma unroll
      for (int u = 0; u < UNROLL; u++) {
        s[u] = first_key + u * WARPS * keys_of_warp < length ? s[u] * p.scale_log2 : -INFINITY;
        m = fmaxf(m, s[u]);
      }
      const float safe = finite_top(m), shrink = ex2(top[h] - safe);
      top[h] = m;
      sum[h] *= shrink;
#pragma unroll
      for (int d = 0; d < 2 * words; d++) o[h][d] *= shrink;
#pragma unroll
      for (int u = 0; u < UNROLL; u++) {
        const float weight = ex2(s[u] - safe);
        sum[h] += weight;
#pragma unroll
        for (int w = 0; w < words; w++) {
          const float2 x = __half22float2(as_half2(v[u].w[w]));
          o[h][2 * w] = fmaf(weight, x.x, o[h][2 * w]);
          o[h][2 * w + 1] = fmaf(weight, x.y, o[h][2 * w + 1]);
        }
      }
    }
  }

  /* The keys of a warp meet by shuffles, the warps in shared memory. */
#pragma unroll
  for (int h = 0; h < HEADS; h++) {
    float m = top[h];
#pragma unroll
    for (int step = LANES; step < 32; step <<= 1) m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, step));
    const float weight = ex2(top[h] - finite_top(m));
    sum[h] *= weight;
#pragma unroll
    for (int d = 0; d < 2 * words; d++) o[h][d] *= weight;
#pragma unroll
    for (int step = LANES; step < 32; step <<= 1) {
      sum[h] += __shfl_xor_sync(0xffffffffu, sum[h], step);
#pragma unroll
      for (int d = 0; d < 2 * words; d++) o[h][d] += __shfl_xor_sync(0xffffffffu, o[h][d], step);
    }
    if (key_of_warp == 0) {
#pragma unroll
      for (int d = 0; d < words; d++)
        *(float2 *)&outputs[warp][h][part * 2 * words + 2 * d] = make_float2(o[h][2 * d], o[h][2 * d + 1]);
    }
    if (lane == 0) tops[warp][h] = m, sums[warp][h] = sum[h];
  }
  __syncthreads();
  for (int i = tid; i < HEADS * D; i += WARPS * 32) {
    const int h = i / D, d = i % D;
    float m = -INFINITY, l = 0.f, all = 0.f;
#pragma unroll
    for (int w = 0; w < WARPS; w++) m = fmaxf(m, tops[w][h]);
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
      const float weight = ex2(tops[w][h] - m);
      l += weight * sums[w][h];
      all += weight * outputs[w][h][d];
    }
    p.partial_o[(split_row + h) * D + d] = all / l;
    if (d == 0) p.partial_lse[split_row + h] = m * ln2 + __logf(l);
  }
}

}  // namespace decode_a
