/* FlashAttention-1 forward with mma.sync m16n8k16 and cp.async (T. Dao et al., arXiv:2205.14135, algorithm 1, as
 * HazyResearch/flash-attention v1 has it: fmha_fprop_kernel_1xN.h).
 *
 * A CTA owns a head. The outer loop walks blocks of keys, which stay in shared memory, the inner one tiles of 16
 * queries. The warps divide a block's keys: each has the scores of its share, and maxima, sums and outputs of the warps
 * are put together through shared memory in every step. Between blocks a query tile's O lies in memory as f32, with its
 * LSE, and every step reads and writes both; the last block that the tile sees writes O as f16.
 *
 * num_stages buffers of Q, filled num_stages - 1 tiles ahead. Three barriers a step: Q is there, maxima are there, sums
 * and outputs are there; a buffer that is written is always two of them away from its last reader.
 *
 * seqlen_q must be a multiple of 16 and seqlen_kv of block_n. With a causal mask blocks of keys skip the query tiles
 * that see none of them, and every step is masked. */
#pragma once

#include "flash2_mma.h"
#include "standard_mma.h"

namespace flash1_mma {

using namespace flash2_mma;

template <int block_n_, int num_warps_, int num_stages_, int head_dim_, bool causal_>
struct Shape {
  static constexpr int block_m = 16, tile_n = block_n_, num_warps = num_warps_, num_stages = num_stages_,
                       head_dim = head_dim_;
  static constexpr bool causal = causal_;
  static constexpr int block_n = tile_n / num_warps; /* a warp's share */
  static constexpr int num_threads = num_warps * 32, m_tiles = 1;
  static constexpr int n_tiles = block_n / 8, d_tiles = head_dim / 8, row_chunks = head_dim / 8;
  static constexpr int q_bytes = block_m * head_dim * 2, tile_bytes = tile_n * head_dim * 2;
  static constexpr int output_bytes = num_warps * block_m * head_dim * 4, row_bytes = num_warps * block_m * 4;
  static constexpr int shared_bytes = num_stages * q_bytes + 2 * tile_bytes + output_bytes + 2 * row_bytes;
  /* Row-wise: so many threads have a row, four columns each. */
  static constexpr int row_threads = head_dim / 4, rows_at_once = num_threads / row_threads,
                       thread_rows = block_m / rows_at_once;
  static_assert(block_n % 16 == 0 && num_warps % 4 == 0 && head_dim <= 128 && block_m % rows_at_once == 0);
};

/* The CTA's head and where its parts lie: pointers at the head's first row, addresses of shared memory. */
struct Head {
  const __half *q_from, *k_from, *v_from;
  __half *o;
  float *o_sum, *lse;
  uint32_t q, k, v;
  float *outputs;     /* [warp][16 rows][head_dim], swizzled */
  float *tops, *sums; /* [16 rows][warp] */
  int num_m_tiles, diagonal;
  float scale_log2;
};

/* Where a float of the warps' outputs lies: eight columns are swizzled by the row, so that neither the accumulators'
 * stores nor reading by rows has bank conflicts. */
template <class S>
__device__ __forceinline__ uint32_t output_slot(uint32_t row, uint32_t column) {
  return row * S::head_dim + ((column / 8) ^ (row & 3)) * 8 + column % 8;
}

/* The largest, or the sum, of a row's numbers, one of each warp. */
template <class S, class Combine>
__device__ __forceinline__ float of_warps(const float *numbers, uint32_t row, Combine combine) {
  const float4 *quads = (const float4 *)(numbers + row * S::num_warps);
  float4 first = quads[0];
  float all = combine(combine(first.x, first.y), combine(first.z, first.w));
#pragma unroll
  for (int i = 1; i < S::num_warps / 4; i++) {
    float4 more = quads[i];
    all = combine(all, combine(combine(more.x, more.y), combine(more.z, more.w)));
  }
  return all;
}

__device__ __forceinline__ float larger(float a, float b) { return fmaxf(a, b); }
__device__ __forceinline__ float plus(float a, float b) { return a + b; }

/* s becomes exp2(scale * (s - maximum over all warps' keys)), and this warp's row sums go to shared memory. */
template <class S>
__device__ __forceinline__ void softmax_of_share(State<S> &st, const Head &h) {
  uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    float top = -INFINITY;
#pragma unroll
    for (int n = 0; n < S::n_tiles; n++)
      top = fmaxf(top, fmaxf(st.s[0][n * 4 + half * 2], st.s[0][n * 4 + half * 2 + 1]));
    top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, 1));
    top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, 2));
    if (lane % 4 == 0) h.tops[(lane / 4 + (uint32_t)half * 8) * S::num_warps + warp] = top;
  }
  __syncthreads();
#pragma unroll
  for (int half = 0; half < 2; half++) {
    uint32_t row = lane / 4 + (uint32_t)half * 8;
    float top = of_warps<S>(h.tops, row, larger), sum = 0;
    float base = S::causal && top == -INFINITY ? 0.0f : top * h.scale_log2;
#pragma unroll
    for (int n = 0; n < S::n_tiles; n++)
#pragma unroll
      for (int i = 0; i < 2; i++) {
        float p = exp2_fast(st.s[0][n * 4 + half * 2 + i] * h.scale_log2 - base);
        st.s[0][n * 4 + half * 2 + i] = p;
        sum += p;
      }
    sum += __shfl_xor_sync(0xffffffff, sum, 1);
    sum += __shfl_xor_sync(0xffffffff, sum, 2);
    if (lane % 4 == 0) h.sums[row * S::num_warps + warp] = sum;
  }
}

template <class S>
__device__ __forceinline__ void put_outputs(const State<S> &st, float *outputs) {
  uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int half = 0; half < 2; half++)
#pragma unroll
    for (int d = 0; d < S::d_tiles; d++)
      *(float2 *)(outputs + output_slot<S>(warp * 16 + lane / 4 + (uint32_t)half * 8, (uint32_t)d * 8 + lane % 4 * 2)) =
          make_float2(st.o[0][d * 4 + half * 2], st.o[0][d * 4 + half * 2 + 1]);
}

/* O and LSE of the rows that a thread has row-wise: row i * rows_at_once + threadIdx.x / row_threads. */
template <class S>
struct RowWise {
  float4 o[S::thread_rows];
  float lse[S::thread_rows];
};

template <class S>
__device__ __forceinline__ uint32_t row_of(int i) {
  return (uint32_t)(i * S::rows_at_once) + threadIdx.x / S::row_threads;
}

template <class S>
__device__ __forceinline__ uint32_t column_of() {
  return threadIdx.x % S::row_threads * 4;
}

template <class S>
__device__ __forceinline__ void load_previous(RowWise<S> &previous, const Head &h, int first_row) {
#pragma unroll
  for (int i = 0; i < S::thread_rows; i++) {
    uint32_t row = (uint32_t)first_row + row_of<S>(i);
    previous.o[i] = *(const float4 *)(h.o_sum + (size_t)row * S::head_dim + column_of<S>());
    previous.lse[i] = h.lse[row];
  }
}

/* O and LSE of all warps' keys and, but in the first block, of those before. */
template <class S, bool is_first>
__device__ __forceinline__ void finish_row(float4 &o, float &lse, const RowWise<S> &previous, const Head &h, int i) {
  uint32_t row = row_of<S>(i);
  o = make_float4(0, 0, 0, 0);
#pragma unroll
  for (uint32_t w = 0; w < S::num_warps; w++) {
    float4 part = *(const float4 *)(h.outputs + output_slot<S>(w * 16 + row, column_of<S>()));
    o = make_float4(o.x + part.x, o.y + part.y, o.z + part.z, o.w + part.w);
  }
  float top = of_warps<S>(h.tops, row, larger) * h.scale_log2, sum = of_warps<S>(h.sums, row, plus);
  float weight = 1, previous_weight = 0;
  if (!is_first) {
    float before = previous.lse[i] * 1.44269504f, both = fmaxf(top, before), base = both == -INFINITY ? 0.0f : both;
    weight = exp2_fast(top - base);
    previous_weight = exp2_fast(before - base);
    sum = sum * weight + previous_weight;
    top = both;
  }
  float inverse = sum > 0 ? __frcp_rn(sum) : 0.0f;
  weight *= inverse;
  previous_weight *= inverse;
  o = make_float4(o.x * weight, o.y * weight, o.z * weight, o.w * weight);
  if (!is_first) {
    const float4 &p = previous.o[i];
    o = make_float4(o.x + p.x * previous_weight, o.y + p.y * previous_weight, o.z + p.z * previous_weight,
                    o.w + p.w * previous_weight);
  }
  lse = (top + __log2f(sum)) * 0.69314718f;
}

/* is_final: no later block of keys is seen. */
template <class S, bool is_first>
__device__ __forceinline__ void write_rows(const RowWise<S> &previous, const Head &h, int first_row, bool is_final) {
#pragma unroll
  for (int i = 0; i < S::thread_rows; i++) {
    float4 o;
    float lse;
    finish_row<S, is_first>(o, lse, previous, h, i);
    uint32_t row = (uint32_t)first_row + row_of<S>(i);
    size_t at = (size_t)row * S::head_dim + column_of<S>();
    if (is_final)
      *(uint2 *)(h.o + at) = make_uint2(pack(o.x, o.y), pack(o.z, o.w));
    else
      *(float4 *)(h.o_sum + at) = o;
    if (column_of<S>() == 0) h.lse[row] = lse;
  }
}

/* All query tiles that see some of the block of keys from `key` on. */
template <class S, bool is_first>
__device__ __forceinline__ void attend_block(const Head &h, int key, bool is_last) {
  int first = is_first || !S::causal ? 0 : max(0, key - h.diagonal) / S::block_m;
  uint32_t warp = threadIdx.x / 32, share = warp * S::block_n * S::head_dim * 2;
  auto fetch = [&](int m) {
    if (m < h.num_m_tiles)
      copy_tile<S, S::block_m>(h.q + (uint32_t)(m % S::num_stages) * S::q_bytes,
                               h.q_from + (size_t)m * S::block_m * S::head_dim);
    commit();
  };
  copy_tile<S, S::tile_n>(h.k, h.k_from + (size_t)key * S::head_dim);
  copy_tile<S, S::tile_n>(h.v, h.v_from + (size_t)key * S::head_dim);
#pragma unroll
  for (int s = 0; s < S::num_stages - 1; s++) fetch(first + s);
  for (int m = first; m < h.num_m_tiles; m++) {
    int row = m * S::block_m;
    fetch(m + S::num_stages - 1);
    RowWise<S> previous;
    if (!is_first) load_previous(previous, h, row);
    wait_and_sync<S::num_stages - 1>();
    State<S> st;
    score(st, h.q + (uint32_t)(m % S::num_stages) * S::q_bytes, h.k + share, 0);
    if (S::causal) mask_causal<16>(st.s, row + h.diagonal, key + (int)warp * S::block_n);
    softmax_of_share(st, h);
    fill_zero(st.o);
    accumulate(st, h.v + share);
    put_outputs(st, h.outputs);
    __syncthreads();
    bool is_final = is_last || (S::causal && row + S::block_m - 1 + h.diagonal < key + S::tile_n);
    write_rows<S, is_first>(previous, h, row, is_final);
  }
}

template <class S>
__global__ __launch_bounds__(S::num_threads) void forward(TileParams p, float *o_sum) {
  extern __shared__ __align__(128) uint8_t shared[];
  size_t head = blockIdx.x, kv_head = head / (size_t)p.group; /* heads of a group follow each other */
  size_t q_offset = head * (size_t)p.seqlen_q * S::head_dim, kv_offset = kv_head * (size_t)p.seqlen_kv * S::head_dim;
  Head h;
  h.q_from = p.q + q_offset;
  h.k_from = p.k + kv_offset;
  h.v_from = p.v + kv_offset;
  h.o = p.o + q_offset;
  h.o_sum = o_sum + q_offset;
  h.lse = p.lse + head * (size_t)p.seqlen_q;
  h.q = shared_address(shared);
  h.k = h.q + S::num_stages * S::q_bytes;
  h.v = h.k + S::tile_bytes;
  h.outputs = (float *)(shared + S::num_stages * S::q_bytes + 2 * S::tile_bytes);
  h.tops = h.outputs + S::output_bytes / 4;
  h.sums = h.tops + S::row_bytes / 4;
  h.num_m_tiles = p.num_m_tiles;
  h.diagonal = p.seqlen_kv - p.seqlen_q;
  h.scale_log2 = p.scale_log2;
  attend_block<S, true>(h, 0, p.seqlen_kv == S::tile_n);
  for (int key = S::tile_n; key < p.seqlen_kv; key += S::tile_n)
    attend_block<S, false>(h, key, key + S::tile_n == p.seqlen_kv);
  asm volatile("cp.async.wait_all;" ::: "memory");
}

template <class S>
Launch plan(const Problem &p) {
  return {(unsigned)(p.batch * p.heads), (unsigned)S::num_threads, (size_t)S::shared_bytes};
}

template <class S>
void run(const Problem &p, cudaStream_t stream) {
  Launch l = plan<S>(p);
  size_t numbers = (size_t)p.batch * (size_t)p.heads * (size_t)p.seqlen_q * S::head_dim;
  float *o_sum = (float *)standard_mma::score_memory(p.seqlen_kv > S::tile_n ? numbers * 4 : 4);
  forward<S><<<l.grid, l.block, l.shared_bytes, stream>>>(tile_params(p, S::block_m), o_sum);
}

template <class S>
Instance instance() {
  return {{"flash1_fwd", "mma", "cp_async", "stages", S::block_m, S::tile_n, S::num_warps, S::num_stages, S::head_dim,
           S::causal},
          (const void *)forward<S>,
          plan<S>,
          run<S>};
}

}  // namespace flash1_mma
