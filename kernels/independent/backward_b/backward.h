/* Gradients of attention. A CTA owns block_n keys of a kv head and streams the query tiles of all heads of the group;
 * so dK and dV stay in registers from first to last. Each warp owns block_n / num_warps keys and computes S and dP
 * transposed, keys by queries: P^T and dS^T are then already operands A of dV += P^T dO and dK += dS^T Q, and only
 * dS^T goes through shared memory, for dQ = dS K, which the warps share anew and add up in fp32 in global memory. */
#pragma once

#include "reference_attention.h"
#include "tile.h"

namespace backward_b {

using independent::Attention;

template <class T>
struct Gradients {
  const T *q, *k, *v, *o, *d_o;
  const float *lse;
  float2 *statistics; /* of each query: LSE in base 2, delta */
  float *dq_sum;      /* bhsd */
  T *dq, *dk, *dv;
  float scale;
};

/* How many warps share the rows of dQ: a warp's part has 32 if its columns then are 16 at least. */
constexpr int warps_down_dq(int head_dim, int block_m, int warps) {
  int down = block_m / 32;
  while (head_dim * down < 16 * warps) down *= 2;
  return down;
}

/* chunk: queries whose S and dP are in registers at once; ctas: least number on an SM that the registers shall allow;
 * keep: a warp's K and V stay in registers. */
template <int head_dim_, int block_m_, int block_n_, int warps_, int stages_, int chunk_, int ctas_, bool keep_>
struct BackwardShape {
  static constexpr int head_dim = head_dim_, block_m = block_m_, block_n = block_n_, warps = warps_, stages = stages_,
                       chunk = chunk_, ctas = ctas_, threads = 32 * warps;
  static constexpr bool keep = keep_;
  static constexpr int rows = block_n / warps, row_tiles = rows / 16;
  static constexpr int ahead = stages > 1 ? stages - 1 : 1; /* tiles that are copied ahead */

  static constexpr int dq_warps_down = warps_down_dq(head_dim, block_m, warps), dq_rows = block_m / dq_warps_down,
                       dq_columns = head_dim * dq_warps_down / warps;

  static constexpr int kv_bytes = 2 * block_n * head_dim, q_bytes = 2 * block_m * head_dim;
  static constexpr int v_at = kv_bytes, q_at = 2 * kv_bytes, d_o_at = q_at + stages * q_bytes,
                       ds_at = d_o_at + stages * q_bytes, statistics_at = ds_at + 2 * block_n * block_m,
                       bytes = statistics_at + stages * block_m * (int)sizeof(float2);

  static_assert(rows % 16 == 0 && chunk % 16 == 0 && block_m % chunk == 0, "");
  static_assert(dq_rows % 16 == 0 && dq_columns % 16 == 0, "");
  static_assert(block_m <= threads && bytes <= 227 * 1024, "");
};

/* The query tiles that a CTA goes through: those that see its keys, of each head of the group. */
template <class S, class T>
struct QueryTiles {
  const Attention &a;
  const Gradients<T> &g;
  int first, of_a_head, count;

  __device__ QueryTiles(const Attention &a, const Gradients<T> &g, int n0) : a(a), g(g) {
    first = a.causal ? max(0, n0 - (a.seqlen_kv - a.seqlen_q)) / S::block_m : 0;
    of_a_head = max(0, (a.seqlen_q + S::block_m - 1) / S::block_m - first);
    count = of_a_head * (a.heads / a.kv_heads);
  }
  __device__ int head(int tile) const { return blockIdx.y * (a.heads / a.kv_heads) + tile / of_a_head; }
  __device__ int m0(int tile) const { return (first + tile % of_a_head) * S::block_m; }
  __device__ size_t first_row(int tile) const {
    return ((size_t)blockIdx.z * a.heads + head(tile)) * a.seqlen_q + m0(tile);
  }

  /* One group of copies, empty behind the last tile. */
  __device__ void copy(uint32_t shared, int tile) const {
    if (tile < count) {
      int stage = tile % S::stages, m = m0(tile), inside = a.seqlen_q - m;
      int64_t offset = blockIdx.z * a.q.batch + head(tile) * a.q.head + m * a.q.row;
      uint32_t at = shared + stage * S::q_bytes;
      copy_tile<S::block_m, S::head_dim, S::threads>(at + S::q_at, g.q + offset, a.q.row, inside);
      copy_tile<S::block_m, S::head_dim, S::threads>(at + S::d_o_at, g.d_o + offset, a.q.row, inside);
      int row = threadIdx.x;
      if (row < S::block_m) {
        uint32_t to = shared + S::statistics_at + (stage * S::block_m + row) * (uint32_t)sizeof(float2);
        copy8_async(to, g.statistics + first_row(tile) + (row < inside ? row : 0), row < inside);
      }
    }
    commit_copies();
  }
};

/* A warp's rows of K or V as operands A. */
template <class S>
struct OwnRows {
  Blocks<S::head_dim> blocks;
  uint32_t kept[S::keep ? S::head_dim / 16 : 1][S::row_tiles][4];

  __device__ explicit OwnRows(uint32_t tile) : blocks(down_first<S::head_dim>(tile)) {
    if constexpr (S::keep) {
#pragma unroll
      for (int k = 0; k < S::head_dim / 16; k++)
#pragma unroll
        for (int i = 0; i < S::row_tiles; i++) load_matrices(kept[k][i], blocks.at(16 * i, 16 * k));
    }
  }
  __device__ void operand(uint32_t (&to)[4], int i, int k) const {
    if constexpr (S::keep) {
#pragma unroll
      for (int e = 0; e < 4; e++) to[e] = kept[k][i][e];
    } else {
      load_matrices(to, blocks.at(16 * i, 16 * k));
    }
  }
};

template <class S, class T>
class KeyRows {
 public:
  static constexpr int row_tiles = S::row_tiles, chunk = S::chunk, head_dim = S::head_dim;
  typedef float Sums[row_tiles][head_dim / 8][4];
  typedef float Scores[row_tiles][chunk / 8][4];
  typedef uint32_t Operand[chunk / 16][row_tiles][4];

  /* n: the warp's first key; K and V must be in shared memory. */
  __device__ KeyRows(uint32_t shared, const unsigned char *statistics, int n, Sight sight, float scale)
      : own_(shared + warp() * S::rows * Tile<head_dim>::row_bytes),
        k_(own_),
        v_(own_ + S::v_at),
        q_(right_first<head_dim>(shared + S::q_at)),
        q_down_(down_first<head_dim>(shared + S::q_at)),
        ds_(down_first<S::block_m>(shared + S::ds_at + warp() * S::rows * Tile<S::block_m>::row_bytes)),
        statistics_((const float2 *)statistics),
        n_(n),
        sight_(sight),
        scale_log2_(scale * 1.4426950408889634f) {
    clear(dk_);
    clear(dv_);
  }

  /* The tile of queries from m0 on, in this stage: adds to dK and dV, leaves dS^T in shared memory. */
  __device__ void add_tile(int stage, int m0) {
#pragma unroll 1
    for (int m = 0; m < S::block_m; m += chunk) {
      uint32_t at = stage * S::q_bytes + m * Tile<head_dim>::row_bytes, d_o = at + (S::d_o_at - S::q_at);
      Scores s, dp;
      product(s, k_, q_.moved(at));
      product(dp, v_, q_.moved(d_o));
      if (n_ + S::rows - 1 > sight_.end(m0 + m)) hide(s, m0 + m);
      Operand p, ds;
      differentiate(p, ds, s, dp, statistics_ + stage * S::block_m + m);
      store(ds, m);
      accumulate(dv_, p, q_down_.moved(d_o));
      accumulate(dk_, ds, q_down_.moved(at));
    }
  }

  /* Over the warp's own rows of K and V, which nobody reads any more. */
  __device__ void write(T *dk, T *dv, int64_t stride, int inside, float scale) const {
    stage_rows<T, head_dim>(own_, dk_, scale);
    stage_rows<T, head_dim>(own_ + S::v_at, dv_, 1);
    __syncwarp();
    write_rows<S::rows, head_dim>(dk, stride, own_, inside);
    write_rows<S::rows, head_dim>(dv, stride, own_ + S::v_at, inside);
  }

 private:
  static __device__ int warp() { return threadIdx.x >> 5; }

  __device__ static void product(Scores &sums, const OwnRows<S> &left, Blocks<head_dim> right) {
    clear(sums);
#pragma unroll
    for (int k = 0; k < head_dim / 16; k++) {
      uint32_t a[row_tiles][4];
#pragma unroll
      for (int i = 0; i < row_tiles; i++) left.operand(a[i], i, k);
      multiply_right<T>(sums, a, right, 16 * k);
    }
  }

  __device__ void hide(Scores &s, int m) const {
    int lane = threadIdx.x & 31;
#pragma unroll
    for (int i = 0; i < row_tiles; i++)
#pragma unroll
      for (int j = 0; j < chunk / 8; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
          int key = n_ + 16 * i + lane / 4 + 8 * (e >> 1), query = m + 8 * j + 2 * (lane & 3) + (e & 1);
          if (key > sight_.end(query)) s[i][j][e] = -INFINITY;
        }
  }

  /* P and dS of S and dP; spoils both. */
  __device__ void differentiate(Operand &p, Operand &ds, Scores &s, Scores &dp, const float2 *statistics) const {
    int lane = threadIdx.x & 31;
#pragma unroll
    for (int j = 0; j < chunk / 8; j++) {
      float4 of_two = *(const float4 *)(statistics + 8 * j + 2 * (lane & 3));
#pragma unroll
      for (int i = 0; i < row_tiles; i++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
          float lse = e & 1 ? of_two.z : of_two.x, delta = e & 1 ? of_two.w : of_two.y;
          s[i][j][e] = exp2_fast(s[i][j][e] * scale_log2_ - lse);
          dp[i][j][e] = s[i][j][e] * (dp[i][j][e] - delta);
        }
    }
#pragma unroll
    for (int i = 0; i < row_tiles; i++)
#pragma unroll
      for (int j = 0; j < chunk / 16; j++) {
        pack_block<T>(p[j][i], s[i][2 * j], s[i][2 * j + 1]);
        pack_block<T>(ds[j][i], dp[i][2 * j], dp[i][2 * j + 1]);
      }
  }

  __device__ void store(const Operand &ds, int m) const {
#pragma unroll
    for (int i = 0; i < row_tiles; i++)
#pragma unroll
      for (int j = 0; j < chunk / 16; j++) store_matrices(ds_.at(16 * i, m + 16 * j), ds[j][i]);
  }

  __device__ static void accumulate(Sums &sums, const Operand &left, Blocks<head_dim> right) {
#pragma unroll
    for (int k = 0; k < chunk / 16; k++) multiply_down<T>(sums, left[k], right, 16 * k);
  }

  uint32_t own_;
  OwnRows<S> k_, v_;
  Blocks<head_dim> q_, q_down_;
  Blocks<S::block_m> ds_;
  const float2 *statistics_;
  int n_;
  Sight sight_;
  float scale_log2_;
  Sums dk_, dv_;
};

/* Adds 16 x 8 sums; two lanes trade halves, so that each adds four neighbours of one row. */
__device__ inline void add_sums(float *to, int stride, const float (&sums)[4], int inside) {
  int lane = threadIdx.x & 31, row = lane / 4;
  bool odd = lane & 1;
  float x = __shfl_xor_sync(~0u, odd ? sums[0] : sums[2], 1), y = __shfl_xor_sync(~0u, odd ? sums[1] : sums[3], 1);
  if (odd) row += 8;
  if (row >= inside) return;
  to += row * stride + 4 * ((lane & 3) >> 1);
  if (odd)
    add_to_global(to, x, y, sums[2], sums[3]);
  else
    add_to_global(to, sums[0], sums[1], x, y);
}

/* dQ += dS K; dq_sum: the tile's first row. */
template <class S, class T>
__device__ inline void add_dq(uint32_t shared, float *dq_sum, int inside) {
  constexpr int row_tiles = S::dq_rows / 16, column_tiles = S::dq_columns / 16, down = S::dq_warps_down;
  int warp = threadIdx.x >> 5, m = warp % down * S::dq_rows, d = warp / down * S::dq_columns;
  auto ds = right_first<S::block_m>(shared + S::ds_at);
  auto keys = down_first<S::head_dim>(shared);
  float sums[row_tiles][2 * column_tiles][4];
  clear(sums);
#pragma unroll
  for (int k = 0; k < S::block_n; k += 16) {
    uint32_t a[row_tiles][4];
#pragma unroll
    for (int i = 0; i < row_tiles; i++) load_transposed(a[i], ds.at(k, m + 16 * i));
#pragma unroll
    for (int j = 0; j < column_tiles; j++) {
      uint32_t b[4];
      load_transposed(b, keys.at(k, d + 16 * j));
      multiply<T>(sums, j, a, b);
    }
  }
#pragma unroll
  for (int i = 0; i < row_tiles; i++)
#pragma unroll
    for (int j = 0; j < 2 * column_tiles; j++)
      add_sums(dq_sum + (m + 16 * i) * S::head_dim + d + 8 * j, S::head_dim, sums[i][j], inside - m - 16 * i);
}

/* Grid (key tiles, kv_heads, batch). */
template <class S, class T>
__global__ void __launch_bounds__(S::threads, S::ctas) gradients(const Attention a, const Gradients<T> g) {
  extern __shared__ __align__(128) unsigned char memory[];
  uint32_t shared = shared_address(memory);
  int n0 = blockIdx.x * S::block_n, n_of_warp = (threadIdx.x >> 5) * S::rows;
  int64_t kv = blockIdx.z * a.kv.batch + blockIdx.y * a.kv.head + n0 * a.kv.row;
  QueryTiles<S, T> tiles(a, g, n0);

  copy_tile<S::block_n, S::head_dim, S::threads>(shared, g.k + kv, a.kv.row, a.seqlen_kv - n0);
  copy_tile<S::block_n, S::head_dim, S::threads>(shared + S::v_at, g.v + kv, a.kv.row, a.seqlen_kv - n0);
  commit_copies();
  for (int tile = 0; tile < S::ahead; tile++) tiles.copy(shared, tile);
  wait_copies<S::ahead>();
  __syncthreads();

  KeyRows<S, T> keys(shared, memory + S::statistics_at, n0 + n_of_warp, Sight(a.seqlen_q, a.seqlen_kv, a.causal),
                     g.scale);
  for (int tile = 0; tile < tiles.count; tile++) {
    wait_copies<S::ahead - 1>();
    __syncthreads(); /* the tile is there; the tile before and its dS are read */
    if constexpr (S::stages > 1) tiles.copy(shared, tile + S::ahead);
    keys.add_tile(tile % S::stages, tiles.m0(tile));
    __syncthreads(); /* dS is there; Q and dO are read */
    if constexpr (S::stages == 1) tiles.copy(shared, tile + 1);
    add_dq<S, T>(shared, g.dq_sum + tiles.first_row(tile) * S::head_dim, a.seqlen_q - tiles.m0(tile));
  }
  __syncthreads(); /* K is read */
  kv += n_of_warp * a.kv.row;
  keys.write(g.dk + kv, g.dv + kv, a.kv.row, a.seqlen_kv - n0 - n_of_warp, g.scale);
}

}  // namespace backward_b
