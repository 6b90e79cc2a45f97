// Which blocks of mask_block queries x mask_block keys a block mask leaves, and the key tiles that each query tile
// walks under it, or (backward) the query tiles that each key tile does. The rows of blocks are aligned with the last
// key, as `causal` is. Patterns: `strided`: R. Child et al., "Generating Long Sequences with Sparse Transformers",
// arXiv:1904.10509, section 4.2; `local_global`: I. Beltagy et al., "Longformer", arXiv:2004.05150, one global block;
// `butterfly`: the fixed pattern of block-sparse FlashAttention, arXiv:2205.14135, section 3.3 and appendix D.1 (here
// the union of a butterfly's factors); `bits`: as given. Kernels skip blocks as FlexAttention's do: full tiles first,
// without a mask, then partial ones.
#ifndef FTL_WORKLOADS_BLOCK_MASK_H
#define FTL_WORKLOADS_BLOCK_MASK_H

#include "workloads/attention.h"

typedef struct ftl_block_mask {
  int64_t pattern, width;         // FTL_MASK_*
  int64_t block_tokens;           // edge of a block
  int64_t num_rows, num_columns;  // of blocks
  int64_t first_key, first_row;   // the key that is aligned with the first query, and its row of blocks
  int32_t *bits;                  // of `bits`, row by row; else NULL. Owned
} ftl_block_mask;

// FTL_INFEASIBLE: bits that are not as many as blocks; FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_block_mask_init(ftl_block_mask *mask, const ftl_spec *spec, ftl_error *error);
void ftl_block_mask_fini(ftl_block_mask *mask);
int64_t ftl_block_mask_row(const ftl_block_mask *mask, int64_t query);  // from 0
// Whether the mask leaves block (row, column); row: of the queries, from 0.
bool ftl_block_mask_sees(const ftl_block_mask *mask, int64_t row, int64_t column);
// 1 or 0 for each block, row by row: num_rows x num_columns numbers, which the caller frees. NULL: out of memory.
int32_t *ftl_block_mask_list(const ftl_block_mask *mask);

// A CTA keeps a tile of so many tokens and walks tiles of the others. Tokens: queries kept, keys walked, or
// (keeps_keys) the other way round.
typedef struct ftl_tile_walk {
  int64_t kept_tokens, step_tokens;
  bool keeps_keys;
  bool in_any_rows;  // decoding: queries kept together may lie in several rows of blocks
  bool by_blocks;    // the kernel has lists of blocks: all tiles of a block that is seen are walked
} ftl_tile_walk;
// block_m queries are kept, block_n keys a step; by blocks with mask_steps=blocks.
ftl_tile_walk ftl_tile_walk_forward(const ftl_spec *spec);

// The numbers of the tiles that each kept tile walks, kept tile after kept tile: those seen whole, then those seen in
// part (diagonal, window, last key). By blocks: the tiles of blocks seen in part, all of which are masked, then those
// of blocks seen whole, as FlexAttention's template walks them.
typedef struct ftl_tile_lists {
  ftl_block_mask mask;    // owned
  int32_t *tiles, *ends;  // ends[2t], ends[2t + 1]: where kept tile t's first and second kind begin. Owned
  int64_t num_tiles, num_kept_tiles, kept_tokens;
  int64_t num_pairs;   // (query, key) pairs of a head that are seen
  int64_t num_keys;    // that some query sees, those between two of them in a tile included
  int64_t most_tiles;  // that a kept tile walks
  bool rows_differ;    // queries of some tile lie in rows of blocks that do not all see a key tile it walks
  bool by_blocks;
} ftl_tile_lists;
// Without a mask (mask=none) nothing is listed, but by blocks: `tiles` is NULL. FTL_INFEASIBLE: a tile that no block
// holds a whole number of times, lengths that differ by no whole number of blocks (or, in any rows, fewer keys than
// queries), and as above; FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_tile_lists_init(ftl_tile_lists *lists, const ftl_spec *spec, ftl_tile_walk walk,
                                            ftl_error *error);
void ftl_tile_lists_fini(ftl_tile_lists *lists);
// FLOPs of attention's forward pass: of the pairs that are seen, or of all where nothing is listed.
int64_t ftl_tile_lists_flops(const ftl_tile_lists *lists, const ftl_attention *a);
// Whether some kept tile walks none.
bool ftl_tile_lists_some_empty(const ftl_tile_lists *lists);

// The lists as tables of a program.
typedef struct ftl_tile_tables {
  int32_t tiles, ends;
} ftl_tile_tables;
ftl_tile_tables ftl_tile_lists_declare_tables(ftl_builder *builder, const ftl_tile_lists *lists);
// The positions in them of the kept tile that begins at `row`: to be walked as ftl_attention_keys' range.
ftl_key_range ftl_tile_lists_range(ftl_builder *builder, const ftl_tile_lists *lists, ftl_tile_tables tables,
                                   ftl_expr row);

// The first token of the tile at position `j` of the table of tiles, of `tile_tokens` each; where nothing is listed
// tile `j` itself.
ftl_expr ftl_tile_lists_token(ftl_builder *builder, const ftl_tile_lists *lists, int32_t tiles, ftl_expr j,
                              int32_t tile_tokens);

// Both.
typedef struct ftl_listed_tiles {
  int32_t tiles;  // table
  ftl_key_range range;
} ftl_listed_tiles;
ftl_listed_tiles ftl_tile_lists_declare(ftl_builder *builder, const ftl_tile_lists *lists, ftl_expr row);

#endif
