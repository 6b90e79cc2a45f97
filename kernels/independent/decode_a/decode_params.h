/* What a decoding step's kernels take. */
#pragma once

#include "reference_attention.h"

namespace decode_a {

template <class T>
struct Decode {
  const T *q, *k, *v;         /* Q: [batch][heads][head_dim] */
  independent::Strides kv;    /* of K and V; `batch` is that of a page if paged */
  const int *pages;           /* [batch][pages_of_sequence] */
  int page_shift, pages_of_sequence;
  const int *lengths;         /* [batch], or null: all `seqlen` */
  int batch, heads, group, seqlen, splits;
  float scale_log2;           /* log2(e) / sqrt(head_dim) */
  float *partial_o;           /* [splits][batch][heads][head_dim], each normalised */
  float *partial_lse;         /* [splits][batch][heads] */
  T *o;                       /* written by the split kernel itself if splits is 1 */
  float *lse;

  __device__ int length_of(int sequence) const { return lengths ? __ldg(lengths + sequence) : seqlen; }
};

/* Which tiles of block_n keys a split takes: [first, end). */
struct TileRange {
  int first, end;
};
__device__ __forceinline__ TileRange tiles_of_split(int length, int block_n, int split, int splits) {
  int tiles = (length + block_n - 1) / block_n, each = (tiles + splits - 1) / splits, first = split * each;
  return {first, min(tiles, first + each)};
}

}  // namespace decode_a
