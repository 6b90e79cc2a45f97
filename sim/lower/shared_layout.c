#include "lower/shared_layout.h"

enum { MAX_BLOCK_BYTES = 128, NUM_BANKS = 32, BANK_BYTES = 4 };

ftl_shared_layout ftl_shared_layout_of(int32_t rows, int32_t columns, int32_t element_bytes, ftl_shared_order order) {
  int32_t block = MAX_BLOCK_BYTES / element_bytes;
  while (columns % block != 0) block /= 2;
  return (ftl_shared_layout){rows, columns, element_bytes, order, block, rows * columns * element_bytes};
}

int32_t ftl_shared_layout_offset(const ftl_shared_layout *layout, int32_t row, int32_t column) {
  int32_t block_bytes = layout->block_columns * layout->element_bytes, block = column / layout->block_columns;
  int32_t byte = column % layout->block_columns * layout->element_bytes;
  int32_t unit_bytes = layout->order == FTL_SHARED_SWIZZLED_PAIRS ? 2 * FTL_CHUNK_BYTES : FTL_CHUNK_BYTES;
  if (layout->order != FTL_SHARED_PLAIN && block_bytes > unit_bytes) {
    // rows that differ by less start at different banks already
    int32_t rows_per_line = MAX_BLOCK_BYTES / block_bytes;
    byte ^= row / rows_per_line % (block_bytes / unit_bytes) * unit_bytes;
  }
  if (layout->order == FTL_SHARED_SWIZZLED_BLOCKS) return (block * layout->rows + row) * block_bytes + byte;
  return row * layout->columns * layout->element_bytes + block * block_bytes + byte;
}

// Most distinct words that one bank has to give to lanes first .. first + count - 1; 0 if all are idle.
static int32_t phase_cycles(const int32_t offset[FTL_WARP_LANES], int32_t lane_bytes, int32_t first, int32_t count) {
  int32_t words[NUM_BANKS][FTL_WARP_LANES], num_words[NUM_BANKS] = {0}, most = 0;
  for (int32_t lane = first; lane < first + count; lane++) {
    if (offset[lane] == FTL_LANE_IDLE) continue;
    for (int32_t i = 0; i < lane_bytes / BANK_BYTES; i++) {
      int32_t word = offset[lane] / BANK_BYTES + i, bank = word % NUM_BANKS, k = 0;
      while (k < num_words[bank] && words[bank][k] != word) k++;
      if (k < num_words[bank]) continue;
      words[bank][num_words[bank]++] = word;
      if (num_words[bank] > most) most = num_words[bank];
    }
  }
  return most;
}

ftl_wavefronts ftl_shared_wavefronts(const int32_t offset[FTL_WARP_LANES], int32_t lane_bytes) {
  ftl_wavefronts result = {0, 0};
  int32_t lanes = FTL_WARP_LANES * BANK_BYTES / lane_bytes;
  for (int32_t first = 0; first < FTL_WARP_LANES; first += lanes) {
    int32_t cycles = phase_cycles(offset, lane_bytes, first, lanes);
    result.cycles += cycles;
    if (cycles > 1) result.conflicts += cycles - 1;
  }
  return result;
}
