/* What every kernel is told, and which rows and keys a CTA works on. */
#pragma once

#include "reference_attention.h"

namespace mixed_e {

using independent::Strides;

struct Arguments {
  const void *q, *k, *v;
  void *o;
  float *lse;
  Strides q_strides, kv_strides;
  int batch, heads, group, seqlen_q, seqlen_kv; /* group: query heads of a kv head */
  int m_tiles;
  bool head_first, reverse;
  float scale, scale_log2;

  __host__ __device__ int works() const { return m_tiles * heads * batch; }
};

/* A tile of queries of one head. */
struct Work {
  int first_row, head, sequence;
};

template <int M>
__device__ Work work_of(const Arguments &a, int index) {
  const int all_heads = a.heads * a.batch;
  const int tile = a.head_first ? index / all_heads : index % a.m_tiles;
  const int flat_head = a.head_first ? index % all_heads : index / a.m_tiles;
  return {(a.reverse ? a.m_tiles - 1 - tile : tile) * M, flat_head % a.heads, flat_head / a.heads};
}

/* Row i sees keys 0 to i + seqlen_kv - seqlen_q. */
template <bool Causal>
__device__ int visible_keys(const Arguments &a, int row) {
  return Causal ? max(0, min(a.seqlen_kv, row + 1 + a.seqlen_kv - a.seqlen_q)) : a.seqlen_kv;
}

/* Tiles of N keys that any of M rows sees. */
template <bool Causal, int M, int N>
__device__ int key_tiles(const Arguments &a, int first_row) {
  return (visible_keys<Causal>(a, min(first_row + M, a.seqlen_q) - 1) + N - 1) / N;
}

/* Leading tiles that all rows from `first_row` on see in full. */
template <bool Causal, int N>
__device__ int unmasked_tiles(const Arguments &a, int first_row) {
  return visible_keys<Causal>(a, first_row) / N;
}

}  // namespace mixed_e
