/* FlashAttention-2 backward with a kernel of its own for dQ, divided as Triton's fused-attention tutorial is, written
 * for ourselves. Launches:
 *
 *   flash2_bwd_delta (flash2_bwd.h)
 *   flash2_bwd_dk_dv: a CTA keeps block_n keys and walks the queries, block_m a step, on transposed scores, so that P^T
 *       and dS^T are A operands in the registers where they were computed:
 *       S^T = K Q^T, P^T = exp(scale S^T - LSE), dV += P^T dO, dP^T = V dO^T, dS^T = P^T (dP^T - delta), dK += dS^T Q
 *   flash2_bwd_dq: a CTA keeps block_n queries and walks the keys, block_m a step:
 *       S = Q K^T, P = exp(scale S - LSE), dP = dO V^T, dS = P (dP - delta), dQ += dS K
 *
 * Warp w has the kept rows w * block_n / num_warps onward and reads them by ldmatrix in every step. Both tiles of a
 * step have num_stages buffers and commit groups of their own: the first is waited for before the scores, the second
 * behind the exponentials, and then the step num_stages - 1 ahead is asked for. num_stages = 1: a tile is asked for
 * where it is waited for. */
#pragma once

#include "flash2_bwd.h"

namespace flash2_bwd_products {

using namespace flash2_bwd;

template <int block_m, int block_n, int num_warps, int num_stages, int head_dim, bool causal>
struct Shape : Tiles<block_m, block_n, num_warps, num_stages, head_dim, causal> {
  static constexpr int warp_rows = block_n / num_warps, m_tiles = warp_rows / 16;
  static constexpr int count = block_m / 2, d_count = head_dim / 2; /* accumulators of 16 rows */
  static constexpr int shared_bytes = 2 * block_n * head_dim * 2 + 2 * num_stages * block_m * head_dim * 2;
  static_assert(block_n % (16 * num_warps) == 0);
};

/* Two tiles that are kept, two that are walked: of the product of scores, and of that of dP. */
template <class S>
struct Walk {
  static constexpr int ahead = S::num_stages - 1;
  uint32_t kept[2], stepped[2];
  const __half *from[2]; /* of the first row of the head */
  int end;               /* steps beyond it are not loaded */
  uint32_t warp_row;

  __device__ __forceinline__ Operand kept_rows(int i) const { return {kept[i], warp_row}; }
  __device__ __forceinline__ uint32_t stage(int i, int j) const {
    return stepped[i] + (uint32_t)(j % S::num_stages) * S::step_bytes;
  }
  __device__ __forceinline__ void load(int i, int j) const {
    if (j < end) copy_tile<S, S::block_m>(stage(i, j), from[i] + (ptrdiff_t)j * (S::block_m * S::head_dim));
    commit();
  }
  __device__ __forceinline__ void start(const __half *kept_0, const __half *kept_1, int first) const {
    copy_tile<S, S::block_n>(kept[0], kept_0);
    commit();
    copy_tile<S, S::block_n>(kept[1], kept_1);
    commit();
#pragma unroll
    for (int s = 0; s < ahead; s++) {
      load(0, first + s);
      load(1, first + s);
    }
    wait_and_sync<2 * ahead>();
  }
  /* What is read next is waited for, whose barrier shows that all warps have left the last step; then the step `ahead`
   * is asked for. A single buffer of the first tile, which ends a step, needs a barrier before. */
  __device__ __forceinline__ void next(int i, int j) const {
    if (ahead == 0) {
      if (i == 0) __syncthreads();
      load(i, j);
      wait_and_sync<0>();
    } else {
      wait_and_sync<2 * ahead - 1>();
      load(i, j + ahead);
    }
  }
};

template <class S>
__device__ __forceinline__ Walk<S> walk_of(uint8_t *shared) {
  Walk<S> w;
  w.kept[0] = shared_address(shared);
  w.kept[1] = w.kept[0] + S::kept_bytes;
  w.stepped[0] = w.kept[1] + S::kept_bytes;
  w.stepped[1] = w.stepped[0] + S::num_stages * S::step_bytes;
  w.warp_row = threadIdx.x / 32 * S::warp_rows;
  return w;
}

/* Rows are keys and columns queries: key r sees columns from r on; as mask_causal. */
template <int m_tiles, int count>
__device__ __forceinline__ void mask_causal_transposed(float (&s)[m_tiles][count], int first_row, int first_column) {
  int lane = (int)threadIdx.x % 32;
#pragma unroll
  for (int m = 0; m < m_tiles; m++)
#pragma unroll
    for (int i = 0; i < count; i++) {
      int row = first_row + m * 16 + lane / 4 + i % 4 / 2 * 8, column = first_column + i / 4 * 8 + lane % 4 * 2 + i % 2;
      if (row > column) s[m][i] = -INFINITY;
    }
}

/* kept x stepped^T */
template <class S>
__device__ __forceinline__ void multiply_kept(float (&to)[S::m_tiles][S::count], const Walk<S> &w, int i, int j) {
  fill_zero(to);
  multiply<false, S::row_chunks, false, S::row_chunks, S::head_dim>(to, w.kept_rows(i), {w.stage(i, j), 0});
}

/* A warp's own rows of a kept tile, which no other warp reads, pass them on. */
template <class S>
__device__ __forceinline__ void store(__half *to, const float (&sums)[S::m_tiles][S::d_count], uint32_t staging,
                                      uint32_t warp_row) {
  uint32_t packed[S::m_tiles][S::d_count / 2];
  round_to(packed, sums);
  put<S::row_chunks>(staging, packed, warp_row, 0);
  __syncwarp();
  copy_out<S::row_chunks, S::warp_rows, 32>(to, staging, warp_row, threadIdx.x % 32);
}

/* ---- dK and dV ---- */

template <class S>
struct KeyState {
  float d_k[S::m_tiles][S::d_count], d_v[S::m_tiles][S::d_count];
};

/* Of a head's queries; mask_row: the warp's first key as the mask counts queries. */
struct QueryTerms {
  const float *lse, *delta;
  int mask_row;
  float scale_log2;
};

template <class S, bool masked>
__device__ __forceinline__ void step_dk_dv(KeyState<S> &st, const Walk<S> &w, const QueryTerms &of, int j) {
  float s[S::m_tiles][S::count], products[S::m_tiles][S::count];
  uint32_t packed[S::m_tiles][S::count / 2];
  ColumnTerms<S::block_m> columns;
  w.next(0, j);
  columns.load(of.lse + j * S::block_m, of.delta + j * S::block_m);
  multiply_kept(s, w, 0, j);
  if (masked) mask_causal_transposed(s, of.mask_row, j * S::block_m);
  columns.prepare();
  exponentiate(s, columns, of.scale_log2);
  round_to(packed, s);
  w.next(1, j);
  multiply_held<S::row_chunks, S::block_m>(st.d_v, packed, w.stage(1, j));
  multiply_kept(products, w, 1, j);
  differentiate(products, s, columns);
  round_to(packed, products);
  multiply_held<S::row_chunks, S::block_m>(st.d_k, packed, w.stage(0, j));
}

template <class S>
__global__ __launch_bounds__(S::num_threads) void flash2_bwd_dk_dv(Params p) {
  extern __shared__ __align__(128) uint8_t shared[];
  Kept tile = kept_of(p, p.seqlen_kv / S::block_n);
  int first_key = tile.index * S::block_n;
  SeenBy seen = seen_by<S>(p, first_key);
  int first = seen.first, whole = seen.whole, end = seen.end;
  size_t queries = (size_t)tile.head * (size_t)p.seqlen_q,
         keys = ((size_t)tile.head * (size_t)p.seqlen_kv + (size_t)first_key) * S::head_dim;
  Walk<S> w = walk_of<S>(shared);
  w.from[0] = p.q + queries * S::head_dim;
  w.from[1] = p.d_o + queries * S::head_dim;
  w.end = end;
  QueryTerms of = {p.lse + queries, p.delta + queries, first_key + (int)w.warp_row + p.seqlen_q - p.seqlen_kv,
                   p.scale_log2};

  KeyState<S> st;
  w.start(p.k + keys, p.v + keys, first);
  fill_zero(st.d_k);
  fill_zero(st.d_v);
  int j = first;
  if (S::causal)
    for (; j < whole; j++) step_dk_dv<S, true>(st, w, of, j);
  for (; j < end; j++) step_dk_dv<S, false>(st, w, of, j);
  asm volatile("cp.async.wait_all;" ::: "memory");
  scale_all(st.d_k, p.scale);
  store<S>(p.d_k + keys, st.d_k, w.kept[0], w.warp_row);
  store<S>(p.d_v + keys, st.d_v, w.kept[1], w.warp_row);
}

/* ---- dQ ---- */

/* mask_row: the warp's first query as the mask counts keys. */
template <class S, bool masked>
__device__ __forceinline__ void step_dq(float (&d_q)[S::m_tiles][S::d_count], const RowTerms<S::m_tiles> &rows,
                                        const Walk<S> &w, int mask_row, float scale_log2, int j) {
  float s[S::m_tiles][S::count], products[S::m_tiles][S::count];
  uint32_t packed[S::m_tiles][S::count / 2];
  w.next(0, j);
  multiply_kept(s, w, 0, j);
  if (masked) mask_causal<16>(s, mask_row, j * S::block_m);
  exponentiate(s, rows, scale_log2);
  w.next(1, j);
  multiply_kept(products, w, 1, j);
  differentiate(products, s, rows);
  round_to(packed, products);
  multiply_held<S::row_chunks, S::block_m>(d_q, packed, w.stage(0, j));
}

template <class S>
__global__ __launch_bounds__(S::num_threads) void flash2_bwd_dq(Params p) {
  extern __shared__ __align__(128) uint8_t shared[];
  Kept tile = kept_of(p, p.seqlen_q / S::block_n);
  int first_query = tile.index * S::block_n, diagonal = first_query + p.seqlen_kv - p.seqlen_q;
  /* Key tiles before `end` are seen by any of the queries, before `unmasked` by all. */
  int end = p.seqlen_kv / S::block_m, unmasked = end;
  if (S::causal) {
    end = min(end, (diagonal + S::block_n + S::block_m - 1) / S::block_m);
    unmasked = min(end, (diagonal + 1) / S::block_m);
  }
  size_t rows_before = (size_t)tile.head * (size_t)p.seqlen_q + (size_t)first_query,
         keys = (size_t)tile.head * (size_t)p.seqlen_kv * S::head_dim;
  Walk<S> w = walk_of<S>(shared);
  w.from[0] = p.k + keys;
  w.from[1] = p.v + keys;
  w.end = end;

  float d_q[S::m_tiles][S::d_count];
  RowTerms<S::m_tiles> rows;
  w.start(p.q + rows_before * S::head_dim, p.d_o + rows_before * S::head_dim, 0);
  rows.load(p.lse + rows_before + w.warp_row, p.delta + rows_before + w.warp_row);
  rows.prepare();
  fill_zero(d_q);
  int mask_row = diagonal + (int)w.warp_row, j = 0;
  for (; j < unmasked; j++) step_dq<S, false>(d_q, rows, w, mask_row, p.scale_log2, j);
  if (S::causal)
    for (; j < end; j++) step_dq<S, true>(d_q, rows, w, mask_row, p.scale_log2, j);
  asm volatile("cp.async.wait_all;" ::: "memory");
  scale_all(d_q, p.scale);
  store<S>(p.d_q + rows_before * S::head_dim, d_q, w.kept[0], w.warp_row);
}

/* The driver shows the launch of dK and dV. */
template <class S>
Launch plan(const Problem &p) {
  return {(unsigned)(p.seqlen_kv / S::block_n * p.batch * p.heads), (unsigned)S::num_threads, (size_t)S::shared_bytes};
}

template <class S>
void run(const Problem &problem, cudaStream_t stream) {
  Launch l = plan<S>(problem);
  Params p = params(problem);
  CUDA_CHECK(cudaFuncSetAttribute(flash2_bwd_dq<S>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::shared_bytes));
  run_delta<S, false>(p, stream);
  flash2_bwd_dk_dv<S><<<l.grid, l.block, l.shared_bytes, stream>>>(p);
  unsigned query_tiles = (unsigned)(p.seqlen_q / S::block_n * p.num_heads_total);
  flash2_bwd_dq<S><<<query_tiles, S::num_threads, S::shared_bytes, stream>>>(p);
}

template <class S>
Instance instance() {
  InstanceKey key = {"flash2_bwd", "mma",        "cp_async",    "stages",    S::block_m,
                     S::block_n,   S::num_warps, S::num_stages, S::head_dim, S::causal};
  key.dq = "kernel";
  return {key, (const void *)flash2_bwd_dk_dv<S>, plan<S>, run<S>, 3};
}

}  // namespace flash2_bwd_products
