/* FlashAttention-2 backward, dQ added up by atomics, as FlashAttention-2's library has it
 * (csrc/flash_attn/src/flash_bwd_kernel.h), written for ourselves. Launches:
 *
 *   flash2_bwd_delta (flash2_bwd.h), which also clears dQ's sum
 *   flash2_bwd_dq_dk_dv: a CTA keeps block_n keys and walks the queries, the last first, block_m a step:
 *       S = Q K^T, P = exp(scale S - LSE), dP = dO V^T, dS = P (dP - delta); P and dS go to shared memory;
 *       dV += P^T dO, dQ's sum += dS K by RED.ADD.F32, dK += dS^T Q
 *   flash2_bwd_convert_dq: dQ = scale * sum, rounded, of block_m queries a CTA
 *
 * Warps stand side by side so that each has as square a part of a tile as can be. Q has num_stages buffers, dO one,
 * which is filled again while dQ and dK are computed. A warp adds 32 adjacent numbers an instruction: within a tile the
 * sums lie as the lanes have them, not as rows and columns, and are read back the same way. */
#pragma once

#include "flash2_bwd.h"

namespace flash2_bwd_atomics {

using namespace flash2_bwd;

/* Warps side by side, each with a multiple of 16 rows and columns, and the fewest of both together. */
constexpr int warps_across(int num_warps, int rows, int columns) {
  int best = 0, least = 1 << 30;
  for (int across = 1; across <= num_warps; across++) {
    int down = num_warps / across;
    if (num_warps % across || rows % (16 * down) || columns % (16 * across)) continue;
    if (rows / down + columns / across >= least) continue;
    least = rows / down + columns / across;
    best = across;
  }
  return best;
}

/* How the warps share a tile. */
template <int num_warps, int tile_rows, int tile_columns>
struct Part {
  static constexpr int across = warps_across(num_warps, tile_rows, tile_columns);
  static_assert(across > 0, "no way to share the tile in parts of multiples of 16 rows and columns");
  static constexpr int rows = tile_rows * across / num_warps, columns = tile_columns / across;
  static constexpr int m_tiles = rows / 16, count = columns / 2;             /* accumulators of 16 rows */
  static_assert((rows & (rows - 1)) == 0 && (columns & (columns - 1)) == 0); /* Place::at */

  __device__ __forceinline__ static uint32_t first_row() { return threadIdx.x / 32 / across * rows; }
  __device__ __forceinline__ static uint32_t first_column() { return threadIdx.x / 32 % across * columns; }
};

template <int block_m, int block_n, int num_warps, int num_stages, int head_dim, bool causal>
struct Shape : Tiles<block_m, block_n, num_warps, num_stages, head_dim, causal> {
  typedef Part<num_warps, block_m, block_n> Scores;
  typedef Part<num_warps, block_n, head_dim> Keys;
  typedef Part<num_warps, block_m, head_dim> Queries;
  static constexpr int score_chunks = block_n / 8;
  static constexpr int score_bytes = block_m * block_n * 2;
  static constexpr int shared_bytes =
      2 * block_n * head_dim * 2 + (num_stages + 1) * block_m * head_dim * 2 + 2 * score_bytes;
  static_assert(block_n % 64 == 0 && block_m % num_warps == 0);
};

/* Passes of all warps over a tile's rows, a row each; 32 columns an instruction. */
template <class S, class Do>
__device__ __forceinline__ void for_each_sum(Do what) {
  constexpr int pieces = S::head_dim / 32;
  uint32_t thread_at = threadIdx.x / 32 * S::head_dim + threadIdx.x % 32;
#pragma unroll
  for (int pass = 0; pass < S::block_m / S::num_warps; pass++)
#pragma unroll
    for (int piece = 0; piece < pieces; piece++) {
      int i = pass * pieces + piece;
      what(i / S::Queries::count, i % S::Queries::count,
           thread_at + (uint32_t)(pass * S::num_warps * S::head_dim + piece * 32));
    }
}

template <class S>
struct Walk {
  uint32_t q, k, v, d_o, p, d_s;
  const __half *q_from, *d_o_from; /* of the last query tile; the steps go backwards */
  const float *lse_from, *delta_from;
  float *sum;
  int num_steps, first_row, first_column; /* of this warp's scores in the last tile, as the mask counts them */
  float scale_log2;

  __device__ __forceinline__ uint32_t q_stage(int j) const { return q + (uint32_t)(j % S::num_stages) * S::step_bytes; }
  __device__ __forceinline__ void load_q(int j) const {
    if (j < num_steps) copy_tile<S, S::block_m>(q_stage(j), q_from - (ptrdiff_t)j * (S::block_m * S::head_dim));
    commit();
  }
  __device__ __forceinline__ void load_d_o(int j) const {
    if (j < num_steps) copy_tile<S, S::block_m>(d_o, d_o_from - (ptrdiff_t)j * (S::block_m * S::head_dim));
    commit();
  }
};

template <class S>
struct State {
  float d_k[S::Keys::m_tiles][S::Keys::count], d_v[S::Keys::m_tiles][S::Keys::count];
  RowTerms<S::Scores::m_tiles> rows;

  __device__ __forceinline__ void load_rows(const Walk<S> &w, int j) {
    if (j < w.num_steps) rows.load(w.lse_from - (ptrdiff_t)j * S::block_m, w.delta_from - (ptrdiff_t)j * S::block_m);
  }
};

/* P and dS of step j, into shared memory. */
template <class S, bool masked>
__device__ __forceinline__ void step_scores(State<S> &st, const Walk<S> &w, int j) {
  typedef typename S::Scores Scores;
  constexpr int chunks = S::row_chunks;
  uint32_t row = Scores::first_row(), column = Scores::first_column();
  float s[Scores::m_tiles][Scores::count], products[Scores::m_tiles][Scores::count];
  uint32_t packed[Scores::m_tiles][Scores::count / 2];
  fill_zero(s);
  multiply<false, chunks, false, chunks, S::head_dim>(s, {w.q_stage(j), row}, {w.k, column});
  if (masked) mask_causal<16>(s, w.first_row - j * S::block_m, w.first_column);
  st.rows.prepare();
  exponentiate(s, st.rows, w.scale_log2);
  round_to(packed, s);
  put<S::score_chunks>(w.p, packed, row, column);
  fill_zero(products);
  multiply<false, chunks, false, chunks, S::head_dim>(products, {w.d_o, row}, {w.v, column});
  differentiate(products, s, st.rows);
  round_to(packed, products);
  put<S::score_chunks>(w.d_s, packed, row, column);
}

/* A step. The barrier of its first wait shows that all warps have left the last one: P, dS and the stage that is filled
 * next are free. */
template <class S, bool masked>
__device__ __forceinline__ void step(State<S> &st, const Walk<S> &w, int j) {
  typedef typename S::Keys Keys;
  Operand of_p = {w.p, Keys::first_row()}, of_d_s = {w.d_s, Keys::first_row()};
  wait_and_sync<0>();
  step_scores<S, masked>(st, w, j);
  if (S::num_stages > 1) w.load_q(j + S::num_stages - 1);
  __syncthreads();
  multiply<true, S::score_chunks, true, S::row_chunks, S::block_m>(st.d_v, of_p, {w.d_o, Keys::first_column()});
  __syncthreads();
  w.load_d_o(j + 1);
  typedef typename S::Queries Queries;
  float d_q[Queries::m_tiles][Queries::count];
  fill_zero(d_q);
  multiply<false, S::score_chunks, true, S::row_chunks, S::block_n>(d_q, {w.d_s, Queries::first_row()},
                                                                    {w.k, Queries::first_column()});
  st.load_rows(w, j + 1);
  float *to = w.sum - (ptrdiff_t)j * (S::block_m * S::head_dim);
  for_each_sum<S>([&](int m, int i, uint32_t at) { atomicAdd(to + at, d_q[m][i]); });
  multiply<true, S::score_chunks, true, S::row_chunks, S::block_m>(st.d_k, of_d_s,
                                                                   {w.q_stage(j), Keys::first_column()});
  if (S::num_stages == 1) {
    __syncthreads();
    w.load_q(j + 1);
  }
}

/* Through a buffer that no warp reads any more. */
template <class S, class P, int rows>
__device__ __forceinline__ void store(__half *to, const float (&sums)[P::m_tiles][P::count], uint32_t staging) {
  uint32_t packed[P::m_tiles][P::count / 2];
  round_to(packed, sums);
  put<S::row_chunks>(staging, packed, P::first_row(), P::first_column());
  __syncthreads();
  copy_out<S::row_chunks, rows, S::num_threads>(to, staging, 0, threadIdx.x);
}

template <class S>
__global__ __launch_bounds__(S::num_threads) void flash2_bwd_dq_dk_dv(Params p) {
  extern __shared__ __align__(128) uint8_t shared[];
  Kept tile = kept_of(p, p.seqlen_kv / S::block_n);
  int first_key = tile.index * S::block_n;
  SeenBy seen = seen_by<S>(p, first_key);
  int first = seen.first, whole = seen.whole, end = seen.end, last = end - 1;
  size_t queries = (size_t)tile.head * (size_t)p.seqlen_q + (size_t)last * S::block_m,
         keys = (size_t)tile.head * (size_t)p.seqlen_kv + (size_t)first_key;

  Walk<S> w;
  w.k = shared_address(shared);
  w.v = w.k + S::kept_bytes;
  w.q = w.v + S::kept_bytes;
  w.d_o = w.q + S::num_stages * S::step_bytes;
  w.p = w.d_o + S::step_bytes;
  w.d_s = w.p + S::score_bytes;
  w.q_from = p.q + queries * S::head_dim;
  w.d_o_from = p.d_o + queries * S::head_dim;
  w.lse_from = p.lse + queries + S::Scores::first_row();
  w.delta_from = p.delta + queries + S::Scores::first_row();
  w.sum = p.d_q_sum + queries * S::head_dim;
  w.num_steps = end - first;
  w.first_row = last * S::block_m + (int)S::Scores::first_row() + p.seqlen_kv - p.seqlen_q;
  w.first_column = first_key + (int)S::Scores::first_column();
  w.scale_log2 = p.scale_log2;

  State<S> st;
  w.load_q(0);
  w.load_d_o(0);
  st.load_rows(w, 0);
  copy_tile<S, S::block_n>(w.k, p.k + keys * S::head_dim);
  commit();
  copy_tile<S, S::block_n>(w.v, p.v + keys * S::head_dim);
  commit();
#pragma unroll
  for (int s = 1; s < S::num_stages - 1; s++) w.load_q(s);
  wait_and_sync<(S::num_stages > 2 ? S::num_stages - 2 : 0)>();
  fill_zero(st.d_k);
  fill_zero(st.d_v);
  int j = 0;
  for (; j < end - whole; j++) step<S, false>(st, w, j);
  if (S::causal)
    for (; j < w.num_steps; j++) step<S, true>(st, w, j);
  asm volatile("cp.async.wait_all;" ::: "memory");
  scale_all(st.d_k, p.scale);
  __syncthreads();
  store<S, typename S::Keys, S::block_n>(p.d_k + keys * S::head_dim, st.d_k, w.k);
  store<S, typename S::Keys, S::block_n>(p.d_v + keys * S::head_dim, st.d_v, w.v);
}

template <class S>
__global__ __launch_bounds__(S::num_threads) void flash2_bwd_convert_dq(Params p) {
  extern __shared__ __align__(128) uint8_t shared[];
  typedef typename S::Queries Queries;
  Kept tile = kept_of(p, p.seqlen_q / S::block_m);
  size_t first = ((size_t)tile.head * (size_t)p.seqlen_q + (size_t)tile.index * S::block_m) * S::head_dim;
  const float *from = p.d_q_sum + first;
  float d_q[Queries::m_tiles][Queries::count];
  for_each_sum<S>([&](int m, int i, uint32_t at) { d_q[m][i] = from[at]; });
  scale_all(d_q, p.scale);
  store<S, Queries, S::block_m>(p.d_q + first, d_q, shared_address(shared));
}

/* The driver shows the launch of the products. */
template <class S>
Launch plan(const Problem &p) {
  return {(unsigned)(p.seqlen_kv / S::block_n * p.batch * p.heads), (unsigned)S::num_threads, (size_t)S::shared_bytes};
}

template <class S>
void run(const Problem &problem, cudaStream_t stream) {
  Launch l = plan<S>(problem);
  Params p = params(problem);
  run_delta<S, true>(p, stream);
  flash2_bwd_dq_dk_dv<S><<<l.grid, l.block, l.shared_bytes, stream>>>(p);
  unsigned query_tiles = (unsigned)(p.seqlen_q / S::block_m * p.num_heads_total);
  flash2_bwd_convert_dq<S><<<query_tiles, S::num_threads, S::step_bytes, stream>>>(p);
}

template <class S>
Instance instance() {
  InstanceKey key = {"flash2_bwd", "mma",        "cp_async",    "stages",    S::block_m,
                     S::block_n,   S::num_warps, S::num_stages, S::head_dim, S::causal};
  key.dq = "atomics";
  return {key, (const void *)flash2_bwd_dq_dk_dv<S>, plan<S>, run<S>, 3};
}

}  // namespace flash2_bwd_atomics
