/* Attention forward: a CTA owns block_m queries, a warp 16 or 32 of them with Q, S, P and O in registers; K and V
 * stream through shared memory. */
#pragma once

#include "reference_attention.h"
#include "tile.h"

namespace backward_b {

using independent::Attention;

/* One buffer each for K and V, if interleaved. */
template <int head_dim_, int block_m_, int block_n_, int warps_, int stages_, bool interleaved_, int ctas_>
struct ForwardShape {
  static constexpr int head_dim = head_dim_, block_m = block_m_, block_n = block_n_, warps = warps_, stages = stages_,
                       ctas = ctas_, threads = 32 * warps;
  static constexpr bool interleaved = interleaved_;
  static constexpr int rows = block_m / warps, row_tiles = rows / 16;
  static constexpr int q_bytes = 2 * block_m * head_dim, kv_bytes = 2 * block_n * head_dim;
  static constexpr int k_at = q_bytes, v_at = k_at + stages * kv_bytes, bytes = v_at + stages * kv_bytes;
  static_assert(rows % 16 == 0 && block_n % 16 == 0 && bytes <= 227 * 1024, "");
  static_assert(interleaved ? stages == 1 : stages > 1, "");
};

template <class T>
struct Tensors {
  const T *q, *k, *v;
  T *o;
  float *lse;
  float scale;
};

template <class S, class T>
class QueryRows {
 public:
  static constexpr int row_tiles = S::row_tiles, head_dim = S::head_dim, block_n = S::block_n;
  typedef float Scores[row_tiles][block_n / 8][4];

  /* m: the warp's first query; Q must be in shared memory. */
  __device__ QueryRows(uint32_t shared, int m, Sight sight, float scale)
      : own_(shared + (threadIdx.x >> 5) * S::rows * Tile<head_dim>::row_bytes),
        k_(right_first<head_dim>(shared + S::k_at)),
        v_(down_first<head_dim>(shared + S::v_at)),
        m_(m),
        sight_(sight),
        scale_(scale) {
    auto blocks = down_first<head_dim>(own_);
#pragma unroll
    for (int i = 0; i < row_tiles; i++) {
#pragma unroll
      for (int k = 0; k < head_dim / 16; k++) load_matrices(q_[k][i], blocks.at(16 * i, 16 * k));
#pragma unroll
      for (int half = 0; half < 2; half++) top_[i][half] = -INFINITY, sum_[i][half] = 0;
    }
    clear(o_);
  }

  __device__ void scores(Scores &s, int stage, int n) const {
    auto keys = k_.moved(stage * S::kv_bytes);
    clear(s);
#pragma unroll
    for (int k = 0; k < head_dim / 16; k++) multiply_right<T>(s, q_[k], keys, 16 * k);
    if (n + block_n - 1 > sight_.end(m_)) hide(s, n);
  }

  /* S becomes P; O and the sums so far are rescaled to the new maxima. */
  __device__ void softmax(Scores &s) {
    float scale_log2 = scale_ * 1.4426950408889634f;
#pragma unroll
    for (int i = 0; i < row_tiles; i++)
#pragma unroll
      for (int half = 0; half < 2; half++) {
        float top = top_[i][half];
#pragma unroll
        for (int j = 0; j < block_n / 8; j++) top = fmaxf(top, fmaxf(s[i][j][2 * half], s[i][j][2 * half + 1]));
        top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
        top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
        float base = top == -INFINITY ? 0.f : top * scale_log2;
        float factor = exp2_fast(top_[i][half] * scale_log2 - base), sum = sum_[i][half] * factor;
        top_[i][half] = top;
#pragma unroll
        for (int j = 0; j < block_n / 8; j++)
#pragma unroll
          for (int e = 2 * half; e < 2 * half + 2; e++) {
            s[i][j][e] = exp2_fast(s[i][j][e] * scale_log2 - base);
            sum += s[i][j][e];
          }
        sum_[i][half] = sum;
#pragma unroll
        for (int j = 0; j < head_dim / 8; j++) o_[i][j][2 * half] *= factor, o_[i][j][2 * half + 1] *= factor;
      }
  }

  __device__ void add_values(const Scores &p, int stage) {
    auto values = v_.moved(stage * S::kv_bytes);
#pragma unroll
    for (int k = 0; k < block_n / 16; k++) {
      uint32_t a[row_tiles][4];
#pragma unroll
      for (int i = 0; i < row_tiles; i++) pack_block<T>(a[i], p[i][2 * k], p[i][2 * k + 1]);
      multiply_down<T>(o_, a, values, 16 * k);
    }
  }

  /* O through the warp's own rows of Q; o, lse: the warp's first row. */
  __device__ void write(T *o, int64_t stride, float *lse, int inside) {
    int lane = threadIdx.x & 31;
#pragma unroll
    for (int i = 0; i < row_tiles; i++)
#pragma unroll
      for (int half = 0; half < 2; half++) {
        float sum = sum_[i][half];
        sum += __shfl_xor_sync(~0u, sum, 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        float factor = sum > 0 ? 1 / sum : 0.f;
#pragma unroll
        for (int j = 0; j < head_dim / 8; j++) o_[i][j][2 * half] *= factor, o_[i][j][2 * half + 1] *= factor;
        int row = 16 * i + 8 * half + lane / 4;
        if (lane % 4 == 0 && row < inside) lse[row] = sum > 0 ? top_[i][half] * scale_ + logf(sum) : -INFINITY;
      }
    stage_rows<T, head_dim>(own_, o_, 1);
    __syncwarp();
    write_rows<S::rows, head_dim>(o, stride, own_, inside);
  }

 private:
  __device__ void hide(Scores &s, int n) const {
    int lane = threadIdx.x & 31;
#pragma unroll
    for (int i = 0; i < row_tiles; i++)
#pragma unroll
      for (int half = 0; half < 2; half++) {
        int end = sight_.end(m_ + 16 * i + 8 * half + lane / 4) - n - 2 * (lane & 3);
#pragma unroll
        for (int j = 0; j < block_n / 8; j++)
#pragma unroll
          for (int e = 0; e < 2; e++)
            if (8 * j + e > end) s[i][j][2 * half + e] = -INFINITY;
      }
  }

  uint32_t own_;
  Blocks<head_dim> k_, v_;
  int m_;
  Sight sight_;
  float scale_;
  uint32_t q_[head_dim / 16][row_tiles][4];
  float top_[row_tiles][2], sum_[row_tiles][2]; /* the sum of the lane's own columns */
  float o_[row_tiles][head_dim / 8][4];
};

/* Grid (query tiles, heads, batch); the last query tile first if causal. */
template <class S, class T>
__global__ void __launch_bounds__(S::threads, S::ctas) forward(const Attention a, const Tensors<T> t) {
  extern __shared__ __align__(128) unsigned char memory[];
  uint32_t shared = shared_address(memory);
  int m0 = (a.causal ? gridDim.x - 1 - blockIdx.x : blockIdx.x) * S::block_m, m_of_warp = (threadIdx.x >> 5) * S::rows;
  int64_t query = blockIdx.z * a.q.batch + blockIdx.y * a.q.head + m0 * a.q.row;
  int64_t kv = blockIdx.z * a.kv.batch + blockIdx.y / (a.heads / a.kv_heads) * a.kv.head;
  Sight sight(a.seqlen_q, a.seqlen_kv, a.causal);
  int tiles = (max(0, sight.end(m0 + S::block_m - 1) + 1) + S::block_n - 1) / S::block_n;

  auto copy = [&](const T *from, int at, int tile) {
    if (tile >= tiles) return;
    int n = tile * S::block_n;
    copy_tile<S::block_n, S::head_dim, S::threads>(shared + at + tile % S::stages * S::kv_bytes,
                                                   from + kv + n * a.kv.row, a.kv.row, a.seqlen_kv - n);
  };
  constexpr int ahead = S::interleaved ? 1 : S::stages - 1;
  copy_tile<S::block_m, S::head_dim, S::threads>(shared, t.q + query, a.q.row, a.seqlen_q - m0);
  commit_copies();
  for (int tile = 0; tile < ahead; tile++) {
    copy(t.k, S::k_at, tile);
    if constexpr (!S::interleaved) copy(t.v, S::v_at, tile);
    commit_copies();
  }
  wait_copies<ahead>();
  __syncthreads();

  QueryRows<S, T> rows(shared, m0 + m_of_warp, sight, t.scale);
  for (int tile = 0; tile < tiles; tile++) {
    typename QueryRows<S, T>::Scores s;
    wait_copies<ahead - 1>();
    __syncthreads(); /* the tile (K only, if interleaved) is there, the one before is read */
    if constexpr (S::interleaved) {
      copy(t.v, S::v_at, tile);
      commit_copies();
      rows.scores(s, 0, tile * S::block_n);
      wait_copies<0>();
      __syncthreads(); /* V is there, K is read */
      copy(t.k, S::k_at, tile + 1);
      commit_copies();
    } else {
      copy(t.k, S::k_at, tile + ahead);
      copy(t.v, S::v_at, tile + ahead);
      commit_copies();
      rows.scores(s, tile % S::stages, tile * S::block_n);
    }
    rows.softmax(s);
    rows.add_values(s, tile % S::stages);
  }
  float *lse = t.lse + ((size_t)blockIdx.z * a.heads + blockIdx.y) * a.seqlen_q + m0 + m_of_warp;
  rows.write(t.o + query + m_of_warp * a.q.row, a.q.row, lse, a.seqlen_q - m0 - m_of_warp);
}

}  // namespace backward_b
