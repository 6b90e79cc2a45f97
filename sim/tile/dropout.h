// Which elements dropout keeps: a function of the head, the row and the column alone, so that every kernel that
// computes the same probabilities drops the same ones.
#ifndef FTL_TILE_DROPOUT_H
#define FTL_TILE_DROPOUT_H

#include <stdbool.h>
#include <stdint.h>

enum {
  FTL_DROPOUT_ROWS = 16,  // one call of the generator, by a lane of a warp, serves a lane's 16 elements of a block of
  FTL_DROPOUT_COLUMNS = 32,  //   16 x 32 accumulators: a byte each
  FTL_DROPOUT_ROUNDS = 7,
};

// The largest byte whose element is kept, for a probability that elements are dropped: floor(255 (1 - p)).
int32_t ftl_dropout_threshold(double probability);
// Whether element (row, column) of head `sequence` is kept, with FlashAttention-2's numbers (csrc/flash_attn/src/
// dropout.h, philox.cuh): Philox 4x32 of 7 rounds, the counter made of the head, the lane, the row and the column of
// the block, the key 0.
bool ftl_dropout_keeps(int64_t sequence, int64_t row, int64_t column, int32_t threshold);

// The numbers of kernels that stream rows, as PyTorch's dropout makes them (ATen/native/cuda/Dropout.cu:
// curand_uniform4 of Philox 4x32 of 10 rounds, four adjacent elements a call): an element is kept if the upper 24 bits
// of its word are below the threshold, 2^24 (1 - p).
enum { FTL_DROPOUT_ROW_COLUMNS = 4, FTL_DROPOUT_ROW_ROUNDS = 10, FTL_DROPOUT_ROW_THRESHOLDS = 1 << 24 };
int32_t ftl_dropout_row_threshold(double probability);
bool ftl_dropout_row_keeps(int64_t sequence, int64_t row, int64_t column, int32_t threshold);

#endif
