/* Split-KV verification of a tree of speculated tokens with mma.sync and cp.async: the tokens of the tree are queries,
 * each sees the keys before the tree, its ancestors and itself.
 *
 * A CTA owns block_m rows of a kv head (the heads of its group and their tokens, packed) and one split of the keys; a
 * warp 16 rows or more. K and V of a tile are waited for together and num_stages - 1 tiles are asked for ahead. Tiles
 * from the first that holds a token of the tree on are masked by bits: of each row a word for 32 keys. Partial O is
 * f32; decode_mma.h's kernel combines the splits.
 *
 * seqlen_kv must be a multiple of block_n; the tokens of the tree are the last of the keys. */
#pragma once

#include "decode_mma.h"

namespace tree_mma {

using namespace flash2_mma;

template <int block_m, int block_n, int num_warps, int num_stages, int head_dim>
using Shape = flash2_mma::Shape<block_m, block_n, num_warps, num_stages, head_dim, false, Schedule::stages>;

/* words: the mask's of the row that the thread's first accumulator is in, from the tile's first key on. */
template <class S>
__device__ __forceinline__ void mask_bits(float (&s)[S::m_tiles][S::n_tiles * 4], const uint32_t *words, int row_words,
                                          int num_rows) {
  int lane = (int)threadIdx.x % 32;
#pragma unroll
  for (int m = 0; m < S::m_tiles; m++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      int row = min(m * 16 + half * 8 + lane / 4, num_rows - 1); /* rows past the last are not written */
#pragma unroll
      for (int n = 0; n < S::n_tiles; n++) {
        uint32_t seen = words[row * row_words + n / 4] >> (n % 4 * 8 + lane % 4 * 2);
        if (!(seen & 1)) s[m][n * 4 + half * 2] = -INFINITY;
        if (!(seen & 2)) s[m][n * 4 + half * 2 + 1] = -INFINITY;
      }
    }
}

/* The warp's rows of the partial results, from registers. */
template <class S>
__device__ __forceinline__ void write_rows(State<S> &st, float *o, float *lse, float scale_log2, int num_rows) {
  uint32_t lane = threadIdx.x % 32;
  normalize<16, true>(st.o, st.rows, lse, 0, scale_log2, num_rows);
#pragma unroll
  for (int m = 0; m < S::m_tiles; m++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      int row = m * 16 + half * 8 + (int)lane / 4;
      if (row >= num_rows) continue;
#pragma unroll
      for (int d = 0; d < S::d_tiles; d++)
        *(float2 *)(o + (size_t)row * S::head_dim + (uint32_t)d * 8 + lane % 4 * 2) =
            make_float2(st.o[m][d * 4 + half * 2], st.o[m][d * 4 + half * 2 + 1]);
    }
}

template <class S>
__global__ __launch_bounds__(S::num_threads) void split(TileParams p, Tree tree, decode_mma::Partial partial) {
  extern __shared__ __align__(128) uint8_t shared[];
  int rows = p.group * p.seqlen_q, m_tiles = (rows + S::block_m - 1) / S::block_m,
      kv_heads = p.num_heads_total / p.group;
  int row = (int)blockIdx.x % m_tiles * S::block_m, kv_head = (int)blockIdx.x / m_tiles % kv_heads,
      index = (int)blockIdx.x / m_tiles / kv_heads;
  int all_tiles = p.seqlen_kv / S::block_n, per_split = (all_tiles + partial.splits - 1) / partial.splits;
  int first = index * per_split, num_tiles = max(0, min(per_split, all_tiles - first));
  uint32_t q = shared_address(shared), k = q + S::q_bytes, v = k + S::num_stages * S::tile_bytes,
           warp_row = threadIdx.x / 32 * S::warp_rows;
  size_t kv_offset = ((size_t)kv_head * (size_t)p.seqlen_kv + (size_t)first * S::block_n) * S::head_dim;
  const __half *k_from = p.k + kv_offset, *v_from = p.v + kv_offset;
  copy_tile_part<S, S::block_m>(q, p.q + ((size_t)kv_head * (size_t)rows + (size_t)row) * S::head_dim, rows - row);
  auto fetch = [&](int j) {
    if (j < num_tiles) {
      copy_tile<S, S::block_n>(k + (uint32_t)(j % S::num_stages) * S::tile_bytes,
                               k_from + (size_t)j * S::block_n * S::head_dim);
      copy_tile<S, S::block_n>(v + (uint32_t)(j % S::num_stages) * S::tile_bytes,
                               v_from + (size_t)j * S::block_n * S::head_dim);
    }
    commit();
  };
#pragma unroll
  for (int s = 0; s < S::num_stages - 1; s++) fetch(s);
  State<S> st;
  st.rows.clear();
  fill_zero(st.o);
  int first_row = row + (int)warp_row;
  for (int j = 0; j < num_tiles; j++) {
    wait_and_sync<S::num_stages - 2>();
    fetch(j + S::num_stages - 1);
    uint32_t at = (uint32_t)(j % S::num_stages) * S::tile_bytes;
    score(st, q, k + at, warp_row);
    int tree_tile = first + j - tree.first_key / S::block_n;
    if (tree_tile >= 0 && first_row < rows)
      mask_bits<S>(st.s, tree.words + (size_t)first_row * (size_t)tree.row_words + tree_tile * (S::block_n / 32),
                   tree.row_words, rows - first_row);
    softmax(st, p.scale_log2);
    accumulate(st, v + at);
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  size_t to = ((size_t)index * (size_t)kv_heads + (size_t)kv_head) * (size_t)rows + (size_t)first_row;
  write_rows(st, partial.o + to * S::head_dim, partial.lse + to, p.scale_log2, rows - first_row);
}

template <class S>
Launch plan(const Problem &p) {
  int rows = p.heads / p.kv_heads * p.seqlen_q, m_tiles = (rows + S::block_m - 1) / S::block_m;
  return {(unsigned)(m_tiles * p.batch * p.kv_heads * p.splits), (unsigned)S::num_threads, (size_t)S::shared_bytes};
}

template <class S>
void run(const Problem &p, cudaStream_t stream) {
  Launch l = plan<S>(p);
  TileParams t = tile_params(p, S::block_m), of_rows = t;
  of_rows.num_heads_total = p.batch * p.heads * p.seqlen_q; /* what the combining kernel takes for heads */
  size_t rows = (size_t)of_rows.num_heads_total * (size_t)p.splits;
  float *memory = (float *)standard_mma::score_memory(rows * (S::head_dim + 1) * 4);
  decode_mma::Partial partial = {memory, memory + rows * S::head_dim, p.splits};
  split<S><<<l.grid, l.block, l.shared_bytes, stream>>>(t, p.tree, partial);
  decode_mma::combine<S::head_dim><<<(unsigned)of_rows.num_heads_total, S::head_dim, 0, stream>>>(of_rows, partial);
}

template <class S>
Instance instance() {
  InstanceKey key = {"tree_decode", "mma",        "cp_async",    "stages",    S::block_m,
                     S::block_n,    S::num_warps, S::num_stages, S::head_dim, false};
  return {key, (const void *)split<S>, plan<S>, run<S>, 2};
}

}  // namespace tree_mma
