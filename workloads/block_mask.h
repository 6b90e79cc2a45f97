// Which blocks of mask_block queries x mask_block keys a block mask leaves, and the key tiles that each query tile
// walks under it. The rows of blocks are aligned with the last key, as `causal` is. Patterns: `strided`: R. Child et
// al., "Generating Long Sequences with Sparse Transformers", arXiv:1904.10509, section 4.2; `local_global`: I. Beltagy
// et al., "Longformer", arXiv:2004.05150, one global block; `butterfly`: the fixed pattern of block-sparse
// FlashAttention, arXiv:2205.14135, section 3.3 and appendix D.1 (here the union of a butterfly's factors); `bits`: as
// given. Kernels skip blocks as FlexAttention's do: full tiles first, without a mask, then partial ones.
#ifndef FTL_WORKLOADS_BLOCK_MASK_H
#define FTL_WORKLOADS_BLOCK_MASK_H

#include "workloads/attention.h"

typedef struct ftl_block_mask {
  int64_t pattern, width;         // FTL_MASK_*
  int64_t block_tokens;           // edge of a block
  int64_t num_rows, num_columns;  // of blocks
  int64_t first_row;              // that of the first query: num_columns - num_rows
  int32_t *bits;                  // of `bits`, row by row; else NULL. Owned
} ftl_block_mask;

// FTL_INFEASIBLE: a tile that no block holds a whole number of times, lengths that differ by no whole number of blocks,
// bits that are not as many as blocks; FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_block_mask_init(ftl_block_mask *mask, const ftl_spec *spec, ftl_error *error);
void ftl_block_mask_fini(ftl_block_mask *mask);
// Whether the mask leaves block (row, column); row: of the queries, from 0.
bool ftl_block_mask_sees(const ftl_block_mask *mask, int64_t row, int64_t column);

// The numbers of the key tiles that each query tile sees, tile after tile: those seen whole, then those seen in part
// (diagonal, window, last key).
typedef struct ftl_key_lists {
  int32_t *tiles, *ends;  // ends[2t], ends[2t + 1]: where query tile t's begin, and where those seen in part do. Owned
  int64_t num_tiles, num_query_tiles, num_pairs;  // num_pairs: (query, key) pairs of a head that are seen
  int64_t num_keys;                               // that some query sees, those between two of them in a tile included
} ftl_key_lists;
// Without a mask (mask=none) nothing is listed: `tiles` is NULL. FTL_INFEASIBLE and FTL_NO_MEMORY as above.
FTL_MUST_USE ftl_status ftl_key_lists_init(ftl_key_lists *lists, const ftl_spec *spec, ftl_error *error);
void ftl_key_lists_fini(ftl_key_lists *lists);
// Whether some query tile sees no key tile.
bool ftl_key_lists_some_empty(const ftl_key_lists *lists);

// The lists as tables of a program, and the positions in them of a query tile: to be walked as ftl_attention_keys'
// range.
typedef struct ftl_listed_keys {
  int32_t tiles;  // table
  ftl_key_range keys;
} ftl_listed_keys;
ftl_listed_keys ftl_key_lists_declare(ftl_builder *builder, const ftl_key_lists *lists, const ftl_attention *a,
                                      ftl_expr row);

#endif
