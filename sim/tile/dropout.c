#include "tile/dropout.h"

#include "base/philox.h"
#include "base/warp.h"

int32_t ftl_dropout_threshold(double probability) { return (int32_t)(255.0 * (1.0 - probability)); }

// A lane of an m16n8 accumulator holds the columns 2 (lane % 4) and the next of rows lane / 4 and 8 further on.
bool ftl_dropout_keeps(int64_t sequence, int64_t row, int64_t column, int32_t threshold) {
  enum { BYTES_PER_WORD = 4, KEY = 0 };
  int64_t lane = row % 8 * 4 + column % 8 / 2, offset = sequence * FTL_WARP_LANES + lane;
  ftl_philox_words counter = {{(uint32_t)offset, (uint32_t)(offset >> 32), (uint32_t)(row / FTL_DROPOUT_ROWS),
                               (uint32_t)(column / FTL_DROPOUT_COLUMNS)}};
  int64_t byte = column % 2 + row / 8 % 2 * 2 + column / 8 % 4 * 4;
  uint32_t word = ftl_philox_4x32(counter, KEY, FTL_DROPOUT_ROUNDS).word[byte / BYTES_PER_WORD];
  return (int32_t)(word >> byte % BYTES_PER_WORD * 8 & 0xff) <= threshold;
}

int32_t ftl_dropout_row_threshold(double probability) {
  return (int32_t)(FTL_DROPOUT_ROW_THRESHOLDS * (1.0 - probability));
}

bool ftl_dropout_row_keeps(int64_t sequence, int64_t row, int64_t column, int32_t threshold) {
  enum { LOW_BITS = 8, KEY = 0 };
  ftl_philox_words counter = {
      {(uint32_t)(column / FTL_DROPOUT_ROW_COLUMNS), (uint32_t)row, (uint32_t)sequence, (uint32_t)(sequence >> 32)}};
  ftl_philox_words words = ftl_philox_4x32(counter, KEY, FTL_DROPOUT_ROW_ROUNDS);
  return (int32_t)(words.word[column % FTL_DROPOUT_ROW_COLUMNS] >> LOW_BITS) < threshold;
}
