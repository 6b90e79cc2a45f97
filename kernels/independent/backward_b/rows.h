/* What surrounds the gradients: a kernel before for delta and the zeros of dQ's sum, one behind that rounds the sum. */
#pragma once

#include "backward.h"

namespace backward_b {

constexpr int threads_of_rows = 256;

/* A thread has 8 columns of a query; the queries are in the order of bhsd. */
template <int head_dim>
struct QueryPiece {
  size_t row;
  int column;
  bool inside;
  int64_t offset; /* by the strides of Q */

  __device__ explicit QueryPiece(const Attention &a) {
    size_t piece = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    row = piece / (head_dim / 8);
    column = (int)(piece % (head_dim / 8)) * 8;
    inside = row < (size_t)a.batch * a.heads * a.seqlen_q;
    size_t head = row / a.seqlen_q;
    offset = (int64_t)(head / a.heads) * a.q.batch + (int64_t)(head % a.heads) * a.q.head +
             (int64_t)(row % a.seqlen_q) * a.q.row + column;
  }
};

template <int head_dim, class T>
__global__ void __launch_bounds__(threads_of_rows) before_gradients(const Attention a, const Gradients<T> g) {
  QueryPiece<head_dim> piece(a);
  float delta = 0;
  if (piece.inside) {
    uint4 o = *(const uint4 *)(g.o + piece.offset), d_o = *(const uint4 *)(g.d_o + piece.offset);
    T x[8], y[8];
    memcpy(x, &o, sizeof x);
    memcpy(y, &d_o, sizeof y);
#pragma unroll
    for (int i = 0; i < 8; i++) delta += independent::as_float(x[i]) * independent::as_float(y[i]);
    float4 *zeros = (float4 *)(g.dq_sum + piece.row * head_dim + piece.column);
    zeros[0] = zeros[1] = make_float4(0, 0, 0, 0);
  }
#pragma unroll
  for (int mask = head_dim / 16; mask > 0; mask /= 2) delta += __shfl_xor_sync(~0u, delta, mask);
  if (!piece.inside || piece.column) return;
  float lse = g.lse[piece.row];
  /* A query without keys is hidden from all; its LSE must only be finite. */
  g.statistics[piece.row] = make_float2(lse == -INFINITY ? 0.f : lse * 1.4426950408889634f, delta);
}

template <int head_dim, class T>
__global__ void __launch_bounds__(threads_of_rows) behind_gradients(const Attention a, const Gradients<T> g) {
  QueryPiece<head_dim> piece(a);
  if (!piece.inside) return;
  const float4 *sums = (const float4 *)(g.dq_sum + piece.row * head_dim + piece.column);
  float4 low = sums[0], high = sums[1];
  uint4 rounded;
  rounded.x = pack<T>(low.x * g.scale, low.y * g.scale);
  rounded.y = pack<T>(low.z * g.scale, low.w * g.scale);
  rounded.z = pack<T>(high.x * g.scale, high.y * g.scale);
  rounded.w = pack<T>(high.z * g.scale, high.w * g.scale);
  *(uint4 *)(g.dq + piece.offset) = rounded;
}

}  // namespace backward_b
