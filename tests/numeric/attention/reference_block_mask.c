#include <stdlib.h>

#include "reference.h"

static bool block_is_seen(const ftl_spec *spec, const int32_t *bits, int64_t i, int64_t j) {
  const int64_t *v = spec->value;
  int64_t block = v[FTL_PARAM_mask_block], width = v[FTL_PARAM_mask_width];
  int64_t row = (i + v[FTL_PARAM_seqlen_kv] - v[FTL_PARAM_seqlen_q]) / block, column = j / block;
  switch (v[FTL_PARAM_mask]) {
    case FTL_MASK_STRIDED:
      return llabs(row - column) < width || llabs(row - column) % width == 0;
    case FTL_MASK_LOCAL_GLOBAL:
      return llabs(row - column) < width || row == 0 || column == 0;
    case FTL_MASK_BUTTERFLY:
      for (int64_t bit = 1; bit < 1 << 20; bit *= 2)
        if ((row ^ bit) == column) return true;
      return row == column;
    default:
      row -= (v[FTL_PARAM_seqlen_kv] - v[FTL_PARAM_seqlen_q]) / block;
      return bits[row * ((v[FTL_PARAM_seqlen_kv] + block - 1) / block) + column] != 0;
  }
}

uint8_t *reference_block_mask(const ftl_spec *spec) {
  enum { MOST_BLOCKS = 4096 };
  if (spec->value[FTL_PARAM_mask] == FTL_MASK_NONE) return NULL;
  int32_t bits[MOST_BLOCKS];
  ftl_spec_list(spec, FTL_PARAM_mask_bits, bits, MOST_BLOCKS);
  int64_t queries = spec->value[FTL_PARAM_seqlen_q], keys = spec->value[FTL_PARAM_seqlen_kv];
  uint8_t *seen = malloc((size_t)(queries * keys));
  for (int64_t i = 0; i < queries; i++)
    for (int64_t j = 0; j < keys; j++) seen[i * keys + j] = block_is_seen(spec, bits, i, j);
  return seen;
}
