/* Tiles of 16-bit numbers in shared memory. A row's 16-byte pieces are permuted by an exclusive or, so that eight rows
 * of one column of pieces lie in different banks. */
#pragma once

#include <cstring>

#include "ptx.h"

namespace backward_b {

template <int columns>
struct Tile {
  static_assert(columns == 32 || columns == 64 || columns == 128, "");
  static constexpr int row_bytes = 2 * columns, pieces = columns / 8;

  /* Rows 8 apart have the same. */
  static __device__ uint32_t permutation(int row) { return (columns == 32 ? (row >> 1) & 3 : row & 7) << 4; }
  static __device__ uint32_t offset(int row, int piece) { return row * row_bytes + ((piece << 4) ^ permutation(row)); }
};

/* What a lane addresses of the 16 x 16 blocks of a tile, as four 8 x 8 matrices. */
template <int columns>
struct Blocks {
  uint32_t row, piece;

  __device__ Blocks(uint32_t tile, int lane_row, int lane_piece)
      : row(tile + lane_row * Tile<columns>::row_bytes),
        piece((lane_piece << 4) ^ Tile<columns>::permutation(lane_row)) {}
  /* Of the block that begins at row r and column c; both are multiples of 16. */
  __device__ uint32_t at(int r, int c) const { return row + r * Tile<columns>::row_bytes + (piece ^ (2 * c)); }
  __device__ Blocks moved(uint32_t bytes) const {
    Blocks blocks = *this;
    blocks.row += bytes;
    return blocks;
  }
};

/* The second matrix lies below the first: for A, for a transposed B [k][n], and to store sums. */
template <int columns>
__device__ inline Blocks<columns> down_first(uint32_t tile) {
  int lane = threadIdx.x & 31;
  return Blocks<columns>(tile, lane & 15, lane >> 4);
}
/* The second matrix lies right of the first: for B given as [n][k], and for a transposed A [k][m]. */
template <int columns>
__device__ inline Blocks<columns> right_first(uint32_t tile) {
  int lane = threadIdx.x & 31;
  return Blocks<columns>(tile, (lane & 7) + ((lane >> 4) << 3), (lane >> 3) & 1);
}

/* By all threads; rows from `inside` on become zeros. Row 0 must exist. */
template <int rows, int columns, int threads, class T>
__device__ inline void copy_tile(uint32_t to, const T *from, int64_t stride, int inside) {
  constexpr int pieces = Tile<columns>::pieces, rows_at_once = threads / pieces;
  static_assert(threads % pieces == 0 && rows % rows_at_once == 0, "");
  int piece = threadIdx.x % pieces;
#pragma unroll
  for (int i = 0; i < rows / rows_at_once; i++) {
    int row = threadIdx.x / pieces + i * rows_at_once;
    bool is_inside = row < inside;
    copy16_async(to + Tile<columns>::offset(row, piece), from + (is_inside ? row * stride : 0) + 8 * piece, is_inside);
  }
}

template <class T>
__device__ inline uint32_t pack(float low, float high) {
  uint32_t bits;
  if constexpr (independent::is_bf16<T>) {
    __nv_bfloat162 x = __floats2bfloat162_rn(low, high);
    memcpy(&bits, &x, sizeof bits);
  } else {
    __half2 x = __floats2half2_rn(low, high);
    memcpy(&bits, &x, sizeof bits);
  }
  return bits;
}
/* The sums of two neighbouring 16 x 8 tiles as one 16 x 16 operand A. */
template <class T>
__device__ inline void pack_block(uint32_t (&to)[4], const float (&left)[4], const float (&right)[4],
                                  float factor = 1) {
  to[0] = pack<T>(left[0] * factor, left[1] * factor);
  to[1] = pack<T>(left[2] * factor, left[3] * factor);
  to[2] = pack<T>(right[0] * factor, right[1] * factor);
  to[3] = pack<T>(right[2] * factor, right[3] * factor);
}

/* Sums of tiles 2j and 2j + 1 += A B. */
template <class T, int row_tiles, int columns>
__device__ inline void multiply(float (&sums)[row_tiles][columns][4], int j, const uint32_t (&a)[row_tiles][4],
                                const uint32_t (&b)[4]) {
#pragma unroll
  for (int i = 0; i < row_tiles; i++) {
    mma<T>(sums[i][2 * j], a[i], b[0], b[1]);
    mma<T>(sums[i][2 * j + 1], a[i], b[2], b[3]);
  }
}
/* Sums += A B for 16 rows of B [k][n], which lie from row r of the tile on. */
template <class T, int row_tiles, int columns>
__device__ inline void multiply_down(float (&sums)[row_tiles][columns / 8][4], const uint32_t (&a)[row_tiles][4],
                                     const Blocks<columns> &right, int r) {
#pragma unroll
  for (int j = 0; j < columns / 16; j++) {
    uint32_t b[4];
    load_transposed(b, right.at(r, 16 * j));
    multiply<T>(sums, j, a, b);
  }
}
/* Sums += A B for 16 columns of B given as [n][k], which lie from column c of the tile on. */
template <class T, int row_tiles, int n_tiles, int columns>
__device__ inline void multiply_right(float (&sums)[row_tiles][n_tiles][4], const uint32_t (&a)[row_tiles][4],
                                      const Blocks<columns> &right, int c) {
#pragma unroll
  for (int j = 0; j < n_tiles / 2; j++) {
    uint32_t b[4];
    load_matrices(b, right.at(16 * j, c));
    multiply<T>(sums, j, a, b);
  }
}

template <int rows, int columns>
__device__ inline void clear(float (&sums)[rows][columns][4]) {
#pragma unroll
  for (int i = 0; i < rows; i++)
#pragma unroll
    for (int j = 0; j < columns; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) sums[i][j][e] = 0;
}

/* A warp's rows of a result through its own rows of a tile: first sums to the tile ... */
template <class T, int columns, int row_tiles>
__device__ inline void stage_rows(uint32_t tile, const float (&sums)[row_tiles][columns / 8][4], float factor) {
  auto blocks = down_first<columns>(tile);
#pragma unroll
  for (int i = 0; i < row_tiles; i++)
#pragma unroll
    for (int j = 0; j < columns / 16; j++) {
      uint32_t block[4];
      pack_block<T>(block, sums[i][2 * j], sums[i][2 * j + 1], factor);
      store_matrices(blocks.at(16 * i, 16 * j), block);
    }
}
/* ... then, behind a __syncwarp, the tile to global memory. */
template <int rows, int columns, class T>
__device__ inline void write_rows(T *to, int64_t stride, uint32_t tile, int inside) {
  constexpr int pieces = Tile<columns>::pieces, rows_at_once = 32 / pieces;
  int lane = threadIdx.x & 31, piece = lane % pieces;
#pragma unroll
  for (int i = 0; i < rows / rows_at_once; i++) {
    int row = lane / pieces + i * rows_at_once;
    if (row >= inside) continue;
    *(uint4 *)(to + row * stride + 8 * piece) = load_shared16(tile + Tile<columns>::offset(row, piece));
  }
}

/* Query m sees the keys up to min(last_key, m + shift). */
struct Sight {
  int last_key, shift;

  __device__ Sight(int seqlen_q, int seqlen_kv, bool causal)
      : last_key(seqlen_kv - 1), shift(causal ? seqlen_kv - seqlen_q : 1 << 29) {}
  __device__ int end(int m) const { return min(last_key, m + shift); }
};

}  // namespace backward_b
