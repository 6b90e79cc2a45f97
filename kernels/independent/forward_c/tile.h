/* A tile of ROWS x HEAD_DIM 16-bit numbers in shared memory, in panels of 64 columns (32 if head_dim is no multiple of
 * 64), one after the other. A row of a panel is 8 (4) chunks of 16 bytes, permuted by the row, so that neither 8 rows of
 * a chunk (ldmatrix) nor the chunks of a row (copies) meet in a bank. No padding. */
#pragma once

#include "ptx.h"

namespace sweep {

template <int ROWS_, int HEAD_DIM>
struct Tile {
  static constexpr int ROWS = ROWS_;
  static constexpr int CHUNKS = HEAD_DIM % 64 == 0 ? 8 : 4; /* of a row of a panel */
  static constexpr int PANELS = HEAD_DIM / (8 * CHUNKS);
  static constexpr int ROW_BYTES = CHUNKS * 16;
  static constexpr int PANEL_BYTES = ROWS * ROW_BYTES;
  static constexpr int BYTES = PANELS * PANEL_BYTES;
  static_assert(HEAD_DIM % (8 * CHUNKS) == 0, "head_dim");

  static __device__ __forceinline__ int permutation(int row) { return CHUNKS == 8 ? row & 7 : (row >> 1) & 3; }

  /* Of a chunk of the first panel. */
  static __device__ __forceinline__ uint32_t offset(int row, int chunk) {
    return row * ROW_BYTES + ((chunk ^ permutation(row)) << 4);
  }

  /* From `first` = offset(row, chunk), chunk < 2, to 16 * rows16 rows and 16 * columns16 columns further. The tile lies at
   * a multiple of ROW_BYTES, and `first` may include where. */
  static __device__ __forceinline__ uint32_t step(uint32_t first, int rows16, int columns16) {
    constexpr int per_panel = CHUNKS / 2;
    return (first ^ ((columns16 % per_panel) << 5)) + (columns16 / per_panel) * PANEL_BYTES + rows16 * 16 * ROW_BYTES;
  }

  /* A thread's share of a copy from global memory: it holds chunk `threadIdx.x % CHUNKS` of every panel and of every
   * (THREADS / CHUNKS)th row. `from`: the tile's first number; rows from `rows` on are zeros. */
  template <int THREADS, class T>
  static __device__ __forceinline__ void copy(uint32_t tile, const T *from, int row_stride, int rows) {
    constexpr int rows_at_once = THREADS / CHUNKS;
    static_assert(ROWS % rows_at_once == 0 && rows_at_once % 8 == 0, "the permutation is the same in all rows of a thread");
    int row = threadIdx.x / CHUNKS, chunk = threadIdx.x % CHUNKS;
    uint32_t to = tile + offset(row, chunk);
    const T *source = from + (int64_t)row * row_stride + chunk * 8;
    if (rows >= ROWS) {
#pragma unroll
      for (int r = 0; r < ROWS; r += rows_at_once)
#pragma unroll
        for (int p = 0; p < PANELS; p++)
          cp_async(to + p * PANEL_BYTES + r * ROW_BYTES, source + (int64_t)r * row_stride + p * CHUNKS * 8);
    } else {
#pragma unroll
      for (int r = 0; r < ROWS; r += rows_at_once) {
        bool valid = row + r < rows;
        const T *row_source = valid ? source + (int64_t)r * row_stride : from;
#pragma unroll
        for (int p = 0; p < PANELS; p++)
          cp_async(to + p * PANEL_BYTES + r * ROW_BYTES, row_source + p * CHUNKS * 8, valid);
      }
    }
  }
};

}  // namespace sweep
