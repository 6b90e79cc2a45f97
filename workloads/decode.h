// What split-KV decoding shares between its two kernels: how query rows are packed into tiles, how keys are split, and
// the partial results in between.
//
// Packing: with few query tokens the query heads that share a KV head are rows of one tile (GQA packing), so that K and
// V are read once a KV head. Row h * seqlen_q + i is token i of head h of the group. Where the rows of a group do not
// lie at one stride (several tokens in layout bshd), a tile has the tokens of one head, as in FlashAttention-2, and the
// heads of a group read K and V one after another.
// Source: FlashAttention-2, csrc/flash_attn/flash_api.cpp (seqlenq_ngroups_swapped, num_splits_heuristic).
#ifndef FTL_WORKLOADS_DECODE_H
#define FTL_WORKLOADS_DECODE_H

#include "workloads/block_mask.h"
#include "workloads/paged_batch.h"
#include "workloads/tree.h"

typedef struct ftl_decode {
  ftl_attention a;
  int64_t tiles_n;                  // of keys, the most that a query tile sees
  int64_t splits, tiles_per_split;  // of these; the last splits may be shorter or empty
  bool is_packed;
  int64_t num_heads;  // of tiles: kv_heads if packed, else heads
  int64_t num_rows;   // query rows of such a head: (heads / kv_heads) * seqlen_q if packed, else seqlen_q
  int64_t num_m_tiles;
  // Borrowed. lists: NULL, or the key tiles that a block mask leaves. tree: NULL, or that of the query tokens, whose
  // keys are the last ones (seqlen_kv includes them). paged: NULL, so that the cache is one tensor and sequences are
  // equally long, or the batch over a paged cache.
  const ftl_tile_lists *lists;
  const ftl_tree *tree;
  const ftl_paged_batch *paged;
} ftl_decode;
ftl_decode ftl_decode_of(const ftl_spec *spec);
// Of a decode whose lists are NULL: the lists of the spec's block mask, if it has one. As ftl_tile_lists_init.
FTL_MUST_USE ftl_status ftl_decode_list_keys(ftl_decode *d, const ftl_spec *spec, ftl_tile_lists *lists,
                                             ftl_error *error);

// Splits so that the last wave of CTAs is as full as it can be: the least number of splits within 15 % of the best
// filled last wave, 1 if one split fills the GPU, at most 128. FlashAttention-2 counts two CTAs an SM (num_sms twice).
int64_t ftl_decode_num_splits(int64_t num_tiles_m, int64_t num_ctas_at_once, int64_t num_tiles_n);

// Declared first and in this order by both kernels, so that they lie at the same addresses. Partial results of split s:
// batch s * batch + b, heads and rows of tiles, fp32; of a paged batch its work items are the batches.
typedef struct ftl_decode_results {
  int32_t partial_o, partial_lse, o, lse;
  ftl_paged_tables tables;  // of a paged batch
} ftl_decode_results;
// split_major: the partial results as the combine kernel sees them, [splits][1][batch * heads * seqlen_q]; of a paged
// batch [items][1][heads * seqlen_q]. Flat: so, and O and LSE as rows of one head likewise.
typedef enum ftl_decode_view { FTL_DECODE_BY_TILES, FTL_DECODE_SPLIT_MAJOR, FTL_DECODE_FLAT } ftl_decode_view;
ftl_decode_results ftl_decode_declare(ftl_builder *builder, const ftl_spec *spec, const ftl_decode *d,
                                      ftl_decode_view view);
// Whether rows of O follow each other as those of the partial results do.
bool ftl_decode_is_flat(const ftl_spec *spec, const ftl_decode *d);

// Defaults and values by GPU that workloads of these kernels share: block_m 16, 32 or 64, one tile for the rows of a
// KV head if it can be, since each key tile is read once a query tile, and those of the cache (kv_cache.h); splits (0)
// of tiles_n as FlashAttention-2 chooses.
void ftl_decode_set_defaults(ftl_spec *spec);
void ftl_decode_resolve_splits(ftl_spec *spec, const ftl_decode *d, const ftl_arch *arch);

// Both kernels: NAME_split and NAME_combine of the workload NAME. FTL_INFEASIBLE where the configuration cannot exist.
FTL_MUST_USE ftl_status ftl_decode_build(const ftl_spec *spec, const ftl_decode *d, ftl_tile_program **launches,
                                         int *num_launches, ftl_error *error);
FTL_MUST_USE ftl_status ftl_decode_build_split(const ftl_spec *spec, const ftl_decode *d, ftl_tile_program **out,
                                               ftl_error *error);
FTL_MUST_USE ftl_status ftl_decode_build_combine(const ftl_spec *spec, const ftl_decode *d, ftl_tile_program **out,
                                                 ftl_error *error);

#endif
