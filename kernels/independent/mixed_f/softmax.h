/* What the two forward kernels share: which tile a CTA has, masks, the online softmax. A warp holds 16 rows; of these a
 * lane has rows lane/4 and lane/4 + 8, of each 8-column tile two columns each. */
#pragma once

#include "ptx.h"
#include "reference_attention.h"

namespace mixed_f {

using independent::Attention;

struct TileOrder {
  bool head_first, reverse;
};
struct Place {
  int tile, head, sequence;
};
inline dim3 grid_of(const Attention &a, int tiles, TileOrder order) {
  return order.head_first ? dim3((unsigned)a.heads, (unsigned)a.batch, (unsigned)tiles)
                          : dim3((unsigned)tiles, (unsigned)a.heads, (unsigned)a.batch);
}
DEVICE Place place_of(TileOrder order) {
  Place p;
  int tiles;
  if (order.head_first)
    p = {(int)blockIdx.z, (int)blockIdx.x, (int)blockIdx.y}, tiles = gridDim.z;
  else
    p = {(int)blockIdx.x, (int)blockIdx.y, (int)blockIdx.z}, tiles = gridDim.x;
  if (order.reverse) p.tile = tiles - 1 - p.tile;
  return p;
}

/* Key tiles that a tile of queries looks at. */
template <int BM, int BN, bool CAUSAL>
DEVICE int key_tiles(const Attention &a, int first_row) {
  int keys = a.seqlen_kv;
  if (CAUSAL) keys = max(0, min(keys, first_row + BM + a.seqlen_kv - a.seqlen_q));
  return (keys + BN - 1) / BN;
}

template <int BN, bool CAUSAL>
DEVICE void mask_scores(float (&s)[BN / 2], const Attention &a, int warp_row, int first_key, int lane) {
  int offset = a.seqlen_kv - a.seqlen_q;
  if (first_key + BN <= a.seqlen_kv && (!CAUSAL || first_key + BN - 1 <= warp_row + offset)) return;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    int last = a.seqlen_kv - 1;
    if (CAUSAL) last = min(last, warp_row + lane / 4 + 8 * h + offset);
    last -= first_key + lane % 4 * 2;
#pragma unroll
    for (int t = 0; t < BN / 8; t++) {
      if (t * 8 > last) s[t * 4 + 2 * h] = -INFINITY;
      if (t * 8 + 1 > last) s[t * 4 + 2 * h + 1] = -INFINITY;
    }
  }
}

struct RowState {
  float top[2] = {-INFINITY, -INFINITY}; /* of unscaled scores */
  float sum[2] = {0, 0};                 /* of this lane's columns, until `finish` */
};

/* Scores become probabilities, O is scaled down. */
template <int SCORES, int OUTPUTS>
DEVICE void softmax_step(float (&s)[SCORES], float (&o)[OUTPUTS], RowState &state, float scale_log2) {
#pragma unroll
  for (int h = 0; h < 2; h++) {
    float top = state.top[h];
#pragma unroll
    for (int t = 0; t < SCORES / 4; t++) top = fmaxf(top, fmaxf(s[t * 4 + 2 * h], s[t * 4 + 2 * h + 1]));
    top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
    top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
    float base = top == -INFINITY ? 0.f : top * scale_log2;
    float shrink = exp2_fast(fmaf(state.top[h], scale_log2, -base));
    state.top[h] = top;
    float sum = 0;
#pragma unroll
    for (int t = 0; t < SCORES / 4; t++) {
#pragma unroll
      for (int e = 2 * h; e < 2 * h + 2; e++) {
        s[t * 4 + e] = exp2_fast(fmaf(s[t * 4 + e], scale_log2, -base));
        sum += s[t * 4 + e];
      }
    }
    state.sum[h] = fmaf(state.sum[h], shrink, sum);
#pragma unroll
    for (int t = 0; t < OUTPUTS / 4; t++) o[t * 4 + 2 * h] *= shrink, o[t * 4 + 2 * h + 1] *= shrink;
  }
}

/* O divided by its sum; LSE of the lane's rows. */
template <int OUTPUTS>
DEVICE void finish(float (&o)[OUTPUTS], RowState &state, float scale, float (&lse)[2]) {
#pragma unroll
  for (int h = 0; h < 2; h++) {
    float sum = state.sum[h];
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    float inverse = sum > 0 ? 1.f / sum : 0.f;
    lse[h] = sum > 0 ? state.top[h] * scale + logf(sum) : -INFINITY;
#pragma unroll
    for (int t = 0; t < OUTPUTS / 4; t++) o[t * 4 + 2 * h] *= inverse, o[t * 4 + 2 * h + 1] *= inverse;
  }
}

constexpr float log2_e = 1.4426950408889634f;

}  // namespace mixed_f
