// Which key tiles a CTA of split-KV decoding walks, and what hides scores of those that its queries see in part:
// `causal`, `window` and the end of the keys by their positions; a tree of tokens, and a block mask that tokens of one
// tile do not share, by a bit a query and key.
#ifndef FTL_WORKLOADS_DECODE_KEYS_H
#define FTL_WORKLOADS_DECODE_KEYS_H

#include "workloads/decode.h"

typedef struct ftl_decode_keys {
  int32_t bits;              // a table of bit rows, of the tiles seen in part one after another; -1: by position
  int64_t num_first_tiles;   // of these, the tiles first .. whole-1
  ftl_tile_tables tables;    // of a block mask: the ranges' numbers are positions in its list of tiles; else -1
  ftl_key_range all, split;  // of the query tile; the CTA's part
} ftl_decode_keys;

// The tables, among the tensors of the first kernel. FTL_INFEASIBLE: a mask of more than 2^22 words, or bits without
// whole words of 32 keys a tile; FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_decode_keys_declare(ftl_decode_keys *keys, ftl_builder *builder, const ftl_decode *d,
                                                ftl_error *error);
// The ranges. row: the tile's first query row; lengths: of its sequence.
void ftl_decode_keys_find(ftl_decode_keys *keys, ftl_builder *builder, const ftl_decode *d, ftl_expr row,
                          ftl_attention_lengths lengths, ftl_expr split_idx);

// The key tile that comes as number j of a range.
ftl_expr ftl_decode_keys_tile(const ftl_decode_keys *keys, ftl_builder *builder, ftl_expr j);

// Hides scores of tile number j, of those before `whole` (is_first) or those from `unmasked` on.
void ftl_decode_keys_mask(const ftl_decode_keys *keys, ftl_builder *builder, const ftl_decode *d, ftl_expr row,
                          ftl_attention_lengths lengths, int32_t scores, ftl_expr j, bool is_first);

#endif
