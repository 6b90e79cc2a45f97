/* Split-KV decode (one query row a head) with mma.sync and cp.async, and the kernel that combines the splits.
 *
 * A CTA owns one kv head and one split of its keys; the heads of the group are the rows of one 16-row MMA tile (at most
 * 16, the rest zero). Each K and V tile of block_n keys is divided among the warps, each with its own running softmax;
 * they are merged in shared memory at the end. num_stages buffers each, filled ahead. Partial O is f32. The second
 * kernel has one CTA a head.
 *
 * seqlen_kv must be a multiple of block_n. */
#pragma once

#include "flash2_mma.h"
#include "standard_mma.h"

namespace decode_mma {

using namespace flash2_mma;

template <int block_n_, int num_warps_, int num_stages_, int head_dim_, bool ragged_ = false>
struct Shape {
  static constexpr int block_m = 16, tile_n = block_n_, num_warps = num_warps_, num_stages = num_stages_,
                       head_dim = head_dim_;
  static constexpr bool ragged = ragged_;
  static constexpr int block_n = tile_n / num_warps; /* a warp's share */
  static constexpr int num_threads = num_warps * 32, warp_rows = 16, m_tiles = 1;
  static constexpr int n_tiles = block_n / 8, d_tiles = head_dim / 8, row_chunks = head_dim / 8;
  static constexpr int q_bytes = 16 * head_dim * 2, tile_bytes = tile_n * head_dim * 2;
  static constexpr int merge_bytes = num_warps * 16 * (head_dim + 2) * 4;
  static constexpr int ring_bytes = 2 * num_stages * tile_bytes;
  static constexpr int shared_bytes = q_bytes + (ring_bytes > merge_bytes ? ring_bytes : merge_bytes);
  static_assert(block_n % 16 == 0 && num_stages >= 2);
};

/* Partial results of split s, head h: o at (s * num_heads + h) * head_dim, lse at s * num_heads + h. */
struct Partial {
  float *o, *lse;
  int splits;
};

/* The group's rows of Q from `from`, the rest of the 16 zero. */
template <class S>
__device__ __forceinline__ void load_queries(uint8_t *shared, const __half *from, int group) {
  for (uint32_t i = threadIdx.x; i < 16 * S::row_chunks; i += S::num_threads) {
    uint32_t row = i / S::row_chunks, chunk = i % S::row_chunks;
    uint4 data = make_uint4(0, 0, 0, 0);
    if ((int)row < group) data = *(const uint4 *)(from + row * S::head_dim + chunk * 8);
    *(uint4 *)(shared + swizzled<S>(row, chunk)) = data;
  }
}

/* Attention of a warp to its share of each tile; fetch(j) asks for tile j, if there is one, and commits. The last of
 * num_keys keys may end inside a tile if S::ragged. */
template <class S, class Fetch>
__device__ __forceinline__ void attend(State<S> &st, uint32_t q, uint32_t k, uint32_t v, int num_tiles, int num_keys,
                                       float scale_log2, Fetch fetch) {
#pragma unroll
  for (int s = 0; s < S::num_stages - 1; s++) fetch(s);
  st.rows.clear();
  fill_zero(st.o);
  uint32_t warp = threadIdx.x / 32, share = warp * S::block_n * S::head_dim * 2;
  for (int j = 0; j < num_tiles; j++) {
    wait_and_sync<S::num_stages - 2>();
    fetch(j + S::num_stages - 1);
    uint32_t at = (uint32_t)(j % S::num_stages) * S::tile_bytes + share;
    score(st, q, k + at, 0);
    if (S::ragged && j == num_tiles - 1) mask_columns(st.s, num_keys - j * S::tile_n - (int)warp * S::block_n);
    softmax(st, scale_log2);
    accumulate(st, v + at);
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
}

/* Merges the warps' results in `merged` ([warp][16 rows][head_dim], then maxima and sums) and writes the group's rows.
 */
template <class S>
__device__ __forceinline__ void write_partial(State<S> &st, float *merged, int group, float scale_log2, float *o,
                                              float *lse) {
  float *tops = merged + S::num_warps * 16 * S::head_dim, *sums = tops + S::num_warps * 16;
  uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    uint32_t row = lane / 4 + (uint32_t)half * 8;
    float sum = st.rows.sum[0][half];
    sum += __shfl_xor_sync(0xffffffff, sum, 1);
    sum += __shfl_xor_sync(0xffffffff, sum, 2);
    if (lane % 4 == 0) {
      tops[warp * 16 + row] = st.rows.max[0][half];
      sums[warp * 16 + row] = sum;
    }
#pragma unroll
    for (int d = 0; d < S::d_tiles; d++) {
      merged[(warp * 16 + row) * S::head_dim + (uint32_t)d * 8 + lane % 4 * 2] = st.o[0][d * 4 + half * 2];
      merged[(warp * 16 + row) * S::head_dim + (uint32_t)d * 8 + lane % 4 * 2 + 1] = st.o[0][d * 4 + half * 2 + 1];
    }
  }
  __syncthreads();
  for (int row = 0; row < group; row++) {
    float top = -INFINITY, sum = 0;
    for (int w = 0; w < S::num_warps; w++) top = fmaxf(top, tops[w * 16 + row]);
    for (int w = 0; w < S::num_warps; w++)
      sum += top == -INFINITY ? 0 : sums[w * 16 + row] * exp2_fast((tops[w * 16 + row] - top) * scale_log2);
    for (int d = (int)threadIdx.x; d < S::head_dim; d += S::num_threads) {
      float value = 0;
      for (int w = 0; w < S::num_warps; w++)
        value += top == -INFINITY
                     ? 0
                     : merged[(w * 16 + row) * S::head_dim + d] * exp2_fast((tops[w * 16 + row] - top) * scale_log2);
      o[row * S::head_dim + d] = sum > 0 ? value / sum : 0;
    }
    if (threadIdx.x == 0) lse[row] = sum > 0 ? (top * scale_log2 + __log2f(sum)) * 0.69314718f : -INFINITY;
  }
}

template <class S>
__global__ __launch_bounds__(S::num_threads) void split(TileParams p, Partial partial) {
  extern __shared__ __align__(128) uint8_t shared[];
  int num_kv_heads = p.num_heads_total / p.group, kv_head = (int)blockIdx.x % num_kv_heads,
      index = (int)blockIdx.x / num_kv_heads;
  int all_tiles = p.seqlen_kv / S::tile_n, per_split = (all_tiles + partial.splits - 1) / partial.splits;
  int first = index * per_split, num_tiles = max(0, min(per_split, all_tiles - first));
  uint32_t q = shared_address(shared), k = q + S::q_bytes, v = k + S::num_stages * S::tile_bytes;
  const __half *k_from = p.k + ((size_t)kv_head * (size_t)p.seqlen_kv + (size_t)first * S::tile_n) * S::head_dim;
  const __half *v_from = p.v + ((size_t)kv_head * (size_t)p.seqlen_kv + (size_t)first * S::tile_n) * S::head_dim;
  load_queries<S>(shared, p.q + (size_t)kv_head * (size_t)p.group * S::head_dim, p.group);
  auto fetch = [&](int j) {
    if (j < num_tiles) {
      copy_tile<S, S::tile_n>(k + (uint32_t)(j % S::num_stages) * S::tile_bytes,
                              k_from + (size_t)j * S::tile_n * S::head_dim);
      copy_tile<S, S::tile_n>(v + (uint32_t)(j % S::num_stages) * S::tile_bytes,
                              v_from + (size_t)j * S::tile_n * S::head_dim);
    }
    commit();
  };
  State<S> st;
  attend(st, q, k, v, num_tiles, num_tiles * S::tile_n, p.scale_log2, fetch);
  size_t head = (size_t)index * (size_t)p.num_heads_total + (size_t)(kv_head * p.group);
  write_partial(st, (float *)(shared + S::q_bytes), p.group, p.scale_log2, partial.o + head * S::head_dim,
                partial.lse + head);
}

template <int head_dim>
__global__ __launch_bounds__(head_dim) void combine(TileParams p, Partial partial) {
  float top = -INFINITY, sum = 0, value = 0;
  for (int s = 0; s < partial.splits; s++)
    top = fmaxf(top, partial.lse[(size_t)s * (size_t)p.num_heads_total + blockIdx.x]);
  for (int s = 0; s < partial.splits; s++) {
    size_t head = (size_t)s * (size_t)p.num_heads_total + blockIdx.x;
    float weight = exp2_fast((partial.lse[head] - top) * 1.44269504f);
    sum += weight;
    value += weight * partial.o[head * head_dim + threadIdx.x];
  }
  p.o[(size_t)blockIdx.x * head_dim + threadIdx.x] = __float2half(value / sum);
  if (threadIdx.x == 0) p.lse[blockIdx.x] = top + __log2f(sum) * 0.69314718f;
}

template <class S>
Launch plan(const Problem &p) {
  return {(unsigned)(p.batch * p.kv_heads * p.splits), (unsigned)S::num_threads, (size_t)S::shared_bytes};
}

template <class S>
void run(const Problem &p, cudaStream_t stream) {
  Launch l = plan<S>(p);
  TileParams t = tile_params(p, 1);
  size_t heads = (size_t)p.batch * (size_t)p.heads * (size_t)p.splits;
  float *memory = (float *)standard_mma::score_memory(heads * (S::head_dim + 1) * 4);
  Partial partial = {memory, memory + heads * S::head_dim, p.splits};
  split<S><<<l.grid, l.block, l.shared_bytes, stream>>>(t, partial);
  combine<S::head_dim><<<(unsigned)(p.batch * p.heads), S::head_dim, 0, stream>>>(t, partial);
}

template <class S>
Instance instance() {
  return {{"flash_decode", "mma", "cp_async", "stages", 16, S::tile_n, S::num_warps, S::num_stages, S::head_dim, false},
          (const void *)split<S>,
          plan<S>,
          run<S>,
          2};
}

}  // namespace decode_mma
