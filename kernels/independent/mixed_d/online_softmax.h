/* Online softmax of 16 rows whose scores and outputs are accumulators of one warp; the lane has rows lane / 4 and
 * lane / 4 + 8 (index 0 and 1). Scores are in the unit of QK^T; `scale_log2` takes them to powers of two. */
#pragma once

#include "warp.h"

namespace mixed_d {

struct RowState {
  float top[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0}; /* sum: of the lane's columns alone */
};

/* Scores become probabilities relative to the new maximum; O is scaled to it. */
template <int ScoreTiles, int OutputTiles>
__device__ inline void take_scores(RowState &state, float (&s)[ScoreTiles][4], float (&o)[OutputTiles][4],
                                   float scale_log2) {
#pragma unroll
  for (int h = 0; h < 2; h++) {
    float top = state.top[h];
#pragma unroll
    for (int i = 0; i < ScoreTiles; i++) top = fmaxf(top, fmaxf(s[i][2 * h], s[i][2 * h + 1]));
    top = quad_max(top);
    float shift = top == -INFINITY ? 0.f : top * scale_log2;
    float correction = power_of_two(state.top[h] * scale_log2 - shift), sum = 0;
    state.top[h] = top;
#pragma unroll
    for (int i = 0; i < ScoreTiles; i++) {
      s[i][2 * h] = power_of_two(fmaf(s[i][2 * h], scale_log2, -shift));
      s[i][2 * h + 1] = power_of_two(fmaf(s[i][2 * h + 1], scale_log2, -shift));
      sum += s[i][2 * h] + s[i][2 * h + 1];
    }
    state.sum[h] = state.sum[h] * correction + sum;
#pragma unroll
    for (int i = 0; i < OutputTiles; i++) o[i][2 * h] *= correction, o[i][2 * h + 1] *= correction;
  }
}

/* The A operand of columns 16 * step to 16 * step + 15. */
template <class T, int ScoreTiles>
__device__ inline void pack_probabilities(uint32_t (&a)[4], const float (&p)[ScoreTiles][4], int step) {
  a[0] = pack<T>(p[2 * step][0], p[2 * step][1]);
  a[1] = pack<T>(p[2 * step][2], p[2 * step][3]);
  a[2] = pack<T>(p[2 * step + 1][0], p[2 * step + 1][1]);
  a[3] = pack<T>(p[2 * step + 1][2], p[2 * step + 1][3]);
}

}  // namespace mixed_d
