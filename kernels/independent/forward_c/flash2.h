/* FlashAttention-2 forward: a CTA takes block_m queries of a head and walks the keys; a warp holds block_m / warps rows of
 * S and O in registers. */
#pragma once

#include "tile.h"

namespace sweep {

enum class Schedule {
  stages,     /* `STAGES` buffers each for K and V, filled ahead; of 1: a buffer that K and V share in turn */
  interleaved /* a buffer each: V comes during Q K^T, the next K during softmax and P V */
};

struct Strides {
  int64_t batch, head;
  int row;
};

template <class T>
struct Arguments {
  const T *q, *k, *v;
  T *o;
  float *lse; /* [batch][heads][seqlen_q] */
  Strides q_strides, kv_strides;
  int heads, group, seqlen_q, seqlen_kv;
  float scale;
  bool reverse; /* the last block of queries first */
};

template <class T_, int HEAD_DIM_, int BLOCK_M_, int BLOCK_N_, int WARPS_, int STAGES_, Schedule SCHEDULE_, bool CAUSAL_>
struct Configuration {
  typedef T_ T;
  static constexpr int HEAD_DIM = HEAD_DIM_, BLOCK_M = BLOCK_M_, BLOCK_N = BLOCK_N_, WARPS = WARPS_, STAGES = STAGES_;
  static constexpr Schedule SCHEDULE = SCHEDULE_;
  static constexpr bool CAUSAL = CAUSAL_;

  static constexpr int THREADS = 32 * WARPS;
  static constexpr int M_TILES = BLOCK_M / (16 * WARPS); /* MMA tiles of a warp along the queries */
  static constexpr bool SHARED_BUFFER = SCHEDULE == Schedule::stages && STAGES == 1;
  typedef Tile<BLOCK_M, HEAD_DIM> QTile;
  typedef Tile<BLOCK_N, HEAD_DIM> KVTile;
  static constexpr int K_BEGIN = QTile::BYTES;
  static constexpr int V_BEGIN = SHARED_BUFFER ? K_BEGIN : K_BEGIN + STAGES * KVTile::BYTES;
  static constexpr int SHARED_BYTES = V_BEGIN + STAGES * KVTile::BYTES;
  /* Fragments of Q, O and S together; Q is read anew from shared memory for each tile where they would not fit. */
  static constexpr bool Q_IN_REGISTERS = M_TILES * (HEAD_DIM / 4 + HEAD_DIM / 2 + BLOCK_N / 2) <= 168;

  /* 8 warps of a row of MMA tiles each, narrow: two CTAs of up to 128 registers a thread. */
  static constexpr int LEAST_CTAS = WARPS == 8 && M_TILES == 1 && HEAD_DIM <= 64 && BLOCK_N <= 64 ? 2 : 1;

  static_assert(BLOCK_M % (16 * WARPS) == 0 && BLOCK_N % 16 == 0 && HEAD_DIM % 16 == 0, "no MMA tiles");
  static_assert(SCHEDULE == Schedule::stages || STAGES == 1, "interleaved has a buffer each");
  static_assert(SHARED_BYTES <= 227 * 1024, "shared memory");
};

/* What a warp holds of its rows. */
template <class C>
struct WarpRows {
  typedef typename C::T T;
  typedef typename C::QTile QTile;
  typedef typename C::KVTile KVTile;
  static constexpr int M_TILES = C::M_TILES, D_STEPS = C::HEAD_DIM / 16, N_STEPS = C::BLOCK_N / 16;

  float o[M_TILES][2 * D_STEPS][4];
  float s[M_TILES][2 * N_STEPS][4];
  uint32_t p[M_TILES][N_STEPS][4];
  uint32_t q[C::Q_IN_REGISTERS ? M_TILES : 1][C::Q_IN_REGISTERS ? D_STEPS : 1][4];
  float top[M_TILES][2], sum[M_TILES][2]; /* `sum`: of this thread's columns */
  uint32_t q_first, k_first, v_first;     /* what this lane addresses for ldmatrix: q_first with the tile's address */
  int row;                                /* this thread's first, in the sequence */
  int first_row;                          /* the warp's */

  __device__ __forceinline__ void begin(uint32_t q_tile, int m0) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, matrix = lane / 8;
    int row_by_pair = (matrix & 1) * 8 + lane % 8; /* matrices 0 and 1 are above each other */
    q_first = q_tile + QTile::offset(warp * 16 * M_TILES + row_by_pair, matrix >> 1);
    k_first = KVTile::offset((matrix >> 1) * 8 + lane % 8, matrix & 1);
    v_first = KVTile::offset(row_by_pair, matrix >> 1);
    first_row = m0 + warp * 16 * M_TILES;
    row = first_row + lane / 4;
#pragma unroll
    for (int m = 0; m < M_TILES; m++) {
      top[m][0] = top[m][1] = -INFINITY;
      sum[m][0] = sum[m][1] = 0;
#pragma unroll
      for (int d = 0; d < 2 * D_STEPS; d++)
#pragma unroll
        for (int e = 0; e < 4; e++) o[m][d][e] = 0;
    }
  }

  __device__ __forceinline__ void load_q() {
    if constexpr (C::Q_IN_REGISTERS) {
#pragma unroll
      for (int m = 0; m < M_TILES; m++)
#pragma unroll
        for (int d = 0; d < D_STEPS; d++) ldmatrix(q[m][d], QTile::step(q_first, m, d));
    }
  }

  /* S = Q K^T, not scaled. */
  __device__ __forceinline__ void scores(uint32_t k_tile) {
#pragma unroll
    for (int m = 0; m < M_TILES; m++)
#pragma unroll
      for (int n = 0; n < 2 * N_STEPS; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) s[m][n][e] = 0;
#pragma unroll
    for (int d = 0; d < D_STEPS; d++) {
      uint32_t a[M_TILES][4];
#pragma unroll
      for (int m = 0; m < M_TILES; m++) {
        if constexpr (C::Q_IN_REGISTERS) {
#pragma unroll
          for (int e = 0; e < 4; e++) a[m][e] = q[m][d][e];
        } else {
          ldmatrix(a[m], QTile::step(q_first, m, d));
        }
      }
#pragma unroll
      for (int n = 0; n < N_STEPS; n++) {
        uint32_t b[4];
        ldmatrix(b, KVTile::step(k_tile + k_first, n, d));
#pragma unroll
        for (int m = 0; m < M_TILES; m++) {
          mma<T>(s[m][2 * n], a[m], b[0], b[1]);
          mma<T>(s[m][2 * n + 1], a[m], b[2], b[3]);
        }
      }
    }
  }

  /* Keys begin at n0; a row sees those below seqlen_kv and, if causal, up to row + diagonal. */
  __device__ __forceinline__ void mask(int n0, int seqlen_kv, int diagonal) {
    int column = n0 + threadIdx.x % 4 * 2;
#pragma unroll
    for (int m = 0; m < M_TILES; m++)
#pragma unroll
      for (int half = 0; half < 2; half++) {
        int end = seqlen_kv;
        if (C::CAUSAL) end = min(end, row + 16 * m + 8 * half + diagonal + 1);
        end -= column;
#pragma unroll
        for (int n = 0; n < 2 * N_STEPS; n++)
#pragma unroll
          for (int e = 0; e < 2; e++)
            if (8 * n + e >= end) s[m][n][2 * half + e] = -INFINITY;
      }
  }

  /* P from S, and O, top and sum to the new maximum. */
  __device__ __forceinline__ void softmax(float scale_log2) {
#pragma unroll
    for (int m = 0; m < M_TILES; m++) {
#pragma unroll
      for (int half = 0; half < 2; half++) {
        float largest = top[m][half];
#pragma unroll
        for (int n = 0; n < 2 * N_STEPS; n++)
          largest = fmaxf(largest, fmaxf(s[m][n][2 * half], s[m][n][2 * half + 1]));
        largest = quad_max(largest);
        float shift = largest == -INFINITY ? 0.f : largest * scale_log2;
        float factor = exp2_approximate(top[m][half] * scale_log2 - shift);
        top[m][half] = largest;
        float total = 0;
#pragma unroll
        for (int n = 0; n < 2 * N_STEPS; n++) {
          float p0 = exp2_approximate(s[m][n][2 * half] * scale_log2 - shift);
          float p1 = exp2_approximate(s[m][n][2 * half + 1] * scale_log2 - shift);
          total += p0 + p1;
          p[m][n / 2][n % 2 * 2 + half] = pack<T>(p0, p1);
        }
        sum[m][half] = sum[m][half] * factor + total;
#pragma unroll
        for (int d = 0; d < 2 * D_STEPS; d++) {
          o[m][d][2 * half] *= factor;
          o[m][d][2 * half + 1] *= factor;
        }
      }
    }
  }

  /* O += P V */
  __device__ __forceinline__ void accumulate(uint32_t v_tile) {
#pragma unroll
    for (int n = 0; n < N_STEPS; n++)
#pragma unroll
      for (int d = 0; d < D_STEPS; d++) {
        uint32_t b[4];
        ldmatrix_transposed(b, KVTile::step(v_tile + v_first, n, d));
#pragma unroll
        for (int m = 0; m < M_TILES; m++) {
          mma<T>(o[m][2 * d], p[m][n], b[0], b[1]);
          mma<T>(o[m][2 * d + 1], p[m][n], b[2], b[3]);
        }
      }
  }

  /* By way of the warp's own rows of the Q tile, that no other warp reads. `out`: the CTA's first row; `lse`: the head's. */
  __device__ __forceinline__ void store(unsigned char *q_tile, T *out, float *lse, int row_stride, int m0, int seqlen_q,
                                        float scale) {
    int lane = threadIdx.x % 32, tile_row = first_row - m0;
    __syncwarp();
#pragma unroll
    for (int m = 0; m < M_TILES; m++)
#pragma unroll
      for (int half = 0; half < 2; half++) {
        float total = quad_sum(sum[m][half]);
        float inverse = total > 0 ? 1.f / total : 0.f;
        int below = 16 * m + 8 * half + lane / 4; /* the warp's first row */
        if (lane % 4 == 0 && first_row + below < seqlen_q)
          lse[first_row + below] = total > 0 ? top[m][half] * scale + logf(total) : -INFINITY;
#pragma unroll
        for (int d = 0; d < 2 * D_STEPS; d++) {
          uint32_t at = d / QTile::CHUNKS * QTile::PANEL_BYTES + QTile::offset(tile_row + below, d % QTile::CHUNKS);
          *(uint32_t *)(q_tile + at + lane % 4 * 4) =
              pack<T>(o[m][d][2 * half] * inverse, o[m][d][2 * half + 1] * inverse);
        }
      }
    __syncwarp();
    constexpr int rows_at_once = 32 / QTile::CHUNKS;
    int chunk = lane % QTile::CHUNKS;
#pragma unroll
    for (int r = 0; r < 16 * M_TILES; r += rows_at_once) {
      int to = tile_row + r + lane / QTile::CHUNKS;
      if (m0 + to < seqlen_q)
#pragma unroll
        for (int panel = 0; panel < QTile::PANELS; panel++)
          *(uint4 *)(out + (int64_t)to * row_stride + (panel * QTile::CHUNKS + chunk) * 8) =
              *(const uint4 *)(q_tile + panel * QTile::PANEL_BYTES + QTile::offset(to, chunk));
    }
  }
};

/* Grid: (blocks of queries, heads, batch). */
template <class C>
__global__ void __launch_bounds__(C::THREADS, C::LEAST_CTAS) flash2_forward(const Arguments<typename C::T> a) {
  typedef typename C::T T;
  typedef typename C::QTile QTile;
  typedef typename C::KVTile KVTile;
  constexpr int BLOCK_M = C::BLOCK_M, BLOCK_N = C::BLOCK_N, STAGES = C::STAGES;
  extern __shared__ __align__(1024) unsigned char flash2_memory[];

  const int m0 = (a.reverse ? gridDim.x - 1 - blockIdx.x : blockIdx.x) * BLOCK_M;
  const int head = blockIdx.y, sequence = blockIdx.z, kv_head = head / a.group;
  const int64_t q_begin = sequence * a.q_strides.batch + head * a.q_strides.head + (int64_t)m0 * a.q_strides.row;
  const int64_t kv_begin = sequence * a.kv_strides.batch + kv_head * a.kv_strides.head;
  const T *k = a.k + kv_begin, *v = a.v + kv_begin;
  const int kv_row = a.kv_strides.row;
  const int diagonal = a.seqlen_kv - a.seqlen_q;
  const float scale_log2 = a.scale * 1.4426950408889634f;

  int keys = a.seqlen_kv;
  if (C::CAUSAL) keys = max(0, min(m0 + BLOCK_M, a.seqlen_q) + diagonal); /* at most seqlen_kv */
  const int tiles = (keys + BLOCK_N - 1) / BLOCK_N;

  const uint32_t memory = (uint32_t)__cvta_generic_to_shared(flash2_memory);
  const uint32_t k_memory = memory + C::K_BEGIN, v_memory = memory + C::V_BEGIN;

  WarpRows<C> rows;
  rows.begin(memory, m0);

  auto copy_k = [&](int tile, int buffer) {
    KVTile::template copy<C::THREADS>(k_memory + buffer * KVTile::BYTES, k + (int64_t)tile * BLOCK_N * kv_row, kv_row,
                                      a.seqlen_kv - tile * BLOCK_N);
  };
  auto copy_v = [&](int tile, int buffer) {
    KVTile::template copy<C::THREADS>(v_memory + buffer * KVTile::BYTES, v + (int64_t)tile * BLOCK_N * kv_row, kv_row,
                                      a.seqlen_kv - tile * BLOCK_N);
  };
  /* The diagonal and the end of the keys are met by few tiles; the branch is the same in a warp. */
  auto mask = [&](int tile) {
    int end = (tile + 1) * BLOCK_N;
    if (end > a.seqlen_kv || (C::CAUSAL && end > rows.first_row + diagonal + 1))
      rows.mask(tile * BLOCK_N, a.seqlen_kv, diagonal);
  };

  if (tiles > 0) {
    QTile::template copy<C::THREADS>(memory, a.q + q_begin, a.q_strides.row, a.seqlen_q - m0);
    cp_async_commit();

    if constexpr (C::SHARED_BUFFER) {
      if (C::Q_IN_REGISTERS) {
        cp_async_wait<0>();
        __syncthreads();
        rows.load_q();
      }
#pragma unroll 1
      for (int tile = 0; tile < tiles; tile++) {
        if (tile) __syncthreads(); /* V has been read */
        copy_k(tile, 0);
        cp_async_commit();
        cp_async_wait<0>();
        __syncthreads();
        rows.scores(k_memory);
        mask(tile);
        rows.softmax(scale_log2);
        __syncthreads(); /* K has been read */
        copy_v(tile, 0);
        cp_async_commit();
        cp_async_wait<0>();
        __syncthreads();
        rows.accumulate(v_memory);
      }
    } else if constexpr (C::SCHEDULE == Schedule::interleaved) {
      copy_k(0, 0);
      cp_async_commit();
      if (C::Q_IN_REGISTERS) {
        cp_async_wait<1>();
        __syncthreads();
        rows.load_q();
      }
#pragma unroll 1
      for (int tile = 0; tile < tiles; tile++) {
        cp_async_wait<0>();
        __syncthreads(); /* K is here, V has been read */
        copy_v(tile, 0);
        cp_async_commit();
        rows.scores(k_memory);
        cp_async_wait<0>();
        __syncthreads(); /* V is here, K has been read */
        if (tile + 1 < tiles) copy_k(tile + 1, 0);
        cp_async_commit();
        mask(tile);
        rows.softmax(scale_log2);
        rows.accumulate(v_memory);
      }
    } else {
      /* A group a tile, even where there is no tile, so that the number of pending groups is known. */
#pragma unroll
      for (int tile = 0; tile < STAGES - 1; tile++) {
        if (tile < tiles) {
          copy_k(tile, tile);
          copy_v(tile, tile);
        }
        cp_async_commit();
      }
      if (C::Q_IN_REGISTERS) {
        cp_async_wait<STAGES - 1>();
        __syncthreads();
        rows.load_q();
      }
      int buffer = 0, free = STAGES - 1;
#pragma unroll 1
      for (int tile = 0; tile < tiles; tile++) {
        cp_async_wait<STAGES - 2>();
        __syncthreads(); /* the tile is here; the one before it has been read */
        if (tile + STAGES - 1 < tiles) {
          copy_k(tile + STAGES - 1, free);
          copy_v(tile + STAGES - 1, free);
        }
        cp_async_commit();
        rows.scores(k_memory + buffer * KVTile::BYTES);
        mask(tile);
        rows.softmax(scale_log2);
        rows.accumulate(v_memory + buffer * KVTile::BYTES);
        free = buffer;
        buffer = buffer + 1 == STAGES ? 0 : buffer + 1;
      }
    }
  }

  rows.store(flash2_memory, a.o + q_begin, a.lse + ((int64_t)sequence * a.heads + head) * a.seqlen_q, a.q_strides.row, m0,
             a.seqlen_q, a.scale);
}

}  // namespace sweep
